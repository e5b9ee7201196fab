"""Block efficiency as a sympy expression in parameters of the pair.

>>> import sympy
>>> t = sympy.Symbol("t", positive=True)
>>> found = block_efficiency("block", [t, 1 - t], ["2/3", "1/3"], draft_length=1)
>>> found
Min(1/3, 1 - t) + Min(2/3, t) + 1
>>> found.subs(t, sympy.Rational(1, 3))
5/3
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.validation import check_count, check_num_drafts
from spectheory.pairs.contexts import Context

if TYPE_CHECKING:
    import sympy

Rows = Sequence[Any] | Mapping[Context, Sequence[Any]]
"""One row for every context, or a mapping context -> row, of numbers, texts such as "2/3", and expressions of
sympy."""
MAX_CONTEXTS = 10_000
"""The most contexts of depth L that are written down."""
MAX_POWER = 1_000
"""The most drafts, which are the exponent of expressions."""


def block_efficiency(
    verifier: str,
    target_probs: Rows,
    draft_probs: Rows,
    draft_length: int,
    num_drafts: int = 1,
    *,
    at: Mapping[Any, Any] | None = None,
) -> sympy.Expr:
    """E[tau + 1] of a verifier with a closed form, in tokens per target call.

    With x the mass of accepted contexts (theory.md §4, §5), E[tau + 1] = Σ_a x(a), x(∅) = 1 and

    - ``token``: x(a, t) = min(p(t|a), q(t|a)) x(a)
    - ``block``: x(a, t) = min(q(a, t), p(t|a) x(a))
    - ``greedy_block``: x(a) = min(p(a), q(a))
    - ``greedy_multipath``: x(a, t) = min(r(a, t), p(t|a) x(a)), r the law of the highest-ranked of K drafts

    Args:
        verifier: one of these names.
        target_probs: p, at contexts of depth 0..L-1 at least.
        draft_probs: q, likewise.
        draft_length: L.
        num_drafts: K; 1 but for ``greedy_multipath``.
        at: values of the symbols at one point, for ``greedy_multipath``: the order of p/q is taken from
            there, and the expression holds wherever the order is the same.

    Returns:
        The expression, with ``Min`` where the algorithm has a minimum; exact.

    Raises:
        InvalidInputError: another verifier, a context without a row, a row that is not a law, or an order of
            p/q that ``at`` does not decide.
        EnumerationTooLargeError: too many contexts or drafts for an expression.
    """
    import sympy

    draft_length, num_drafts = check_count("draft_length", draft_length), check_num_drafts(num_drafts)
    point = _point(at)
    size = len(_row(draft_probs, ()))
    if (size > 1 and draft_length * log(size) > log(MAX_CONTEXTS)) or num_drafts > MAX_POWER:
        raise EnumerationTooLargeError(
            f"{size} tokens, draft length {draft_length} and {num_drafts} drafts are too many for an "
            f"expression; the limits are {MAX_CONTEXTS} contexts and {MAX_POWER} drafts"
        )
    known = isinstance(verifier, str) and verifier in _ACCEPTED
    if not known or (num_drafts > 1 and verifier != "greedy_multipath"):
        raise InvalidInputError(
            f"no closed form of {verifier!r} with {num_drafts} drafts is known here; known: "
            f"{', '.join(_ACCEPTED)}, the last one for any number of drafts"
        )
    total = sympy.Integer(0)
    one, zero = sympy.Integer(1), sympy.Integer(0)
    # (context, x, p, q, draft mass ranked below it)
    nodes: list[tuple[Context, Any, Any, Any, Any]] = [((), one, one, one, zero)]
    for depth in range(draft_length + 1):
        total += sum(node[1] for node in nodes)
        if depth == draft_length:
            break
        children = []
        for context, mass, target, draft, below in nodes:
            target_row, draft_row = _row(target_probs, context), _row(draft_probs, context)
            for name, row in (("target", target_row), ("draft", draft_row)):
                _check_row(name, context, row, size, point)
            skews = verifier == "greedy_multipath"
            for token in _ranked(target_row, draft_row, point) if skews else range(size):
                p, q = target_row[token], draft_row[token]
                here = draft * q
                skewed = (below + here) ** num_drafts - below**num_drafts
                accepted = _ACCEPTED[verifier](sympy.Min, mass, p, q, target * p, here, skewed)
                children.append(((*context, token), accepted, target * p, here, below))
                below = below + here
        nodes = children
    return sympy.simplify(total) if not total.free_symbols else total


_ACCEPTED: Mapping[str, Callable[..., Any]] = {
    "token": lambda least, mass, p, q, target, draft, skewed: least(p, q) * mass,
    "block": lambda least, mass, p, q, target, draft, skewed: least(draft, p * mass),
    "greedy_block": lambda least, mass, p, q, target, draft, skewed: least(target, draft),
    "greedy_multipath": lambda least, mass, p, q, target, draft, skewed: least(skewed, p * mass),
}
"""x(a, t) from ``Min``, x(a), the rows p and q at t, the path probabilities p(a, t), q(a, t), and r(a, t)."""


def _row(rows: Rows, context: Context) -> list[Any]:
    if isinstance(rows, Mapping) and context not in rows:
        raise InvalidInputError(f"there is no row at context {context}; give one for every context")
    row = rows[context] if isinstance(rows, Mapping) else rows
    if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray):
        raise InvalidInputError(f"a row must be a sequence of probabilities, got {row!r}")
    return [_expression(entry) for entry in row]


def _expression(entry: Any) -> Any:
    """An entry in sympy; a text must be a number, since sympy would run any other as code."""
    import sympy

    if isinstance(entry, sympy.Expr):
        return entry
    try:
        if isinstance(entry, float):
            return sympy.Rational(str(entry))
        number = Fraction(entry)
        return sympy.Rational(number.numerator, number.denominator)
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidInputError(
            f"an entry must be a number, a text such as '2/3' or an expression of sympy, got {entry!r}"
        ) from None


def _point(at: Mapping[Any, Any] | None) -> dict[Any, Any]:
    if at is not None and not isinstance(at, Mapping):
        raise InvalidInputError(f"at must be a mapping symbol -> value, got {at!r}")
    return {symbol: _expression(value) for symbol, value in (at or {}).items()}


def _check_row(name: str, context: Context, row: list[Any], size: int, point: dict[Any, Any]) -> None:
    """Refuse a row of another length, of another sum than 1, or with a negative entry at the point."""
    import sympy

    where = f"the {name} row {'at the root' if not context else f'at context {context}'}"
    if len(row) != size:
        raise InvalidInputError(f"{where} has {len(row)} entries, expected {size}, one per token")
    if sympy.simplify(sum(row) - 1) != 0:
        raise InvalidInputError(f"{where} must sum to 1, its sum is {sympy.simplify(sum(row))}")
    for entry in row:
        value = entry.subs(point)
        if value.is_negative or value.is_real is False:
            raise InvalidInputError(f"{where} has the entry {value}, expected a probability")


def _ranked(target_row: list[Any], draft_row: list[Any], point: dict[Any, Any]) -> list[int]:
    """Tokens by p/q at the given point, ascending, equal ones by their id."""
    ratios = []
    for token, (p, q) in enumerate(zip(target_row, draft_row, strict=True)):
        p, q = p.subs(point), q.subs(point)
        if p.free_symbols or q.free_symbols:
            raise InvalidInputError(
                f"the order of p/q depends on {', '.join(map(str, p.free_symbols | q.free_symbols))}; give a "
                "point with at={symbol: value}, and use the result where the order is the same"
            )
        ratios.append((p / q if q != 0 else 0, token))
    return [token for _, token in sorted(ratios)]
