"""The loops that read rows once against the formulas of torch, which write what lies between."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from deep import first_is_quick
from spectheory.foundation import arrays
from spectheory.foundation.kernels import choice, row_kernels
from spectheory.foundation.row_draws import draw
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import sample_rows

SIZES = (512, 1_023, 1_024, 1_025, 3_000)
DTYPES = (torch.float32, torch.float64)


def rows_of(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def with_formula(rows: Any, other: Any, scale: Any, other_scale: Any) -> torch.Tensor:
    left = rows if scale is None else scale[..., None] * rows
    right = other if other_scale is None else other_scale[..., None] * other
    return (left - right).clamp_min(0)


@pytest.fixture(params=["one thread", "three threads"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "three threads":
        monkeypatch.setattr(row_kernels, "WORTH_A_THREAD", 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    return request.param


@first_is_quick("scaled", [(0, 0), (1, 0), (0, 1), (1, 1)], quick=4)
@first_is_quick("dtype", DTYPES)
@first_is_quick("size", SIZES, quick=2)
@pytest.mark.usefixtures("threads")
def test_masses(size: int, dtype: torch.dtype, scaled: tuple[int, int]) -> None:
    """Sums up to their order; rows lie apart, and one may stand for many."""
    rows = rows_of(1, 4, 3, 2, size, dtype=dtype)[:, 1:, 0]
    other = rows_of(2, 4, 1, size + 3, dtype=dtype)[..., 3:].expand(4, 2, size)
    scales = [rows_of(3 + n, 4, 2, dtype=dtype) if on else None for n, on in enumerate(scaled)]
    masses = row_kernels.residual_mass(rows, other, *scales)
    assert masses.dtype is dtype
    expected = [
        [math.fsum(row) for row in element] for element in with_formula(rows, other, *scales).tolist()
    ]
    np.testing.assert_allclose(masses, expected, rtol=4 * torch.finfo(dtype).eps)
    # partner: terms in each other's place are another number
    swapped = row_kernels.residual_mass(other, rows, *reversed(scales))
    assert not np.allclose(swapped, expected, rtol=1e-4)


@first_is_quick("scaled", [(0, 0), (1, 0), (0, 1), (1, 1)], quick=4)
@first_is_quick("dtype", DTYPES)
@first_is_quick("size", SIZES, quick=2)
@pytest.mark.usefixtures("threads")
def test_rows_at_stops(size: int, dtype: torch.dtype, scaled: tuple[int, int]) -> None:
    """To the last bit what the formula gives, with no draft row at depth L; batches of any shape."""
    batch, num_paths, length = (2, 3), 3, 4
    target = rows_of(1, *batch, num_paths, length + 1, size, dtype=dtype) - 0.1
    draft = rows_of(2, *batch, 1, length, size + 3, dtype=dtype)[..., 3:].expand(*batch, 3, length, size)
    path, depth = torch.tensor([[0, 2, 1], [1, 0, 2]]), torch.tensor([[4, 0, 1], [2, 3, 4]])
    scales = [rows_of(3 + n, *batch, dtype=dtype) if on else None for n, on in enumerate(scaled)]
    found = row_kernels.residual_at_stops(target, draft, path, depth, *scales)
    with_leaves = torch.cat([draft, torch.zeros_like(draft[..., :1, :])], dim=-2)
    first, second = torch.tensor([[0], [1]]), torch.tensor([0, 1, 2])
    rows = [table[first, second, path, depth] for table in (target, with_leaves)]
    assert torch.equal(found, with_formula(*rows, *scales))
    assert not torch.equal(found, with_formula(*rows, *reversed(scales))) or scaled == (0, 0)


@pytest.mark.parametrize(("path", "depth"), [(2, 0), (-1, 0), (0, 3), (1, -1)])
def test_a_stop_that_does_not_exist(path: int, depth: int) -> None:
    """It is refused, as no place in memory is looked at that belongs to no row."""
    target, draft = rows_of(1, 2, 2, 3, 600), rows_of(2, 2, 2, 2, 600)
    stops = torch.tensor([0, path]), torch.tensor([2, depth])
    with pytest.raises(IndexError, match="outside of 2 paths of 0 to 2 tokens"):
        row_kernels.residual_at_stops(target, draft, *stops, None, None)


@first_is_quick("dtype", DTYPES)
@first_is_quick("size", [1, 9, 511, *SIZES], quick=4)
def test_draws(size: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entries that the operators draw for the same numbers, ends of the range among them, and the masses.

    Some entries are zero, some rounded below it.  A row without mass has mass 0, one without numbers none.
    """
    rng = torch.Generator().manual_seed(size)
    rows = rows_of(1, 7, 30, size + 2, dtype=dtype)[..., 2:]
    rows[..., torch.rand(size, generator=rng) < 0.6] = 0
    rows[:, 3] -= 1e-9
    rows[0, :2] = 0
    rows[0, 2, size // 2] = math.nan
    uniform = torch.rand(7, 30, 1, generator=rng, dtype=torch.float64)
    uniform[1:3, :, 0] = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)[:, None]
    monkeypatch.setattr(choice, "WORTH_A_LOOP", math.inf)
    numbers, masses = draw(rows, uniform)
    found, found_masses = row_kernels.draw(rows, uniform[..., 0], choice.BLOCK)
    np.testing.assert_allclose(found_masses, masses, rtol=1e-14, atol=0)
    drawn = masses > 0
    assert drawn.sum() > 200 or size < 10
    assert torch.equal(found[drawn], numbers[drawn])
    others, _ = row_kernels.draw(rows, uniform.flip(0)[..., 0], choice.BLOCK)
    assert not torch.equal(others[drawn], numbers[drawn]) or size == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [9, *SIZES])
