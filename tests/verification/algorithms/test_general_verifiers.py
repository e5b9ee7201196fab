"""The shared table of pairs crossed with every verifier: validity, optimality and what reduces to what."""

from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest

from deep import first_is_quick
from law_checks import assert_same_law, budget_masses
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms import verifiers
from table import (
    GENERAL,
    GENERAL_VERIFIERS,
    best_of,
    every_group,
    law_of_case,
    law_on_one_path,
    named_cases,
    parametrized_by_group,
)

EXACT = [name for name, verifier in GENERAL_VERIFIERS.items() if verifier.exact]
GROUPS = every_group()


def test_table_holds_every_named_instance_and_300_random_pairs() -> None:
    random = [case for cases in GROUPS.values() for case in cases if case.name.startswith("random")]
    assert len(random) >= 300
    assert len({case.name for case in random}) == len(random)
    assert len(instances.NAMED) >= 12
    assert any((level == 0).any() for case in random for level in case.pair.draft)
    assert any((level == 0).any() for case in random for level in case.pair.target)
    rows = [
        (p, q)
        for case in random
        for target, draft in zip(case.pair.target[:-1], case.pair.draft, strict=True)
        for p, q in zip(target, draft, strict=True)
    ]
    tied = [p[0] * q[1] == p[1] * q[0] and q[0] * q[1] > 0 and (p != q).any() for p, q in rows]
    assert sum(tied) >= 10
    assert {"token", "block", "spectr", "multi_round", "greedy_multipath", "mixed_multipath"} <= set(GENERAL)
    assert {case.name.split("-")[0] for case in named_cases()} <= set(GROUPS)


@parametrized_by_group()
def test_rational_verifiers_are_lossless_exactly(group: str) -> None:
    """Output completed with the target is exactly the target; Σ R/p = 1 on every path; R = 0 where p = 0."""
    for name, case in product(EXACT, GROUPS[group]):
        where, law = (name, case), law_of_case(name, case)
        assert sum(mass.sum() for mass in law.masses) == 1, where
        assert all(isinstance(entry, Fraction) and entry >= 0 for mass in law.masses for entry in mass), where
        assert law.total_variation == 0, where
        assert (law.completed_law == case.pair.target_path_probs(case.pair.draft_length + 1)).all(), where
        for depth, mass in enumerate(law.masses, start=1):
            assert (mass[case.pair.target_path_probs(depth) == 0] == 0).all(), where
        spent = law.node_budgets[-1][case.pair.target_path_probs(case.pair.draft_length + 1) > 0]
        assert (spent == 0).all(), where


@parametrized_by_group()
def test_spectr_is_lossless(group: str) -> None:
    """spectr2023 Theorem 2: lossless; ρ* is algebraic, so up to the rounding of float64."""
    for case in GROUPS[group]:
        law = law_of_case("spectr", case)
        assert abs(sum(mass.sum() for mass in law.masses) - 1) < 1e-12, case
        assert min(mass.min() for mass in law.masses) >= 0, case
        assert law.total_variation < 1e-12, case


@parametrized_by_group()
def test_prefix_matching(group: str) -> None:
    """greedy2026 Theorem 4.3: D p over any antichain is at most P(some draft passes through it)."""
    for name, case in product(GENERAL, GROUPS[group]):
        law = law_of_case(name, case)
        slack = 0 if law.pair.is_exact else 1e-12
        excess, antichain = most_violated_antichain(law.pair, budget_masses(law), case.num_drafts)
        assert excess <= slack, (name, case, antichain)
        assert (np.concatenate(law.node_budgets) >= -slack).all(), (name, case)
        for depth, (parent, child) in enumerate(pairwise(law.node_budgets)):
            assert (child <= np.repeat(parent, case.pair.vocab_size) + slack).all(), (name, case, depth)


def test_prefix_matching_partner_two_drafts_do_more_than_one_allows() -> None:
    """The law earned with two drafts breaks an antichain inequality written for one."""
    for group in ("two_token", "three_token_reversed", "sticky_chain"):
        for case in (case for case in GROUPS[group] if case.num_drafts == 2):
            law = output_law("greedy_multipath", case.pair, 2)
            excess, antichain = most_violated_antichain(law.pair, budget_masses(law), 1)
            assert excess > 0, case
            assert len(antichain) > 0, case


@parametrized_by_group()
def test_block_is_optimal_on_one_path(group: str) -> None:
    """greedy2026 Theorem 3.4: block attains the optimum of the single-path program, exactly."""
    for case in GROUPS[group]:
        best = best_of(case.pair, Iid(1))
        assert isinstance(best, Fraction), case
        assert law_on_one_path("block", case.pair).block_efficiency == best, case
        assert law_on_one_path("token", case.pair).block_efficiency <= best, case


@parametrized_by_group(has_optimum=True)
def test_no_verifier_exceeds_the_optimum(group: str) -> None:
    """The multi-path program bounds every valid verifier from above (Theorem 4.3)."""
    for case in (case for case in GROUPS[group] if case.has_optimum):
        best = best_of(case.pair, Iid(case.num_drafts))
        for name, verifier in GENERAL_VERIFIERS.items():
            reached = law_of_case(name, case).block_efficiency
            slack = 0 if verifier.exact else Fraction(1, 10**12)
            assert Fraction(reached) <= best + slack, (case, name)


def test_optimum_partner_the_inequalities_are_sometimes_strict() -> None:
    """token is strictly below block, and every verifier below the optimum, on some pair."""
    cases = [case for case in GROUPS["random-V2-L2-K2"] if case.has_optimum]
    below = dict.fromkeys(GENERAL, 0)
    for case in cases:
        best = best_of(case.pair, Iid(case.num_drafts))
        for name in GENERAL:
            below[name] += law_of_case(name, case).block_efficiency < best - Fraction(1, 100)
    assert min(below.values()) > 0, below
    gains = [
        law_on_one_path("block", case.pair).block_efficiency
        - law_on_one_path("token", case.pair).block_efficiency
        for case in cases
    ]
    assert max(gains) > 0


@pytest.mark.parametrize("name", [name for name, verifier in verifiers.items() if verifier.single_path])
@pytest.mark.parametrize("group", ["two_token", "partial_overlap", "random-V3-L2-K3", "random-V4-L3-K2"])
def test_single_path_verifiers_ignore_further_drafts(group: str, name: str) -> None:
    """They look at the first path only: their law with K > 1 is their law with K = 1."""
    for case in GROUPS[group]:
        assert_same_law(law_of_case(name, case), law_on_one_path(name, case.pair))


@first_is_quick("name", [*GENERAL, "greedy_block"], quick=4)
def test_float_law_agrees_with_the_rational_law(name: str) -> None:
    for case in (*GROUPS["random-V3-L2-K2"], *GROUPS["partial_overlap"], *GROUPS["equal_models"]):
        exact = law_of_case(name, case)
        in_float = output_law(name, case.pair.to_float(), case.num_drafts)
        assert not in_float.pair.is_exact
        for mass, expected in zip(in_float.masses, exact.masses, strict=True):
            np.testing.assert_allclose(mass, expected.astype(float), rtol=0, atol=1e-13, err_msg=str(case))
