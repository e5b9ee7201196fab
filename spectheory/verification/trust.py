"""Tell whether an object is the package's own: its class, its attributes and its parameters.

An object of the package is not vetted, and is given arrays themselves.  Its module's name alone proves
nothing: an instance may hold a user's function, and a class may have been changed after it was written.
"""

import sys
from abc import ABC, ABCMeta
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, Generic

import numpy as np
from flint import fmpq

from spectheory.foundation.arrays import holds_numbers

_PACKAGE = Path(__file__).parents[1]
_PLAIN = frozenset({type(None), bool, int, float, str, Fraction, fmpq, *np.sctypeDict.values()})
_ADDED_BY_PYTHON = frozenset({"__abstractmethods__", "_abc_impl", "__annotations__", "__slotnames__"})
_SET_BY_INSTANCES = ("_process", "exact")
"""Attributes of verifiers' classes that instances of the package set: the bound process, the arithmetic."""
_CONTAINERS = (tuple, list, set, frozenset)
_FOREIGN_BASES = (object, tuple, ABC, Generic)
_AS_WRITTEN: dict[type, dict[str, int]] = {}
_KEPT: list[Any] = []


def remember_as_written(kind: type) -> None:
    """Keep the contents of a class of the package, called when its body was run."""
    if _is_in_package(kind.__module__):
        _AS_WRITTEN[kind] = _contents(vars(kind))
        _KEPT.extend(vars(kind).values())  # so that nothing else gets their ids


def is_packages_own(value: Any) -> bool:
    """Whether a value is plain data, or an object of unchanged classes of the package that holds such."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind is np.ndarray:
        return value.dtype != object or holds_numbers(value)
    if kind is FunctionType:
        return _is_named_in_package(value)
    if kind is MethodType:
        return is_packages_own(value.__func__) and is_packages_own(value.__self__)
    if kind is dict:
        return all(map(is_packages_own, (*value, *value.values())))
    if kind not in _CONTAINERS and not _is_class_as_written(kind):
        return False
    given = getattr(value, "__dict__", {})
    if type(given) is not dict or not {type(name) for name in given} <= {str}:
        return False
    held = {name: entry for name, entry in given.items() if not _is_cache(kind, name)}
    if any(_is_replaced(kind, name) and not _is_forwarded(kind, held, name) for name in held):
        return False
    entries = (*held.values(), *value) if isinstance(value, _CONTAINERS) else held.values()
    return all(map(is_packages_own, entries))


def has_methods_as_written(value: Any) -> bool:
    """Whether an object is of unchanged classes of the package, and no attribute stands over a method."""
    kind, held = type(value), getattr(value, "__dict__", {})
    return _is_class_as_written(kind) and type(held) is dict and not any(_is_replaced(kind, n) for n in held)


def _is_named_in_package(thing: Any) -> bool:
    """Whether a class or function is the one that a module of the package has under its name."""
    module, name = str(getattr(thing, "__module__", "")), getattr(thing, "__qualname__", "")
    found = sys.modules.get(module) if _is_in_package(module) else None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is thing


def _is_in_package(module: Any) -> bool:
    file = getattr(sys.modules.get(module), "__file__", None) if type(module) is str else None
    return type(file) is str and file.startswith(str(_PACKAGE)) and module.startswith("spectheory.")


def _is_class_as_written(kind: type) -> bool:
    bases = [base for base in kind.__mro__ if base not in _FOREIGN_BASES]
    return (
        type(kind) in (type, ABCMeta)
        and all(map(_is_named_in_package, bases))
        and all(_contents(vars(base)) == _AS_WRITTEN[base] for base in bases if base in _AS_WRITTEN)
    )


def _contents(names: Mapping[str, Any]) -> dict[str, int]:
    return {name: id(entry) for name, entry in names.items() if name not in _ADDED_BY_PYTHON}


def _is_cache(kind: type, name: str) -> bool:
    return isinstance(getattr(kind, name, None), cached_property)


def _is_replaced(kind: type, name: str) -> bool:
    """Whether an instance attribute stands over a method, or over a declaration of a verifier's class."""
    return (
        name not in _SET_BY_INSTANCES
        and (kind in _AS_WRITTEN or callable(getattr(kind, name, None)))
        and (hasattr(kind, name))
    )


def _is_forwarded(kind: type, held: dict[str, Any], name: str) -> bool:
    """Whether a compiled verifier has it from the verifier that it runs."""
    inner = held.get("verifier")
    return kind.__name__ == "Compiled" and held.get("traced") is inner and held[name] == getattr(inner, name)
