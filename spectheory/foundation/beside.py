"""What user code prints goes to stderr, and the streams that it finds are not those of the process.

User code may close a stream, take its buffer or replace it, as ``sys.stdout = io.TextIOWrapper(
sys.stdout.buffer, "utf-8")`` does; what it gets has the same methods, and nothing but writing has an effect.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

_KEPT: list[Any] = []
"""Streams of user code over the numbers 1 and 2, which close them when they are forgotten."""


class _Bytes(io.RawIOBase):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)


class _Text(io.TextIOBase):
    """A text stream over another one, which it does not close."""

    encoding, errors = "utf-8", "backslashreplace"

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @property
    def buffer(self) -> Any:
        return _Bytes(self._stream)

    def detach(self) -> Any:
        return self.buffer

    def reconfigure(self, **settings: Any) -> None:
        """Settings of the stream itself stay."""

    def close(self) -> None:
        """The stream is not the user's."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return int(self._stream.write(text) or 0)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return bool(self._stream.isatty())

    def fileno(self) -> int:
        return int(self._stream.fileno())


@contextmanager
def printed_beside() -> Iterator[None]:
    """Within, stdout and stderr are streams over stderr; at the end they are what they were.

    Example:
        >>> with printed_beside():
        ...     print("a word of user code")
        ...     sys.stdout.close()
        >>> print("stdout is open")
        stdout is open
    """
    stream = sys.stderr
    if stream is None or isinstance(stream, _Text):  # it was closed, or user code calls user code
        with redirect_stdout(stream):
            yield
    else:
        with redirect_stdout(_Text(stream)), redirect_stderr(_Text(stream)):
            try:
                yield
            finally:
                _KEPT.extend(found for found in (sys.stdout, sys.stderr) if _is_of_the_process(found))


def _is_of_the_process(stream: Any) -> bool:
    if isinstance(stream, _Text):
        return False
    try:
        return stream.fileno() in (1, 2)
    except (OSError, ValueError, AttributeError):
        return False