def test_sums_and_lowest(size: int, dtype: torch.dtype) -> None:
    """As torch finds them, alone and beside a draw; of NaN and infinity the sum tells."""
    rows = rows_of(1, 6, size, dtype=dtype)
    rows[1, size // 2], rows[1, -1], rows[2, 0], rows[3, -1], rows[4] = -2, -3, math.nan, math.inf, 0
    half = np.full(6, 0.5)
    for sums, lowest in (row_kernels.sums_and_lowest(rows), row_kernels.draws(rows, half, choice.BLOCK)[2]):
        np.testing.assert_allclose(sums, rows.double().sum(-1), rtol=1e-14)
        assert lowest.tolist() == [0, -3, 0, 0, 0, 0]


@first_is_quick("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scaled", [(0, 0), (1, 1)])
def test_masses_and_residuals_of_half_precision(dtype: torch.dtype, scaled: tuple[int, int]) -> None:
    """What the same entries give in float32; either side read by its bits gives another number."""
    rows, other = (rows_of(seed, 3, 700).softmax(-1).to(dtype) for seed in (1, 2))
    scales = [np.float32([0.5, 0.75, 1.25]) if on else None for on in scaled]
    found = row_kernels.masses(rows, other, *scales)
    assert np.array_equal(found, row_kernels.masses(rows.float(), other.float(), *scales))
    paths = [row[:, None, None].expand(3, 1, depths, 700) for row, depths in ((rows, 3), (other, 2))]
    stops = np.zeros(3, int), np.array([0, 1, 2])
    written = row_kernels.residuals(*paths, *stops, *scales)
    assert torch.equal(written, row_kernels.residuals(*(path.float() for path in paths), *stops, *scales))
    for bits in ((rows.view(torch.int16).float(), other), (rows, other.view(torch.int16).float())):
        wrong = row_kernels.masses(*(side.float() for side in bits), *scales)
        assert not np.allclose(found, wrong, rtol=1e-2)


NOT_IN_ORDER = [0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1e-45, -1e-45, 5e-324, 1.0, -1.0, 1.0]


@first_is_quick("dtype", [torch.float16, torch.bfloat16, *DTYPES])
@first_is_quick("size", [1, 2, 511, *SIZES], quick=4)
@pytest.mark.usefixtures("threads")
def test_sorts(size: int, dtype: torch.dtype) -> None:
    """The order of torch's stable sort, bit by bit: ties, zeros of both signs, what is not a number."""
    for number, rows in enumerate(
        (
            rows_of(7, 3, 2, 2, size, dtype=dtype)[:, :, 1],
            rows_of(8, 4, size, dtype=dtype).mul(6).floor().sub(3),
            torch.tensor(NOT_IN_ORDER, dtype=dtype).repeat(size)[: 5 * size].reshape(5, size),
            torch.zeros(2, size, dtype=dtype),
        )
    ):
        order = row_kernels.argsort(rows)
        assert torch.equal(order, rows.argsort(dim=-1, stable=True)), number
        kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
        # partner: the bits themselves are in another order
        if number == 1 and size > 2:
            assert not torch.equal(order, rows.view(kind).sort(dim=-1, stable=True).indices)


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[..., :1_000],
        lambda rows: rows.reshape(-1, 500),
        lambda rows: rows.long(),
        lambda rows: rows[..., ::2],
        lambda rows: rows.numpy(),
        lambda rows: rows.clone().requires_grad_(),
        lambda rows: FakeTensorMode().from_tensor(rows),
    ],
    ids=["few", "short", "whole numbers", "apart", "numpy", "differentiated", "fake"],
)
def test_what_takes_the_other_way(change: Callable[[Any], Any]) -> None:
    """Only many floats of plain tensors, in long rows and side by side, are read by the loops."""
    rows = rows_of(1, 4, 150_000, dtype=torch.float32)
    assert choice.use_row_kernel((rows,))
    assert not choice.use_row_kernel((change(rows),))


