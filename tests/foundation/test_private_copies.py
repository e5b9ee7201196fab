"""Copies share no memory with user code, and a write into its side is seen."""

from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
import torch
from flint import fmpq

from spectheory.foundation.private_copies import PrivateCopy

ARRAYS = {
    "Fractions": np.array([[Fraction(1, 3), Fraction(2, 3)]], dtype=object),
    "flint": np.array([[fmpq(1, 3), fmpq(2, 3)]], dtype=object),
    "float64": np.array([[0.25, np.nan]]),
    "whole numbers": np.array([[3, 4]]),
    "torch": torch.tensor([[0.25, 0.75]]),
}


@pytest.mark.parametrize("side", ["lent", "returned"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_a_write_is_seen_and_reaches_one_side_only(kind: str, side: str) -> None:
    """The partner is the copy before the write; NaN, in another entry, is not a change."""
    copy = getattr(PrivateCopy, side)(deepcopy(ARRAYS[kind]))
    before = copy.ours.tolist()
    assert copy.is_unchanged()
    copy.theirs[0, 0] = 2 * copy.theirs[0, 0]
    assert not copy.is_unchanged()
    assert str(copy.ours.tolist()) == str(before)


@pytest.mark.parametrize("kind", [Fraction, fmpq])
def test_numbers_themselves_are_made_anew(kind: type) -> None:
    """Both kinds of rationals can be changed in place."""
    copy = PrivateCopy.lent(ARRAYS["flint"], kind)
    number = copy.theirs[0, 0]
    assert type(number) is kind
    if kind is fmpq:
        number.__init__(5)
    else:
        number._numerator = 5
    assert not copy.is_unchanged()
    assert copy.ours[0, 0] == fmpq(1, 3)


def test_a_tensor_that_records_gradients_is_overwritten() -> None:
    copy = PrivateCopy.lent(torch.zeros(2))
    copy.theirs.requires_grad_(True)
    copy.overwrite(torch.ones(2))
    assert copy.theirs.tolist() == [1, 1]
