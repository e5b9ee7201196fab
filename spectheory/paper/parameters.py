"""Parameters of an exhibit, given as text: those of the function that computes it."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import unknown_name

FROM_ZERO = ("seed", "prompts")
"""Parameters of whole numbers that may be 0; all others are at least 1."""
KINDS: Mapping[type, str] = {
    int: "a whole number",
    float: "a number",
    Fraction: "a rational such as 1/3",
    str: "a name",
    tuple: "whole numbers joined by x, such as 3x2",
}


ABOUT = {
    "agreements": "a; the draft row is a times the target's and 1 − a times an independent one.",
    "confidence": "level of each interval.",
    "draft_length": "L.",
    "draft_lengths": "the lengths L.",
    "max_drafts": "the largest K.",
    "names": "which pairs; the default has all.",
    "num_drafts": "K, the number of drafts.",
    "num_pairs": "random pairs.",
    "num_prompts": "how many of the bundled prompts.",
    "samples": "draws per prompt.",
    "seed": "of the random numbers.",
    "vocab_size": "V.",
}
"""Descriptions of parameters that the docstring of an exhibit leaves out."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an exhibit.

    Attributes:
        name: as in ``--set NAME=VALUE``.
        default: a number or a text, or a tuple of them or of pairs.
        about: what it is.
    """

    name: str
    default: Any
    about: str

    @property
    def default_text(self) -> str:
        """The default as ``--set`` takes it."""
        entries = self.default if isinstance(self.default, tuple) else (self.default,)
        return ",".join("x".join(map(str, e)) if isinstance(e, tuple) else str(e) for e in entries)

    def parse(self, text: str) -> Any:
        """A value of the default's type; several are separated by commas."""
        if not isinstance(self.default, tuple):
            return self._entry(text, type(self.default))
        return tuple(self._entry(entry, type(self.default[0])) for entry in text.split(","))

    def _entry(self, text: str, kind: type) -> Any:
        text = text.strip()
        if self.name == "names" and text not in self.default:
            raise unknown_name("pair of this exhibit", text, self.default)
        try:
            if kind is tuple:
                value: Any = tuple(int(part) for part in text.split("x"))
                fits = len(value) == len(self.default[0]) and min(value) >= 1
            else:
                value = kind(text)
                fits = kind is not int or value >= (self.name not in FROM_ZERO)
        except (ValueError, ZeroDivisionError):
            fits = False
        if not fits or not text:
            least = " of at least 1" if kind is int and self.name not in FROM_ZERO else ""
            several = ", or several separated by commas" if isinstance(self.default, tuple) else ""
            raise InvalidInputError(f"{self.name} is {KINDS[kind]}{least}{several}, got {text!r}")
        return value


def parameters_of(compute: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a function that computes an exhibit, from its signature and its docstring.

    ``ABOUT`` has those that the docstring leaves out.  Parameters whose values cannot be written in a line
    are not listed.
    """
    entries = re.findall(
        r"^ {4}(\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", inspect.getdoc(compute) or "", re.MULTILINE
    )
    about = ABOUT | {name: text for names, text in entries for name in names.split(", ")}
    return tuple(
        Parameter(name, given.default, re.sub(r"\s+", " ", about.get(name, "")))
        for name, given in inspect.signature(compute).parameters.items()
        if type(given.default[0] if isinstance(given.default, tuple) else given.default) in KINDS
    )


def parse_settings(parameters: Sequence[Parameter], settings: Sequence[str]) -> dict[str, Any]:
    """Values by name from texts NAME=VALUE."""
    known = {parameter.name: parameter for parameter in parameters}
    values: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise InvalidInputError(f"--set takes NAME=VALUE, got {setting!r}")
        if name not in known:
            raise unknown_name("parameter of this exhibit", name, known)
        if name in values:
            raise InvalidInputError(f"{name} is set twice")
        values[name] = known[name].parse(text)
    return values
