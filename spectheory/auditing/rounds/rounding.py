"""Bound the difference of two laws that rounding to float32 can cause."""

import math
from fractions import Fraction

from spectheory.pairs.pair import ModelPair

PRECISION = Fraction(1, 2**24)
"""Half the distance of neighbouring floats of 32 bits just below 1, and the step of ``torch.rand``."""


def rounding_bound(pair: ModelPair) -> Fraction:
    """The largest total variation that rounding to float32 can cause: 4 (L+1) (Λ + V + 8) 2^-24.

    Λ is the largest |log| of a positive probability.  A logit x has an error of |x| 2^-24, which is the
    relative error of its exponential.  V + 8 counts the other roundings for both models: of a row from
    exponentials, of a ratio, of a residual, and of the step of the coin.
    """
    smallest = min(value for level in (*pair.target, *pair.draft) for value in level.flat if value)
    logarithm = math.ceil(-math.log(smallest))
    return 4 * (pair.draft_length + 1) * (logarithm + pair.vocab_size + 8) * PRECISION
