"""Parametrized tests of which the first cases are quick, and the others are left to the deep tests."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def first_is_quick(
    names: str | Sequence[str], cases: Iterable[Any], quick: int = 1, **options: Any
) -> pytest.MarkDecorator:
    """``pytest.mark.parametrize``, with the mark ``deep`` on all but the first ``quick`` cases."""
    known = list(cases)
    marked = [_deep(case, isinstance(names, str)) for case in known[quick:]]
    return pytest.mark.parametrize(names, known[:quick] + marked, **options)


def _deep(case: Any, is_one_value: bool) -> Any:
    if hasattr(case, "marks"):
        return case._replace(marks=(*case.marks, pytest.mark.deep))
    return pytest.param(*([case] if is_one_value else case), marks=pytest.mark.deep)
