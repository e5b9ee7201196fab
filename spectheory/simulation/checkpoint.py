"""Checkpoint: the finished batches of a run, and the file that keeps them.

The file is JSON Lines: a header with the identity of the run, then one line per finished batch, appended,
flushed and synchronised.  Every line carries a sha256 over its content and over the header's, so that neither
damage nor a line of another run passes.  An unfinished last line, of a process that was killed, is cut off.
"""

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.foundation.documents import json_sha256
from spectheory.foundation.errors import InvalidInputError, UnfinishedLineNotice
from spectheory.foundation.extras import installed
from spectheory.foundation.validation import check_path
from spectheory.simulation.estimates import Tally

FORMAT = "spectheory-checkpoint/4"
_BEGINNING = b'{"sha256": "'
"""How every line begins."""


@dataclass
class Checkpoint:
    """The finished batches of a run; with a file, on disk as soon as they are finished.

    Attributes:
        tallies: batch -> name of a verifier -> its sums.
    """

    tallies: dict[int, dict[str, Tally]] = field(default_factory=dict)
    _file: FileIO | None = None
    _chain: str = ""

    @property
    def is_on_disk(self) -> bool:
        """Whether finished batches outlive the process."""
        return self._file is not None

    def add(self, batch: int, tallies: dict[str, Tally]) -> None:
        """Keep a finished batch: it is on disk when this returns."""
        if self._file is not None:
            sums = {
                name: {entry: array.tolist() for entry, array in vars(tally).items()}
                for name, tally in tallies.items()
            }
            line = memoryview(_line({"batch": batch, "tallies": sums}, self._chain))
            with _naming(self._file.name):
                while line:
                    line = line[self._file.write(line) :]
        self.tallies[batch] = tallies  # written: an interrupt while the disk is waited for loses nothing
        if self._file is not None:
            with _naming(self._file.name):
                os.fsync(self._file.fileno())


@contextmanager
def open_checkpoint(
    path: str | Path | None,
    identity: Mapping[str, Any],
    verifiers: Sequence[str],
    strata_per_batch: Sequence[int],
    draft_length: int,
) -> Iterator[Checkpoint]:
    """The checkpoint of a run, read from its file where there is one, and locked while it is used.

    Args:
        path: the file; None keeps finished batches in memory only.
        identity: all that determines the numbers.

    Raises:
        InvalidInputError: the file is not a checkpoint, is damaged, belongs to another run, has no folder, or
            another process uses it.
    """
    if path is None:
        yield Checkpoint()
        return
    path = Path(path)
    check_place(path)
    with ExitStack() as stack:
        stack.enter_context(_locked(path))
        header = _line({"format": FORMAT, "identity": identity})
        if not path.exists() or header.startswith(
            path.read_bytes()
        ):  # new, empty, or killed while it was made
            with _naming(path):
                path.write_bytes(header)
            _synchronise_folder(path)
        tallies = _read(path, identity, verifiers, strata_per_batch, draft_length)
        # Without a buffer: what does not fit on the disk is not written again when the file is closed.
        file = stack.enter_context(path.open("ab", buffering=0))
        yield Checkpoint(tallies, file, json.loads(header)["sha256"])


def check_place(given: str | Path) -> str | Path:
    """The path as it was given; one that no checkpoint can be written to is refused."""
    path = check_path("checkpoint", given)
    try:
        path.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise InvalidInputError(f"cannot use the checkpoint {path}: {error.strerror}; name another") from None
    if path.is_dir():
        raise InvalidInputError(f"the checkpoint {path} is a folder; name a file")
    if path.exists() and not path.is_file():
        raise InvalidInputError(f"the checkpoint {path} is not a regular file; name another")
    if not path.parent.is_dir():
        raise InvalidInputError(f"the checkpoint {path} lies in a folder that does not exist; make it")
    return given


def refuse_other_run(path: str | Path, known: Mapping[str, Any]) -> None:
    """Refuse the file of another run as far as that can be seen from a part of this run's identity."""
    path = Path(path)
    if not path.exists():
        return
    lines = _whole_lines(path)
    beginning = path.read_bytes()[: len(_BEGINNING)]
    if lines or not _BEGINNING.startswith(beginning):  # otherwise it was killed while it wrote the header
        _check_identity(path, _header(path, lines[0] if lines else b""), known)


