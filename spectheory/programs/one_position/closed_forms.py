"""Optimal acceptance in closed form, of numbers and as sympy expressions (spectr2023 Appendix B.1).

A figure of the paper uses ``bernoulli_acceptance``.  They cross-check the min cut and the linear program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from spectheory.arrays import hit_probability
from spectheory.errors import InvalidInputError
from spectheory.exact_numbers import plain_number
from spectheory.validate import check_num_drafts

if TYPE_CHECKING:
    import sympy


def bernoulli_acceptance(draft_head: Any, target_head: Any, num_drafts: Any) -> Any:
    """α_K of Bernoulli rows: min(c, 1 - (1-b)^K) + min(1-c, 1 - b^K).

    Source: theory.md §3; spectr2023 Eq. 10, in our letters.

    Args:
        draft_head: b, the draft's probability of heads: a Fraction, a float or a sympy expression.
        target_head: c, the target's.
        num_drafts: K, a number, or a symbol if b and c are expressions.

    Raises:
        InvalidInputError: a number that is no probability, or a num_drafts that is no whole number ≥ 1.

    Example:
        >>> from fractions import Fraction
        >>> print(bernoulli_acceptance(Fraction(2, 3), Fraction(1, 3), 2))
        8/9
        >>> b, c, _, K = closed_form_symbols()
        >>> bernoulli_acceptance(b, c, K)
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
        InvalidInputError: a ratio below 1, or a num_drafts that is no whole number of at least 1.

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


class ClosedFormSymbols(NamedTuple):
    """The symbols of the closed forms.

    Attributes:
        draft_head: b, the draft's probability of heads, real and ≥ 0.
        target_head: c, the target's.
        ratio: r, how many times larger the draft's support is than the target's, positive.
        num_drafts: K, a positive integer.
    """

    draft_head: Any
    target_head: Any
    ratio: Any
    num_drafts: Any


def closed_form_symbols() -> ClosedFormSymbols:
    """The symbols b, c, r and K; equal on every call.

    Example:
        >>> closed_form_symbols()
        ClosedFormSymbols(draft_head=b, target_head=c, ratio=r, num_drafts=K)
    """
    import sympy

    b, c = sympy.symbols("b c", nonnegative=True)
    return ClosedFormSymbols(
        b, c, sympy.Symbol("r", positive=True), sympy.Symbol("K", integer=True, positive=True)
    )


def bernoulli_closed_form(num_drafts: int | None = None) -> sympy.Expr:
    """``bernoulli_acceptance`` as a sympy expression, piecewise.

    Source: spectr2023 Eq. 10.  As the min cut over the four sets of two tokens it has three pieces:

        α_K = 1 + c - b^K            where c < b^K           (too few tails drafted),
              2 - c - (1 - b)^K      where 1 - c < (1 - b)^K (too few heads drafted),
              1                      otherwise;

    b^K + (1 - b)^K ≤ 1, so the first two never hold together.

    Args:
        num_drafts: K, or None for the symbol K.

    Raises:
        InvalidInputError: num_drafts is given and is not a whole number of at least 1.

    Example:
        >>> bernoulli_closed_form(2).args[0]
        (-b**2 + c + 1, c < b**2)
        >>> b, c, _, K = closed_form_symbols()
        >>> import sympy
        >>> bernoulli_closed_form().subs({b: sympy.Rational(2, 3), c: sympy.Rational(1, 3), K: 2})
        8/9
    """
    import sympy

    b, c, _, symbol = closed_form_symbols()
    K = symbol if num_drafts is None else check_num_drafts(num_drafts)
    heads_only, tails_only = b**K, (1 - b) ** K
    return sympy.Piecewise(
        (1 + c - heads_only, c < heads_only),
        (2 - c - tails_only, 1 - c < tails_only),
        (sympy.Integer(1), True),
    )


def _is_symbolic(value: Any) -> bool:
    return hasattr(value, "free_symbols")
