"""Stdout and stderr whose reader may go away, as in ``spectheory ... | head -1``, without a change of status.

Click and rich both turn a closed pipe into exit status 1, which here means that a defect was found.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class _Raw(io.RawIOBase):
    """The bytes of a stream; after a write that failed, further ones are dropped.

    Raises (in ``write``):
        OSError: the first failure of stdout, named for the stream, unless the reader went away.
    """

    def __init__(self, raw: Any, name: str) -> None:
        self.raw, self.name, self.lost = raw, name, False

    def write(self, data: Any) -> int:
        try:
            return len(data) if self.lost else self.raw.write(data)
        except OSError as error:
            self.lost = True
            if not isinstance(error, BrokenPipeError) and self.name != "stderr":  # nobody can be told of it
                raise OSError(error.errno, error.strerror, self.name) from None
            return len(data)

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.raw.fileno()


@contextmanager
def pipes_that_may_close() -> Iterator[None]:
    """Replace ``sys.stdout`` and ``sys.stderr`` where they are files or pipes, until the end."""
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
            # The failure of a write was reported, or another error is; a stream may have been closed.
            with suppress(OSError, ValueError):
                if stream is not None:
                    getattr(sys, name).flush()
            setattr(sys, name, stream)
