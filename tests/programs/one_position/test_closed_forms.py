"""Closed forms of the optimal acceptance, of numbers and of symbols."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest
import sympy

from spectheory import instances
from spectheory.errors import InvalidInputError
from spectheory.programs import bernoulli_acceptance, optimal_acceptance, otm_optimum, uniform_acceptance
from spectheory.programs.one_position.closed_forms import bernoulli_closed_form, closed_form_symbols


def test_closed_forms() -> None:
    """Bernoulli and uniform rows (theory.md §3) against the min cut."""
    for num_drafts in (1, 2, 3, 4):
        for b, c in [(Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 10), Fraction(1, 2)), (0, 1)]:
            cut = optimal_acceptance(
                [Fraction(c), 1 - Fraction(c)], [Fraction(b), 1 - Fraction(b)], num_drafts
            )
            assert bernoulli_acceptance(b, c, num_drafts) == cut.value
        uniform = optimal_acceptance(["1/2", "1/2", 0, 0], ["1/4"] * 4, num_drafts).value
        assert uniform_acceptance(2, num_drafts) == uniform_acceptance(Fraction(2), num_drafts) == uniform


def test_bernoulli_expressions_at_rational_points() -> None:
    """Substituted symbol by symbol, Eq. 10 and its three pieces are the optimum of the linear program."""
    b, c, _, K = closed_form_symbols()
    points = [Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(2, 3), Fraction(1)]
    pieces = set()
    for draft_head, target_head, num_drafts in product(points, points, (1, 2, 3)):
        at = {b: sympy.Rational(str(draft_head)), c: sympy.Rational(str(target_head))}
        program = otm_optimum([1 - target_head, target_head], [1 - draft_head, draft_head], num_drafts)
        best = sympy.Rational(str(1 - program.value))
        assert bernoulli_closed_form().subs({**at, K: num_drafts}) == best
        assert bernoulli_closed_form(num_drafts).subs(at) == best
        assert bernoulli_acceptance(b, c, K).subs({**at, K: num_drafts}) == best
        assert sympy.Rational(str(bernoulli_acceptance(draft_head, target_head, num_drafts))) == best
        conditions = [condition.subs(at) for _, condition in bernoulli_closed_form(num_drafts).args]
        pieces.add(conditions.index(True))
    assert pieces == {0, 1, 2}
    swapped = bernoulli_closed_form(2).subs(
        {b: sympy.Rational(1, 10), c: sympy.Rational(1, 2)}, simultaneous=True
    )
    assert swapped != bernoulli_closed_form(2).subs({c: sympy.Rational(1, 10), b: sympy.Rational(1, 2)})


def test_bernoulli_pieces_are_equation_10_identically() -> None:
    """On each piece the two minima are decided, and what is left is the same polynomial."""
    b, c, _, _ = closed_form_symbols()
    for num_drafts in (1, 2, 3, 4, 5):
        closed = bernoulli_closed_form(num_drafts)
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
    _, _, r, K = closed_form_symbols()
    for support, ratio in ((2, 1), (2, 2), (3, 3), (4, 2), (4, 4)):
        pair = instances.uniform(support, ratio)
        for num_drafts in (1, 2, 3):
            program = otm_optimum(pair.target[0][0], pair.draft[0][0], num_drafts)
            best = sympy.Rational(str(1 - program.value))
            assert uniform_acceptance(r, K).subs({r: ratio, K: num_drafts}) == best
            assert uniform_acceptance(r, num_drafts).subs(r, ratio) == best
            assert sympy.Rational(str(uniform_acceptance(ratio, num_drafts))) == best
    assert uniform_acceptance(r, 3).subs(r, 2) != uniform_acceptance(r, 2).subs(r, 2)
    b, c, _, _ = closed_form_symbols()
    for function, arguments in (
        (bernoulli_closed_form, ()),
        (bernoulli_acceptance, (b, c)),
        (uniform_acceptance, (r,)),
    ):
        with pytest.raises(InvalidInputError, match="num_drafts"):
            function(*arguments, 0)
