"""The file of a long run: a line per finished unit, from which the same command goes on.

The first line holds all that determines the numbers (``first_line.py``), and a file with another first line
is refused.  An incomplete last line, of a process that was killed, is dropped and computed again.
"""

import json
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from spectheory.foundation.errors import InvalidInputError, UnfinishedLineNotice
from spectheory.foundation.extras import installed
from spectheory.foundation.validation import check_path

FORMAT = "spectheory-lines/1"
LONGEST_VALUE = 40
"""Characters of a value beyond which an error names its field alone, so that the line can be read."""


class FinishedLines:
    """The finished units of a run, in their order; with a file, on disk as soon as each is finished.

    Attributes:
        lines: the units, as JSON holds them.
    """

    def __init__(self, lines: list[Any] | None = None, file: FileIO | None = None) -> None:
        self.lines, self._file = lines or [], file

    def add(self, line: Any) -> None:
        """Keep a finished unit."""
        self.write(line)
        self.lines.append(line)

    def write(self, line: Any) -> None:
        """Write a line, which is on disk when this returns; without a file do nothing."""
        if self._file is None:
            return
        left = memoryview(_encoded(line))
        try:
            while left:  # a disk that is nearly full takes a part
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            error.filename = error.filename or str(self._file.name)
            raise


@contextmanager
def open_lines(path: str | Path | None, first: Mapping[str, Any]) -> Iterator[FinishedLines]:
    """The finished units of a run, read from its file where there is one, and locked while it is used.

    Args:
        path: the file; None keeps finished units in memory only.
        first: all that determines the numbers.

    Raises:
        InvalidInputError: the file is of another run or no such file, a line is damaged, its folder does not
            exist, or another process uses it.
    """
    if path is None:
        yield FinishedLines()
        return
    path = Path(path)
    check_place(path)
    header = {"format": FORMAT, **first}
    if path.exists():  # before the lock, which would leave a file beside one that is not ours
        _refuse_other_run(path, header)
    with _locked(path):
        lines = _read(path)
        # Without a buffer: what does not fit on the disk is not written again when the file is closed.
        with path.open("ab", buffering=0) as file:
            kept = FinishedLines(lines, file)
            if not path.stat().st_size:
                kept.write(header)
            try:
                yield kept
            except BaseException as stop:
                if kept.lines:
                    stop.add_note(f"{len(kept.lines)} finished lines are kept in {path}")
                raise


def check_place(given: str | Path) -> str | Path:
    """The path as it was given; one where no file of lines can be is refused."""
    path = check_path("checkpoint", given)
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InvalidInputError(f"cannot use the checkpoint {path}: {error.strerror}; name another") from None
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise InvalidInputError(f"the checkpoint {path} is {kind}; name a file")
    if not path.parent.is_dir():
        raise InvalidInputError(f"the checkpoint {path} lies in a folder that does not exist; make it")
    return given


def _encoded(line: Any) -> bytes:
    return json.dumps(line).encode() + b"\n"


def _read(path: Path) -> list[Any]:
    """The finished lines of a file, whose incomplete last line is cut off."""
    content = path.read_bytes() if path.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:  # new, empty, or killed while the first line was written
        path.write_bytes(b"")
        return []
    lines = []
    for number, line in enumerate(whole.split(b"\n")[1:-1], start=2):
        try:
            lines.append(json.loads(line))
        except ValueError as error:
            raise InvalidInputError(
                f"line {number} of the checkpoint {path} is damaged ({error}); remove it with all lines "
                "after it, or remove the file"
            ) from None
    if len(whole) < len(content):
        warnings.warn(
            f"the last line of the checkpoint {path} was not finished and is dropped; it is computed again",
            UnfinishedLineNotice,
            stacklevel=2,
        )
        os.truncate(path, len(whole))
    return lines


def _refuse_other_run(path: Path, header: Mapping[str, Any]) -> None:
    with path.open("rb") as file:
        first = file.readline()
    if _encoded(header).startswith(first):  # the same, or killed while it was written
        return
    try:
        there, here = json.loads(first), json.loads(_encoded(header))
        is_known = there["format"] == FORMAT
    except (ValueError, KeyError, TypeError):
        is_known = False
    if not is_known:
        raise InvalidInputError(
            f"{path} is not a checkpoint: its first line is not one of {FORMAT}; name another file"
        )
    different = list(_differences(there, here))
    if different:
        raise InvalidInputError(
            f"the checkpoint {path} belongs to another run, different in {', '.join(different)}; name "
            "another file, or remove this one"
        )


def _differences(there: Any, here: Any, field: str = "") -> Iterator[str]:
    """The fields in which two first lines differ, with both values where these are short."""
    if there == here:
        return
    if isinstance(there, dict) and isinstance(here, dict):
        for name in sorted(there.keys() | here.keys()):
            yield from _differences(there.get(name), here.get(name), f"{field} {name}".lstrip())
        return
    long = any(isinstance(side, (list, dict)) or len(str(side)) > LONGEST_VALUE for side in (there, here))
    yield field if long else f"{field} ({there} there, {here} here)"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file beside a file; it stays there, unlocked, when the run has ended."""
    with installed():
        from filelock import FileLock, Timeout
    lock = FileLock(f"{path.resolve()}.lock", timeout=0)  # one lock, whatever links lead to the file
    try:
        lock.acquire()
    except Timeout:
        raise InvalidInputError(
            f"the checkpoint {path} is in use by another process; wait for it, or name another file"
        ) from None
    try:
        yield
    finally:
        lock.release()
