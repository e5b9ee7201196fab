"""Hypothesis strategies that generate rows and pairs, exact or in float64.

>>> from hypothesis import given
>>> from spectheory import certify
>>> from spectheory.testing import strategies
>>> @given(strategies.pairs(exact=True))
... def test_block_is_lossless(pair):
...     assert certify("block", pair)
>>> test_block_is_lossless()
"""

from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from spectheory.pairs.pair import ModelPair


@st.composite
def rows(draw: st.DrawFn, size: int, max_weight: int = 5) -> list[Fraction]:
    """A probability row of ``size`` tokens, in proportion to integer weights from 0 to ``max_weight``."""
    weights = draw(st.lists(st.integers(0, max_weight), min_size=size, max_size=size).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


@st.composite
def pairs(
    draw: st.DrawFn, exact: bool | None = None, max_vocab_size: int = 3, max_draft_length: int = 2
) -> ModelPair:
    """A small pair, with a row per context or context-free.  Small weights make zeros and ties frequent.

    Args:
        draw: passed by hypothesis.
        exact: True for rationals, False for float64, None for either.
        max_vocab_size, max_draft_length: the largest V and L.
    """
    size, length = draw(st.integers(1, max_vocab_size)), draw(st.integers(1, max_draft_length))
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
