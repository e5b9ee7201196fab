"""A law is a function of its inputs: each way to fool the instrument is one line that names the fault."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from spectheory import Outcome, certify, instances, output_law
from spectheory.exact.suite import SuiteCase, certify_suite
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.user_checks import ASKED_ALONE
from spectheory.verification.verifier import as_verifier
from user_verifiers import UserToken


class Honest(UserToken):
    """Token verification as a user writes it; the ways to fool below change one thing each."""


class KeepsState(UserToken):
    """Answers rightly every second time only."""

    calls = 0

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        self.calls += 1
        right = super().outcome(paths, target_rows, draft_rows)
        return (
            right if self.calls % 2 else Outcome.from_rows(right.stop_probs, np.roll(target_rows, 1, axis=-1))
        )


class LooksAtTheBatch(UserToken):
    """Gives every tuple the answer of the first tuple of its batch."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        return super().outcome(
            *(array[:1].repeat(len(paths), axis=0) for array in (paths, target_rows, draft_rows))
        )


class LooksAtTheBatchSize(UserToken):
    """Right in batches as small as those of a check, wrong in larger ones."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        if len(paths) <= 600:
            return right
        return Outcome.from_rows(right.stop_probs, target_rows)


class RemembersByObject(UserToken):
    """Keeps its answers by the identity of an array."""

    def __init__(self) -> None:
        self.answers: dict[int, Any] = {}

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        key = id(target_rows)
        if key not in self.answers:  # keeps the array alive, so that no other gets its id
            self.answers[key] = target_rows, super().outcome(paths, target_rows, draft_rows)
        return self.answers[key][1]


class WritesIntoItsInputs(UserToken):
    """Right, but the arrays of the caller are changed."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows.copy(), draft_rows.copy())
        draft_rows[:, 0, 0, :] = draft_rows[:, 0, 0, ::-1]
        return right


class MixesStops(UserToken):
    """Stops everywhere with equal chances; its correction takes the first tuple's length for all of them."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        stops = super().outcome(paths, target_rows, draft_rows).stop_probs * 0
        stops[:, 0] += 1
        return Outcome(
            stops / stops.shape[-1],
            lambda path, length: target_rows[np.arange(len(path)), path, 0 * length + length[0]],
        )


class OnlyUpwards(UserToken):
    """Right, but for a stop before the one that was asked about last, whichever outcome that was of."""

    last = 0

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)

        def correction(path_index: Any, length: Any) -> Any:
            rows, before = right.correction(path_index, length), self.last
            self.last = 0 if (length != length[0]).any() else int(length[0]) % (paths.shape[-1])
            return rows if before <= length[0] else np.roll(rows, 1, axis=-1)

        return Outcome(right.stop_probs, correction)


FAULTS = {
    MixesStops: "its correction for one stop depends on the other stops",
    OnlyUpwards: "an outcome changes when another one is made or used before its corrections",
    KeepsState: "the same call gives different outcomes, from internal state or random numbers",
    LooksAtTheBatch: "its answer for one tuple of drafts depends on the other tuples of the batch",
    RemembersByObject: "given other contents in the same array objects it repeats an old answer",
    WritesIntoItsInputs: "writes into its input draft_rows",
}
PAIRS = {"exact": instances.sticky_chain(2), "float": instances.sticky_chain(2).to_float()}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_each_fault_is_named(kind: type, pair: ModelPair) -> None:
    """One line with the verifier's name and the fault; never a verdict."""
    with pytest.raises(InvalidOutcomeError, match=FAULTS[kind]) as caught:
        certify(kind(), pair, 2)
    assert "user_token" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_size_of_the_batch_is_no_way_out() -> None:
    """1 024 tuples: the sample is answered rightly, the enumeration is not, in one of its two ways."""
    pair = instances.random_rational(3, 2, 5, zero_probability=0.0)
    with pytest.raises(
        InvalidOutcomeError, match="its law changes when the same drafts come in another order"
    ):
        output_law(LooksAtTheBatchSize(), pair, 2)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_partner_the_honest_one_passes(pair: ModelPair) -> None:
    """On one tuple, on few and on many, and under every check."""
    for num_drafts in (1, 2, 3):
        assert certify(Honest(), pair, num_drafts).is_valid
    certain = ModelPair.context_free_pair(["1", "0"], ["1", "0"], 2)
    assert certify(Honest(), certain, 2).is_valid


