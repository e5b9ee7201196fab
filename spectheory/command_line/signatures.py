"""Make commands from typed functions: parameters become arguments and options, docstrings become help.

A command names the library functions that it calls.  Its keyword-only parameters become options, the others
arguments.  A parameter annotated ``Any`` takes type, default and help from the first of these functions that
has a parameter of this name.  Library functions are read from their source, so that ``--help`` does not
import numpy or torch.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import click

from spectheory.command_line.options import DRAFTS, NAMES, NUMBERS

PACKAGE = Path(__file__).parents[1]
REQUIRED = inspect.Parameter.empty
SHORT = {
    "verifier": "-v",
    "verifiers": "-v",
    "drafts": "-k",
    "draft_length": "-l",
    "max_new_tokens": "-n",
    "tokens": "-m",
    "jobs": "-j",
}
"""One-letter names of options, the same in all commands."""
SYMBOLS = {
    "vocab_size": "V",
    "draft_length": "L",
    "prompts": "FILE",
    "out": "FILE",
    "time_limit": "SECONDS",
    "time": "SECONDS",
    "badge": "FILE.svg",
    "pair_file": "PAIR.json",
    "pair_or_target": "PAIR.json|TARGET",
}
"""Placeholders for values in help texts; by default the name of the type."""
TYPES: Mapping[str, Any] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "Path": click.Path(path_type=Path),
    "Names": NAMES,
    "Numbers": NUMBERS,
}
"""Map from the first word of an annotation to the type of the option."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function, or one field of a settings class.

    Attributes:
        name: name in Python; the option has hyphens instead of underscores.
        annotation: source text of the annotation, such as ``"int | None"``.
        default: default value, or ``REQUIRED``.
        about: help text from the docstring.
    """

    name: str
    annotation: str
    default: Any
    about: str

    def option(self) -> click.Option:
        kind, is_list = self._type()
        flags = [f"--{self.name.replace('_', '-').removesuffix('-')}", self.name]
        is_flag = kind is bool
        has_default = self.default not in (None, False, (), REQUIRED)
        return click.Option(
            [*([SHORT[self.name]] if self.name in SHORT else []), *flags],
            type=None if is_flag else kind,
            is_flag=is_flag,
            multiple=is_list,
            **self._default(),
            show_default=has_default,
            metavar=None if is_flag else SYMBOLS.get(self.name),
            help=self.about,
        )

    def argument(self) -> click.Argument:
        kind, is_list = self._type()
        symbol = SYMBOLS.get(self.name, self.name.upper()) + ("..." if is_list else "")
        if isinstance(kind, click.Choice):
            symbol = "|".join(kind.choices)
        return click.Argument(
            [self.name],
            type=kind,
            nargs=-1 if is_list else 1,
            **self._default(),
            metavar=symbol if self.default is REQUIRED else f"[{symbol}]",
        )

    def _default(self) -> dict[str, Any]:
        """Build the keyword arguments for click.

        If there is no default, the key is absent, because click takes None as a value.
        """
        return {"required": True} if self.default is REQUIRED else {"default": self.default}

    def _type(self) -> tuple[Any, bool]:
        """Return the type of a value, and whether several values are allowed."""
        if "DraftProcess" in self.annotation:
            return DRAFTS, self.annotation.startswith("tuple[")
        listed = re.fullmatch(r"(?:Sequence|tuple)\[(\w+).*\]", self.annotation)
        if choices := re.match(r"Literal\[(.*?)\]", self.annotation):
            return click.Choice(ast.literal_eval(f"({choices[1]},)")), False
        words = [listed[1]] if listed else re.findall(r"\w+", self.annotation)
        return TYPES["Path" if "Path" in words else words[0]], listed is not None


class SignatureCommand(click.Command):
    """A command that reads its parameters only when they are needed.

    Args:
        function: the function to run; it returns the exit code.
        calls: library functions and settings classes, as ``"package.module:name"``.
        passed: those of their parameters that ``function`` takes as ``**settings``.
        defaults: defaults of the command that differ from the defaults in Python.
        example: command line that works unchanged, where ``pair.json`` is a pair file.
    """

    def __init__(
        self,
        function: Callable[..., int],
        calls: Sequence[str],
        passed: Sequence[str],
        defaults: Mapping[str, Any],
        example: str,
    ) -> None:
        text = inspect.cleandoc(function.__doc__ or "").partition("\n\nArgs:")[0]
        super().__init__(
            function.__name__, callback=function, help=text, short_help=re.split("[.:]", text)[0]
        )
        self._calls, self._passed, self._defaults, self.example = calls, passed, defaults, example

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        if not self.params:
            self.params = list(self._read())
        return super().get_params(ctx)

    def _read(self) -> Iterator[click.Parameter]:
        known: dict[str, Parameter] = {}
        for place in self._calls:
            known = parameters_of(place) | known
        signature = inspect.signature(self.callback)  # type: ignore[arg-type]
        about = described(self.callback.__doc__ or "")
        for entry in signature.parameters.values():
            if entry.kind is entry.VAR_KEYWORD:
                yield from (self._with_default(known[name]).option() for name in self._passed)
                continue
            written = entry.annotation
            written = written if isinstance(written, str) else inspect.formatannotation(written)
            own = Parameter(entry.name, written, entry.default, about.get(entry.name, ""))
            if written == "Any":
                own = replace(known[entry.name], about=own.about or known[entry.name].about)
            is_option = entry.kind is entry.KEYWORD_ONLY
            yield self._with_default(own).option() if is_option else own.argument()

    def _with_default(self, parameter: Parameter) -> Parameter:
        return replace(parameter, default=self._defaults.get(parameter.name, parameter.default))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Example"):
            formatter.write_text(self.example)


def command(
    *calls: str, passed: str = "", defaults: Mapping[str, Any] | None = None, example: str
) -> Callable[[Callable[..., int]], SignatureCommand]:
    """Decorate a function to make it a command.  Arguments as in ``SignatureCommand``."""

    def made(function: Callable[..., int]) -> SignatureCommand:
        return SignatureCommand(function, calls, passed.split(), defaults or {}, example)

    return made


@cache
def parameters_of(place: str) -> dict[str, Parameter]:
    """Read the parameters of a function, or the fields of a class and its bases, from the source.

    Args:
        place: module below ``spectheory`` and name, such as ``"exact.suite:certify_suite"``.

    Example:
        >>> parameters_of("exact.suite:certify_suite")["seed"].default
        0
    """
    module, _, name = place.partition(":")
    tree = ast.parse(PACKAGE.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
    constants = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return _of(name, {node.name: node for node in tree.body if hasattr(node, "name")}, constants)


def _of(name: str, nodes: Mapping[str, Any], constants: Mapping[str, ast.expr]) -> dict[str, Parameter]:
    node = nodes[name]
    about = described(ast.get_docstring(node) or "")
    found: dict[str, Parameter] = {}
    if isinstance(node, ast.ClassDef):
        for base in (ast.unparse(base) for base in node.bases):
            found |= _of(base, nodes, constants) if base in nodes else {}
        listed = [
            (entry.target.id, entry.annotation, entry.value)
            for entry in node.body
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name)
        ]
    else:
        given = node.args
        defaults = [None] * (len(given.args) - len(given.defaults)) + given.defaults
        pairs = zip([*given.args, *given.kwonlyargs], [*defaults, *given.kw_defaults], strict=True)
        listed = [(entry.arg, entry.annotation, default) for entry, default in pairs]
    for own, annotation, default in listed:
        text = ast.unparse(annotation) if annotation is not None else ""
        found[own] = Parameter(own, text, _value(default, constants), about.get(own, ""))
    return found


def _value(node: ast.expr | None, constants: Mapping[str, ast.expr]) -> Any:
    """Evaluate a default that is a literal, a constant of the module or an argument of ``setting(..)``."""
    if node is None:
        return REQUIRED
    if isinstance(node, ast.Call) and node.args:
        return _value(node.args[0], constants)
    if isinstance(node, ast.Name) and node.id in constants:
        return _value(constants[node.id], constants)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def described(docstring: str) -> dict[str, str]:
    """Map each parameter to its text in a docstring, under ``Args`` or ``Attributes``.

    Example:
        >>> described('''Add.
        ...
        ...     Args:
        ...         first, second: two numbers,
        ...             of one kind.
        ... ''')
        {'first': 'Two numbers, of one kind.', 'second': 'Two numbers, of one kind.'}
    """
    found: dict[str, str] = {}
    parts = re.split(r"^(?:Args|Attributes):\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
    for part in parts[1:]:
        for entry in re.split(r"^    (?=\w[\w, ]*: )", part.partition("\n\n")[0], flags=re.MULTILINE)[1:]:
            names, _, text = entry.partition(": ")
            words = " ".join(text.replace("``", "").split())
            found |= {name: words[:1].upper() + words[1:] for name in names.split(", ")}
    return found
