"""Hypothesis strategies for rows and pairs, exact and float."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from spectheory.pair import ModelPair


@st.composite
def rows(draw: st.DrawFn, size: int) -> list[Fraction]:
    """A probability row with whole weights up to 5, zeros included."""
    weights = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


@st.composite
def pairs(draw: st.DrawFn, exact: bool | None = None) -> ModelPair:
    """A pair with V <= 3 and L <= 2, exact or float64, with a row per context or context-free."""
    size, length = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    if draw(st.booleans()):
        pair = ModelPair.context_free_pair(draw(rows(size)), draw(rows(size)), length)
    else:
        tables = [
            {context: draw(rows(size)) for i in range(depths) for context in product(range(size), repeat=i)}
            for depths in (length + 1, length)
        ]
        names = [f"token {i}" for i in range(size)]
        pair = ModelPair.from_contexts(tables[0], tables[1], length, names)
    return pair if (draw(st.booleans()) if exact is None else exact) else pair.to_float()