class FloatsWhereItNeverStops(UserToken):
    """Exact where it stops; elsewhere the rows are NaN, a float that no rational is multiplied with."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)

        def correction(path_index: Any, length: Any) -> Any:
            rows = right.correction(path_index, length).copy()
            rows[right.stop_probs[np.arange(len(rows)), path_index, length] == 0] = float("nan")
            return rows

        return Outcome(right.stop_probs, correction)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_rows_of_stops_that_are_not_made_may_be_anything(pair: ModelPair) -> None:
    assert certify(FloatsWhereItNeverStops(), pair, 2).is_valid


class AnotherForHalves:
    """Block verification; from the fifth tuple on it is token verification in batches of eight to fifteen."""

    name = "another_for_halves"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        block, token = (
            verifiers[name].outcome(paths, target_rows, draft_rows) for name in ("block", "token")
        )
        if not 8 <= len(paths) <= 15:
            return block
        late = np.arange(len(paths)) >= ASKED_ALONE

        def correction(path_index: Any, length: Any) -> Any:
            rows = (made.correction(path_index, length) for made in (token, block))
            return np.where(late[:, None], *rows)

        return Outcome(np.where(late[:, None, None], token.stop_probs, block.stop_probs), correction)


def test_a_batch_of_another_size_is_asked_about() -> None:
    """16 tuples, asked about all at once, alone and in halves; only the halves show this fault."""
    with pytest.raises(InvalidOutcomeError, match="depends on the other tuples of the batch"):
        certify(AnotherForHalves(), instances.two_token(2), 2)


class WrongInBatchesOf(UserToken):
    """Takes the first path whole in batches of one size."""

    def __init__(self, size: int) -> None:
        self.size = size

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        if len(paths) != self.size:
            return right
        stops = 0 * right.stop_probs
        stops[:, 0, -1] += 1
        return Outcome(stops, right.correction)


@pytest.mark.parametrize("size", [2, 3, 7, 8])
def test_batches_of_every_small_size_are_asked_about(size: int) -> None:
    """On a pair of two tuples of drafts; the partner is wrong in batches that are not asked about."""
    pair = instances.two_token(1)
    with pytest.raises(InvalidOutcomeError, match="is not a function of its inputs"):
        certify(WrongInBatchesOf(size), pair)
    assert certify(WrongInBatchesOf(19), pair).total_variation == 0


@pytest.mark.parametrize("size", [31, 32, 19])
def test_a_suite_asks_about_larger_batches(size: int) -> None:
    """One size on every case, whether the case has so many tuples or not."""
    cases = [SuiteCase(f"case {number}", instances.two_token(1), Iid(1)) for number in range(26)]
    found = certify_suite(WrongInBatchesOf(size), cases, stop_at_first=True)
    assert found.counterexample is not None
    assert "is not a function of its inputs" in found.counterexample.in_words()
    assert certify_suite(WrongInBatchesOf(33), cases).is_lossless


def test_later_checks_ask_about_one_size_each() -> None:
    verifier = as_verifier(UserToken())
    assert list(verifier.sizes_to_ask(2, 4)) == [1, 2]
    assert [list(verifier.sizes_to_ask(2, 4)) for _ in range(5)] == [[3], [4], [1], [2], [3]]


class ThrowsADie(UserToken):
    """It throws a coin in every call, and stops at once if it falls so."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed).random

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        if self.draw() < 0.5:
            return right
        stops = 0 * right.stop_probs
        stops[:, 0, 0] += 1
        return Outcome(stops, lambda path_index, length: target_rows[:, 0, 0])


@pytest.mark.parametrize("seed", range(12))
def test_random_numbers_are_called_random_numbers(seed: int) -> None:
    """Whatever check they fail first, a stop that only a later call makes among them."""
    with pytest.raises(InvalidOutcomeError, match="from internal state or random numbers"):
        certify(ThrowsADie(seed), instances.two_token(2))


class ReturnsStops:
    """Block verification, whose stop probabilities are handed over in another form."""

    name = "returns_stops"

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self.change = change

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        found = verifiers["block"].outcome(paths, target_rows, draft_rows)
        return Outcome(self.change(found.stop_probs), found.correction)


def test_forms_of_tensors() -> None:
    """One that has gradients is taken; other layouts and devices are named."""
    with_gradients = ReturnsStops(lambda stops: stops.clone().requires_grad_())
    rows = torch.full((2, 1, 2, 2), 0.5, dtype=torch.float64)
    given = torch.zeros((2, 1, 1), dtype=torch.int64), rows, rows[:, :, :1]
    assert not as_verifier(with_gradients).outcome(*given).stop_probs.requires_grad
    for change, said in ((torch.Tensor.to_sparse, "sparse_coo"), (lambda stops: stops.to("meta"), "meta")):
        with pytest.raises(InvalidOutcomeError, match=said):
            as_verifier(ReturnsStops(change)).outcome(*given)
