"""Rational functions, signs, graphs and lemmas: each against numbers at points, and against wrong ones."""

import operator
from itertools import product
from random import Random
from typing import Any

import pytest
from flint import fmpq

from spectheory.exact.proof.certificates import Lemma, Lemmas, lemma_of
from spectheory.exact.proof.domain import Domain, Points, Shape
from spectheory.exact.proof.graph import Graph
from spectheory.exact.proof.numbers import (
    ANY,
    NEGATIVE,
    POSITIVE,
    PRODUCTS,
    ZERO,
    Field,
    opposite,
    power_signs,
    sign_of,
)
from spectheory.exact.proof.region import Region

POINT = [fmpq(2, 3), fmpq(-5, 7), fmpq(11, 13)]


@pytest.fixture
def field() -> Field:
    return Field(["p_0", "p_1", "q_0"], [(), (), ()])


def test_functions_compute_as_their_values_do(field: Field) -> None:
    """A chain of random operations; a function is 0 where its value at a general point is."""
    random, functions = Random(0), [*field.variables, field.one, field.constant(2, 3)]
    operations = {
        "+": (field.add, operator.add),
        "-": (field.subtract, operator.sub),
        "*": (field.multiply, operator.mul),
        "/": (field.divide, operator.truediv),
    }
    for _ in range(400):
        one, other, operation = random.choice(functions), random.choice(functions), random.choice("+-*/")
        a, b = field.at(one, POINT), field.at(other, POINT)
        if operation == "/" and other is field.zero:
            continue
        assert b != 0 or other is field.zero
        of_functions, of_numbers = operations[operation]
        made = of_functions(one, other)
        assert field.at(made, POINT) == of_numbers(a, b)
        if len(functions) < 60 and len(made.numerator) < 30:
            functions.append(made)
    assert len(functions) > 30


def test_equal_functions_are_one_object(field: Field) -> None:
    p, q, _ = field.variables
    square = field.multiply(field.add(p, q), field.subtract(p, q))
    assert square is field.subtract(field.multiply(p, p), field.multiply(q, q))
    assert field.divide(square, field.add(p, q)) is field.subtract(p, q)
    assert field.divide(field.constant(2), field.constant(4)) is field.constant(1, 2)
    with pytest.raises(ZeroDivisionError):
        field.divide(p, field.zero)


def test_the_signs_of_a_function_are_those_of_its_value(field: Field) -> None:
    p, q, r = field.variables
    function = field.divide(field.multiply(field.subtract(q, p), field.multiply(r, r)), field.subtract(q, r))
    constant, parts = field.parts(function)
    sign = sign_of(fmpq(constant))
    for factor, exponent in parts:
        sign = PRODUCTS[sign][power_signs(sign_of(factor.at(POINT)), exponent)]
    assert sign == sign_of(field.at(function, POINT))
    assert [(str(factor), exponent) for factor, exponent in parts if exponent > 1] == [("q_0", 2)]


def test_the_signs_of_products_are_those_of_numbers() -> None:
    """Of all sets of signs: a set stands for its numbers among -1, 0 and 1."""
    masks = {-1: NEGATIVE, 0: ZERO, 1: POSITIVE}
    for one, other in product(range(ANY + 1), repeat=2):
        found = {a * b for a, b in product(masks, masks) if masks[a] & one and masks[b] & other}
        assert PRODUCTS[one][other] == sum(masks[sign] for sign in found)
    for mask in range(ANY + 1):
        inside = [sign for sign in masks if masks[sign] & mask]
        assert opposite(mask) == sum(masks[-sign] for sign in inside)
        assert power_signs(mask, 2) == sum({masks[sign**2] for sign in inside})


def test_signs_at_points_of_a_solver_are_exact() -> None:
    """Such points lie closer to the zeros of a polynomial than floats tell."""
    domain = Domain(Shape(2, 1))
    points, (p, q) = Points(domain, 3), (domain.p[(), 0], domain.q[(), 0])
    variables = domain.field.context.gens()
    factor = domain.field.factor(variables[p] - variables[q])
    for shift, sign in ((fmpq(1, 2**80), POSITIVE), (fmpq(0), ZERO), (fmpq(-1, 2**80), NEGATIVE)):
        point = list(points.points[0])
        point[p], point[q], point[domain.q[(), 1]] = fmpq(1, 2) + shift, fmpq(1, 2), fmpq(1, 2)
        number = points.add(point)
        assert points.signs(factor)[number] == sign


def test_forms_that_are_at_least_zero() -> None:
    graph = Graph()
    p, q = graph.entry("p", (), 0), graph.entry("q", (), 0)
    kept = graph.subtract(
        graph.one, graph.positive_part(graph.subtract(graph.one, graph.node("quotient", p, q)))
    )
    share = graph.node("quotient", p, graph.add(p, q))
    right = [graph.add(p, q), kept, graph.subtract(graph.one, p), graph.subtract(graph.one, share)]
    wrong = [graph.subtract(p, q), graph.subtract(graph.one, graph.add(p, q)), graph.constant(-1)]
    wrong += [
        graph.subtract(graph.one, graph.node("quotient", p, q)),
        graph.multiply(p, graph.subtract(p, q)),
    ]
    assert [graph.is_at_least_zero(node) for node in right] == [True] * len(right)
    assert not any(graph.is_at_least_zero(node) for node in wrong)


