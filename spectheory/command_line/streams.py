"""Keep the exit status if the reader of stdout or stderr stops, as in ``spectheory ... | head -1``.

Click and rich turn a closed pipe into exit status 1, which in this package means that a defect was found.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class _Raw(io.RawIOBase):
    """A raw stream that drops all bytes after the first failed write.

    Raises (in ``write``):
        OSError: the first failure on stdout, with the name of the stream, unless the pipe was closed.
    """

    def __init__(self, raw: Any, name: str) -> None:
        self.raw, self.name, self.lost = raw, name, False

    def write(self, data: Any) -> int:
        try:
            return len(data) if self.lost else self.raw.write(data)
        except OSError as error:
            self.lost = True
            if not isinstance(error, BrokenPipeError) and self.name != "stderr":  # we cannot report it
                raise OSError(error.errno, error.strerror, self.name) from None
            return len(data)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.raw.fileno()


@contextmanager
def pipes_that_may_close() -> Iterator[None]:
    """Replace ``sys.stdout`` and ``sys.stderr`` in this context if they are files or pipes."""
    before = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    for name, stream in before.items():
        buffer = getattr(stream, "buffer", None)
        if buffer is None or stream.isatty():
            continue
        stream.flush()
        raw = _Raw(getattr(buffer, "raw", buffer), name)  # the buffer itself is raw with ``python -u``
        at_once = stream.line_buffering or stream.write_through
        text = io.TextIOWrapper(
            io.BufferedWriter(raw), stream.encoding, "backslashreplace", line_buffering=at_once
        )
        setattr(sys, name, text)
    try:
        yield
    finally:
        for name, stream in before.items():
            # A failed write or another error has already been reported, or the stream is closed.
            with suppress(OSError, ValueError):
                if stream is not None:
                    getattr(sys, name).flush()
            setattr(sys, name, stream)
