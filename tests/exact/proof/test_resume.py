"""A search that was stopped goes on to the proof that it would have found."""

import gzip
import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from deep import first_is_quick
from spectheory import prove
from spectheory.exact.proof import check_proof, search
from spectheory.exact.proof.check_numbers import RejectedProofError
from spectheory.exact.proof.proof_file import write
from spectheory.foundation.errors import InvalidInputError

SHAPE = ("greedy_multipath", 2, 1, 3)


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A search that ends in the middle of a face: its clock ticks once per region."""
    path, ticks = tmp_path / "file.search", count()
    with monkeypatch.context() as patch:
        patch.setattr(search, "monotonic", lambda: next(ticks))
        found = prove(*SHAPE, time_limit=4)
    assert (found.verdict, found.tree) == ("undecided", None)
    assert found.num_regions > 0
    found.save(path)
    return path


@first_is_quick("jobs", [1, 2])
@pytest.mark.usefixtures("one_process")
def test_a_search_that_is_killed_is_kept(jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step the file is a search that goes on to the whole proof; without a file nothing is left."""
    path, steps = tmp_path / "file.search", count()
    monkeypatch.setattr(search, "KEEP_SECONDS", 0.0)

    def killed(done: int, known: int) -> None:
        if next(steps) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prove(*SHAPE, jobs=jobs, progress=killed)
    assert not path.exists()
    for _ in range(3):
        steps = count()
        resume = path if path.exists() else None
        with pytest.raises(KeyboardInterrupt):
            prove(*SHAPE, jobs=jobs, keep=path, resume=resume, progress=killed)
    document = json.loads(gzip.decompress(path.read_bytes()))
    assert document["regions"] >= 3
    found = prove(*SHAPE, resume=path)
    found.save(path)
    assert check_proof(path)["regions"] == found.num_regions > document["regions"]
    assert [other.name for other in tmp_path.iterdir()] == [path.name]


def test_a_resumed_search_ends_with_a_proof_that_holds(stopped: Path, tmp_path: Path) -> None:
    before = json.loads(gzip.decompress(stopped.read_bytes()))["regions"]
    found = prove(*SHAPE, resume=stopped)
    assert found.verdict == "proved"
    assert found.num_regions > before
    found.save(tmp_path / "file.proof")
    assert check_proof(tmp_path / "file.proof")["regions"] == found.num_regions


def _leaves(node: list[Any]) -> None:
    """Parts that are open become leaves that were never walked."""
    node[2::2] = [-1 if isinstance(target, list) else target for target in node[2::2]]


def _lemmas(node: list[Any]) -> None:
    node[2::2] = [-2 if target == -1 else target for target in node[2::2]]


@pytest.mark.parametrize("change", [_leaves, _lemmas])
def test_partner_a_changed_search_does_not_end_with_a_proof(stopped: Path, change: Any) -> None:
    document = json.loads(gzip.decompress(stopped.read_bytes()))
    before = json.dumps(document["nodes"])
    for node in document["nodes"]:
        change(node)
    assert json.dumps(document["nodes"]) != before
    write(stopped, document)
    with pytest.raises(RejectedProofError):
        prove(*SHAPE, resume=stopped)


@first_is_quick(
    ("changed", "says"),
    [
        ({"statement": "exchangeable"}, "statement"),
        ({"verifier_code": "0"}, "verifier_code"),
        ({"domain": "positive rows"}, "domain"),
        ({"format": "spectheory-proof/1"}, "is not a search that was stopped"),
    ],
)
def test_a_search_for_something_else_is_refused(stopped: Path, changed: dict[str, str], says: str) -> None:
    document = json.loads(gzip.decompress(stopped.read_bytes()))
    write(stopped, document | changed)
    with pytest.raises(InvalidInputError, match=says):
        prove(*SHAPE, resume=stopped)


def test_a_stopped_search_is_not_a_proof(stopped: Path) -> None:
    with pytest.raises(InvalidInputError, match="is not a proof"):
        check_proof(stopped)
