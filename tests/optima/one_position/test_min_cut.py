"""The min cut at one position: golden values, against the transport program, batched."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from program_support import THREE_TOKENS, TWO_TOKENS
from spectheory import acceptance, instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import optimal_acceptance
from spectheory.optima.one_position.min_cut import min_cut_of_law, optimal_acceptance_curve


@pytest.mark.parametrize(
    ("rows", "values"),
    [(TWO_TOKENS, ["2/3", "8/9", "1", "1"]), (THREE_TOKENS, ["2/3", "29/36", "199/216", "1"])],
)
def test_min_cut_reference_values(rows: tuple[list[str], list[str]], values: list[str]) -> None:
    """theory.md §3, α_1..α_4."""
    found = [optimal_acceptance(*rows, num_drafts).value for num_drafts in (1, 2, 3, 4)]
    assert found == [Fraction(value) for value in values]


def test_min_cut_is_batched_on_numpy_and_torch() -> None:
    rng = np.random.default_rng(0)
    target, draft = (rng.dirichlet(np.ones(30), size=(2, 3)) for _ in range(2))
    draft[..., 5:] = 0  # tokens that cannot be drafted
    draft /= draft.sum(axis=-1, keepdims=True)
    value, tokens = optimal_acceptance(target, draft, 3)
    on_torch = optimal_acceptance(torch.tensor(target), torch.tensor(draft), 3)
    assert value.shape == (2, 3)
    np.testing.assert_allclose(on_torch.value.numpy(), value, atol=1e-15)
    np.testing.assert_array_equal(on_torch.tokens.numpy(), tokens)
    alone = [[optimal_acceptance(target[i, j], draft[i, j], 3).value for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(value, alone, atol=0)
    np.testing.assert_allclose((target * tokens).sum(-1) + 1 - (draft * tokens).sum(-1) ** 3, value)
    pair = instances.random_rational(0, 2, 2)
    assert optimal_acceptance(pair.target[1], pair.draft[1], 2).value.shape == (2,)


def test_bad_rows_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="sum to 1"):
        optimal_acceptance([0.5, 0.6], [0.5, 0.5], 2)
    with pytest.raises(InvalidInputError, match="sum to 1"):
        optimal_acceptance([0.5, float("nan")], [0.5, 0.5], 2)
    with pytest.raises(InvalidInputError, match="shape"):
        optimal_acceptance([1.0], [0.5, 0.5], 2)
    with pytest.raises(InvalidInputError, match="use one kind"):
        optimal_acceptance(["1/2", "1/2"], [0.5, 0.5], 2)


def test_curve_is_the_single_cuts() -> None:
    """One sort for all K gives the values and sets of one call per K: rationals, floats, batches, torch."""
    pair = instances.random_rational(3, 5, 1)
    floats = np.random.default_rng(1).dirichlet(np.ones(40), size=(2, 3))
    rows: list[tuple[Any, Any]] = [
        (pair.target[0][0], pair.draft[0][0]),
        (floats[0], floats[1]),
        (torch.tensor(floats[0]), torch.tensor(floats[1])),
    ]
    for target, draft in rows:
        curve = optimal_acceptance_curve(target, draft, 6)
        assert len(curve) == 6
        for num_drafts, cut in enumerate(curve, start=1):
            alone = optimal_acceptance(target, draft, num_drafts)
            np.testing.assert_array_equal(cut.tokens, alone.tokens)
            np.testing.assert_array_equal(cut.value, alone.value)
    with pytest.raises(InvalidInputError, match="num_drafts"):
        optimal_acceptance_curve(["1"], ["1"], 0)


@pytest.mark.parametrize("mass", [1e-15, 1e-17, 1e-30])
@pytest.mark.parametrize("num_drafts", [1, 2, 1000])
def test_floats_keep_their_relative_accuracy(mass: float, num_drafts: int) -> None:
    """The target is where the draft hardly is: 1 - draft(H)^K would be 0 or a multiple of 1e-16."""
    rows = [1.0, mass], [mass, 1.0]
    e = Fraction(mass)
    exact = acceptance([1 - e, e], [e, 1 - e], num_drafts)
    found = acceptance(*rows, num_drafts)
    for name in ("optimal", "multi_round", "kseq", "upper_bound", "lower_bound"):
        assert float(getattr(found, name)) == pytest.approx(float(getattr(exact, name)), rel=1e-9), name
    assert found.multi_round <= found.optimal * (1 + 1e-12)
    law = {(0,): mass, (1,): 1.0}
    assert min_cut_of_law(rows[0], law).value == pytest.approx(2 * mass, rel=1e-12)
