"""Refuse networks, other processes and the system's randomness while a sampler is followed.

Python reports all of these to its audit hooks, whatever name a function was imported by.  A hook cannot be
removed, so one hook stays for the rest of the process; it refuses only inside ``closed``, in that thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from spectheory.auditing.tape.decisions import NotEnumerableError

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
