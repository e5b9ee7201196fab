"""The optimum over skewed drafts is that over antichains; leaf sets are generated until none is violated."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

import reference
from deep import first_is_quick
from leaf_laws import largest_excess
from program_support import TREE_PAIRS, assert_certified
from spectheory import instances
from spectheory.foundation.errors import CertificationError
from spectheory.foundation.exact_numbers import exact_values
from spectheory.optima import check_solution, multi_path_optimum, solve, solve_exact
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.optima.bounds.skewed_draft import is_skewed_draft
from spectheory.optima.greedy_polymatroid import decompose_into_rankings
from spectheory.optima.path_selection import path_selection_optimum, path_selection_program
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


@pytest.mark.parametrize("group", OPTIMUM_GROUPS)
def test_optimum_over_skewed_drafts_is_the_antichain_optimum(group: str) -> None:
    """greedy2026 Theorem 4.6: the two programs have the same value, exactly."""
    for case in (case for case in groups()[group][:6] if case.has_optimum):
        best = path_selection_optimum(case.pair, case.num_drafts)
        expected = multi_path_optimum(case.pair, case.num_drafts).value
        assert isinstance(best.value, Fraction), case
        assert best.value == expected, case
        law = best.skewed_draft.leaf_law
        assert is_skewed_draft(case.pair, law, case.num_drafts).is_member, case
        named = dict(zip(reference.leaves(case.pair), law, strict=True))
        assert reference.ranking_efficiency(case.pair, named) == expected, case


@first_is_quick("first", range(0, 208, 26))
def test_random_optima_prove_themselves(first: int) -> None:
    """Exact, float, antichain and ranking values agree, both points are optimal, moved duals are not: 208
    pairs, 26 per test, K = 1..4."""
    for number in range(first, first + 26):
        pair, num_drafts = TREE_PAIRS[number], 1 + number // 4 % 4
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
        assert is_skewed_draft(floats, approximate.skewed_draft.leaf_law, num_drafts).is_member
        for model, found, tolerance in ((pair, best, 0.0), (floats, approximate, 1e-8)):
            program = path_selection_program(model, num_drafts, found.leaf_sets)
            assert_certified(program, found.solution, tolerance)


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


@pytest.mark.parametrize("seed", range(12))
def test_any_point_is_repaired_to_a_feasible_one(seed: int) -> None:
    """Random points, and optima of too few sets and of a wrong total: read as rationals, the repaired masses
    keep to every antichain, and to their parents up to rounding; no undrafted leaf has any."""
    shape = ((2, 2), (3, 2), (4, 1))[seed % 3]
    pair, num_drafts = instances.random_rational([91, seed], *shape), 2 + seed % 3
    rng = np.random.default_rng(seed)
    program = path_selection_program(pair.to_float(), num_drafts, [])
    leaves = pair.vocab_size**pair.draft_length
    sizes = np.cumsum([pair.vocab_size**depth for depth in range(pair.draft_length + 1)])
    unlimited = np.array(list(solve(dataclasses.replace(program, repair=None)).primal.values()))
    for point in (unlimited, 1.5 * unlimited, *rng.normal(0.3, 0.5, (4, program.num_variables))):
        repaired = program.repair(program, point)
        law = repaired[-leaves:]
        assert law.sum() == pytest.approx(1, rel=1e-13)
        assert (law[pair.draft_path_probs(pair.draft_length) == 0] == 0).all()
        assert is_skewed_draft(pair.to_float(), law, num_drafts, tolerance=1e-13).is_member
        masses = [exact_values(level) for level in np.split(repaired[:-leaves], sizes[:-1])]
        assert masses[0][0] == pytest.approx(1, rel=1e-13)
        masses[0][0] = Fraction(1)
        for depth in range(pair.draft_length):
            limits = (pair.target[depth] * masses[depth][:, None]).ravel()
            assert (masses[depth + 1] <= limits * (1 + Fraction(1, 2**50))).all()
        assert most_violated_antichain(pair, masses, num_drafts)[0] == 0