def test_forms_that_are_zero() -> None:
    """As polynomials in what is no polynomial; the partner is 0 for all laws, and not by its form."""
    graph = Graph()
    p, half = graph.positive_part(graph.entry("p", (), 0)), graph.constant(1, 2)
    twice = graph.add(graph.multiply(half, p), graph.multiply(half, p))
    assert graph.is_zero_by_form(graph.subtract(twice, p), 2)
    assert not graph.is_zero_by_form(graph.subtract(p, graph.entry("p", (), 0)), 2)


def test_lemmas_are_found_and_wrong_ones_are_not_kept(field: Field) -> None:
    """p ≥ 0, q ≥ 0, p + q < 0; then every change of its identity."""
    p, q, _ = field.variables
    factors = [field.parts(f)[1][0][0] for f in (p, q, field.add(p, q))]
    constraints = list(zip(factors, (ZERO | POSITIVE, ZERO | POSITIVE, NEGATIVE), strict=True))
    lemma = lemma_of(constraints, 0)
    assert lemma is not None
    assert Lemmas(field).add(lemma) == 1
    region = Region(Domain(Shape(2, 1)))
    assert not lemma.covers(region)
    region.signs = {factor.number: mask for factor, mask in constraints}
    assert lemma.covers(region)
    (coefficient, indices), *others = lemma.terms
    changes: list[Any] = [
        (),
        others,
        ((coefficient * 2, indices), *others),
        ((-coefficient, indices), *others),
        ((coefficient, (*indices, *indices)), *others),
    ]
    assert [Lemmas(field).add(Lemma(lemma.constraints, tuple(terms))) for terms in changes] == [0] * 5
    weak = [(factor, ZERO | mask) for factor, mask in lemma.constraints]
    assert Lemmas(field).add(Lemma(tuple(weak), lemma.terms)) == 0


def test_a_lemma_covers_what_equalities_say() -> None:
    """2 q < 1 where p = q and 2 p < 1; the partner is a region without the equality."""
    domain = Domain(Shape(2, 1))
    p, q = domain.field.context.gens()[:2]
    half_p, half_q, tie = (domain.field.factor(f) for f in (2 * p - 1, 2 * q - 1, p - q))
    region = Region(domain).entered((), (0, 1)).child(half_p, NEGATIVE)
    assert region is not None
    tied, lemma = region.child(tie, ZERO), Lemma(((half_q, NEGATIVE),), ())
    assert tied is not None
    assert lemma.covers(tied)
    assert not lemma.covers(region)


def test_conditions_with_a_solution_have_no_lemma(field: Field) -> None:
    p, q, _ = field.variables
    factors = [field.parts(f)[1][0][0] for f in (p, q, field.subtract(p, q))]
    for mask in (NEGATIVE, ZERO, POSITIVE):
        constraints = list(zip(factors, (POSITIVE, POSITIVE, mask), strict=True))
        assert [lemma_of(constraints, degree) for degree in (0, 1, 2, 5)] == [None] * 4


def test_products_and_equalities_are_used(field: Field) -> None:
    """p > 0, q > 0 and p q ≤ 0 needs a product; p > 0 and p q = 0 and q > 0 an equality."""
    p, q, r = field.variables
    factors = [field.parts(f)[1][0][0] for f in (p, q, field.subtract(field.multiply(p, q), r), r)]
    for masks in ((POSITIVE, POSITIVE, NEGATIVE, ZERO), (POSITIVE, POSITIVE, ZERO, NEGATIVE)):
        constraints = list(zip(factors, masks, strict=True))
        assert lemma_of(constraints, 0) is None
        lemma = lemma_of(constraints, 2)
        assert lemma is not None
        assert Lemmas(field).add(lemma) == 1


def test_products_of_entries_reach_a_high_degree(field: Field) -> None:
    """x⁷ + y⁷ + x y (1 - x - y)⁵ < 0 has no point with x, y, 1 - x - y > 0.

    Other linear conditions follow from these, and would make the program too large.
    """
    x, y, _ = field.context.gens()
    conditions = [(x, POSITIVE), (y, POSITIVE), (x + y - 1, NEGATIVE)]
    conditions += [(one - bound, NEGATIVE) for one in (x, y, x + y) for bound in (2, 3)]
    conditions += [(x**7 + y**7 + x * y * (1 - x - y) ** 5, NEGATIVE)]
    constraints = [(field.factor(polynomial), mask) for polynomial, mask in conditions]
    assert lemma_of(constraints, 6) is None
    lemma = lemma_of(constraints, 7)
    assert lemma is not None
    assert Lemmas(field).add(lemma) == 1
    assert len(lemma.constraints) == 4


def test_factors_have_coefficients_of_any_size() -> None:
    """python-flint raises on those of two factors that differ by 2^31 or more."""
    field = Domain(Shape(2, 1)).field
    one, other = field.context.gens()[:2]
    product = -3 * (one + 2**31) * (one + 1) * (2 * one * other + 2**40) ** 2
    with pytest.raises(OverflowError):
        product.factor()
    constant, parts = field.factored(product)
    again = field.context.constant(constant)
    for factor, exponent in parts:
        again *= factor.polynomial**exponent
    assert again == product
    assert sorted(exponent for _, exponent in parts) == [1, 1, 2]
