"""Attributes of classes and modules that stand for something else during a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Replacement = tuple[Any, str, Any]
"""(class or module, name, what stands there)."""


@contextmanager
def replaced(replacements: Iterable[Replacement]) -> Iterator[None]:
    """As ``unittest.mock.patch.object`` of every one, which takes longer than many a run."""
    before: list[Replacement] = []
    try:
        for owner, name, replacement in replacements:
            getattr(owner, name)  # what is not there is not replaced
            before.append((owner, name, vars(owner).get(name, _INHERITED)))
            setattr(owner, name, replacement)
        yield
    finally:
        for owner, name, own in reversed(before):
            if own is not _INHERITED:
                setattr(owner, name, own)
            elif name in vars(owner):  # an interruption may come before the replacement
                delattr(owner, name)


_INHERITED = object()
