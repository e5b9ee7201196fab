"""A law is a function of its inputs: each way to fool the instrument is one line that names the fault."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from spectheory import Outcome, certify, instances, output_law
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.user import as_verifier
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


class KeepsTheLastOutcome(UserToken):
    """Its corrections are those of the outcome that was made last."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        self.last = right
        return Outcome(right.stop_probs, lambda *stop: self.last.correction(*stop))


FAULTS = {
    MixesStops: "is not a function of its inputs",
    KeepsTheLastOutcome: "correction of verifier|is not a function of its inputs",
    KeepsState: "the same call gives different outcomes, from state or random numbers",
    LooksAtTheBatch: "depends on the size, the order or the stops of its batch",
    WritesIntoItsInputs: "writes into its arguments",
}
PAIRS = {"exact": instances.sticky_chain(2), "float": instances.sticky_chain(2).to_float()}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("kind", FAULTS, ids=lambda kind: kind.__name__)
def test_each_fault_is_named(kind: type, pair: ModelPair) -> None:
    """One line with the verifier's name and the fault; never a verdict."""
    with pytest.raises(InvalidOutcomeError, match=FAULTS[kind]) as caught:
        output_law(kind(), pair, 2)
    assert "user_token" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_partner_the_honest_one_passes(pair: ModelPair) -> None:
    """On one tuple, on few and on many, and under every check."""
    for num_drafts in (1, 2, 3):
        assert certify(Honest(), pair, num_drafts)
    certain = ModelPair.context_free_pair(["1", "0"], ["1", "0"], 2)
    assert certify(Honest(), certain, 2)


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
    assert certify(FloatsWhereItNeverStops(), pair, 2)


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


@pytest.mark.parametrize("size", [1, 8, 16])
def test_batches_of_several_sizes_are_asked_about(size: int) -> None:
    """On a pair of 16 tuples of drafts; the partner is wrong in batches that are not asked about."""
    pair = instances.two_token(2)
    with pytest.raises(InvalidOutcomeError, match="is not a function of its inputs"):
        output_law(WrongInBatchesOf(size), pair, 2)
    assert certify(WrongInBatchesOf(19), pair, 2).total_variation == 0


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
def test_random_numbers_are_found(seed: int) -> None:
    """Whatever check they fail first, a stop that only a later call makes among them."""
    with pytest.raises(InvalidOutcomeError, match="is not a function of its inputs"):
        output_law(ThrowsADie(seed), instances.two_token(2))


class AnotherForHalves:
    """Block verification; from the fifth tuple on it is token verification in batches of eight to fifteen."""

    name = "another_for_halves"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        block, token = (
            verifiers[name].outcome(paths, target_rows, draft_rows) for name in ("block", "token")
        )
        if not 8 <= len(paths) <= 15:
            return block
        late = np.arange(len(paths)) >= 4

        def correction(path_index: Any, length: Any) -> Any:
            rows = (made.correction(path_index, length) for made in (token, block))
            return np.where(late[:, None], *rows)

        return Outcome(np.where(late[:, None, None], token.stop_probs, block.stop_probs), correction)


class ReturnsStops:
    """Block verification, whose stop probabilities are handed over in another form."""

    name = "returns_stops"

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self.change = change

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        found = verifiers["block"].outcome(paths, target_rows, draft_rows)
        return Outcome(self.change(found.stop_probs), found.correction)


def test_a_batch_of_another_size_is_asked_about() -> None:
    """16 tuples, asked about all at once, one alone and in halves; only the halves show this fault."""
    with pytest.raises(InvalidOutcomeError, match="of its batch of 9 tuples"):
        output_law(AnotherForHalves(), instances.two_token(2), 2)


def test_forms_of_tensors() -> None:
    """One that has gradients is taken, and handed on without them."""
    with_gradients = ReturnsStops(lambda stops: stops.clone().requires_grad_())
    rows = torch.full((2, 1, 2, 2), 0.5, dtype=torch.float64)
    given = torch.zeros((2, 1, 1), dtype=torch.int64), rows, rows[:, :, :1]
    assert not as_verifier(with_gradients).outcome(*given).stop_probs.requires_grad
