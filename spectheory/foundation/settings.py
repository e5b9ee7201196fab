"""Settings of long computations: each is declared, described and checked in one place.

A settings class is a frozen dataclass with ``Settings`` as its base.  The command line makes an option of
every field that has flags, and takes its help from the docstring of the class.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import click

Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""
Function = TypeVar("Function", bound=Callable[..., Any])


def setting(default: Any, *flags: str, **about: Any) -> Any:
    """A field of a settings class.

    Args:
        default: in Python.
        flags: of its option on the command line; without flags it has no option.
        about: ``command_default``, ``multiple`` and ``metavar`` of the option; ``read``, from its text to a
            value; ``record``, the attribute that is recorded, by default the field itself, and None where no
            number depends on it; ``texts_only``, whether the setting is for whole texts.
    """
    return field(default=default, metadata={"flags": flags, **about})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The base of settings classes."""

    def _check(self, check: Callable[[str, Any], Any], *names: str) -> None:
        """Replace each of these settings by what its check returns; None passes where it is the default."""
        defaults = {entry.name: entry.default for entry in fields(self)}
        for name in names:
            value = getattr(self, name)
            if value is not None or defaults[name] is not None:
                object.__setattr__(self, name, check(name, value))

    @classmethod
    def command_options(cls) -> list[click.Option]:
        import click

        types, help_texts, options = {"int": int, "float": float}, _described(cls), []
        for entry in fields(cls):
            known = entry.metadata
            default = known.get("command_default", entry.default)
            read: Any = known.get("read")
            if known.get("flags"):
                options.append(
                    click.Option(
                        [*known["flags"], entry.name],
                        default=default,
                        show_default=default is not None and default is not False and default != (),
                        is_flag=entry.default is False,
                        multiple=known.get("multiple", False),
                        type=None if read else types.get(str(entry.type).partition(" ")[0]),
                        metavar=known.get("metavar"),
                        callback=None if read is None else lambda _, __, text, read=read: read(text),
                        help=help_texts[entry.name],
                    )
                )
        return options


def shows_settings(settings: type[Settings]) -> Callable[[Function], Function]:
    """Give a function that passes ``**changes`` on to a settings class the signature with all settings."""

    def shown(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [entry for entry in signature.parameters.values() if entry.kind is not entry.VAR_KEYWORD]
        more = inspect.signature(settings).parameters.values()
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return shown


def _described(settings: type) -> dict[str, str]:
    """Field -> its text under ``Attributes`` in the docstrings of a class and its bases."""
    found = {}
    for kind in reversed(settings.__mro__):
        attributes = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:")[2].partition("\n\n")[0]
        for entry in re.split(r"\n    (?=\w+: )", attributes)[1:]:
            name, _, text = entry.partition(": ")
            found[name] = " ".join(text.replace("``", "").split())
    return found
