"""The loops over ratios between knots, against the same in torch's operators, and what they refuse."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from audits.own_rounds import interpreted_kernels
from compiled_kernels import compiled_for, compiled_module
from deep import first_is_quick
from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.foundation.kernels.knot_kernels import between_knots, scale_between_knots
from spectheory.verification.algorithms.path_selection.scored_multipath import between, hat_masses

Between = Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]


@pytest.fixture(params=["loop", "kernel"])
def between_them(request: pytest.FixtureRequest) -> Between:
    """``between_knots`` on the host, and as the Triton kernel in Triton's interpreter."""
    kernels = interpreted_kernels("spectheory.foundation.kernels.triton_knots")

    def interpreted(*given: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        with interpreting():
            found: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = kernels.between_knots(*given)
            return found

    return between_knots if request.param == "loop" else interpreted


KNOTS = np.concatenate([[0.0], np.geomspace(2.0**-10, 1, 23)]) * 3
KINDS = [torch.float32, torch.float64]


def rows_of(seed: int, *shape: int, dtype: torch.dtype) -> torch.Tensor:
    """Rows with zeros on both sides, whose ratios lie below the first knot and above the last one."""
    generator = torch.Generator().manual_seed(seed)
    rows = torch.rand(shape, generator=generator, dtype=torch.float64) ** 4
    rows[torch.rand(shape, generator=generator) < 0.2] = 0
    return (rows / rows.sum(-1, keepdim=True)).to(dtype)


@pytest.mark.parametrize("threads", [1, 3])
@first_is_quick("dtype", KINDS)
@pytest.mark.parametrize("size", [600, 3_000])
def test_between_knots(
    between_them: Between, size: int, dtype: torch.dtype, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same divisions bit by bit; so are the sums of the loop, from left to right."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr("spectheory.foundation.kernels.row_kernels.WORTH_A_THREAD", 1)
    target, draft = (rows_of(seed, 5, 2, size, dtype=dtype)[:, 1] for seed in (1, 2))
    scale, knots = torch.tensor([1.0, 0.5, 0.0, 2.0, 1e-3], dtype=dtype), torch.tensor(KNOTS, dtype=dtype)
    lower, shares, masses = between_them(target, draft, scale, knots)
    expected = between(knots, scale[:, None] * target / draft)
    assert torch.equal(lower.long(), expected[0])
    assert torch.equal(shares, expected[1])
    error = 0 if between_them is between_knots else 1e-15
    torch.testing.assert_close(masses, hat_masses(draft, *expected, len(knots)), rtol=error, atol=error)
    torch.testing.assert_close(masses.sum(-1), draft.double().sum(-1), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", KINDS)
def test_a_value_on_a_knot_belongs_to_it(between_them: Between, dtype: torch.dtype) -> None:
    """By hand: nothing of it goes to the next knot, all of it to the last one; below 0/0 stands the last."""
    knots = torch.tensor([0.0, 0.5, 1.0, 4.0], dtype=dtype)
    others = torch.full((1, 6), 0.25, dtype=dtype)
    others[0, 5] = 0
    rows = 0.25 * torch.tensor([[0.0, 0.5, 1.0, 4.0, 2.5, 0.0]], dtype=dtype)
    lower, shares, masses = between_them(rows, others, torch.ones(1, dtype=dtype), knots)
    assert lower.tolist() == [[0, 1, 2, 2, 2, 2]]
    assert shares.tolist() == [[0, 0, 0, 1, 0.5, 1]]
    assert masses.tolist() == [[0.25, 0.25, 0.375, 0.375]]


@first_is_quick("dtype", KINDS)
def test_the_kernel_compiles_for_a_device(dtype: torch.dtype) -> None:
    """The interpreter takes what the compiler refuses."""
    rows, knots = rows_of(1, 3, 600, dtype=dtype), torch.tensor(KNOTS, dtype=dtype)
    triton_knots = compiled_module("spectheory.foundation.kernels.triton_knots")
    with compiled_for(triton_knots, capability=90) as compiled:
        triton_knots.between_knots(rows, rows, knots[:3], knots)
    assert compiled == ["_between_kernel"]


def test_what_does_not_belong_together_is_refused(between_them: Between) -> None:
    rows, knots = rows_of(1, 3, 600, dtype=torch.float64), torch.tensor(KNOTS)
    ones = torch.ones(3, dtype=torch.float64)
    lower, shares, _ = between_knots(rows, rows, ones, knots)
    factors, out = torch.ones((3, len(KNOTS)), dtype=torch.float64), torch.empty_like(rows)
    with pytest.raises(ValueError, match="rows of one shape"):
        between_them(rows, rows[:2], ones, knots)
    with pytest.raises(ValueError, match="a scale per row"):
        between_them(rows, rows, ones[:2], knots)
    with pytest.raises(ValueError, match="numbers of contexts"):
        scale_between_knots(rows, lower, shares, factors, torch.tensor([0, 1, 3]), out)
    with pytest.raises(ValueError, match="numbers for every entry"):
        scale_between_knots(rows, lower, shares, factors, torch.tensor([0, 1]), out)
    with pytest.raises(ValueError, match="numbers for every entry"):
        scale_between_knots(rows, lower, shares, factors, torch.tensor([0, 1, 2]), out.float())


@first_is_quick("dtype", KINDS)
def test_rows_scaled_between_knots(dtype: torch.dtype) -> None:
    """Written into a part of a larger array, at contexts that come several times."""
    draft, factors = rows_of(3, 3, 700, dtype=dtype), rows_of(4, 3, len(KNOTS), dtype=dtype)
    generator = torch.Generator().manual_seed(5)
    lower = torch.randint(len(KNOTS) - 1, (3, 700), generator=generator).short()
    shares, which = rows_of(6, 3, 700, dtype=dtype), torch.tensor([2, 0, 2, 1])
    out = torch.zeros((4, 2, 700), dtype=dtype)
    scale_between_knots(draft, lower, shares, factors, which, out[:, 1])
    below, above = (factors.gather(1, lower.long() + step) for step in (0, 1))
    expected = (draft * (below + shares * (above - below)))[which]
    torch.testing.assert_close(out[:, 1], expected, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert not out[:, 0].any()
