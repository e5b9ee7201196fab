"""Outcome: its quantities, its samples, and the helpers verifiers are built from."""

from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st

from spectheory import instances
from spectheory.foundation import row_draws
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.kernels import choice
from spectheory.foundation.row_draws import draw
from spectheory.verification import outcome as outcomes
from spectheory.verification.algorithms import verifiers
from spectheory.verification.law_errors import law_errors
from spectheory.verification.outcome import (
    Outcome,
    correction_deviation,
    sample_rows,
    stop_deviation,
    sums_and_lowest,
)
from table import GENERAL


class FixedUniform:
    """Stands in for a generator and always draws the same number."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.full(shape, self.value)


def two_stops() -> Outcome:
    """K = 2, L = 1: three stops, each with its own correction token."""
    stop_probs = np.array([[[0.25, 0.5], [0.0, 0.25]]])
    rows = np.array([[[[1.0, 0, 0], [0, 1.0, 0]], [[0, 0, 0], [0, 0, 1.0]]]])
    return Outcome.from_rows(stop_probs, rows)


def test_expected_tokens_and_lengths() -> None:
    """E[τ+1] = Σ (i+1) P(τ = i): 0.25 * 1 + 0.75 * 2."""
    outcome = two_stops()
    np.testing.assert_array_equal(outcome.length_probs(), [[0.25, 0.75]])
    np.testing.assert_array_equal(outcome.expected_tokens(), [1.75])


@pytest.mark.parametrize("name", GENERAL)
def test_leading_axes_are_batch_axes(name: str) -> None:
    """[..., K, L] with no, one or two leading axes: the same numbers."""
    pair = instances.random_float(3, vocab_size=3, draft_length=2)
    rng = np.random.default_rng(4)
    paths = rng.integers(0, 3, size=(2, 3, 2, 2))
    numbers = [np.zeros(paths.shape[:-1], int), paths[..., 0], paths[..., 0] * 3 + paths[..., 1]]
    target_rows = np.stack([pair.target[depth][numbers[depth]] for depth in range(3)], axis=-2)
    draft_rows = np.stack([pair.draft[depth][numbers[depth]] for depth in range(2)], axis=-2)
    whole = verifiers[name].outcome(paths, target_rows, draft_rows)
    assert whole.stop_probs.shape == (2, 3, 2, 3)
    for index in np.ndindex(2, 3):
        part = verifiers[name].outcome(paths[index], target_rows[index], draft_rows[index])
        assert part.stop_probs.shape == (2, 3)
        np.testing.assert_allclose(whole.stop_probs[index], part.stop_probs, rtol=0, atol=1e-15)
        for path_index, length in np.argwhere(part.stop_probs > 1e-9):
            everywhere = whole.correction(np.full((2, 3), path_index), np.full((2, 3), length))
            assert everywhere.shape == (2, 3, 3)
            alone = part.correction(np.array(path_index), np.array(length))
            np.testing.assert_allclose(everywhere[index], alone, rtol=0, atol=1e-12)


def test_samples_follow_the_stop_law_and_name_its_rows() -> None:
    """200 000 draws: frequencies within 5 standard errors, and each stop with its own correction token."""
    one = two_stops()
    rows = np.array([[[1.0, 0, 0], [0, 1.0, 0]], [[0, 0, 0], [0, 0, 1.0]]])
    batch = np.broadcast_to(rows, (200_000, 2, 2, 3))
    sample = Outcome.from_rows(np.repeat(one.stop_probs, 200_000, axis=0), batch).sample(
        np.random.default_rng(11)
    )
    for k, i, probability in ((0, 0, 0.25), (0, 1, 0.5), (1, 0, 0.0), (1, 1, 0.25)):
        frequency = float(((sample.path_index == k) & (sample.length == i)).mean())
        assert abs(frequency - probability) <= 5 * (probability * (1 - probability) / 200_000) ** 0.5
    token_of_stop = np.array([[0, 1], [-1, 2]])
    np.testing.assert_array_equal(sample.token, token_of_stop[sample.path_index, sample.length])


def test_weights_are_laws_once_divided_and_are_drawn_from_as_they_are() -> None:
    """Rows are the weights over their sums, zeros without mass; a sample never divides."""
    asked = []
    rows = np.array([[Fraction(1), Fraction(3)], [Fraction(0), Fraction(0)]])

    def weights(path_index: np.ndarray, length: np.ndarray) -> np.ndarray:
        asked.append(length.tolist())
        return rows[length]

    outcome = Outcome.from_weights(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), weights)
    zero, length = np.zeros(2, dtype=int), np.array([0, 1])
    assert outcome.correction(zero, length).tolist() == [[Fraction(1, 4), Fraction(3, 4)], [0, 0]]
    with pytest.raises(InvalidOutcomeError, match="without mass"):
        outcome.sample(np.random.default_rng(0))
    assert asked == [[0, 1], [1, 0]]


def test_same_seed_same_sample() -> None:
    outcome = Outcome.from_rows(np.full((50, 2, 3), 1 / 6), np.full((50, 2, 3, 4), 0.25))
    draws = [outcome.sample(np.random.default_rng(seed)) for seed in (5, 5, 6)]
    for field in ("path_index", "length", "token"):
        assert getattr(draws[0], field).shape == (50,)
        np.testing.assert_array_equal(getattr(draws[0], field), getattr(draws[1], field))
    assert any(
        (getattr(draws[0], f) != getattr(draws[2], f)).any() for f in ("path_index", "length", "token")
    )


def test_exact_outcomes_can_be_sampled() -> None:
    half = Fraction(1, 2)
    rows = np.array([[[Fraction(0), Fraction(1)], [Fraction(1), Fraction(0)]]], dtype=object)
    outcome = Outcome.from_rows(np.array([[half, half]], dtype=object), rows)
    for seed in range(10):
        sample = outcome.sample(np.random.default_rng(seed))
        assert int(sample.token) == 1 - int(sample.length)


BLOCKS = st.sampled_from([choice.BLOCK, 2, 3])
"""Short rows are searched at once, others by blocks, the last of which may be short."""
KINDS = st.sampled_from(["numpy", "torch", "torch elsewhere"])
"""Torch on the host is searched by its own kernel, on an accelerator as numpy is."""


def drawn_by(uniform: float, row: np.ndarray, kind: str, block: int) -> int:
    with patch.object(choice, "BLOCK", block), ExitStack() as here:
        if kind == "numpy":
            return int(sample_rows(row, FixedUniform(uniform)))
        if kind == "torch elsewhere":
            for module in (choice, row_draws, outcomes):
                here.enter_context(patch.object(module, "on_host", lambda array: False))
        return int(
            sample_rows(torch.tensor(row), lambda shape: torch.full(shape, uniform, dtype=torch.float64))
        )


@given(
    row=st.lists(st.integers(0, 4), min_size=1, max_size=8).filter(any),
    block=BLOCKS,
    uniform=st.one_of(st.floats(0, 1, exclude_max=True), st.sampled_from([0.0, 1 - 2**-53, 0.5])),
    scale=st.sampled_from([1.0, 1e-12, 1 / 3, 0.1]),
    nothing=st.sampled_from([0.0, -1e-18, -0.25]),
    kind=KINDS,
)
@example([3, 0, 0, 4], 2, 1 - 2**-53, 1.0, 0.0, "numpy")  # what the block leaves of u rounds to 1
@example([0, 1, 0, 2], 2, 1 / 3, 1.0, 0.0, "numpy")  # and here below 0
@example([0, 1, 0, 2], 2, 0.0, 1.0, 0.0, "torch")
def test_zero_entries_are_never_drawn(
    row: list[int], block: int, uniform: float, scale: float, nothing: float, kind: str
) -> None:
    """Whatever the uniform number, the ends of [0, 1) included, no entry of zero or below it is drawn."""
    numbers = np.where(row, row, nothing) * scale
    assume(block >= len(row) or nothing > -0.25)  # sums of blocks hold what is below zero
    index = drawn_by(uniform, numbers, kind, block)
    assert 0 <= index < len(row)
    assert row[index] > 0


@given(row=st.lists(st.integers(0, 4), min_size=1, max_size=9).filter(any), block=BLOCKS, kind=KINDS)
def test_sampling_inverts_the_cumulative_sum(row: list[int], block: int, kind: str) -> None:
    """With the midpoints of N equal cells as uniforms, entry i of weight n_i is drawn exactly n_i times."""
    total = sum(row)
    shares = np.array(row, dtype=float) / total
    drawn = [drawn_by((cell + 0.5) / total, shares, kind, block) for cell in range(total)]
    assert [drawn.count(i) for i in range(len(row))] == row


def test_torch_draws_what_numpy_draws() -> None:
    """The same uniform numbers find the same entries and masses, many rows at once; a row needs mass."""
    rng = np.random.default_rng(8)
    rows = np.where(rng.random((300, 1000)) < 0.3, 0, rng.random((300, 1000))) ** 8
    rows[::2, ::100] = -0.5
    numbers = rng.random((300, 1))
    entries, mass = draw(rows, numbers)
    on_torch, mass_on_torch = draw(torch.tensor(rows), torch.tensor(numbers))
    assert on_torch.tolist() == entries.tolist()
    np.testing.assert_allclose(mass_on_torch, mass, rtol=1e-13)
    rows[7] = 0
    with pytest.raises(InvalidOutcomeError, match="without mass"):
        sample_rows(torch.tensor(rows), torch.Generator().manual_seed(0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_draw_knows_whether_it_was_from_a_law(dtype: torch.dtype) -> None:
    """The errors of what was drawn are those of the weights read once more, right or wrong."""
    rows = torch.rand(4, 1, 3, 600, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
    rows /= rows.sum(-1, keepdim=True)
    paths = torch.tensor([[[1, 2]], [[3, 4]], [[5, 6]], [[7, 8]]])
    outcome = verifiers["block"].outcome(paths, rows, rows[:, :, :2].flip(-1))
    drawn = outcome.sample(torch.Generator().manual_seed(2))
    assert drawn.sums_and_lowest is not None
    assert drawn.weights is not None
    stop = outcome.stop_of(drawn)
    assert float(law_errors(outcome, stop, paths, drawn).max()) < 1e-6
    drawn.weights[1, 5], drawn.weights[2] = -1, 0
    again = replace(drawn, sums_and_lowest=sums_and_lowest(drawn.weights))
    expected = law_errors(outcome, stop, paths, replace(drawn, sums_and_lowest=None))
    torch.testing.assert_close(law_errors(outcome, stop, paths, again), expected)
    assert torch.argwhere(expected > 1e-6).tolist() == [[2, 1], [3, 2]]
    # Read when it was drawn, not when somebody asks.
    assert float(law_errors(outcome, stop, paths, drawn).max()) < 1e-6


def test_a_stop_is_what_a_sample_begins_with() -> None:
    """The same uniform number decides; its probability is that of the stop."""
    outcome = two_stops()
    for value in (0.0, 0.2, 0.3, 0.7, 0.8, 0.999):
        stop, sample = outcome.sample_stop(FixedUniform(value)), outcome.sample(FixedUniform(value))
        assert (stop.path_index, stop.length) == (sample.path_index, sample.length)
        assert stop.prob == outcome.stop_probs[0, stop.path_index[0], stop.length[0]]
        assert stop.mass == 1
        assert outcome.stop_of(sample).prob == stop.prob


def test_a_stop_without_mass_says_so_and_a_sample_refuses() -> None:
    outcome = Outcome(np.zeros((2, 1, 2)), lambda path_index, length: np.zeros((2, 3)))
    np.testing.assert_array_equal(outcome.sample_stop(FixedUniform(0.5)).mass, [0, 0])
    with pytest.raises(InvalidOutcomeError, match="without mass"):
        outcome.sample(FixedUniform(0.5))


ANSWERS: list[tuple[list[list[list[float]]], list[bool]]] = [
    ([[[0.25, 0.5], [0.0, 0.25]], [[1.0, 0.0], [0.0, 0.0]]], [True, True]),
    ([[[0.25, 0.5], [0.0, 0.5]], [[1.0, 0.0], [0.0, 0.0]]], [False, True]),
    ([[[0.5, -0.25], [0.5, 0.25]], [[0.0, 0.0], [0.0, 0.0]]], [False, False]),
    ([[[float("nan"), 0.5], [0.5, 0.0]], [[1.0, 0.0], [0.0, 0.0]]], [False, True]),
]


@pytest.mark.parametrize(("answer", "good"), ANSWERS)
@pytest.mark.parametrize("kind", ["numpy", "torch", "exact"])
def test_stop_deviation(answer: list[Any], good: list[bool], kind: str) -> None:
    """One definition for floats, rationals and tensors; NaN is never within any slack."""
    stop_probs: Any = np.array(answer)
    if kind == "exact":  # which knows no NaN; twice 1 is as wrong
        stop_probs = np.vectorize(Fraction, otypes=[object])(np.nan_to_num(stop_probs, nan=2.0))
    if kind == "torch":
        stop_probs = torch.from_numpy(stop_probs)
    found = stop_deviation(stop_probs)
    assert found.within(0 if kind == "exact" else 1e-12).tolist() == good


def test_correction_deviation_counts_what_the_stop_is_worth() -> None:
    """|sum - 1| times the probability of the stop; zeros are no law, and say so."""
    rows = np.array([[0.5, 0.0], [0.5, 0.0], [2.0, -1.0], [0.0, 0.0], [0.5, 0.5]])
    probs = np.array([1.0, 1e-6, 0.5, 1.0, 1.0])
    found, empty = correction_deviation(rows, probs)
    np.testing.assert_allclose(found.sum_error, [0.5, 5e-7, 0, 0, 0])
    np.testing.assert_allclose(found.lowest, [0, 0, -0.5, 0, 0.5])
    assert found.within(1e-5).tolist() == [False, True, False, True, True]
    assert empty.tolist() == [False, False, False, True, False]


@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_weights_are_judged_as_the_rows_that_they_make(kind: Any) -> None:
    """Any scale is a law; entries below zero, no number, infinity and a sum of zero with entries are not."""
    bad: Any = [[3.0, -1.0], [1.0, -3.0], [float("nan"), 1.0], [float("inf"), 1.0], [1.0, -1.0]]
    weights, prob = kind([[1e-30, 0.0], [3.0, 1.0], [0.0, 0.0], *bad]), kind([0.5] * 8)
    found, empty = correction_deviation(weights, prob, are_weights=True)
    assert found.within(1e-5).tolist() == [True] * 3 + [False] * 5
    assert empty.tolist() == [number == 2 for number in range(8)]
    # partner: as rows they are laws only where they sum to 1 already
    assert not correction_deviation(weights, prob)[0].within(1e-5)[:2].any()


def test_what_sums_to_less_than_one_is_drawn_in_proportion() -> None:
    """A row of sum 1/2 has no draws left over; stops without any mass are refused."""
    rows = np.tile([0.0, 0.125, 0.375], (4_000, 1))
    drawn = np.bincount(sample_rows(rows, np.random.default_rng(0)), minlength=3)
    assert drawn[0] == 0
    assert abs(drawn[1] - 1_000) < 120
    nothing = Outcome(np.zeros((1, 1, 2)), lambda path_index, length: np.full((1, 2), 0.5))
    with pytest.raises(InvalidOutcomeError, match="without mass"):
        nothing.sample(np.random.default_rng(0))


def test_the_blocks_of_a_long_row_change_nothing() -> None:
    """The same uniform number finds the same entry, block by block or in one sum; the mass is the same."""
    rows = np.random.default_rng(3).random((200, 1000)) ** 8
    uniform = np.random.default_rng(4).random((200, 1))
    with patch.object(choice, "BLOCK", 10_000):
        at_once = draw(rows, uniform)
    by_blocks = draw(rows, uniform)
    assert (at_once[0] == by_blocks[0]).all()
    np.testing.assert_allclose(at_once[1], by_blocks[1], rtol=1e-13)


def test_expected_tokens_stay_exact() -> None:
    """Rational stop probabilities give a rational expectation."""
    third = Fraction(1, 3)
    outcome = Outcome.from_rows(np.array([[third, third, third]], dtype=object), np.zeros((1, 3, 2)))
    assert outcome.expected_tokens() == 2
    assert isinstance(outcome.expected_tokens(), Fraction)


def test_rows_and_numbers_may_lie_as_they_like(recwarn: pytest.WarningsRecorder) -> None:
    """Slices of larger tensors are drawn from without a word of torch."""
    rows, numbers = torch.rand(5, 2, 3).double(), torch.rand(5, 2).double()
    torch.set_warn_always(True)
    try:
        drawn = sample_rows(rows[..., 1], lambda shape: numbers[:, 1:])
    finally:
        torch.set_warn_always(False)
    assert drawn.tolist() == sample_rows(rows[..., 1].clone(), lambda shape: numbers[:, 1:].clone()).tolist()
    assert not recwarn.list
