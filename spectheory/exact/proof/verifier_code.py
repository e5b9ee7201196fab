"""A digest of the code of a verifier: of its classes and of every function that they name."""

from __future__ import annotations

import ast
import inspect
import sys
from fractions import Fraction
from functools import partial
from hashlib import sha256
from textwrap import dedent
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from spectheory.verification.verifier import UserVerifier, Verifier


def code_digest(*verifiers: Verifier) -> str:
    """The digest of ``code_texts``, the same on every machine.

    Example:
        >>> from spectheory import verifiers
        >>> code_digest(verifiers["token"]) == code_digest(verifiers["block"])
        False
    """
    return sha256("\n".join(map("\n".join, code_texts(*verifiers))).encode()).hexdigest()


def code_texts(*verifiers: Verifier) -> list[tuple[str, str]]:
    """(name, text) of the code and parameters of verifiers, and of the constants that the code names, sorted.

    Python, libraries and paths of files are not in it.  Of a user's lists and dictionaries the functions and
    classes in them are; other entries may be caches.
    """
    found: set[tuple[str, str]] = set()
    starts = (one.user_object if isinstance(one, UserVerifier) else one for one in verifiers)
    waiting: list[tuple[str, Any]] = [("verifier", start) for start in starts]
    objects: dict[int, Any] = {}  # an object may lead to itself
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, _CONSTANTS) or id(value) not in objects:
            objects[id(value)] = value
            _read(name, value, found, waiting)
    return sorted(found)


def _read(name: str, value: Any, found: set[tuple[str, str]], waiting: list[tuple[str, Any]]) -> None:
    """Note a constant, or the source of a function or a class, and what they lead to.

    Args:
        name: where the value was found, which names a constant.
        value: a constant, a tuple, a function, a class or an object.
        found: (name, text).
        waiting: receives what is still to be read.
    """
    if isinstance(value, (FunctionType, type)):
        module = value.__module__ or ""
        if isinstance(value, FunctionType):  # what it wraps may have lent it another module's name
            module = str(value.__globals__.get("__name__"))
        name = f"{module}:{value.__qualname__}"
        if not _is_read(module):
            return
        found.add((name, _source(value)))
        if isinstance(value, type):
            waiting += [("", base) for base in value.__mro__[1:]]
            # Names with underscores on both sides that are not functions are Python's.
            for key, entry in vars(value).items():
                if not key.startswith("__") or isinstance(entry, _FUNCTIONS):
                    waiting.append((f"{name}.{key}", entry))
            return
        named = {word: value.__globals__[word] for word in names_in(value.__code__) & {*value.__globals__}}
        cells = dict(zip(value.__code__.co_freevars, value.__closure__ or (), strict=True))
        named |= {word: cell.cell_contents for word, cell in cells.items() if _is_filled(cell)}
        defaults = {f"default {n}": default for n, default in enumerate(value.__defaults__ or ())}
        inner = {"wrapped": value.__wrapped__} if hasattr(value, "__wrapped__") else {}
        for word, entry in (named | defaults | (value.__kwdefaults__ or {}) | inner).items():
            waiting.append((f"{name} {word}", entry))
            if isinstance(entry, ModuleType) and _is_read(entry.__name__):
                found_there = names_in(value.__code__) & {*vars(entry)}
                waiting += [(f"{name} {word}.{each}", vars(entry)[each]) for each in found_there]
    elif isinstance(value, (staticmethod, classmethod)):
        waiting.append((name, value.__func__))
    elif isinstance(value, property):
        waiting += [(name, function) for function in (value.fget, value.fset) if function]
    elif isinstance(value, MethodType):
        waiting += [(name, value.__func__), (name, value.__self__)]
    elif isinstance(value, partial):
        waiting += [(name, value.func), (name, value.args), (name, tuple(value.keywords.items()))]
    elif isinstance(getattr(value, "__wrapped__", None), FunctionType):  # as ``lru_cache`` makes
        waiting.append((name, value.__wrapped__))
    elif isinstance(value, (list, dict)) and not name.startswith(OURS):  # ours are filled when they are asked
        entries = value.values() if isinstance(value, dict) else value
        waiting += [(name, entry) for entry in entries if isinstance(entry, (FunctionType, type))]
    elif isinstance(value, _CONSTANTS):
        found.add((name, repr(value)))
    elif isinstance(value, (tuple, frozenset)):  # lists and dictionaries may be caches
        ordered = value if isinstance(value, tuple) else sorted(value, key=repr)
        waiting += [(f"{name}[{number}]", entry) for number, entry in enumerate(ordered)]
    elif not isinstance(value, ModuleType) and _is_read(type(value).__module__):
        waiting.append((name, type(value)))
        slots = [name for base in type(value).__mro__ for name in _slots(base) if hasattr(value, name)]
        attributes = {each: getattr(value, each) for each in slots} | getattr(value, "__dict__", {})
        waiting += [(f"{type(value).__qualname__}.{key}", entry) for key, entry in attributes.items()]


OURS = f"{__name__.partition('.')[0]}."
_FUNCTIONS = (FunctionType, staticmethod, classmethod, property)
_CONSTANTS = (int, float, str, bytes, Fraction, type(None))


def _is_read(module: str) -> bool:
    root = module.partition(".")[0]
    library = root in sys.stdlib_module_names or root.startswith("namedtuple_")
    return not library and root not in ("numpy", "flint", "torch", "array_api_compat")


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    return [slots] if isinstance(slots, str) else [*slots]


_SOURCES: dict[int, tuple[Any, str]] = {}
"""By the identity of what they are of, which lives as long as it is kept here."""
MOST_SOURCES = 10_000


def _source(value: Any) -> str:
    """The source without comments and docstrings, read once: parsing the package takes a second.

    That code has no source is found out once too: Python looks at every module for it.
    """
    key = value.__code__ if isinstance(value, FunctionType) else value
    if id(key) not in _SOURCES:
        try:
            # Of the code: that of a function is that of what it wraps.
            text = _without_comments(inspect.getsource(key))
        except (OSError, TypeError):  # typed in
            if not isinstance(key, CodeType):
                return repr(sorted(vars(value)))
            text = repr(_bytecode(key))
        if len(_SOURCES) >= MOST_SOURCES:
            _SOURCES.clear()
        _SOURCES[id(key)] = key, text
    return _SOURCES[id(key)][1]


def _without_comments(source: str) -> str:
    try:
        tree = ast.parse(dedent(source))
    except SyntaxError:  # of a lambda in the middle of a line, the line
        return source
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):  # texts that stand alone, as docstrings do, say nothing
            node.body = [one for one in body if not _is_text(one)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _bytecode(code: CodeType) -> tuple[Any, ...]:
    """The same in every process: nested code is not shown by its address."""
    constants = [_bytecode(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return code.co_code, code.co_names, constants


def names_in(code: CodeType) -> set[str]:
    """The names that code, and code inside of it, looks up in its module or as attributes."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
