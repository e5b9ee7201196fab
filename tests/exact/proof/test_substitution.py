"""Empty regions that are closed in steps: each step has an identity, and regions with a pair have none."""

from random import Random
from typing import Any

import pytest
from flint import fmpq

from spectheory.exact.proof.emptiness import Emptiness
from spectheory.exact.proof.rational_functions import NEGATIVE, POSITIVE, ZERO, Factor, RationalFunctions

FIELD = RationalFunctions("pqrstuvw")
p, q, r, s, t, u, v, w = (function.numerator for function in FIELD.variables)
EMPTY: list[list[tuple[Any, int]]] = [
    [
        (u - v, ZERO),
        (v, POSITIVE),
        (p * u - q * v, ZERO),
        (q, POSITIVE),
        (p * s - q * t, ZERO),
        (s - t, POSITIVE),
    ],
    [
        (u * s - v * t, ZERO),
        (v, POSITIVE),
        (t, POSITIVE),
        (p * u * s - q * v * t, ZERO),
        (p * r - q * w, POSITIVE),
        (r - w, NEGATIVE),
        (q, POSITIVE),
    ],
]
"""The second has no linear equality: p u s - q v t is p (u s - v t) + (p - q) v t."""


def _core(conditions: list[tuple[Any, int]]) -> list[tuple[Factor, int]]:
    found = []
    for polynomial, mask in conditions:
        factor = FIELD.factor(polynomial)
        assert factor.polynomial == polynomial
        found.append((factor, mask))
    return found


@pytest.mark.parametrize("conditions", EMPTY, ids=["linear", "by division"])
def test_steps_end_with_a_factor_without_a_sign(conditions: list[tuple[Any, int]]) -> None:
    emptiness = Emptiness(0)
    core = _core(conditions)
    steps = emptiness._steps(core)
    assert len(steps) > 1
    assert steps[-1].mask == 0
    known = dict(core)
    for step in steps:
        left = known.get(step.factor, 7)
        for sign, number in step.closed:
            assert emptiness.lemmas[number].covers({**known, step.factor: sign})
            left &= ~sign
        assert left == step.mask
        known[step.factor] = left
    random = Random(0)
    for lemma in emptiness.lemmas:
        point = [fmpq(random.randint(-9, 9)) for _ in FIELD.names]
        assert lemma.terms
        assert sum(_value(term, lemma.constraints, point) for term in lemma.terms) == 0
        assert any(_is_strict(term, lemma.constraints) for term in lemma.terms)


def _value(term: Any, constraints: Any, point: list[fmpq]) -> fmpq:
    value = term.coefficient
    for index in term.indices:
        factor, mask = constraints[index]
        value *= -factor.at(point) if mask & NEGATIVE and not mask & POSITIVE else factor.at(point)
    for base, exponent in zip(point, term.multiplier or [], strict=term.multiplier is not None):
        value *= base**exponent
    return value


def _is_strict(term: Any, constraints: Any) -> bool:
    return term.multiplier is None and not any(constraints[index][1] & ZERO for index in term.indices)


@pytest.mark.parametrize("conditions", EMPTY, ids=["linear", "by division"])
def test_partner_without_one_condition_nothing_is_closed(conditions: list[tuple[Any, int]]) -> None:
    for left_out in range(len(conditions)):
        rest = conditions[:left_out] + conditions[left_out + 1 :]
        assert Emptiness(0)._steps(_core(rest)) == ()
