"""Rows that come again: found in every kind of number, and nothing else is."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from flint import fmpq

from spectheory.foundation.exact_numbers import to_flint
from spectheory.foundation.unique_rows import unique_row_indices

KINDS = {
    "Fraction": lambda rows: np.array([[Fraction(int(x), 7) for x in row] for row in rows], dtype=object),
    "fmpq": lambda rows: to_flint(
        np.array([[Fraction(int(x), 7) for x in row] for row in rows], dtype=object)
    ),
    "float64": lambda rows: rows / 7,
    "int64": lambda rows: rows,
    "torch": lambda rows: torch.as_tensor(rows, dtype=torch.float32),
    "bfloat16": lambda rows: torch.as_tensor(rows, dtype=torch.bfloat16),
}


@pytest.mark.parametrize("kind", KINDS)
def test_against_comparison_of_all_rows(kind: str) -> None:
    """Two arrays at once: rows are the same where both are, and each is where it is said to come first."""
    rng = np.random.default_rng(3)
    left, right = rng.integers(0, 2, (60, 3)), rng.integers(0, 3, (60, 1))
    make: Any = KINDS[kind]
    first, which = (np.asarray(part) for part in unique_row_indices(make(left), make(right)))
    rows = [(*a, *b) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    assert len(first) == len(set(rows)) < 60
    assert [rows[first[number]] for number in which] == rows
    assert [rows.index(rows[place]) for place in first] == first.tolist()
    alone, _ = unique_row_indices(make(left))  # the partner: half of what distinguishes rows
    assert len(alone) < len(first)


def test_rationals_are_compared_by_value() -> None:
    """Other objects with the same value are equal, in either kind."""
    rows = np.array([[fmpq(1, 3)], [fmpq(2, 6)], [fmpq(1, 2)]], dtype=object)
    _, which = unique_row_indices(rows)
    assert which[0] == which[1] != which[2]


def test_every_row_of_an_accelerator_is_new() -> None:
    first, which = unique_row_indices(torch.ones((3, 2), device="meta"))
    assert tuple(first.shape) == tuple(which.shape) == (3,)


def test_rationals_are_compared_by_object_where_values_do_not_matter() -> None:
    third = Fraction(1, 3)
    rows = np.array([[third, 1], [Fraction(1, 3), 1], [third, 1]], dtype=object)
    _, which = unique_row_indices(rows, same_objects=True)
    assert which[0] == which[2] != which[1]
    assert len(unique_row_indices(rows)[0]) == 1  # the partner: the values are equal


@pytest.mark.parametrize("array", [np.arange(24).reshape(3, 8), torch.arange(24).reshape(3, 8)])
@pytest.mark.parametrize("select", [np.s_[:1, :1], np.s_[:, :1], np.s_[:1, 1:], np.s_[::2], np.s_[:0, :1]])
def test_rows_that_are_views(array: Any, select: Any) -> None:
    """Whatever stride an axis has; an axis of length 1 may keep that of a larger array."""
    view = array.T[select]
    first, which = unique_row_indices(view)
    assert view[first][which].tolist() == view.tolist()
    assert len(first) == len(view)


def test_no_rows() -> None:
    first, which = unique_row_indices(np.empty((0, 2)), np.empty((0, 3), dtype=np.int64))
    assert first.size == which.size == 0
