"""Compiled loops see what is not finite, and are compiled once for arrays of one kind."""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np
import pytest
from numba import njit

from spectheory.programs.interval.compiled import FAST, compiled


def has_nan(row: np.ndarray) -> bool:
    found = False
    for entry in row:
        found |= np.isnan(entry)
    return found


def total(row: np.ndarray) -> float:
    result = 0.0
    for entry in row:
        result += 1.0 / entry
    return result


def test_what_is_not_finite_is_seen() -> None:
    """1/0 is infinite and no error, and NaN is NaN."""
    rows = {inf: [1.0, 0.0], nan: [1.0, nan], 3.0: [1.0, 0.5]}
    assert [compiled(total)(np.array(row)) for row in rows.values()] == pytest.approx(list(rows), nan_ok=True)
    assert [compiled(has_nan)(np.array(row)) for row in ([1.0, nan], [1.0, inf])] == [True, False]
    # the partner: with every liberty, LLVM decides that there is no NaN
    assert not njit(has_nan, fastmath=True)(np.array([1.0, nan]))
    assert "nnan" not in FAST
    assert "ninf" not in FAST


def test_a_loop_is_still_there_in_python() -> None:
    loop = compiled(total)
    assert loop.py_func is total
    assert not isnan(loop(np.ones(3)))
    loop(np.ones(4))
    assert len(loop.signatures) == 1
    loop(np.ones(8)[::2])  # the partner: not contiguous is another kind
    assert len(loop.signatures) == 2
