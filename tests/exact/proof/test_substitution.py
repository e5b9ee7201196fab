"""Empty regions that are closed by splits: each split has identities, and regions with a pair have none."""

from time import monotonic
from typing import Any

import pytest
from flint import fmpq

from deep import first_is_quick
from spectheory.exact.proof import emptiness
from spectheory.exact.proof.certificates import Lemma, Node, Part
from spectheory.exact.proof.emptiness import Emptiness
from spectheory.exact.proof.rational_functions import (
    ANY_SIGN,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Factor,
    RationalFunctions,
)
from spectheory.exact.proof.substitution import divisions, solve, solved_form

FIELD = RationalFunctions("pqrstuvw")
p, q, r, s, t, u, v, w = (function.numerator for function in FIELD.variables)
EMPTY: dict[str, list[tuple[Any, int]]] = {
    "linear": [
        (u - v, ZERO),
        (v, POSITIVE),
        (p * u - q * v, ZERO),
        (q, POSITIVE),
        (p * s - q * t, ZERO),
        (s - t, POSITIVE),
    ],
    # p u s - q v t is p (u s - v t) + (p - q) v t.
    "by division": [
        (u * s - v * t, ZERO),
        (v, POSITIVE),
        (t, POSITIVE),
        (p * u * s - q * v * t, ZERO),
        (p * r - q * w, POSITIVE),
        (r - w, NEGATIVE),
        (q, POSITIVE),
    ],
}


def _core(conditions: list[tuple[Any, int]]) -> list[tuple[Factor, int]]:
    found = []
    for polynomial, mask in conditions:
        factor = FIELD.factor(polynomial)
        assert factor.polynomial == polynomial
        found.append((factor, mask))
    return found


def _closed(conditions: list[tuple[Any, int]]) -> tuple[Any, list[Lemma]]:
    found, core = Emptiness(monotonic() + 60), _core(conditions)
    return found._closed(core, dict(core), 5), found.lemmas


@pytest.mark.parametrize("conditions", EMPTY.values(), ids=EMPTY)
def test_splits_leave_nothing_open_and_lemmas_are_identities(
    monkeypatch: pytest.MonkeyPatch, conditions: list[tuple[Any, int]]
) -> None:
    """Certificates of a degree that closes these conditions without a split are left out."""
    monkeypatch.setattr(emptiness, "LOW_DEGREES", (0,))
    target, lemmas = _closed(conditions)
    assert isinstance(target, Node)
    waiting = [(Part(7, target), dict(_core(conditions)))]
    while waiting:
        part, known = waiting.pop()
        if part.lemma is not None:
            assert lemmas[part.lemma].covers(known)
            continue
        node = part.target
        assert isinstance(node, Node)
        left = known.get(node.factor, 7)
        assert left & ~sum(one.mask for one in node.parts) == 0
        waiting += [(one, {**known, node.factor: left & one.mask}) for one in node.parts]
    assert all(map(_holds, lemmas))


@pytest.mark.parametrize("mask", range(1, 7))
@pytest.mark.parametrize(
    "dividend",
    [
        p * v + q - r,  # u (p s / u + q - r): one factor is left
        v - p * s * w,  # s (1 - p u w)
        v * v - 2 * v + 1 - p * s * s,  # u² times it is left
        u * v - 2 * s,  # -s, of which the sign is known
        u * v * v - u * v + t * t * s,
        u * v + w * w - s,  # a square
        u * v - s + 1,  # a constant
    ],
    ids=str,
)
def test_divisions_exclude_signs_by_certificates(dividend: Any, mask: int) -> None:
    [(zero, _), *_] = _core([(u * v - s, ZERO)])
    known = dict(_core([(u, NEGATIVE), (s, POSITIVE)]))
    found = [one.consequence(known) for one in divisions((FIELD.factor(dividend), mask), zero, known)]
    assert found
    for consequence in filter(None, found):
        signs = {sign for sign in (NEGATIVE, ZERO, POSITIVE) if not sign & consequence.mask}
        assert {*consequence.excluded} == signs
        for conditions, terms in consequence.excluded.values():
            assert _holds(Lemma(tuple(conditions), terms))
            assert (consequence.factor, ANY_SIGN) not in conditions


def _holds(lemma: Lemma) -> bool:
    """Whether the terms sum to 0, none may be negative, and one is positive."""
    point, conditions = [fmpq(3 * number - 7, 5) for number in range(len(FIELD.names))], lemma.constraints
    assert lemma.terms
    for term in lemma.terms:
        masks = [conditions[index][1] for index in term.indices]
        if term.multiplier is not None:
            assert masks == [ZERO]
            continue
        assert term.coefficient > 0
        for index, one in zip(term.indices, masks, strict=True):
            assert one in (1, 3, 4, 6) or (one == 5 and term.indices.count(index) % 2 == 0)
    return bool(
        sum(_value(term, conditions, point) for term in lemma.terms) == 0
        and any(_is_strict(term, conditions) for term in lemma.terms)
    )


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


@first_is_quick("conditions", EMPTY.values(), ids=EMPTY)
def test_partner_without_one_condition_nothing_is_closed(conditions: list[tuple[Any, int]]) -> None:
    for left_out in range(len(conditions)):
        rest = conditions[:left_out] + conditions[left_out + 1 :]
        assert _closed(rest)[0] is None


def test_equations_are_solved_for_variables_in_which_they_are_linear() -> None:
    """u v = w and u w = t make t = u² v: at u, v = 2, 3 the others follow."""
    zeros = [factor for factor, _ in _core([(u * v - w, ZERO), (u * w - t, ZERO)])]
    near = [fmpq(0)] * 5 + [fmpq(2), fmpq(3), fmpq(6)]
    values = [*near]
    values[4] = values[7] = fmpq(-1)
    assert solve(solved_form(zeros, near), values)
    assert all(zero.at(values) == 0 for zero in zeros)
    assert not solve([(6, zeros[0])], [fmpq(0)] * 8)  # u v = w does not give v where u = 0


def test_a_division_refutes_a_sign() -> None:
    """p u s - q v t is (p - q) v t where u s = v t: not below 0 where p > q; the partner is above 0."""
    known = dict(_core([(u * s - v * t, ZERO), (v, POSITIVE), (t, POSITIVE), (p - q, POSITIVE)]))
    factor, emptiness = FIELD.factor(p * u * s - q * v * t), Emptiness(monotonic() + 60)
    assert emptiness._divided(known, factor, NEGATIVE) is not None
    assert emptiness._divided(known, factor, POSITIVE) is None


@pytest.mark.parametrize("polynomial", [p * q, p * p, p - p], ids=str)
def test_partner_no_factor_is_refused(polynomial: Any) -> None:
    with pytest.raises(ValueError, match="not irreducible"):
        FIELD.factor(polynomial)
