"""Replace attributes of classes and modules during a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Replacement = tuple[Any, str, Any]
"""(class or module, name, replacement)."""


@contextmanager
def replaced(replacements: Iterable[Replacement]) -> Iterator[None]:
    """Replace attributes, as ``unittest.mock.patch.object`` does, which takes longer than most runs."""
    before: list[Replacement] = []
    try:
        for owner, name, replacement in replacements:
            getattr(owner, name)  # raises for a name that does not exist
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
