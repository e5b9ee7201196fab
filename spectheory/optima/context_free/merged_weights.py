"""The optimum of one drafted path on a context-free pair, without the tree of its contexts."""

from fractions import Fraction
from typing import Any

from spectheory.foundation.errors import CertificationError, EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import to_flint
from spectheory.foundation.validation import check_count
from spectheory.optima.bounds.tolerances import outward
from spectheory.optima.context_free.ratios import Ratios
from spectheory.optima.solving.solution import Optimum
from spectheory.pairs.pair import ModelPair, check_pair

MAX_STATES = 1_000_000
"""Largest number of different weights at one depth."""


def context_free_path_optimum(pair: ModelPair, draft_length: int | None = None) -> Optimum:
    """Compute the largest block efficiency E[τ+1] of any valid verifier of one path on a context-free pair.

    Source: theory.md Statements 4.2 and 5.33.  Block verification attains the optimum.  After a prefix it
    depends only on the weight w_i = min(1, w_{i-1} p/q), a product of the ratios since the last weight 1.  So
    we merge the prefixes of one depth that have equal weights.  The number of weights is polynomial in L.
    The slacks of block verification merge in the same way, and prove that no verifier has a larger value.

    Args:
        pair: a context-free pair.  Entries in float64 are converted to rationals exactly, and every row is
            divided by its sum.
        draft_length: L; by default the draft length of the pair.

    Returns:
        The optimum in tokens per target call: exact for an exact pair, else its nearest lower float.

    Raises:
        InvalidInputError: the pair is not context-free.
        EnumerationTooLargeError: there are more than a million weights at one depth.
        CertificationError: the value and its proof differ.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> print(context_free_path_optimum(pair).value, float(context_free_path_optimum(pair, 30).value))
        20/9 5.745038134326251
    """
    if not check_pair(pair).context_free:
        raise InvalidInputError("the pair is not context-free; use single_path_optimum")
    length = pair.draft_length if draft_length is None else check_count("draft_length", draft_length)
    ratios = Ratios.of(pair)
    target, draft = (to_flint(side) for side in ratios.as_arrays())
    tokens = [(q, p, p / q) for p, q in zip(target, draft, strict=True)]
    one = tokens[0][0] / tokens[0][0]
    levels: list[dict[Any, Any]] = [{one: one}]
    for _ in range(length):
        after: dict[Any, Any] = {}
        for weight, mass in levels[-1].items():
            for q, _, ratio in tokens:
                reached = min(one, weight * ratio)
                after[reached] = after.get(reached, 0) + mass * q
        if len(after) > MAX_STATES:
            raise EnumerationTooLargeError(
                f"block verification meets more than {MAX_STATES} weights at depth {len(levels)}; "
                "use a shorter draft length or fewer tokens"
            )
        levels.append(after)
    accepted = sum(weight * mass for level in levels for weight, mass in level.items())
    bound = _dual_objective(levels, tokens, one)
    if accepted != bound:
        raise CertificationError(f"block verification accepts {accepted}, its slacks prove {bound}")
    value = Fraction(int(accepted.p), int(accepted.q))
    lower, upper = outward(value)
    return Optimum(
        program="single-path program of a context-free pair",
        method="block verification by weights",
        value=value if pair.is_exact else lower,
        lower=lower,
        upper=upper,
        gap=value - value,
    )


def _dual_objective(levels: list[dict[Any, Any]], tokens: list[Any], one: Any) -> Any:
    """Compute the dual value z(∅) + E c(X) of the slacks of block verification.

    If the target limits x(a), that is if w p/q ≤ 1, then z(a) = 1 + Σ_t p z(a, t) and y(a) = 0.  Otherwise
    y(a) = 1 + Σ_t p z(a, t) and z(a) = 0.

    For every weight of a depth we store 1 + Σ_t p z and the expected sum of y over the rest of the path.
    """
    below = dict.fromkeys(levels[-1], (one, one - one))
    for level in reversed(levels[:-1]):
        here = {}
        for weight in level:
            needed, scores = one, one - one
            for q, p, ratio in tokens:
                need, rest = below[min(one, weight * ratio)]
                if weight * ratio <= one:
                    needed += p * need
                else:
                    scores += q * need
                scores += q * rest
            here[weight] = needed, scores
        below = here
    return sum(below[one])
