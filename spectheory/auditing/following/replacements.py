"""Replace functions of modules and classes for the time of a run."""

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.errors import InvalidInputError

Replacement = tuple[Any, str, Any]
"""(class or module, name, replacement)."""
_INHERITED = object()
_ONE_AT_A_TIME = threading.RLock()
"""Held while the random functions of this process are replaced."""


@contextmanager
def replaced(replacements: Iterable[Replacement]) -> Iterator[None]:
    """Replace attributes.  ``unittest.mock.patch.object`` does the same, but takes longer than most runs."""
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


@contextmanager
def only_one_at_a_time() -> Iterator[None]:
    """Lock the random functions of this process, so that no other thread can replace them.

    Raises:
        InvalidInputError: another thread has replaced them.
    """
    if not _ONE_AT_A_TIME.acquire(blocking=False):
        raise InvalidInputError(
            "another thread of this process audits a sampler, and an audit replaces the random functions of "
            "the whole process; audit one after the other, or in another process"
        )
    try:
        yield
    finally:
        _ONE_AT_A_TIME.release()


@contextmanager
def not_compiled() -> Iterator[None]:
    """Inside this context torch compiles nothing: it calls compiled functions as they were written."""

    def unchanged(model: Any = None, **options: Any) -> Any:  # torch's name of the first parameter
        return model if model is not None else unchanged

    with ExitStack() as stack:
        stack.enter_context(replaced([(torch, "compile", unchanged)]))
        if "torch._dynamo" in sys.modules:  # imported by torch.compile, and slowly
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield


def refusing(message: str) -> Callable[..., Any]:
    """Build a replacement that raises ``NotEnumerableError`` when it is called."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotEnumerableError(message)

    return refuse
