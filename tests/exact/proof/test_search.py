"""Verdicts about every pair of a shape: of published verifiers, known-wrong ones, and others."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from proof_traps import ESCAPES, WRONG_SOMEWHERE
from spectheory import ModelPair, certify, defects, prove, verifiers
from spectheory.exact.proof import domain, search
from spectheory.exact.proof.domain import Shape
from spectheory.exact.proof.emptiness import Emptiness
from spectheory.exact.proof.solver import RealSolver
from spectheory.foundation.errors import ComputationError, InvalidInputError, InvalidOutcomeError
from spectheory.pairs.drafts import PrefixTree, WithoutReplacement
from spectheory.verification.outcome import Outcome

PROVED: list[tuple[str, int, int, Any]] = [
    ("token", 2, 2, 1),
    ("block", 3, 1, 1),
    ("multi_round", 2, 1, 2),
    ("greedy_multipath", 2, 1, 2),
    ("mixed_multipath", 2, 1, 2),
    ("traversal", 2, 1, PrefixTree((2,))),
    ("multi_round_without_replacement", 2, 1, WithoutReplacement((2,))),
]
SMALLEST: dict[tuple[int, int, int], str] = {
    (3, 1, 1): "rejected_token_masked shared_uniform",
    (2, 2, 1): "stale_correction_row block_acceptance_without_weight block_uncapped_weight "
    "block_first_rejection block_weight_as_acceptance block_uncapped_last_weight",
    (3, 2, 1): "block_residual_without_weight",
    (2, 1, 2): "greedy_multipath_ties greedy_multipath_unskewed likeliest_draft longest_accepted "
    "independent_acceptance small_division_factor distinct_drafts_assumed",
    (3, 1, 2): "recursive_without_update",
    (2, 2, 2): "all_drafts_assumed",
}
"""The smallest shape (V, L, K) at which a defect is wrong; (2, 1, 1) for the others."""


@first_is_quick(("name", "vocab_size", "draft_length", "drafts"), PROVED, quick=2)
def test_published_verifiers_are_proved(name: str, vocab_size: int, draft_length: int, drafts: Any) -> None:
    found = prove(name, vocab_size, draft_length, drafts)
    assert (found.verdict, found.num_open, found.num_trusted) == ("proved", 0, 0)


class Catches(type(verifiers["token"])):  # type: ignore[misc]
    """Token verification that catches every error, and then accepts."""

    def outcome(self, *arrays: Any) -> Any:
        try:
            return super().outcome(*arrays)
        except BaseException:
            return verifiers["block"].outcome(*arrays)


@pytest.mark.parametrize("verifier", ["token", Catches()], ids=["published", "one that catches errors"])
def test_a_failure_of_the_search_is_not_blamed_on_the_verifier(
    monkeypatch: pytest.MonkeyPatch, verifier: Any
) -> None:
    def fails(*_: Any) -> None:
        raise OverflowError("value too large")

    monkeypatch.setattr(Emptiness, "examine", fails)
    with pytest.raises(ComputationError, match=r"the search failed .*OverflowError: value too large"):
        prove(verifier, 2, 1)


@pytest.mark.parametrize(("longer", "verdict"), [((), "undecided"), ((20,), "proved")])
def test_a_region_that_is_stuck_is_asked_about_longer(
    monkeypatch: pytest.MonkeyPatch, longer: tuple[int, ...], verdict: str
) -> None:
    """A solver that answers only where it has more time than usual."""
    decide = RealSolver.decide

    def hurried(solver: RealSolver, constraints: Any) -> Any:
        return decide(solver, constraints) if solver.seconds == 20 else ("unknown", {})

    monkeypatch.setattr(RealSolver, "decide", hurried)
    monkeypatch.setattr(search, "LONGER_QUESTIONS", longer)
    assert prove("mixed_multipath", 2, 1, 2).verdict == verdict


class ChosenForAPair(type(verifiers["token"])):  # type: ignore[misc]
    """Its ``bind`` may return another verifier for some pairs."""

    def bind(self, process: Any, pair: Any = None) -> Any:
        return verifiers["block" if pair is None else "token"]


def test_a_verifier_that_is_chosen_for_a_pair_is_not_proved() -> None:
    with pytest.raises(InvalidInputError, match="a bind of its own, which may return another one"):
        prove(ChosenForAPair(), 2, 1)


def test_a_time_limit_leaves_a_proof_undecided() -> None:
    assert prove("block", 2, 2, time_limit=1e-9).verdict == "undecided"
    with pytest.raises(InvalidInputError, match="time_limit must be a positive number, got 0"):
        prove("block", 2, 1, time_limit=0)


@pytest.mark.parametrize("name", defects)
def test_every_defect_is_refuted_at_its_smallest_shape(name: str) -> None:
    """By an exact pair on which ``certify`` finds it wrong too."""
    shape = next((shape for shape, names in SMALLEST.items() if name in names.split()), (2, 1, 1))
    found = prove(defects[name], *shape)
    assert found.verdict == "refuted"
    assert found.pair is not None
    assert not certify(defects[name], found.pair, shape[2], with_optimum=False).is_valid


@pytest.mark.deep
@pytest.mark.parametrize("name", WRONG_SOMEWHERE)
def test_verifiers_that_are_wrong_somewhere_are_refuted(name: str) -> None:
    verifier, draft_length = WRONG_SOMEWHERE[name]
    assert prove(verifier, 2, draft_length).verdict == "refuted"


@first_is_quick("name", ESCAPES, quick=5)
def test_verifiers_that_cannot_be_followed_are_not_proved(name: str) -> None:
    try:
        verdict = prove(ESCAPES[name], 2, 1).verdict
    except InvalidOutcomeError as error:
        verdict = "\n" not in str(error) and "one line"
    assert verdict in ("refuted", "undecided", "one line")


@pytest.mark.parametrize("name", ESCAPES)
def test_partner_they_are_wrong(name: str) -> None:
    """``certify`` finds it on the pair of the trap."""
    pair = ModelPair.context_free_pair(["377/1000", "623/1000"], ["1/2", "1/2"], 1)
    try:
        is_right = certify(ESCAPES[name], pair, 1, with_optimum=False).is_valid
    except InvalidOutcomeError as error:
        is_right = "is not a function of its inputs" not in str(error)
    assert not is_right


def test_partner_the_frame_of_these_verifiers_is_proved() -> None:
    assert prove(type(WRONG_SOMEWHERE["at a tie"][0])(lambda p, q: False), 2, 1).verdict == "proved"


@pytest.mark.parametrize(
    ("vocab_size", "length", "positive", "words"),
    [
        (
            2,
            5,
            False,
            "100000 faces of pairs with zeros; .* a shorter draft, or positive rows",
        ),
        (64, 1, False, "100000 faces"),
        (10**9, 10**9, True, "128 formal numbers; take fewer tokens or a shorter draft$"),
        (2, 6, True, "128 formal numbers"),
    ],
)
def test_a_search_that_is_too_large_is_refused(
    vocab_size: int, length: int, positive: bool, words: str
) -> None:
    """Before its faces and its variables fill the memory."""
    with pytest.raises(InvalidInputError, match=words):
        prove("token", vocab_size, length, positive=positive)


def test_faces_and_numbers_are_counted_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of as many is one that a shape passes, and of one less is none."""
    for size, length in ((2, 1), (2, 2), (2, 3), (3, 1), (4, 1), (3, 2)):
        shape = Shape(size, length, positive=False)
        faces = sum(1 for _ in shape.faces())
        numbers = 2 * sum(size * size**depth for depth in range(length))
        limits = ("MAX_FACES", faces, "faces"), ("MAX_NUMBERS", numbers, "formal numbers")
        for limit, count, named in limits:
            with monkeypatch.context() as patched:
                patched.setattr(domain, limit, count)
                shape.check_size()
                patched.setattr(domain, limit, count - 1)
                with pytest.raises(InvalidInputError, match=named):
                    shape.check_size()


class Halves:
    """Stops on two drafts with 1/2 each, on the first after ``late`` tokens, which it does not look at."""

    name = "halves"

    def __init__(self, late: int = 0) -> None:
        self.late = late

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        stops, number = np.full(target_rows.shape[:-1], Fraction(0), dtype=object), np.arange(len(paths))
        stops[:, 0, self.late] = stops[:, 1, 0] = Fraction(1, 2)
        return Outcome(stops, lambda path_index, length: target_rows[number, path_index, length])


def test_stops_may_be_rationals() -> None:
    """They are no numbers that a verifier was given, and have the same value on all pairs."""
    assert prove(Halves(), 2, 1, drafts=2).verdict == "proved"
    assert prove(Halves(late=1), 2, 1, drafts=2).verdict == "refuted"