def test_derivatives_are_those_of_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, other, scale = rows_of(1, 4, 40_000), rows_of(2, 4, 40_000), rows_of(3, 4)

    def mass(factor: torch.Tensor) -> torch.Tensor:
        return arrays.residual_mass(rows, other, factor)

    def found() -> list[torch.Tensor]:
        forwards = torch.func.jvp(mass, (scale,), (torch.ones_like(scale),))[1]
        return [forwards, torch.func.grad(lambda factor: mass(factor).sum())(scale)]

    here = found()
    monkeypatch.setattr(choice, "WORTH_A_LOOP", math.inf)
    for one, other_way in zip(here, found(), strict=True):
        assert bool((one > 100).all())
        torch.testing.assert_close(one, other_way, rtol=1e-12, atol=0)


@pytest.mark.parametrize("place", [500, 1_500])
def test_what_is_no_number_stays_none(place: int) -> None:
    """A row with an entry that is no number has no mass, rather than one without that entry."""
    rows, other = rows_of(1, 2, 2_000), rows_of(2, 2, 2_000)
    rows[1, place] = math.nan
    assert row_kernels.residual_mass(rows, other, None, None).isnan().tolist() == [False, True]
    stops = torch.tensor([0, 0]), torch.tensor([0, 0])
    target = torch.stack([rows, rows], dim=1)[:, None]
    found = row_kernels.residual_at_stops(target, other[:, None, None], *stops, None, None)
    assert found.isnan().sum(-1).tolist() == [0, 1]


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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("size", [9, 700])
def test_draws_from_half_precision(size: int, dtype: torch.dtype) -> None:
    """By the entries, and not by their bits as whole numbers."""
    rows = rows_of(1, 40, size).softmax(-1).to(dtype)
    uniform = torch.linspace(0, 1 - 2**-53, 40, dtype=torch.float64)
    found, masses = row_kernels.draw(rows, uniform, choice.BLOCK)
    expected, expected_masses = row_kernels.draw(rows.float(), uniform, choice.BLOCK)
    assert torch.equal(found, expected)
    assert torch.equal(masses, expected_masses)
    as_bits, _ = row_kernels.draw(rows.view(torch.int16).float(), uniform, choice.BLOCK)
    assert not torch.equal(as_bits, expected)  # the partner


def test_the_sort_of_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long rows in the memory of the host take the loop, and nothing else does."""
    taken: list[int] = []
    monkeypatch.setattr(row_kernels, "argsort", lambda keys: taken.append(1) or keys.argsort(stable=True))
    rows = rows_of(9, 8, 1_024, dtype=torch.float32)
    others = [rows[:1], rows.T.contiguous().T, rows.clone().requires_grad_(), rows.numpy(), rows.byte()]
    for keys in (rows, rows.half(), rows.bfloat16(), *others):
        arrays.argsort(keys)
    assert taken == [1, 1, 1]


def test_a_number_at_the_end_of_a_block() -> None:
    """Rounding carries what is left of it below 0, where the first entry would be drawn, mass or not."""
    rows = (1_000 * rows_of(1, 100, 2 * choice.BLOCK)).floor()  # whole numbers: their sums are exact
    rows[:, choice.BLOCK] = 0
    numbers, _ = row_kernels.draw(rows, rows[:, : choice.BLOCK].sum(-1) / rows.sum(-1), choice.BLOCK)
    assert set(numbers.tolist()) == {choice.BLOCK + 1}


def test_draws_follow_the_row() -> None:
    """Numbers on a grid draw every entry as often as its share says, and none without mass."""
    row = rows_of(5, 700)
    row[rows_of(6, 700) < 0.5] = 0
    grid = (torch.arange(200_000, dtype=torch.float64) + 0.5) / 200_000
    numbers, _ = row_kernels.draw(row.expand(200_000, 700), grid, choice.BLOCK)
    shares = numbers.bincount(minlength=700) / 200_000
    np.testing.assert_allclose(shares, row / row.sum(), atol=2 / 200_000, rtol=0)
    assert not shares[row == 0].any()
    assert abs(shares - 1 / 700).max() > 1e-3


@pytest.mark.parametrize(
    ("other", "scale"),
    [
        (rows_of(2, 40_000), None),
        (rows_of(2, 80_000)[::2], None),
        (rows_of(2, 4, 1), None),
        (rows_of(2, 4, 80_000)[:, ::2], None),
        (rows_of(2, 4, 40_000, dtype=torch.float32), None),
        (rows_of(2, 4, 40_000), torch.tensor(0.5, dtype=torch.float64)),
        (rows_of(2, 4, 40_000), rows_of(3, 2, 4)),
        (rows_of(2, 4, 40_000), rows_of(3, 4, dtype=torch.float32)),
    ],
    ids=[
        "one row",
        "one row, apart",
        "a number per row",
        "apart",
        "other kind",
        "one scale",
        "more scales",
        "kind of scale",
    ],
)
def test_what_does_not_belong_together(other: Any, scale: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch would broadcast or convert goes through torch: no loop reads on."""
    rows = rows_of(1, 4, 40_000)
    scale = torch.ones(4, dtype=torch.float64) if scale is None else scale
    found = arrays.residual_mass(rows, other, other_scale=scale)
    monkeypatch.setattr(choice, "WORTH_A_LOOP", math.inf)
    torch.testing.assert_close(found, arrays.residual_mass(rows, other, other_scale=scale), rtol=1e-6, atol=0)