def _read(
    path: Path,
    identity: Mapping[str, Any],
    verifiers: Sequence[str],
    strata_per_batch: Sequence[int],
    draft_length: int,
) -> dict[int, dict[str, Tally]]:
    """The finished batches of a file whose header is whole; what follows its last whole line is cut off."""
    lines = _whole_lines(path)
    header = _header(path, lines[0] if lines else b"")
    _check_identity(path, header, identity, complete=True)
    chain = json.loads(lines[0])["sha256"]
    tallies: dict[int, dict[str, Tally]] = {}
    for number, line in enumerate(lines[1:], start=2):
        try:
            record = _content(line, chain)
            batch = record["batch"]
            if type(batch) is not int or not 0 <= batch < len(strata_per_batch) or batch in tallies:
                raise ValueError(f"batch {batch!r} is not of this run, or stands there twice")
            if list(record["tallies"]) != list(verifiers):
                raise ValueError("its verifiers are not those of this run")
            like = Tally.zeros(strata_per_batch[batch], draft_length)
            tallies[batch] = {name: _tally(sums, like) for name, sums in record["tallies"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise _damaged(path, number, error) from None
    if whole := _notice_unfinished(path, lines, "its batch is drawn again"):
        os.truncate(path, whole)
    return tallies


def _notice_unfinished(path: Path, lines: Sequence[bytes], follows: str) -> int:
    """The length of the whole lines of a file, if it has more than these; the user is told."""
    whole = sum(map(len, lines))
    if whole == path.stat().st_size:
        return 0
    warnings.warn(
        f"the last line of the checkpoint {path} was not finished and is dropped; {follows}",
        UnfinishedLineNotice,
        stacklevel=3,
    )
    return whole


def _whole_lines(path: Path) -> list[bytes]:
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except OSError as error:
        raise InvalidInputError(f"cannot read the checkpoint {path}: {error.strerror}") from None
    return lines if lines and lines[-1].endswith(b"\n") else lines[:-1]


def _header(path: Path, line: bytes) -> dict[str, Any]:
    try:
        content = _content(line)
        if content["format"] != FORMAT or not isinstance(content["identity"], dict):
            raise ValueError("another format")
        return content["identity"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidInputError(
            f"{path} is not a checkpoint of a simulation, or its first line is damaged; name another file"
        ) from None


def _check_identity(
    path: Path, found: Mapping[str, Any], known: Mapping[str, Any], complete: bool = False
) -> None:
    mine = json.loads(json.dumps(known))
    keys = found.keys() | mine.keys() if complete else mine.keys()
    different = [_difference(key, found.get(key), mine.get(key)) for key in sorted(keys)]
    if any(different):
        raise InvalidInputError(
            f"the checkpoint {path} belongs to another run, different in "
            f"{', '.join(filter(None, different))}; name another file, or remove this one"
        )


def _difference(key: str, there: Any, here: Any) -> str:
    if there == here:
        return ""
    if isinstance(there, dict) and isinstance(here, dict):
        inner = sorted(there.keys() | here.keys())
        parts = [_difference(f"{key} {name}", there.get(name), here.get(name)) for name in inner]
        return ", ".join(filter(None, parts))
    long = any(isinstance(side, (list, dict)) or len(str(side)) > 40 for side in (there, here))
    return key if long else f"{key} ({there} there, {here} here)"


def _damaged(path: Path, number: int, error: BaseException) -> InvalidInputError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return InvalidInputError(
        f"line {number} of the checkpoint {path} is damaged ({reason}); remove that line, or the file"
    )


def _tally(sums: Any, like: Tally) -> Tally:
    """The sums of one verifier, refused unless they are numbers in the shapes of this run."""
    arrays = {}
    for entry in fields(Tally):
        given, shape = np.array(sums[entry.name]), getattr(like, entry.name).shape
        if given.shape != shape or given.dtype.kind not in "if" or not np.isfinite(given).all():
            raise ValueError(f"{entry.name} is not an array of {shape} numbers")
        arrays[entry.name] = given.astype(float)
    if len(sums) != len(arrays):
        raise ValueError("it has fields that are not known")
    found = Tally(**arrays)
    if fault := found.contradiction():
        raise ValueError(fault)
    return found


def _line(content: Mapping[str, Any], chain: str = "") -> bytes:
    return json.dumps({"sha256": json_sha256(content, chain), "content": content}).encode() + b"\n"


def _content(line: bytes, chain: str = "") -> Any:
    record = json.loads(line.decode())  # of bytes json guesses the encoding
    if record["sha256"] != json_sha256(record["content"], chain):
        raise ValueError("its checksum is wrong")
    return record["content"]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file beside the checkpoint; it stays there, unlocked, when the run has ended."""
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


@contextmanager
def _naming(path: str | Path) -> Iterator[None]:
    """An error of the system without a file, as of a full disk, gets this one."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def _synchronise_folder(path: Path) -> None:
    """The name of a new file is on disk too; systems that cannot open folders do without."""
    try:
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
