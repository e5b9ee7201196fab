"""Proofs that postpone decisions: what they prove, and wrong verifiers that they must not prove."""

import gzip
import json
from itertools import count
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import pytest

from deep import first_is_quick
from spectheory import defects, prove
from spectheory.exact.proof import postponed, search
from spectheory.exact.proof.domain import Shape
from spectheory.exact.proof.points import random_point
from spectheory.exact.proof.postponed import PostponedPair, _AtPoint, find_facts
from spectheory.exact.proof.statements import Statement
from spectheory.foundation.arrays import divide_or_zero
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier


def _facts(verifier: Any, draft_length: int = 2, num_drafts: int = 1) -> Any:
    statement = Statement.of("lossless", find_verifier(verifier), Iid(num_drafts), draft_length)
    found = find_facts(statement, Shape(2, draft_length, False), monotonic() + 600)
    return found if found is not None and found.is_settled else None


def test_one_run_and_facts_replace_the_regions() -> None:
    """``prove`` takes this way for paths of two tokens.  One position is walked as it was."""
    found = prove("token", 2, 2)
    assert found.verdict == "proved"
    assert found.tree is not None
    assert found.tree["sums"]
    assert "roots" not in found.tree
    one_position = prove("token", 2, 1).tree
    assert one_position is not None
    assert "sums" not in one_position


@pytest.mark.deep
def test_facts_of_contexts_add_up() -> None:
    """Seven contexts have about 7/3 of the regions of three, where a walk has 82 times as many."""
    few, many = _facts("token", 2), _facts("token", 3)
    assert many.walk.num_regions < 3 * few.walk.num_regions


def test_atoms_are_resolved_to_what_they_stand_for() -> None:
    """A function of atoms, once they are replaced by their definitions as a point decides them, has the
    value there that it has with the values of the atoms; an open atom stays."""
    pair = PostponedPair(Shape(2, 1, False), 2)
    first, second = pair.field.variables[:2]
    part = pair.atom(first - second)  # max(x - y, 0)
    ratio = pair.atom(first, second, first)  # x/y, and x where y = 0
    function = (part + ratio + 1) / (ratio * ratio + 2)
    values = set()
    for point in (random_point(pair, Random(seed)) for seed in range(40)):
        run = _AtPoint(point)
        resolved = pair.resolved(function, lambda atom: False, run, {})
        assert max(pair.occurring(resolved), default=0) < pair.first_atom
        assert resolved.at(point) == function.at(point)
        values.add(resolved.at(point))
        left = pair.resolved(function, lambda atom: atom == pair.first_atom, run, {})
        assert pair.first_atom in pair.occurring(left)
    assert len(values) > 5


class Changed:
    """``token`` with stops and rows that are changed."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = Token().outcome(paths, target_rows, draft_rows)
        return Outcome(
            self.stops(right.stop_probs, target_rows, draft_rows),
            lambda *stop: self.row(right.correction(*stop), stop[1], target_rows, draft_rows),
        )

    def stops(self, probs: Any, target_rows: Any, draft_rows: Any) -> Any:
        return probs

    def row(self, row: Any, length: Any, target_rows: Any, draft_rows: Any) -> Any:
        return row


class Halved(Changed):
    """Stops are halved and rows doubled: the output has the target's law, and the outcome is not a law."""

    def stops(self, probs: Any, target_rows: Any, draft_rows: Any) -> Any:
        return probs / 2

    def row(self, row: Any, length: Any, target_rows: Any, draft_rows: Any) -> Any:
        return row * 2


class Moved(Changed):
    """Stop probabilities leave [0, 1], and still sum to 1."""

    def stops(self, probs: Any, target_rows: Any, draft_rows: Any) -> Any:
        moved = probs + 0
        moved[..., 0] = moved[..., 0] + 1
        moved[..., 1] = moved[..., 1] - 1
        return moved


class BonusRow(Changed):
    """The token behind a fully accepted path has the tokens of its row exchanged."""

    def row(self, row: Any, length: Any, target_rows: Any, draft_rows: Any) -> Any:
        return row[..., ::-1] if (length == 2).all() else row


class LostAtTies(Changed):
    """x/x is 0 at x = 0, so the stops vanish where p = q at the root."""

    def stops(self, probs: Any, target_rows: Any, draft_rows: Any) -> Any:
        difference = target_rows[:, 0, 0, 0] - draft_rows[:, 0, 0, 0]
        return probs * divide_or_zero(difference, difference)[:, None, None]


class LostAtZeros(Changed):
    """The stops vanish where the target has a zero behind the first token."""

    def stops(self, probs: Any, target_rows: Any, draft_rows: Any) -> Any:
        entry = target_rows[:, 0, 1, 0]
        return probs * divide_or_zero(entry, entry)[:, None, None]


WRONG = [Halved, Moved, BonusRow, LostAtTies, LostAtZeros]


@pytest.mark.deep
def test_partner_the_frame_of_these_verifiers_has_facts() -> None:
    assert _facts(Changed()) is not None


@first_is_quick("kind", WRONG)
def test_wrong_verifiers_without_questions_have_no_facts(kind: type[Changed]) -> None:
    """They ask for nothing that cannot be postponed, and are refuted."""
    assert _facts(kind()) is None
    assert prove(kind(), 2, 2).verdict == "refuted"


BEYOND = {
    "rejected_token_masked",
    "shared_uniform",
    "block_residual_without_weight",
    "greedy_multipath_ties",
    "greedy_multipath_unskewed",
    "likeliest_draft",
    "longest_accepted",
    "independent_acceptance",
    "small_division_factor",
    "distinct_drafts_assumed",
    "recursive_without_update",
    "all_drafts_assumed",
}
"""Defects that are lossless with two tokens and one draft."""


@first_is_quick("name", [name for name in defects if name not in BEYOND], quick=3)
def test_defects_have_no_facts(name: str) -> None:
    """At V = 2, L = 2 and one draft, where all of these are wrong."""
    assert _facts(defects[name]) is None


@pytest.mark.parametrize("name", ["independent_acceptance", "all_drafts_assumed"])
def test_defects_of_two_drafts_have_no_facts(name: str) -> None:
    assert _facts(defects[name], 2, 2) is None


@pytest.mark.deep
def test_a_stopped_search_for_facts_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its clock ticks once per region.  What a changed file says is checked before it counts."""
    path, ticks = tmp_path / "file.search", count()
    with monkeypatch.context() as patch:
        for module in (postponed, search):
            patch.setattr(module, "monotonic", lambda: next(ticks) // 10)
        stopped = prove("token", 2, 2, time_limit=4)
    assert stopped.verdict == "undecided"
    assert stopped.unfinished is not None
    num_facts = len(stopped.unfinished["postponed"]["facts"])
    assert num_facts > 0
    stopped.save(path)
    kept: list[Any] = []
    keep = postponed.Postponement.keep
    monkeypatch.setattr(postponed.Postponement, "keep", lambda *a: kept.append(a) or keep(*a))
    found = prove("token", 2, 2, resume=path)
    assert found.tree is not None
    assert found.tree["facts"][:num_facts] == stopped.unfinished["postponed"]["facts"]
    assert len(found.tree["facts"]) == len(kept)
    document = json.loads(gzip.decompress(path.read_bytes()))
    document["postponed"]["facts"][-1][1] ^= 5
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    assert prove("token", 2, 2, resume=path).verdict == "proved"
