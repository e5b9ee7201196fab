"""What a sampler may not reach while it is followed: networks, other processes, the system's randomness.

Python tells its audit hooks of all of these, by whatever name a function was imported.  One hook stays for
the rest of the process, as Python has no way to take it away; it refuses only what happens inside of
``closed``, in that thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from spectheory.audit.replay import NotEnumerableError

_NETWORK = (
    "socket.connect socket.sendto socket.sendmsg "
    "socket.getaddrinfo socket.gethostbyaddr socket.gethostbyname socket.getnameinfo"
)
_PROCESSES = "os.exec os.fork os.forkpty os.posix_spawn os.spawn os.startfile os.system subprocess.Popen"
_EVENTS = {
    **dict.fromkeys(_NETWORK.split(), "uses a network"),
    **dict.fromkeys(_PROCESSES.split(), "starts another process"),
}
"""Event -> what the sampler does."""
_DEVICES = ("/dev/random", "/dev/urandom")


class _Here(threading.local):
    """Of one thread."""

    is_closed = False


_HERE = _Here()


@contextmanager
def closed() -> Iterator[None]:
    """Refuse what would leave the process.

    Raises:
        NotEnumerableError: where it is tried.
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
        raise NotEnumerableError(f"the sampler {_EVENTS[event]}, which is not answered here")
    if event == "open" and args[0] in _DEVICES:
        raise NotEnumerableError(f"the sampler draws from {args[0]}, which is not answered here")
