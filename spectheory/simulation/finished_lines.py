"""Checkpoint file of a long run: one line per finished unit, so that the same command can resume.

The first line holds everything that determines the numbers (``first_line.py``).  We refuse a file with
another first line.  If a process was killed while it wrote, the incomplete last line is dropped and computed
again.
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
"""Longest value, in characters, that an error shows; for longer values it names only the field."""


class FinishedLines:
    """The finished units of a run, in order.  With a file, each unit is on disk as soon as it is finished.

    Attributes:
        lines: the units, as JSON values.
    """

    def __init__(self, lines: list[Any] | None = None, file: FileIO | None = None) -> None:
        self.lines, self._file = lines or [], file

    def add(self, line: Any) -> None:
        """Add a finished unit, and write it to the file."""
        self.write(line)
        self.lines.append(line)

    def write(self, line: Any) -> None:
        """Write a line and wait until it is on disk.  Without a file, do nothing."""
        if self._file is None:
            return
        left = memoryview(_encoded(line))
        try:
            while left:  # a write to a nearly full disk can be partial
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            error.filename = error.filename or str(self._file.name)
            raise


@contextmanager
def open_lines(path: str | Path | None, first: Mapping[str, Any]) -> Iterator[FinishedLines]:
    """Open the checkpoint of a run, lock it, and read the finished units if the file exists.

    Args:
        path: the file; None keeps finished units in memory only.
        first: content of the first line: everything that determines the numbers.

    Raises:
        InvalidInputError: the file belongs to another run or is not a checkpoint, a line is damaged, its
            folder does not exist, or another process uses it.
    """
    if path is None:
        yield FinishedLines()
        return
    path = Path(path)
    check_place(path)
    header = {"format": FORMAT, **first}
    if path.exists():  # before the lock: we leave no lock file beside another's file
        _refuse_other_run(path, header)
    with _locked(path):
        lines = _read(path)
        # Unbuffered: otherwise closing the file would again write data that did not fit on the disk.
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
    """Return the path unchanged, but refuse a path where no checkpoint can be written."""
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
    """Read the finished lines of a file, and cut off an incomplete last line."""
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
    if _encoded(header).startswith(first):  # equal, or the run was killed while writing it
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
    """Yield the fields in which two first lines differ, with both values if they are short."""
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
    """Hold the lock of a file.  The lock file is not deleted when the run ends."""
    with installed():
        from filelock import FileLock, Timeout
    lock = FileLock(f"{path.resolve()}.lock", timeout=0)  # one lock, also if links lead to the file
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
