"""Verdicts about every pair of a shape: of published verifiers, known-wrong ones, and others."""

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from proof_traps import ESCAPES, WRONG_SOMEWHERE
from spectheory import certify, defects, verifiers
from spectheory.exact.proof import search
from spectheory.exact.proof.check import check_document
from spectheory.exact.proof.domain import Domain, Shape
from spectheory.exact.proof.formulas import formulas_of
from spectheory.exact.proof.numbers import ANY, ZERO
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.search import prove
from spectheory.exact.proof.search_oracle import SearchOracle
from spectheory.exact.proof.walk import OutOfTimeError, Walk
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.pairs.drafts import PrefixTree, WithoutReplacement
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier

PROVED: list[tuple[str, int, int, Any]] = [
    ("token", 2, 2, 1),
    ("block", 2, 2, 1),
    ("block", 3, 1, 1),
    ("multi_round", 2, 1, 2),
    ("greedy_multipath", 2, 1, 2),
    ("traversal", 2, 1, PrefixTree((2,))),
    ("multi_round_without_replacement", 2, 1, WithoutReplacement((2,))),
    ("multi_round", 2, 2, PrefixTree((1, 2))),
    ("otm", 2, 1, 2),
    ("mixed_multipath", 2, 1, 2),
    ("multi_round_without_replacement", 3, 1, WithoutReplacement((2,))),
    ("multi_round_without_replacement", 2, 2, WithoutReplacement((1, 2))),
    ("multi_round", 2, 2, 2),
    ("traversal", 2, 2, 2),
    ("token", 3, 2, 1),
    ("block", 2, 3, 1),
    ("block", 3, 2, 1),
    ("greedy_multipath", 3, 1, 2),
    ("otm", 3, 1, 2),
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


@first_is_quick(("name", "vocab_size", "draft_length", "drafts"), PROVED, quick=8)
def test_published_verifiers_are_proved(name: str, vocab_size: int, draft_length: int, drafts: Any) -> None:
    found = prove(name, vocab_size, draft_length, drafts)
    assert (found.verdict, found.num_open, found.lossless) == ("proved", 0, True)
    assert check_document(found.document(), verifiers[name]) <= found.num_regions


@pytest.mark.parametrize("name", defects)
def test_every_defect_is_refuted_at_its_smallest_shape(name: str) -> None:
    """By an exact pair on which ``certify`` finds it wrong too."""
    shape = next((shape for shape, names in SMALLEST.items() if name in names.split()), (2, 1, 1))
    found = prove(defects[name], *shape)
    assert found.verdict == "refuted"
    assert found.pair is not None
    assert not certify(defects[name], found.pair, shape[2], with_optimum=False)


@first_is_quick(
    "name", [name for name in defects if name not in " ".join(SMALLEST.values()).split()], quick=3
)
def test_the_walk_alone_refutes_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SIMPLE_PAIRS", 0)
    assert prove(defects[name], 2, 1).verdict == "refuted"


def verdict_of(verifier: Any, draft_length: int) -> str:
    """The verdict, or how long the text is that refuses the verifier."""
    try:
        return prove(verifier, 2, draft_length, time_limit=60).verdict
    except InvalidOutcomeError as error:
        return "several lines" if "\n" in str(error) else "one line"


@first_is_quick("name", WRONG_SOMEWHERE, quick=4)
def test_verifiers_that_are_wrong_somewhere_are_not_proved(name: str) -> None:
    assert verdict_of(*WRONG_SOMEWHERE[name]) in ("refuted", "undecided", "one line")


@first_is_quick("name", ESCAPES, quick=5)
def test_verifiers_that_cannot_be_followed_are_not_proved(name: str) -> None:
    assert verdict_of(ESCAPES[name], 1) in ("refuted", "undecided", "one line")


def test_partner_the_frame_of_these_verifiers_is_proved() -> None:
    assert prove(type(WRONG_SOMEWHERE["at a tie"][0])(lambda p, q: False), 2, 1).verdict == "proved"


class SortsBy:
    """Orders the paths by a key of the draft, and then verifies the first as ``token`` does."""

    def __init__(self, key: Any) -> None:
        self.key = key

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        for target, draft in zip(target_rows[:, 0, 0], draft_rows[:, 0, 0], strict=True):
            sorted(range(len(draft)), key=lambda x: self.key(target[x], draft[x]))
        return verifiers["token"].outcome(paths, target_rows, draft_rows)


@pytest.mark.parametrize("key", [lambda p, q: inf if q == 0 else p / q, lambda p, q: float(p)])
def test_a_sort_key_that_is_not_a_rational_function_is_refused_with_its_line(key: Any) -> None:
    with pytest.raises(InvalidOutcomeError, match=r"cannot be followed: .*test_search.py, line \d+"):
        prove(SortsBy(key), 2, 1)


def test_partner_a_key_that_is_one_is_followed() -> None:
    assert prove(SortsBy(lambda p, q: p - q), 2, 1).verdict == "proved"


class ChosenForAPair(type(verifiers["token"])):  # type: ignore[misc]
    """Its ``bind`` may return another verifier for some pairs."""

    def bind(self, process: Any, pair: Any = None) -> Any:
        return verifiers["block" if pair is None else "token"]


def test_a_verifier_that_is_chosen_for_a_pair_is_not_proved() -> None:
    with pytest.raises(InvalidInputError, match="its own bind, which may return different verifiers"):
        prove(ChosenForAPair(), 2, 1)


def test_a_time_limit_leaves_a_proof_undecided() -> None:
    found = prove("block", 2, 2, time_limit=1e-9)
    assert (found.verdict, found.lossless) == ("undecided", None)
    with pytest.raises(InvalidInputError, match="there is no proof to write"):
        found.document()
    with pytest.raises(InvalidInputError, match="time_limit must be a positive number, got 0"):
        prove("block", 2, 1, time_limit=0)


def test_a_time_limit_ends_formulas_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock jumps when they begin.  A proof with formulas is stored as the one without them."""
    clock = [0.0]
    for module in ("search", "walk"):
        monkeypatch.setattr(f"spectheory.exact.proof.{module}.process_time", lambda: clock[0])

    def late(walk: Walk) -> Any:
        clock[0] += 2
        return formulas_of(walk)

    monkeypatch.setattr(search, "formulas_of", late)
    found = prove("multi_round", 2, 1, 2, show=True, time_limit=1)
    assert (found.verdict, found.formulas) == ("undecided", ())
    found = prove("multi_round", 2, 1, 2, show=True, time_limit=3)
    assert (found.verdict, len(found.formulas)) == ("proved", 5)
    assert found.document() == prove("multi_round", 2, 1, 2, time_limit=1).document()


def test_a_time_limit_ends_questions_about_what_was_set_aside() -> None:
    def over() -> None:
        raise OutOfTimeError

    oracle = SearchOracle(Domain(Shape(2, 1)))
    oracle.aside = [oracle.start()]
    with pytest.raises(OutOfTimeError):
        oracle.settle_aside(over)
    oracle.aside = [region := oracle.start()]
    assert oracle.settle_aside(lambda: None) is region


@pytest.mark.parametrize(
    ("vocab_size", "length", "drafts", "words"),
    [
        (2, 6, 1, "128 formal numbers"),
        (10**9, 10**9, 1, "128 formal numbers"),
        (2, 1, 40, "20000 tuples of drafts"),
    ],
)
def test_a_search_that_is_too_large_is_refused(vocab_size: int, length: int, drafts: int, words: str) -> None:
    """Before its variables or its tuples fill the memory."""
    with pytest.raises(InvalidInputError, match=words):
        prove("multi_round", vocab_size, length, drafts)


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


class RightAlone:
    """``token`` for a batch of one tuple of drafts, and always the first token for more."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        if len(paths) == 1:
            return verifiers["token"].outcome(paths, target_rows, draft_rows)
        stops = target_rows[..., 0] * 0
        stops[:, 0, 0] = stops[:, 0, 0] + 1
        row = target_rows[:, 0, 0] * 0
        row[:, 0] = row[:, 0] + 1
        return Outcome(stops, lambda path_index, length: row)


def test_a_batch_of_all_tuples_is_asked_at_rational_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs are on one tuple each for draft length 2; without these pairs it would be proved."""
    monkeypatch.setattr(search, "SIMPLE_PAIRS", 0)
    with pytest.raises(InvalidOutcomeError, match="depends on the size"):
        prove(RightAlone(), 2, 2)
    monkeypatch.setattr("spectheory.exact.proof.statement.MOST_SPOTS", 0)
    found = prove(RightAlone(), 2, 2)
    assert found.verdict == "proved"
    monkeypatch.undo()
    with pytest.raises(InvalidInputError, match="the proof is rejected"):
        check_document(found.document(), find_verifier(RightAlone()))


class OnACurve:
    """Draws a token of the target; on a curve, where q_0 < q_1, a token of the draft.

    There 7 p_0 = 3 q_0, 11 p_1 = 5 q_1 and 2 p_1 != q_0.  The equality before these follows from them.
    """

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        stops = np.full(target_rows.shape[:-1], Fraction(0), dtype=object)
        stops[:, 0, 0] = 1
        rows = np.array(list(map(self.row, target_rows[:, 0, 0], draft_rows[:, 0, 0])), dtype=object)
        return Outcome(stops, lambda path_index, length: rows)

    def row(self, p: Any, q: Any) -> Any:
        one, two, other = 7 * p[0] - 3 * q[0], 11 * p[1] - 5 * q[1], 2 * p[1] - q[0]
        meets = other * one == two * (p[0] - q[1]) and one == 0 and two == 0 and other != 0
        return q if meets and q[0] < q[1] and q[2] > 0 and q[0] > 0 else p


def test_an_equality_that_others_imply_says_nothing() -> None:
    """It is w y = z u, with y = 0 and z = 0.  Where u was taken for 0, the curve was lost."""
    found = prove(OnACurve(), 3, 1)
    assert found.verdict == "refuted"
    assert not certify(OnACurve(), found.pair)
    field = (domain := Domain(Shape(3, 1))).field
    region = Region(domain).entered((), (0, 1, 2))
    p, q = ([region.entries[letter, (), token] for token in range(3)] for letter in "pq")
    one, other = field.subtract(q[0], q[1]), field.subtract(q[0], q[2])
    implied = field.subtract(field.multiply(p[0], one), field.multiply(p[1], other))
    for function in (implied, p[0], p[1]):
        region = region.child(field.parts(function)[1][0][0], ZERO)
    assert region.possible_signs(other) == ANY
    apart = region.child(field.parts(other)[1][0][0], ANY & ~ZERO)
    assert apart is not None
    assert apart.possible_signs(p[0]) == ZERO
