"""Path selection: the optimum over skewed drafts, rankings as its vertices, transport, best rankings."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from itertools import combinations, permutations, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from spectheory import instances
from spectheory.bounds.skewed_draft import SkewedDraft, is_skewed_draft
from spectheory.errors import CertificationError, EnumerationTooLargeError, InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs import check_solution, multi_path_optimum, solve_exact
from spectheory.programs.best_ranking import best_ranking, count_tree_rankings
from spectheory.programs.greedy_polymatroid import decompose_into_rankings
from spectheory.programs.path_selection import path_selection_optimum, path_selection_program
from spectheory.programs.transport import transport_feasibility
from strategies import pairs
from table import groups

OPTIMUM_GROUPS = [
    "two_token",
    "partial_overlap",
    "disjoint_supports",
    "random-V2-L1-K3",
    "random-V2-L2-K2",
    "random-V2-L3-K2",
    "random-V3-L1-K3",
    "random-V3-L2-K2",
    "random-V4-L1-K2",
]


def ranking_vertex(pair: ModelPair, num_drafts: int, order: object) -> np.ndarray:
    """The law of the highest-ranked of K drafts."""
    return SkewedDraft.from_order(pair, num_drafts, order).leaf_law  # type: ignore[arg-type]


def f(mass: Fraction, num_drafts: int) -> Fraction:
    """P(some draft lies in a set of draft mass ``mass``)."""
    return 1 - (1 - mass) ** num_drafts


def random_law(rng: np.random.Generator, size: int) -> np.ndarray:
    """Whole weights up to 5 over their sum, zeros included."""
    weights = rng.integers(0, 6, size)
    weights[rng.integers(size)] += 1
    return np.array([Fraction(int(weight), int(weights.sum())) for weight in weights], dtype=object)


def random_member(rng: np.random.Generator, pair: ModelPair, num_drafts: int) -> np.ndarray:
    """A law that is a skewed draft: a random mixture of random rankings."""
    size = pair.vocab_size**pair.draft_length
    weights = random_law(rng, 4)
    return np.asarray(sum(w * ranking_vertex(pair, num_drafts, rng.permutation(size)) for w in weights))


def largest_excess(pair: ModelPair, law: np.ndarray, num_drafts: int) -> Fraction:
    """The largest r(S) - f(q(S)) over all sets S of leaves, one set after the other."""
    probs = pair.draft_path_probs(pair.draft_length)
    sets = (s for size in range(1, len(law) + 1) for s in combinations(range(len(law)), size))
    return max(sum(law[list(s)]) - f(sum(probs[list(s)]), num_drafts) for s in sets)


# ----------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("group", OPTIMUM_GROUPS)
def test_optimum_over_skewed_drafts_is_the_antichain_optimum(group: str) -> None:
    """greedy2026 Theorem 4.6: the two programs have the same value, exactly."""
    for case in (case for case in groups()[group] if case.has_optimum):
        best = path_selection_optimum(case.pair, case.num_drafts)
        expected = multi_path_optimum(case.pair, case.num_drafts).value
        assert isinstance(best.value, Fraction), case
        assert best.value == expected, case
        law = best.skewed_draft.leaf_law
        assert is_skewed_draft(case.pair, law, case.num_drafts).is_member, case
        named = dict(zip(reference.leaves(case.pair), law, strict=True))
        assert reference.ranking_efficiency(case.pair, named) == expected, case


SHAPES = ((2, 1), (2, 2), (3, 1), (4, 1))
RANDOM_PAIRS = [
    (instances.random_rational(21_000 + number, *SHAPES[number % 4]), 1 + number // 4 % 4)
    for number in range(208)
]
"""Exact pairs with zeros, ties, equal rows and no overlap, K = 1..4."""


@pytest.mark.parametrize("first", range(0, 208, 13))
def test_random_optima_prove_themselves(first: int) -> None:
    """Exact, float, antichain and ranking values agree, both points are optimal, moved duals are not: 208
    pairs, 13 per test."""
    for pair, num_drafts in RANDOM_PAIRS[first : first + 13]:
        best = path_selection_optimum(pair, num_drafts)
        assert best.value == multi_path_optimum(pair, num_drafts).value
        law = best.skewed_draft.leaf_law
        assert largest_excess(pair, law, num_drafts) == 0
        named = dict(zip(reference.leaves(pair), law, strict=True))
        assert reference.ranking_efficiency(pair, named) == best.value
        floats = pair.to_float()
        approximate = path_selection_optimum(floats, num_drafts)
        assert approximate.solution.lower <= best.value <= approximate.solution.upper
        assert approximate.value == pytest.approx(float(best.value), abs=1e-7)
        for model, found, tolerance in ((pair, best, 0.0), (floats, approximate, 1e-8)):
            program = path_selection_program(model, num_drafts, found.leaf_sets)
            check_solution(program, found.solution, tolerance)
            moved = {name: values.copy() for name, values in found.solution.dual.items()}
            moved["total"][0] += 1
            with pytest.raises(CertificationError, match="residual"):
                check_solution(program, dataclasses.replace(found.solution, dual=moved), tolerance)


def test_float_optimum_is_certified_from_both_sides() -> None:
    """The rational value lies between the float bounds, which are close."""
    for V, L, K in ((2, 2, 3), (3, 2, 2), (2, 3, 3), (3, 3, 2)):
        for seed in range(3):
            pair = instances.random_rational(seed, V, L)
            exact, approximate = path_selection_optimum(pair, K), path_selection_optimum(pair.to_float(), K)
            solution = approximate.solution
            assert solution.lower <= exact.value <= solution.upper, (V, L, K, seed)
            assert solution.upper - solution.lower < 1e-7
            assert abs(approximate.value - float(exact.value)) < 1e-7
            law = approximate.skewed_draft.leaf_law
            assert is_skewed_draft(pair.to_float(), law, K).is_member


def test_generated_sets_are_enough_and_all_sets_give_the_same() -> None:
    """Row generation against the program with all 2^M - 1 leaf sets; the solution proves its value."""
    for seed in range(6):
        pair = instances.random_rational(seed, 3, 2)
        best = path_selection_optimum(pair, 2)
        assert solve_exact(path_selection_program(pair, 2)).value == best.value
        check_solution(path_selection_program(pair, 2, best.leaf_sets), best.solution)
        assert len(best.leaf_sets) < 2**9 - 1


def test_optimum_partner_too_few_sets_and_moved_solutions() -> None:
    """Without Eq. 17 the value is too large; a moved dual is refused; the wrong K differs."""
    pair = instances.two_token(2)
    assert solve_exact(path_selection_program(pair, 2, [])).value == 3
    assert path_selection_optimum(pair, 2).value == Fraction(212, 81)  # theory.md §5: L=2, K=2
    assert path_selection_optimum(pair, 3).value > Fraction(212, 81)
    best = path_selection_optimum(pair, 2)
    best.solution.dual["total"][0] += 1
    with pytest.raises(CertificationError):
        check_solution(path_selection_program(pair, 2, best.leaf_sets), best.solution)


def test_one_draft_selects_the_draft_itself() -> None:
    """K = 1: the only skewed draft is q, and the optimum that of block verification."""
    for seed in range(4):
        pair = instances.random_rational(seed, 2, 2)
        best = path_selection_optimum(pair, 1)
        assert (best.skewed_draft.leaf_law == pair.draft_path_probs(2)).all()
        assert len(decompose_into_rankings(pair, 1, pair.draft_path_probs(2)).weights) == 1


def test_size_limits_and_bad_input() -> None:
    """Too many leaves, too many sets, laws of the wrong shape, arithmetic or sum."""
    pair = instances.two_token(2)
    with pytest.raises(EnumerationTooLargeError, match="128 leaves"):
        path_selection_optimum(instances.two_token(7), 2)
    with pytest.raises(EnumerationTooLargeError, match="2\\^16"):
        path_selection_program(instances.two_token(4), 2)
    with pytest.raises(InvalidInputError, match="max_rounds"):
        path_selection_optimum(pair, 2, max_rounds=0)
    with pytest.raises(CertificationError, match="after 1 rounds"):
        path_selection_optimum(instances.random_rational(4, 3, 2), 2, max_rounds=1)
    for law in (np.array([Fraction(1)]), np.full(4, 0.25)):
        with pytest.raises(InvalidInputError, match=r"expected \(4,\)|use one kind"):
            is_skewed_draft(pair, law, 2)
    with pytest.raises(InvalidInputError, match="sum to 1"):
        is_skewed_draft(pair, np.full(4, Fraction(1, 5), dtype=object), 2)


# ------------------------------------------------------------------------------ membership


def test_membership_by_sorting_is_membership_by_all_sets() -> None:
    """The level sets of r/q hold the largest excess of all 2^M sets; the witness has it."""
    rng = np.random.default_rng(5)
    verdicts = []
    for seed in range(80):
        V, L, K = ((2, 1, 2), (2, 2, 2), (2, 3, 3), (3, 1, 3))[seed % 4]
        pair = instances.random_rational(seed, V, L)
        member = random_member(rng, pair, K)
        mixed = (member + random_law(rng, V**L)) / 2
        for law in (member, mixed, random_law(rng, V**L)):
            found = is_skewed_draft(pair, law, K)
            expected = largest_excess(pair, law, K)
            assert found.is_member == (expected <= 0), (seed, law)
            verdicts.append(found.is_member)
            if not found.is_member:
                probs = pair.draft_path_probs(L)[list(found.witness)]
                assert found.excess == expected == law[list(found.witness)].sum() - f(probs.sum(), K)
        assert is_skewed_draft(pair, member, K).is_member
    assert {True, False} <= set(verdicts)


def test_negative_entries_are_no_law() -> None:
    """An entry below 0 that keeps the sum at 1 is found as a set with more than all the mass."""
    pair = instances.uniform_equal(1)
    found = is_skewed_draft(pair, np.array([Fraction(-1, 10), Fraction(11, 10)]), 3)
    assert (found.is_member, found.witness, found.excess) == (False, (1,), Fraction(11, 10) - Fraction(7, 8))


# ------------------------------------------------------------------- rankings as vertices


def test_eq_93_goes_from_the_top_down() -> None:
    """Eq. 93 and Eq. 19 agree when one order is the reverse of the other, not when they are the same.

    Draft (2/3, 1/3), K = 2: Eq. 93 in the order P_1, P_2 gives (8/9, 1/9), Eq. 19 gives (4/9, 5/9).
    """
    pair = instances.two_token(1)
    assert ranking_vertex(pair, 2, [0, 1]).tolist() == [Fraction(4, 9), Fraction(5, 9)]
    assert ranking_vertex(pair, 2, [1, 0]).tolist() == [Fraction(8, 9), Fraction(1, 9)]
    for seed in range(8):
        pair = instances.random_rational(seed, 2, 2)
        probs = pair.draft_path_probs(2)
        for order in permutations(range(4)):
            masses = probs[list(order)].cumsum()
            eq_93 = [f(mass, 3) - f(mass - probs[leaf], 3) for leaf, mass in zip(order, masses, strict=True)]
            assert ranking_vertex(pair, 3, order[::-1])[list(order)].tolist() == eq_93


def test_every_skewed_draft_is_a_mixture_of_rankings() -> None:
    """Optimal and random members come back exactly from at most M rankings with weights > 0."""
    rng = np.random.default_rng(11)
    several = 0
    for seed in range(105):
        V, L, K = ((2, 1, 2), (2, 2, 2), (3, 1, 3), (2, 3, 3), (3, 2, 2), (4, 1, 2), (3, 3, 2))[seed % 7]
        pair = instances.random_rational(seed, V, L)
        laws = [random_member(rng, pair, K), path_selection_optimum(pair, K).skewed_draft.leaf_law]
        for law in laws:
            found = decompose_into_rankings(pair, K, law)
            assert len(found.weights) == len(found.orders) <= V**L
            assert min(found.weights) > 0
            assert sum(found.weights) == 1
            assert (found.leaf_law(pair, K) == law).all(), seed
            assert all(sorted(order.tolist()) == list(range(V**L)) for order in found.orders)
            several += len(found.weights) > 2
    assert several > 10


def test_vertices_are_their_own_mixture() -> None:
    """The law of one ranking, all of whose leaves can be drafted, decomposes into that ranking alone."""
    pair = instances.three_token_reversed(1)
    for order in permutations(range(3)):
        found = decompose_into_rankings(pair, 2, ranking_vertex(pair, 2, order))
        assert found.weights == (1,)
        assert found.orders[0].tolist() == list(order)


def test_decomposition_partner_refuses_what_is_no_skewed_draft() -> None:
    """A law outside the polytope, a float pair, an order that is none."""
    pair = instances.uniform_equal(1)
    with pytest.raises(InvalidInputError, match=r"leaves \[1\] have 1/20 more"):
        decompose_into_rankings(pair, 2, np.array([Fraction(1, 5), Fraction(4, 5)]))
    with pytest.raises(InvalidInputError, match="exact pair"):
        decompose_into_rankings(pair.to_float(), 2, np.array([0.5, 0.5]))
    for order in ([0, 0], [0], [0, 2], [0.0, 1.0], [(0,), (2,)], [(0, 1), (1, 0)]):
        with pytest.raises(InvalidInputError, match="order of leaves"):
            ranking_vertex(pair, 2, order)


# ------------------------------------------------------------------------------- transport


@given(st.data())
def test_lemma_a1(data: st.DataObject) -> None:
    """A coupling or a set with a(S) > b(N(S)), and the one exists exactly when the other does not."""
    sizes = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    left, right = random_law(rng, sizes[0]), random_law(rng, sizes[1])
    every = list(product(range(sizes[0]), range(sizes[1])))
    edges = [edge for edge in every if rng.random() < 0.6]
    found = transport_feasibility(left, right, edges)

    def hall(chosen: tuple[int, ...]) -> Fraction:
        reached = {y for x, y in edges if x in chosen}
        return sum(left[list(chosen)], Fraction(0)) - sum((right[y] for y in reached), Fraction(0))

    subsets = [s for size in range(sizes[0] + 1) for s in combinations(range(sizes[0]), size)]
    assert found.excess == max(hall(s) for s in subsets)
    assert found.is_feasible == (found.excess == 0)
    if found.coupling is None:
        assert hall(found.violating_set) == found.excess > 0
        return
    assert set(found.coupling) <= set(edges)
    assert min(found.coupling.values()) > 0
    for x in range(sizes[0]):
        assert sum(mass for edge, mass in found.coupling.items() if edge[0] == x) == left[x]
    for y in range(sizes[1]):
        assert sum(mass for edge, mass in found.coupling.items() if edge[1] == y) == right[y]


def test_lemma_4_5_by_maximum_flow() -> None:
    """A law is selected from K-tuples of drafts by some rule iff the sorted test says so, same excess."""
    rng = np.random.default_rng(3)
    verdicts = set()
    for seed in range(100):
        V, L, K = ((2, 1, 2), (2, 2, 2), (3, 1, 3), (2, 1, 3))[seed % 4]
        pair = instances.random_rational(seed, V, L)
        probs = pair.draft_path_probs(L)
        tuples = list(product(range(V**L), repeat=K))
        masses = [prod(probs[leaf] for leaf in drafts) for drafts in tuples]
        edges = [(leaf, number) for number, drafts in enumerate(tuples) for leaf in set(drafts)]
        for law in (random_member(rng, pair, K), random_law(rng, V**L)):
            flow = transport_feasibility(law, masses, edges)
            found = is_skewed_draft(pair, law, K)
            assert (flow.is_feasible, flow.excess) == (found.is_member, found.excess)
            verdicts.add(found.is_member)
    assert verdicts == {True, False}


def test_transport_bad_input() -> None:
    """Floats, sums other than 1, negative entries and unknown vertices are refused."""
    half = [Fraction(1, 2), Fraction(1, 2)]
    for law in ([0.5, 0.5], [Fraction(1, 2)], [Fraction(3, 2), Fraction(-1, 2)]):
        with pytest.raises(InvalidInputError, match="left marginal"):
            transport_feasibility(law, half, [])
    with pytest.raises(InvalidInputError, match="right marginal"):
        transport_feasibility(half, [1, 1], [])
    with pytest.raises(InvalidInputError, match="names a vertex"):
        transport_feasibility(half, half, [(0, 2)])


# --------------------------------------------------------------------------- best rankings


def tree_rankings(pair: ModelPair) -> list[list[tuple[int, ...]]]:
    """Every tree-based ranking as an order of all leaves, V! orders at each context, in plain Python."""

    def below(context: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
        if len(context) == pair.draft_length:
            return [[context]]
        children = [below((*context, token)) for token in range(pair.vocab_size)]
        return [
            [leaf for token in order for leaf in chosen[token]]
            for chosen in product(*children)
            for order in permutations(range(pair.vocab_size))
        ]

    return below(())


@pytest.mark.parametrize("first", range(0, 201, 67))
def test_exhaustive_search_against_plain_enumeration(first: int) -> None:
    """Best and worst over all Π V! rankings, each evaluated from its leaf law alone: 201 pairs."""
    for seed in range(first, first + 67):
        V, L, K = ((2, 2, 2), (2, 2, 3), (3, 1, 2))[seed % 3]
        pair = instances.random_rational(seed, V, L)
        values = [
            reference.ranking_efficiency(pair, reference.skewed_leaf_probs(pair, order, K))
            for order in tree_rankings(pair)
        ]
        found = best_ranking(pair, K)
        assert found.exhaustive
        assert found.rankings_tried == count_tree_rankings(pair) <= len(values)
        assert (found.best.value, found.worst.value) == (max(values), min(values)), seed
        assert found.worst.value <= found.greedy.value <= found.best.value <= found.optimum
        for ranked in (found.best, found.worst, found.greedy):
            draft = SkewedDraft.from_order(pair, K, ranked.leaf_order)
            assert draft.block_efficiency(pair) == ranked.value


def test_local_search_says_so_and_bounds_the_exhaustive_result() -> None:
    """A local search never beats the exhaustive one and is marked as what it is."""
    for seed in range(6):
        pair = instances.random_rational(seed, 3, 2)
        every = best_ranking(pair, 2, with_optimum=False)
        searched = best_ranking(pair, 2, max_rankings=1, with_optimum=False)
        single = count_tree_rankings(pair) == 1
        assert every.exhaustive
        assert searched.exhaustive is single
        assert every.worst.value <= searched.worst.value <= searched.greedy.value
        assert searched.greedy.value <= searched.best.value <= every.best.value
        assert searched.rankings_tried <= every.rankings_tried
        assert searched.optimum is None


def test_the_ratio_ranking_is_not_always_the_best() -> None:
    """Among tree-based rankings p/q is best on the two-token example and not on some random pair."""
    found = best_ranking(instances.two_token(2), 2)
    assert found.best.value == found.greedy.value == found.optimum == Fraction(212, 81)
    same = ModelPair.context_free_pair(["1/3", "2/3"], ["1/3", "2/3"], 2)
    found = best_ranking(same, 2)
    assert (found.greedy.value, found.best.value) == (Fraction(203, 81), Fraction(205, 81))
    assert found.best.leaf_order.tolist() == [0, 1, 3, 2]
    assert reference.ranking_efficiency(
        same, reference.skewed_leaf_probs(same, [(0, 0), (0, 1), (1, 1), (1, 0)], 2)
    ) == Fraction(205, 81)
    random = [best_ranking(instances.random_rational(seed, 3, 2), 2) for seed in range(12)]
    assert any(result.greedy.value < result.best.value for result in random)
    assert any(result.best.value < result.optimum for result in random)
    with pytest.raises(InvalidInputError, match="max_rankings"):
        best_ranking(instances.two_token(1), 2, max_rankings=0)


@given(pairs(), st.integers(1, 3))
def test_rankings_on_any_pair(pair: ModelPair, num_drafts: int) -> None:
    """Exact or float, V = 1 included: worst ≤ p/q ≤ best ≤ optimum."""
    found = best_ranking(pair, num_drafts, max_rankings=100)
    slack = 0 if pair.is_exact else 1e-7
    assert found.worst.value <= found.greedy.value <= found.best.value <= found.optimum + slack
