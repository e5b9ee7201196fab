"""Long lists in shares, one per test: the first few are quick tests, the others deep ones."""

from collections.abc import Iterable

import pytest


def shares(numbers: Iterable[int], quick: int) -> pytest.MarkDecorator:
    """One test for each number, ``first``; all but ``quick`` of them are deep."""
    marks = [(), pytest.mark.deep]
    return pytest.mark.parametrize(
        "first", [pytest.param(first, marks=marks[place >= quick]) for place, first in enumerate(numbers)]
    )
