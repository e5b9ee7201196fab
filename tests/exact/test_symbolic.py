"""Expressions against exact certificates at rational points, and where they do not hold."""

from fractions import Fraction
from typing import Any

import pytest
import sympy

from spectheory import certify, optimum
from spectheory.exact.symbolic import block_efficiency
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.pair import ModelPair

t = sympy.Symbol("t", positive=True)
DRAFT = ["2/3", "1/3"]


def at(expression: Any, value: Fraction) -> Fraction:
    found = expression.subs(t, sympy.Rational(value.numerator, value.denominator))
    return Fraction(int(found.p), int(found.q))


@pytest.mark.parametrize("verifier", ["token", "block", "greedy_block"])
@pytest.mark.parametrize("draft_length", [1, 2, 3])
def test_expressions_of_one_path(verifier: str, draft_length: int) -> None:
    """On twelve values of the parameter, ends and the point where the models agree included."""
    expression = block_efficiency(verifier, [t, 1 - t], DRAFT, draft_length)
    for value in [Fraction(n, 11) for n in range(12)] + [Fraction(2, 3)]:
        pair = ModelPair.context_free_pair([value, 1 - value], DRAFT, draft_length)
        assert at(expression, value) == certify(verifier, pair, with_optimum=False).block_efficiency


@pytest.mark.parametrize("num_drafts", [1, 2, 4])
def test_the_greedy_ranking_on_each_side_of_its_order(num_drafts: int) -> None:
    """One expression per order of p/q: right where the order is the same, and wrong somewhere else."""
    sides = {Fraction(1, 3): range(1, 7), Fraction(9, 10): range(7, 10)}
    wrong = 0
    for point, tenths in sides.items():
        expression = block_efficiency("greedy_multipath", [t, 1 - t], DRAFT, 2, num_drafts, at={t: point})
        for tenth in range(1, 10):
            value = Fraction(tenth, 10)
            pair = ModelPair.context_free_pair([value, 1 - value], DRAFT, 2)
            exact = certify("greedy_multipath", pair, num_drafts, with_optimum=False).block_efficiency
            if tenth in tenths:
                assert at(expression, value) == exact
            else:
                wrong += at(expression, value) != exact
    assert (wrong > 0) == (num_drafts > 1)


def test_rows_that_depend_on_the_context() -> None:
    target = {(): ["1/2", "1/2"], (0,): [t, 1 - t], (1,): ["1/3", "2/3"]}
    draft = {(): ["1/4", "3/4"], (0,): ["1/2", "1/2"], (1,): ["2/3", "1/3"]}
    expression = block_efficiency("block", target, draft, 2)
    for value in (Fraction(1, 5), Fraction(4, 5)):
        rows = {c: [value, 1 - value] if c == (0,) else row for c, row in target.items()}
        leaves = {(a, b): ["1/2", "1/2"] for a in (0, 1) for b in (0, 1)}
        pair = ModelPair.from_contexts(rows | leaves, draft, 2)
        assert at(expression, value) == optimum(pair).value


def test_roots_are_put_together() -> None:
    """Rows of irrational numbers, which no exact pair can hold; by hand."""
    root = sympy.sqrt(2)
    target, draft = [root - 1, 2 - root], [root / 2, 1 - root / 2]
    assert block_efficiency("token", target, draft, 2) == root / 2 + sympy.Rational(3, 2)
    assert block_efficiency("block", target, draft, 2) == 3 - root / 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("spectr", [t, 1 - t], DRAFT, 1), "no closed form of 'spectr' with 1 drafts"),
        (("block", [t, 1 - t], DRAFT, 1, 2), "no closed form of 'block' with 2 drafts"),
        (("greedy_multipath", [t, 1 - t], DRAFT, 1, 2), "the order of p/q depends on t; give a point"),
        (("block", {(): [t, 1 - t]}, {(): DRAFT}, 2), r"no row at context \(0,\)"),
        (("block", [t, 1 - t], DRAFT, 0), "draft_length must be a whole number"),
    ],
)
def test_what_has_no_closed_form_is_refused(arguments: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        block_efficiency(*arguments)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("token", ["5", "5"], ["5", "5"], 1), "must sum to 1, its sum is 10"),
        (("token", ["-1", "2"], DRAFT, 1), "has the entry -1, expected a probability"),
        (("token", ["1/3", "1/3", "1/3"], DRAFT, 1), "has 3 entries, expected 2"),
        (("token", DRAFT, ["1/3", "1/3", "1/3"], 1), "has 2 entries, expected 3"),
        (("token", ["__import__('os').getpid()", "0"], DRAFT, 1), "an entry must be a number"),
        (("token", ["nan", "1"], DRAFT, 1), "an entry must be a number"),
        (("token", "ab", DRAFT, 1), "a row must be a sequence"),
        (("token", [t, t], DRAFT, 1), "must sum to 1, its sum is 2\\*t"),
        (([], DRAFT, DRAFT, 1), "no closed form"),
        (("token", DRAFT, DRAFT, 20), "too many for an expression"),
        (("greedy_multipath", DRAFT, DRAFT, 1, 10**18), "too many for an expression"),
    ],
)
def test_what_is_no_pair_is_refused(arguments: tuple[Any, ...], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        block_efficiency(*arguments)


@pytest.mark.parametrize(("at", "says"), [({t: 5}, "has the entry -4"), ([1], "at must be a mapping")])
def test_a_point_that_is_none_is_refused(at: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        block_efficiency("greedy_multipath", [t, 1 - t], DRAFT, 1, 2, at=at)
