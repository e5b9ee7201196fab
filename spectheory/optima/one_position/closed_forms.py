"""Optimal acceptance in closed form, of numbers and as sympy expressions (spectr2023 Appendix B.1)."""

from typing import Any

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import plain_number
from spectheory.foundation.validation import check_num_drafts


def bernoulli_acceptance(draft_head: Any, target_head: Any, num_drafts: Any) -> Any:
    """α_K of Bernoulli rows: min(c, 1 - (1-b)^K) + min(1-c, 1 - b^K).

    Source: theory.md §3; spectr2023 Eq. 10, in our letters.

    Args:
        draft_head: b, the draft's probability of heads: a Fraction, a float or a sympy expression.
        target_head: c, the target's.
        num_drafts: K, a number, or a symbol if b and c are expressions.

    Raises:
        InvalidInputError: a number that is not a probability, or a num_drafts that is not a whole number ≥ 1.

    Example:
        >>> from fractions import Fraction
        >>> print(bernoulli_acceptance(Fraction(2, 3), Fraction(1, 3), 2))
        8/9
        >>> import sympy
        >>> bernoulli_acceptance(*sympy.symbols("b c K"))
        Min(c, 1 - (1 - b)**K) + Min(1 - b**K, 1 - c)
    """
    num_drafts = num_drafts if _is_symbolic(num_drafts) else check_num_drafts(num_drafts)
    symbolic, least = _is_symbolic(draft_head), min
    if symbolic:
        import sympy

        least = sympy.Min
    for name, head in (("draft_head", draft_head), ("target_head", target_head)):
        if not symbolic and not 0 <= head <= 1:
            raise InvalidInputError(f"{name} must be a probability between 0 and 1, got {head}")
    heads, tails = hit_probability(draft_head, num_drafts), hit_probability(1 - draft_head, num_drafts)
    value = least(target_head, heads) + least(1 - target_head, tails)
    return value if symbolic else plain_number(value)


def uniform_acceptance(ratio: Any, num_drafts: Any) -> Any:
    """α_K of a draft uniform on d tokens and a target uniform on d/r of them: 1 - (1 - 1/r)^K.

    Source: spectr2023 Appendix B.1 (Figure 5); d does not matter.

    Args:
        ratio: r ≥ 1, a Fraction, an int, a float or a sympy expression.
        num_drafts: K, a number, or a symbol if r is an expression.

    Raises:
        InvalidInputError: a ratio below 1, or a num_drafts that is not a whole number of at least 1.

    Example:
        >>> print(uniform_acceptance(2, 3))
        7/8
    """
    num_drafts = num_drafts if _is_symbolic(num_drafts) else check_num_drafts(num_drafts)
    if _is_symbolic(ratio):
        return hit_probability(1 / ratio, num_drafts)
    if not ratio >= 1:
        raise InvalidInputError(f"ratio must be at least 1, got {ratio}")
    return plain_number(hit_probability(1 / plain_number(ratio), num_drafts))


def _is_symbolic(value: Any) -> bool:
    return hasattr(value, "free_symbols")
