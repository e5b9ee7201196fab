"""A crash in a user's verifier is one line that says where, never a verdict and never a traceback."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from spectheory import Outcome, certify, instances, output_law
from spectheory.exact.suite import certify_suite
from spectheory.exact.suite_cases import SuiteCase
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError, NotJudgedError
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair
from user_verifiers import UserToken

EXACT, FLOAT = instances.sticky_chain(2), instances.sticky_chain(2).to_float()


class Changed(UserToken):
    """Token verification whose stop probabilities or correction are replaced by what a test gives."""

    name = "changed"

    def __init__(self, stops: Any = None, correction: Any = None) -> None:
        self.stops, self.replaced = stops, correction

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        right = super().outcome(paths, target_rows, draft_rows)
        stops = right.stop_probs if self.stops is None else self.stops(right.stop_probs)
        return Outcome(stops, right.correction if self.replaced is None else self.replaced)


def raises(path_index: Any, length: Any) -> Any:
    return {}["missing"]


BAD: dict[str, tuple[Any, str]] = {
    "stops as a list": (Changed(lambda s: s.tolist()), "stop_probs as list; expected ndarray"),
    "stops as a tensor": (Changed(lambda s: torch.ones(s.shape)), "stop_probs as Tensor; expected ndarray"),
    "an error of this package": (
        Changed(lambda s: certify("token", None)),  # type: ignore[arg-type]
        r"outcome of .* failed: pair must be a ModelPair, got NoneType; .*line \d+\)",
    ),
    "stops as None": (Changed(lambda s: None), "stop_probs as NoneType"),
    "stops without paths": (
        Changed(lambda s: s[:, 0]),
        r"stop_probs of shape \(16, 3\); expected \(16, 2, 3\)",
    ),
    "stops of one tuple": (Changed(lambda s: s[0]), r"stop_probs of shape \(2, 3\)"),
    "halves": (Changed(lambda s: s / 2), "not a law for the drafts .* they sum to 1/2, the smallest is 0"),
    "negative stops": (Changed(lambda s: 2 * s - s[:, ::-1, ::-1]), "not a law .* the smallest is -"),
    "correction is no function": (
        Changed(correction=3),
        "an Outcome whose correction is int; expected a function",
    ),
    "correction raises": (
        Changed(correction=raises),
        r"correction .* failed: KeyError: 'missing' \(.*line \d+\)",
    ),
    "correction returns None": (
        Changed(correction=lambda k, i: None),
        "correction rows as NoneType; expected",
    ),
    "a wrong signature": (Changed(correction=lambda k: None), "takes 1 positional argument but 2 were given"),
    "no batch axis": (
        Changed(correction=lambda k, i: np.array([Fraction(1, 2)] * 2)),
        r"correction rows of shape \(2,\); expected \(16, 2\)",
    ),
    "a column too few": (
        Changed(correction=lambda k, i: np.array([[Fraction(1)]] * len(k))),
        r"correction rows of shape \(16, 1\); expected \(16, 2\)",
    ),
    "rows of halves": (
        Changed(correction=lambda k, i: np.array([[Fraction(1, 4)] * 2] * len(k))),
        "correction rows that are not laws: smallest mass 1/16, sum off by 1/2",
    ),
}


@pytest.mark.parametrize(("verifier", "says"), BAD.values(), ids=BAD)
def test_bad_answers_are_one_line(verifier: Any, says: str) -> None:
    """On an exact pair: the verifier's name and what was wrong, in one line."""
    with pytest.raises(InvalidInputError, match=says) as caught:
        output_law(verifier, EXACT, 2)
    assert "verifier 'changed'" in str(caught.value)
    assert "\n" not in str(caught.value)
    if " failed: " in str(caught.value):
        assert re.search(r"\(\S*test_verifier_answers\.py, line \d+\)$", str(caught.value))


@pytest.mark.parametrize("name", ["stops as a list", "halves", "correction raises"])
def test_bad_answers_on_floats(name: str) -> None:
    verifier, says = BAD[name]
    with pytest.raises(InvalidOutcomeError, match=says.replace("1/2, the smallest is 0", "0.5")):
        output_law(verifier, FLOAT, 2)


def test_the_partner_an_unchanged_one_passes() -> None:
    """Integers and Fractions mixed are rationals; numpy's floats are floats."""
    assert certify(Changed(), EXACT, 2)
    assert certify(Changed(lambda s: s.astype(np.float32).astype(float)), FLOAT).target_matching is not None
    certain = ModelPair.context_free_pair(["1", "0"], ["1", "0"], 1)
    ones = Changed(lambda s: np.array([[[0, 1]]] * len(s), dtype=object))
    assert certify(ones, certain)


class Recursive:
    """Recursive rejection of K first tokens in numpy's idiom, where the integers 0/1 are the float 0.0."""

    name = "recursive"

    def __init__(self, divisor: Any = 1, share: Any = 1) -> None:
        self.divisor, self.share = divisor, share

    def residual(self, target: Any, draft: Any) -> Any:
        difference = np.maximum(target - draft, 0)
        total = difference.sum(axis=-1, keepdims=True)
        return difference / np.where(total > 0, total, self.divisor)

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        row, draft, number = target_rows[:, 0, 0], draft_rows[:, 0, 0], np.arange(len(paths))
        stops, left = (
            np.zeros(target_rows.shape[:-1], dtype=target_rows.dtype),
            np.ones(len(paths), dtype=int),
        )
        for drafted in paths[:, :, 0].T:
            first = np.argmax(paths[:, :, 0] == drafted[:, None], axis=1)
            accept = np.minimum(1, row[number, drafted] / draft[number, drafted])
            stops[number, first, 1] += self.share * left * accept
            left, row = left * (1 - self.share * accept), self.residual(row, draft)
        stops[:, 0, 0] = left

        def correction(path_index: Any, length: Any) -> Any:
            return np.where((length == 0)[:, None], row, target_rows[number, path_index, 1])

        return Outcome(stops, correction)


