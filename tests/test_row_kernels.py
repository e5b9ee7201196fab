"""The loops that read rows once against the formulas of torch, which write what lies between."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from spectheory import arrays, row_kernels

SIZES = (512, 1_023, 1_024, 1_025, 3_000)
DTYPES = (torch.float32, torch.float64)


def rows_of(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def with_formula(rows: Any, other: Any, scale: Any, other_scale: Any) -> torch.Tensor:
    """The residual as it is written."""
    left = rows if scale is None else scale[..., None] * rows
    right = other if other_scale is None else other_scale[..., None] * other
    return (left - right).clamp_min(0)


@pytest.fixture(params=["one thread", "three threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Rows shared out among threads, or not."""
    if request.param == "three threads":
        monkeypatch.setattr(row_kernels, "WORTH_A_THREAD", 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    return request.param


@pytest.mark.parametrize("scaled", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.usefixtures("threads")
def test_rows_and_masses(size: int, dtype: torch.dtype, scaled: tuple[int, int]) -> None:
    """Rows to the last bit, masses up to the order of the sum; rows lie apart, and one may stand for many."""
    rows = rows_of(1, 4, 3, 2, size, dtype=dtype)[:, 1:, 0]
    other = rows_of(2, 4, 1, size + 3, dtype=dtype)[..., 3:].expand(4, 2, size)
    scale, other_scale = (rows_of(3 + n, 4, 2, dtype=dtype) if on else None for n, on in enumerate(scaled))
    assert arrays.in_one_reading(rows, other, scale, other_scale)
    expected = with_formula(rows, other, scale, other_scale)
    found = row_kernels.residual_rows(rows, other, scale, other_scale)
    assert torch.equal(found, expected)
    masses = row_kernels.residual_mass(rows, other, scale, other_scale)
    assert masses.dtype is dtype
    precise = [[math.fsum(row) for row in element] for element in expected.tolist()]
    np.testing.assert_allclose(masses, precise, rtol=4 * torch.finfo(dtype).eps)
    # partner: terms in each other's place are another number
    assert not torch.equal(row_kernels.residual_rows(other, rows, other_scale, scale), expected)


@pytest.mark.parametrize("kind", ["residual_mass", "residual_rows"])
def test_what_is_no_number_stays_none(kind: str) -> None:
    """A row with an entry that is no number has no mass, rather than one without that entry."""
    rows, other = rows_of(1, 2, 2_000), rows_of(2, 2, 2_000)
    rows[1, 1_500] = math.nan
    found = getattr(row_kernels, kind)(rows, other, None, None).isnan()
    assert not found[0].any()
    assert found[1].any()


def test_no_rows() -> None:
    assert row_kernels.residual_mass(rows_of(1, 0, 600), rows_of(1, 0, 600), None, None).shape == (0,)


def test_a_mass_far_below_the_rows() -> None:
    """p = q but for two tokens: what is left keeps its relative accuracy."""
    other = rows_of(1, 1, 100_000).softmax(-1).float()
    rows = other.clone()
    rows[0, 70_000] *= 1 + 2**-10
    left = float(rows[0, 70_000].double() - other[0, 70_000].double())
    for scale in (None, torch.ones(1)):
        assert float(row_kernels.residual_mass(rows, other, scale, None)) == pytest.approx(left, rel=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[..., :300],
        lambda rows: rows.half(),
        lambda rows: rows[..., ::2],
        lambda rows: rows.numpy(),
        lambda rows: rows.clone().requires_grad_(),
        lambda rows: FakeTensorMode().from_tensor(rows),
    ],
    ids=["short", "half precision", "apart", "numpy", "differentiated", "fake"],
)
def test_what_takes_the_other_way(change: Callable[[Any], Any]) -> None:
    """Only plain long rows of floats with their entries side by side are read by the loops."""
    rows = rows_of(1, 2, 2_000, dtype=torch.float32)
    assert arrays.in_one_reading(rows, rows)
    assert not arrays.in_one_reading(change(rows), change(rows))


def test_both_ways_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """``arrays`` gives the same masses and rows, whichever way it takes."""

    def found() -> list[torch.Tensor]:
        rows, other, scale = rows_of(1, 3, 5_000), rows_of(2, 3, 5_000), rows_of(3, 3)
        return [
            arrays.residual_mass(rows, other, scale),
            arrays.scaled_residual_mass(scale, rows, other),
            arrays.residual_rows(rows, other),
            arrays.residual_rows(rows, other, scale),
            arrays.residual_rows(rows, other, other_scale=scale),
        ]

    one_reading = found()
    monkeypatch.setattr(arrays, "in_one_reading", lambda *given: False)
    for one, other in zip(one_reading, found(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=0)
