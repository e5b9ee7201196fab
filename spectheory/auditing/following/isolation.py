"""Isolate a sampler during a run: replace functions that it calls, and refuse everything outside the process.

Python reports the use of networks, processes and devices to its audit hooks, for every name of a function.
A hook cannot be removed, so our hook stays for the rest of the process.  It refuses only inside ``closed``,
in that thread.
"""

import random
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import _disable_current_modes

from spectheory.auditing.tape.decisions import NotEnumerableError

Replacement = tuple[Any, str, Any]
"""(class or module, name, replacement)."""


@contextmanager
def replaced(replacements: Iterable[Replacement]) -> Iterator[list[Replacement]]:
    """Replace attributes.  ``unittest.mock.patch.object`` does the same, but takes longer than most runs.

    Yields the old attributes, as replacements for ``put_back``.
    """
    before: list[Replacement] = []
    try:
        for owner, name, replacement in replacements:
            getattr(owner, name)  # raises for a name that does not exist
            before.append((owner, name, vars(owner).get(name, _INHERITED)))
            setattr(owner, name, replacement)
        yield before
    finally:
        put_back(before)


def put_back(before: Sequence[Replacement]) -> None:
    for owner, name, own in reversed(before):
        if own is not _INHERITED:
            setattr(owner, name, own)
        elif name in vars(owner):  # an interruption may come before the replacement
            delattr(owner, name)


@contextmanager
def imports_outside(before: Sequence[Replacement]) -> Iterator[None]:
    """Import modules as if before the run, with Python's and numpy's own functions.

    If the sampler imports a module for the first time, the module may make generators, open files and start
    processes.  It draws its numbers only once, and we restore the states of the global generators.  If the
    sampler imports a module again, this is part of the run.
    """
    machinery: Any = sys.modules["_frozen_importlib"]
    find = machinery._find_and_load

    def find_and_load(name: str, import_: Any) -> Any:
        if name in _IMPORTED:
            return find(name, import_)
        _IMPORTED.add(name)
        replacements = [(owner, attribute, vars(owner)[attribute]) for owner, attribute, _ in before]
        states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        was_closed, _HERE.is_closed = _HERE.is_closed, False
        machinery._find_and_load = find
        put_back(before)
        try:
            with torch._C.DisableTorchFunction(), _disable_current_modes():
                return find(name, import_)
        finally:
            for owner, attribute, replacement in replacements:
                setattr(owner, attribute, replacement)
            machinery._find_and_load = find_and_load
            _HERE.is_closed = was_closed
            random.setstate(states[0])
            np.random.set_state(states[1])  # noqa: NPY002
            torch.set_rng_state(states[2])

    with replaced([(machinery, "_find_and_load", find_and_load)]):
        yield


_INHERITED = object()
_IMPORTED: set[str] = set()
"""The modules that were imported outside of a run."""


def refusing(message: str) -> Callable[..., Any]:
    """Build a replacement that raises ``NotEnumerableError`` when it is called."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotEnumerableError(message)

    return refuse


_NETWORK = (
    "socket.connect socket.sendto socket.sendmsg "
    "socket.getaddrinfo socket.gethostbyaddr socket.gethostbyname socket.getnameinfo"
)
_PROCESSES = "os.exec os.fork os.forkpty os.posix_spawn os.spawn os.startfile os.system subprocess.Popen"
_EVENTS = {
    **dict.fromkeys(_NETWORK.split(), "uses a network"),
    **dict.fromkeys(_PROCESSES.split(), "starts another process"),
}
"""Event -> the words for it."""
_DEVICES = ("/dev/random", "/dev/urandom")


class _Here(threading.local):
    is_closed = False


_HERE = _Here()


@contextmanager
def closed() -> Iterator[None]:
    _listen()
    before, _HERE.is_closed = _HERE.is_closed, True
    try:
        yield
    finally:
        _HERE.is_closed = before


@cache
def _listen() -> None:
    sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if not _HERE.is_closed:
        return
    if event in _EVENTS:
        raise NotEnumerableError(f"the sampler {_EVENTS[event]}, which cannot be followed")
    if event == "open" and args[0] in _DEVICES:
        raise NotEnumerableError(f"the sampler draws from {args[0]}, which cannot be followed")