def test_numpys_idiom_stays_exact() -> None:
    """0/1 and 1/1 of integers are floats without an error.  Another float is refused: of rows that are used,
    and in a suite with the pair."""
    equal, pair = instances.uniform_equal(1), instances.random_rational(3, 3, 1)
    for one, num_drafts in ((equal, 2), (equal, 3), (pair, 1), (pair, 2)):
        assert certify(Recursive(), one, num_drafts).total_variation == 0
    said = (
        r"left exact arithmetic on an exact pair: its stop_probs have a float that is rounded .* float 0\.\d+"
    )
    with pytest.raises(NotJudgedError, match=said):
        certify(Recursive(share=0.3), pair, 2)
    with pytest.raises(NotJudgedError, match=f"^on mine, 2 drafts: .*{said}"):
        certify_suite(Recursive(share=0.3), [SuiteCase("mine", pair, Iid(2))])


class Rest(UserToken):
    """Accepting the whole path is what the other stops leave of 1, which rounds."""

    name = "rest"

    def __init__(self, forbidden: int | None = None) -> None:
        self.forbidden = forbidden

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        stops = right.stop_probs.copy()
        stops[:, 0, -1] = 1
        for stop in stops[:, 0, :-1].T:
            stops[:, 0, -1] -= stop
        wrong = paths[:, 0, 0] == self.forbidden
        stops[wrong] = 0
        stops[wrong, 0, -1] = 1
        return Outcome(stops, right.correction)


def test_a_forbidden_output_below_rounding_is_none() -> None:
    """1 - 0.9 - 0.1 is not 0 in float64, given drafts of probability 10^-25.  The partner accepts a forbidden
    token that is drafted with 10^-15: given its drafts it is certain."""
    pair = instances.rarely_drafted(2)
    cases = [SuiteCase("rare", pair, Iid(1))]
    found = certify(Rest(), pair.to_float())
    assert 0 < found.total_variation < 1e-17
    assert found
    assert certify_suite(Rest(), cases)
    wrong = certify(Rest(forbidden=3), pair.to_float())
    assert not wrong
    assert wrong.counterexample is not None
    assert wrong.counterexample.path == ("3",)
    assert wrong.counterexample.given_drafts == 1


class Doubled(UserToken):
    """Its stops are off by an error given drafts of a small probability."""

    name = "doubled"

    def __init__(self, error: float, below: float) -> None:
        self.error, self.below = error, below

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        drafted = np.take_along_axis(draft_rows, paths[..., None], axis=-1)[..., 0].prod(axis=(-2, -1))
        off = np.where(drafted < self.below, 1 + self.error, 1)[:, None, None]
        return Outcome(right.stop_probs * off, right.correction)


def test_rare_drafts_may_round_by_more() -> None:
    """An error of 2.8e-8 given drafts of probability 10^-10 moves the output by 2.8e-18.  On drafts of 1/3 it
    is refused, with the pair and the arithmetic."""
    rare = instances.rarely_drafted(1).to_float()
    assert certify(Doubled(2.8e-8, 1e-9), rare)
    with pytest.raises(InvalidOutcomeError, match=r"they sum to 1\.000000028"):
        output_law(Doubled(2.8e-8, 1), rare)
    found = certify_suite(Doubled(2.8e-8, 1), [SuiteCase("rare", rare, Iid(1))])
    assert "it fails on rare, 1 draft (float64)" in found.headline()


class WritesIntoThePair(UserToken):
    def bind(self, process: Any, pair: Any = None) -> Any:
        for target, draft in zip(pair.target, pair.draft, strict=False):
            target[...] = draft
        return self


def test_bind_cannot_change_what_is_judged() -> None:
    with pytest.raises(InvalidOutcomeError, match=r"bind of verifier .* read-only"):
        output_law(WritesIntoThePair(), EXACT, 2)


def test_only_bind_can_refuse_a_case_of_a_suite() -> None:
    """A failure on most cases is a failure, and no certificate for the rest."""
    failing = Changed(lambda s: s if s.shape[1:] == (1, 2) else certify("token", None))  # type: ignore[arg-type]
    with pytest.raises(
        InvalidInputError, match="outcome of verifier 'changed' failed: pair must be a ModelPair"
    ):
        certify_suite(failing)


class BindRaises(UserToken):
    name = "bind_raises"

    def bind(self, process: Any, pair: Any = None) -> Any:
        raise RuntimeError("no such drafts")


def test_bind_that_raises() -> None:
    with pytest.raises(
        InvalidOutcomeError, match=r"bind of verifier 'bind_raises' failed: RuntimeError: no such"
    ):
        certify(BindRaises(), EXACT)


def test_floats_on_an_exact_pair() -> None:
    with pytest.raises(InvalidOutcomeError, match="left exact arithmetic on an exact pair"):
        output_law(Changed(lambda s: s.astype(float).astype(object)), EXACT, 2)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_answers_of_less_precision_are_no_verdict(kind: Any) -> None:
    """Rounding to fewer digits would read as a defect of the algorithm."""
    with pytest.raises(InvalidOutcomeError, match=f"stop_probs of type {kind.__name__}; expected float64"):
        output_law(Changed(lambda s: s.astype(kind)), FLOAT, 2)
    assert certify(
        Changed(lambda s: (s > 0).astype(np.int8)), ModelPair.context_free_pair([1.0, 0.0], [1.0, 0.0], 1)
    )
