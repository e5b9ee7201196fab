"""The rows at a stop and their residual, element by element, in every kind of array."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from array_kinds import KINDS, assert_is, objects
from spectheory.verification.correction_rows import CorrectionRows, take_draft_row, take_stop_row

F = Fraction


def drawn(kind: str, batch: int, seed: int, size: int = 2) -> tuple[CorrectionRows, list[Any], list[Any]]:
    """Stops at paths and depths of every kind, with the target's and the draft's rows there as lists."""
    rng = np.random.default_rng(seed)
    num_paths, depths = 3, 4
    target, draft = (
        objects(
            [
                [[[F(int(x), 7) for x in row] for row in path] for path in element]
                for element in rng.integers(0, 9, (batch, num_paths, length, size))
            ]
        )
        for length in (depths + 1, depths)
    )
    path, length = rng.integers(0, num_paths, batch), rng.integers(0, depths + 1, batch)
    length[0] = depths - seed % 2  # the first stop is at a leaf, or right above one
    index = torch.from_numpy if kind == "torch" else np.asarray
    ended = np.concatenate([draft, objects(np.zeros_like(draft[:, :, :1]) * F(0))], axis=2)
    everyone = np.arange(batch)
    rows = (table[everyone, path, length].tolist() for table in (target, ended))
    stops = CorrectionRows(KINDS[kind](target), KINDS[kind](draft), index(path), index(length))
    return stops, *rows


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("batch", [1, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_at_stops(kind: str, batch: int, seed: int) -> None:
    """Rows by index; zeros where nothing is drafted; the residual with either scale, with both, with none."""
    stops, target, draft = drawn(kind, batch, seed)
    assert_is(take_stop_row(stops.target_rows, stops.path_index, stops.length), target, kind)
    assert_is(take_draft_row(stops.draft_rows, stops.path_index, stops.length), draft, kind)
    assert_is(stops.target_row, target, kind)
    assert_is(stops.draft_row, draft, kind)
    scales = [F(n + 2, 3) for n in range(batch)]
    twice = [F(2, n + 1) for n in range(batch)]
    one = [F(1)] * batch
    for here, there in ((one, one), (scales, one), (one, twice), (scales, twice)):
        expected = [
            [max(a * p - b * q, F(0)) for p, q in zip(*rows, strict=True)]
            for a, b, *rows in zip(here, there, target, draft, strict=True)
        ]
        given = [None if scale is one else KINDS[kind](objects(scale)) for scale in (here, there)]
        assert_is(stops.residual(*given), expected, kind)
