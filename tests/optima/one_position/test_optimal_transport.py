"""Optimal transport at one position, for any law of the drafts."""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from later import Later
from program_support import THREE_TOKENS, assert_certified, assert_solved, position_draft_law
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import optimal_acceptance, otm_optimum, otm_program
from spectheory.optima.one_position.min_cut import min_cut_of_law
from spectheory.pairs.drafts import DraftProcess, Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair

ot = Later("ot")


def test_transport_solution_is_certified() -> None:
    program = otm_program(*THREE_TOKENS, 2)
    assert program.size == (27, 12)
    assert_certified(program, otm_optimum(*THREE_TOKENS, 2), 0)
    floats = [[1 / 2, 1 / 3, 1 / 6], [1 / 6, 1 / 3, 1 / 2]]
    assert_certified(otm_program(*floats, 2), otm_optimum(*floats, 2), 1e-9)


Law = dict[tuple[int, ...], Any]


def random_law(rng: np.random.Generator, vocab_size: int, num_drafts: int) -> Law:
    """Whole weights on some tuples, divided by their sum; correlated in every way."""
    tuples = list(product(range(vocab_size), repeat=num_drafts))
    weights = rng.integers(0, 4, len(tuples)) * (rng.random(len(tuples)) < 0.5)
    weights[rng.integers(len(tuples))] += 1
    total = int(weights.sum())
    return {x: Fraction(int(w), total) for x, w in zip(tuples, weights, strict=True) if w}


def laws() -> list[tuple[str, list[Fraction], Law]]:
    """210 (name, target, law): processes of the package and laws that are none of them."""
    found = []
    for number in range(35):
        V = 2 + number % 3
        pair = instances.random_rational(5_000 + number, V, 1)
        other = instances.random_rational(6_000 + number, V, 1)
        dense = instances.random_rational(7_000 + number, V, 1, zero_probability=0)
        target = list(pair.target[0][0])
        processes: list[tuple[ModelPair, DraftProcess]] = [
            (pair, Iid(2)),
            (pair, Iid(3)),
            (dense, WithoutReplacement((2,))),
            (pair, PerPath((pair, other))),
            (pair, PrefixTree((2,))),
        ]
        for model, process in processes:
            found.append(
                (f"{process.name}{process.num_drafts}-{number}", target, position_draft_law(model, process))
            )
        law = random_law(np.random.default_rng(number), V, 2)
        found.append((f"explicit-{number}", target, law))
    return found


LAWS = laws()


def cuts_by_hand(target: list[Fraction], law: Law) -> list[Fraction]:
    """target(H) + 1 - P(all drafts in H) for every H, one sum per set."""
    values = []
    for inside in product((False, True), repeat=len(target)):
        avoided = sum((prob for x, prob in law.items() if all(inside[t] for t in x)), start=Fraction(0))
        values.append(
            sum((p for p, i in zip(target, inside, strict=True) if i), start=Fraction(0)) + 1 - avoided
        )
    return values


@first_is_quick("first", range(4))
def test_min_cut_is_the_transport_optimum_for_any_law(first: int) -> None:
    """max P(Y ∈ S(X)) = min_H [target(H) + 1 - P(S(X) ⊆ H)], exactly."""
    for name, target, law in LAWS[first::4]:
        exact = otm_optimum(target, draft_law=law)
        cut = min_cut_of_law(target, law)
        assert cut.value == 1 - exact.value == min(cuts_by_hand(target, law)), name
        inside = set(np.flatnonzero(cut.tokens).tolist())
        drafted = sum(prob for x, prob in law.items() if inside.issuperset(x))
        assert sum(target[i] for i in inside) + 1 - drafted == cut.value
        row, floats = np.array(target, dtype=float), {x: float(prob) for x, prob in law.items()}
        assert min_cut_of_law(row, floats).value == pytest.approx(float(cut.value), abs=1e-14)
        programs = otm_program(target, draft_law=law), otm_program(row, draft_law=floats)
        assert_solved(programs[0], exact, programs[1], otm_optimum(row, draft_law=floats))


@first_is_quick("first", range(0, 210, 30))
def test_iid_law_is_the_product_program(first: int) -> None:
    """The law of Iid(K), spelled out, gives what the program of K i.i.d. drafts and the sorted cut give, and
    that program's exact and float points are optimal: 210 pairs, 30 per test."""
    for number in range(first, first + 30):
        pair, num_drafts = instances.random_rational(8_000 + number, 2 + number % 3, 1), 1 + number // 3 % 3
        target, draft = pair.target[0][0], pair.draft[0][0]
        law = position_draft_law(pair, Iid(num_drafts))
        exact = otm_optimum(target, draft, num_drafts)
        assert exact.value == otm_optimum(target, draft_law=law).value
        assert 1 - exact.value == optimal_acceptance(target, draft, num_drafts).value
        assert 1 - exact.value == min_cut_of_law(target, law).value
        rows = target.astype(float), draft.astype(float)
        programs = otm_program(target, draft, num_drafts), otm_program(*rows, num_drafts)
        assert_solved(programs[0], exact, programs[1], otm_optimum(*rows, num_drafts))
        cut = optimal_acceptance(*rows, num_drafts).value
        assert 1 - cut == pytest.approx(float(exact.value), abs=1e-14)


def test_network_simplex_agrees() -> None:
    """POT's network simplex on the cost 1{y ∉ S(x)} and HiGHS on spectr2023 Eq. 4."""
    rng = np.random.default_rng(5)
    for V, num_drafts in ((2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (10, 2)):
        target, draft = rng.dirichlet(np.ones(V), size=2)
        drafts = list(product(range(V), repeat=num_drafts))
        joint = np.array([prod(draft[t] for t in x) for x in drafts])
        cost = np.array([[float(y not in x) for y in range(V)] for x in drafts])
        simplex = ot.emd2(joint / joint.sum(), target, cost)
        assert otm_optimum(target, draft, num_drafts).value == pytest.approx(simplex, abs=1e-9)
        # membership in the first draft only is a different, worse problem
        first = np.array([[float(y != x[0]) for y in range(V)] for x in drafts])
        if num_drafts > 1:
            assert ot.emd2(joint / joint.sum(), target, first) > simplex + 1e-3


def test_draft_laws_that_are_none_are_refused() -> None:
    row = ["1/2", "1/2"]
    for law, text in (
        ({(0,): "1/2", (0, 1): "1/2"}, r"lengths \[1, 2\]"),
        ({}, "lengths"),
        ({(): "1"}, "lengths"),
        ({(0, 2): "1"}, r"drafts \(0, 2\) are not token ids in 0\.\.1"),
        ({(0, 1): "1/2"}, "sum to 1, got 1/2"),
        ({(0, 1): "3/2", (1, 1): "-1/2"}, "≥ 0"),
        ({(0, 1): 1.0}, "use one kind"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            min_cut_of_law(row, law)
        with pytest.raises(InvalidInputError, match=text):
            otm_program(row, draft_law=law)
    with pytest.raises(InvalidInputError, match="one numpy row"):
        min_cut_of_law(np.full((2, 2), 0.5), {(0,): 1.0})
