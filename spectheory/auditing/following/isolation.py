"""Isolate a sampler during a run: replace what it calls, refuse what leaves the process.

Python reports networks, other processes and devices to its audit hooks, whatever name a function was imported
by.  A hook cannot be removed, so one hook stays for the rest of the process; it refuses only inside
``closed``, in that thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from spectheory.auditing.tape.decisions import NotEnumerableError

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


def refusing(message: str) -> Callable[..., Any]:
    """A replacement that raises ``NotEnumerableError`` when it is called."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotEnumerableError(message)

    return refuse


# ------------------------------------------------------------------------- networks, processes, devices

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
    """Refuse whatever leaves the process.

    Raises:
        NotEnumerableError: at the attempt.
    """
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
