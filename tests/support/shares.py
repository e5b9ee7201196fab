"""Long lists in the quick tests: a part of them, the rest being deep tests."""

from collections.abc import Iterable
from typing import Any

import pytest


def shares(numbers: Iterable[int], quick: int) -> pytest.MarkDecorator:
    """One test for each number, ``first``; all but ``quick`` of them are deep."""
    marks = [(), pytest.mark.deep]
    return pytest.mark.parametrize(
        "first", [pytest.param(first, marks=marks[place >= quick]) for place, first in enumerate(numbers)]
    )


def thinned(values: Iterable[Any], one_in: int = 2) -> list[Any]:
    """Every second value, or another one in so many, and the others as deep tests."""
    return [
        pytest.param(value, marks=[pytest.mark.deep] * (place % one_in > 0))
        for place, value in enumerate(values)
    ]
