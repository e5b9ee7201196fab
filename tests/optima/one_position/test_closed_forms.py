"""Closed forms of the optimal acceptance against the linear program and as polynomials."""

from fractions import Fraction
from itertools import product

import sympy

from spectheory import instances
from spectheory.optima import otm_optimum

b, c = sympy.symbols("b c", nonnegative=True)
K = sympy.Symbol("K", integer=True, positive=True)
PIECES = sympy.Piecewise((1 + c - b**K, c < b**K), (2 - c - (1 - b) ** K, 1 - c < (1 - b) ** K), (1, True))
"""Eq. 10 as a min cut over the sets of two tokens; as b^K + (1 - b)^K ≤ 1, at most one condition holds."""


def test_bernoulli_expressions_at_rational_points() -> None:
    """Substituted symbol by symbol, Eq. 10 and its three pieces are the optimum of the linear program."""
    points = [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(2, 3), Fraction(1)]
    pieces = set()
    for draft_head, target_head, num_drafts in product(points, points, (1, 2, 3)):
        at = {b: sympy.Rational(str(draft_head)), c: sympy.Rational(str(target_head))}
        program = otm_optimum([1 - target_head, target_head], [1 - draft_head, draft_head], num_drafts)
        best = sympy.Rational(str(1 - program.value))
        assert PIECES.subs({**at, K: num_drafts}) == best
        conditions = [condition.subs(at) for _, condition in PIECES.subs(K, num_drafts).args]
        pieces.add(conditions.index(True))
    assert pieces == {0, 1, 2}
    swapped = PIECES.subs({b: c, c: b, K: 2}, simultaneous=True)
    assert swapped.subs({b: sympy.Rational(1, 10), c: sympy.Rational(1, 2)}) != PIECES.subs(
        {b: sympy.Rational(1, 10), c: sympy.Rational(1, 2), K: 2}
    )


def test_bernoulli_pieces_are_equation_10_identically() -> None:
    """On each piece the two minima are decided, and what is left is the same polynomial."""
    for num_drafts in (1, 2, 3, 4, 5):
        closed = PIECES.subs(K, num_drafts)
        decided = [  # (min(c, 1 - (1-b)^K), min(1 - c, 1 - b^K)) on the three pieces
            c + (1 - b**num_drafts),
            (1 - (1 - b) ** num_drafts) + (1 - c),
            c + (1 - c),
        ]
        assert len(closed.args) == len(decided)
        for (expression, _), expected in zip(closed.args, decided, strict=True):
            assert sympy.expand(expression - expected) == 0


def test_uniform_expression_at_rational_points() -> None:
    """1 - (1 - 1/r)^K is the optimum of the linear program of U(d) against U(d/r)."""
    for support, ratio in ((2, 1), (2, 2), (3, 3), (4, 2), (4, 4)):
        pair = instances.uniform(support, ratio)
        for num_drafts in (1, 2, 3):
            program = otm_optimum(pair.target[0][0], pair.draft[0][0], num_drafts)
            best = sympy.Rational(str(1 - program.value))
            assert best == 1 - (1 - sympy.Rational(1, ratio)) ** num_drafts
            # The partner: another number of drafts has another value.
            assert ratio == 1 or best != 1 - (1 - sympy.Rational(1, ratio)) ** (num_drafts + 1)
