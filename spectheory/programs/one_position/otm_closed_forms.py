"""Optimal acceptance in closed form as sympy expressions (spectr2023 Appendix B.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from spectheory.validate import check_num_drafts

if TYPE_CHECKING:
    import sympy


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
    """α_K(Ber(b) draft, Ber(c) target), piecewise.

    Source: spectr2023 Eq. 10, which is min(c, 1 - (1-b)^K) + min(1 - c, 1 - b^K) in our letters.  As the
    min cut over the four sets of two tokens it has three pieces:

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


def bernoulli_equation_10(num_drafts: int | None = None) -> sympy.Expr:
    """spectr2023 Eq. 10 as printed: min(c, 1 - (1-b)^K) + min(1 - c, 1 - b^K).

    Args:
        num_drafts: K, or None for the symbol K.

    Raises:
        InvalidInputError: num_drafts is given and is not a whole number of at least 1.

    Example:
        >>> b, c, _, _ = closed_form_symbols()
        >>> bernoulli_equation_10(1).subs({b: 0, c: 1})
        0
    """
    import sympy

    b, c, _, symbol = closed_form_symbols()
    K = symbol if num_drafts is None else check_num_drafts(num_drafts)
    return sympy.Min(c, 1 - (1 - b) ** K) + sympy.Min(1 - c, 1 - b**K)


def uniform_closed_form(num_drafts: int | None = None) -> sympy.Expr:
    """α_K of a draft uniform on d tokens and a target uniform on d/r of them: 1 - (1 - 1/r)^K.

    Source: spectr2023 Appendix B.1 (Figure 5); r ≥ 1, d does not matter.

    Args:
        num_drafts: K, or None for the symbol K.

    Raises:
        InvalidInputError: num_drafts is given and is not a whole number of at least 1.

    Example:
        >>> r = closed_form_symbols().ratio
        >>> uniform_closed_form(3).subs(r, 2)
        7/8
    """
    _, _, r, symbol = closed_form_symbols()
    K = symbol if num_drafts is None else check_num_drafts(num_drafts)
    return 1 - (1 - 1 / r) ** K
