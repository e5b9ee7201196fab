"""Compiled loops: what they may reorder, what they must not, and a machine without a place for them."""

import math
from fractions import Fraction
from types import FunctionType
from typing import Any

import numba
import numpy as np
import pytest

from spectheory.foundation.kernels.loops import compiled_loop


def total(entries: Any) -> Any:
    found = entries.dtype.type(0)
    for n in range(len(entries)):
        found += entries[n]
    return found


def test_the_order_of_a_sum() -> None:
    """From left to right, bit by bit, unless any order will do; then no number may still be lost."""
    entries = np.random.default_rng(1).random(10_001).astype(np.float32)
    assert compiled_loop()(total)(entries) == entries.cumsum()[-1]
    free = compiled_loop(sums_in_any_order=True)(total)
    assert free(entries) == pytest.approx(math.fsum(entries), rel=1e-6)
    assert free(entries) != entries.cumsum()[-1]
    for bad in (math.nan, math.inf):
        entries[7] = bad
        np.testing.assert_equal(float(free(entries)), bad)


def has_nan(entries: Any) -> bool:
    found = False
    for entry in entries:
        found |= np.isnan(entry)
    return found


def test_what_is_no_number_is_seen() -> None:
    """With every liberty that a loop may take, and the partner: with all that there are it is not."""
    rows = np.array([1.0, math.nan])
    assert compiled_loop(sums_in_any_order=True, fused_products=True)(has_nan)(rows)
    assert not numba.njit(has_nan, fastmath=True)(rows)


def test_a_product_is_rounded_before_it_is_added_to() -> None:
    """So x x minus the float x x is 0, though x x is no float."""
    one = 1 + 2.0**-30
    assert Fraction(one) ** 2 != Fraction(one * one)
    assert compiled_loop()(lambda x, y, z: x * y + z)(one, one, -(one * one)) == 0


def test_a_loop_is_still_there_in_python() -> None:
    """And is compiled once for arrays of one kind; entries apart are another kind."""
    loop = compiled_loop()(total)
    assert loop.py_func is total
    for entries, kinds in ((np.ones(3), 1), (np.ones(4), 1), (np.ones(8)[::2], 2)):
        assert loop(entries) == len(entries)
        assert len(loop.signatures) == kinds


def test_no_place_to_keep_what_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither the package's folder nor the user's can be written to, every process compiles."""
    for locator in ("InTreeCacheLocator", "UserWideCacheLocator"):
        monkeypatch.setattr(getattr(numba.core.caching, locator), "from_function", lambda *of: None)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert compiled_loop("float64(float64[::1])")(fresh_sum())(np.ones(3)) == 3
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(fresh_sum())


def fresh_sum() -> Any:
    return FunctionType(total.__code__, total.__globals__, "total")


def fresh_total() -> Any:
    def total(entries: Any) -> Any:
        return entries[0]

    return total


def test_what_is_kept_is_kept_for_its_options() -> None:
    """With other options a loop is another one; with the same it is what was compiled before."""
    kinds = ({}, {"sums_in_any_order": True}, {"fused_products": True}, {})
    names = [compiled_loop(**kind)(fresh_total()).py_func.__qualname__ for kind in kinds]
    assert len(set(names)) == 3
    assert names[0] == names[3]


def test_a_division_by_zero_is_numpys() -> None:
    quotient = compiled_loop()(lambda one, other: one / other)
    assert quotient(1.0, 0.0) == math.inf
    assert math.isnan(quotient(0.0, 0.0))
    with pytest.raises(ZeroDivisionError):
        numba.njit(lambda one, other: one / other)(1.0, 0.0)


def test_another_error_of_the_compiler_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: Any) -> Any:
        raise RuntimeError("another reason")

    monkeypatch.setattr(numba, "njit", refuse)
    with pytest.raises(RuntimeError, match="another reason"):
        compiled_loop()(total)