@pytest.mark.parametrize("change", ["vocabulary", "paths", "depths", "one stop too few", "two scales"])
def test_operators_refuse_what_does_not_fit(change: str) -> None:
    target, draft = rows_of(1, 2, 2, 3, 600), rows_of(2, 2, 2, 2, 600)
    stops, scale = (torch.tensor([0, 1]), torch.tensor([2, 1])), torch.ones(2, dtype=torch.float64)
    row_kernels.residual_at_stops(target, draft, *stops, scale, None)
    if change == "vocabulary":
        draft = draft[..., :599]
    elif change == "paths":
        draft = draft[:, :1]
    elif change == "depths":
        draft = draft[:, :, :1]
    elif change == "one stop too few":
        stops = stops[0][:1], stops[1][:1]
    else:
        scale = torch.ones(2, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"expected .* got shapes"):
        row_kernels.residual_at_stops(target, draft, *stops, scale, None)
    with pytest.raises(ValueError, match="expected"):
        row_kernels.residual_mass(target, target[..., :1, :], None, None)
    with pytest.raises(ValueError, match="expected"):
        row_kernels.draw(target, torch.tensor([0.5], dtype=torch.float64), choice.BLOCK)
    with pytest.raises(ValueError, match="side by side"):
        row_kernels.residual_mass(target.mT, target.mT, None, None)


def test_stops_of_any_shape() -> None:
    target, draft = rows_of(1, 2, 3, 100_000), rows_of(2, 2, 2, 100_000)
    found = CorrectionRows(target, draft, torch.tensor(1), torch.tensor([0, 2, 1])).residual()
    expected = [
        (target[1, 0] - draft[1, 0]).clamp_min(0),
        target[1, 2],
        (target[1, 1] - draft[1, 1]).clamp_min(0),
    ]
    assert torch.equal(found, torch.stack(expected))


def test_both_ways_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    target, draft, scale = rows_of(1, 3, 2, 3, 50_000), rows_of(2, 3, 2, 2, 50_000), rows_of(3, 3)
    stops = CorrectionRows(target, draft, torch.tensor([0, 1, 1]), torch.tensor([0, 2, 1]))
    rows, factors = target[..., 1:, :], scale[:, None, None].expand(3, 2, 2)
    assert choice.use_row_kernel((rows, draft), (factors,))

    def found() -> list[torch.Tensor]:
        return [
            arrays.residual_mass(rows, draft, other_scale=factors),
            arrays.residual_mass(rows, draft, factors),
            stops.residual(),
            stops.residual(scale, scale),
            stops.residual(scale[:1], scale),
            stops._replace(target_rows=target.mT.contiguous().mT).residual(),
            stops._replace(draft_rows=draft.mT.contiguous().mT).residual(),
            sample_rows(target[:, 0], torch.Generator().manual_seed(1)),
        ]

    one_reading = found()
    monkeypatch.setattr(choice, "WORTH_A_LOOP", math.inf)
    monkeypatch.delattr(row_kernels, "draw")
    monkeypatch.delattr(row_kernels, "residual_mass")
    monkeypatch.delattr(row_kernels, "residual_at_stops")
    for one, other in zip(one_reading, found(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=0)
