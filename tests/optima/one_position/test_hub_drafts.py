"""Hub drafts: the plan against the min cut and the transport program of their law; exact marginals."""

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest

from coupled_drafts import hub_plan
from spectheory.optima import min_cut_of_law, otm_optimum
from spectheory.pairs.instances import random_rational


def test_the_plan_is_lossless_and_optimal_for_these_drafts() -> None:
    """theory.md Statement 3.12 on 120 rational pairs and every hub: exact marginals, and the min cut."""
    for seed in range(120):
        pair = random_rational([445, seed], 2 + seed % 3, 1, zero_probability=seed % 3 / 8)
        target, draft = pair.target[0][0], pair.draft[0][0]
        for hub in range(len(draft)):
            if draft[hub] == 1:
                continue
            plan = hub_plan(target, draft, hub)
            first = defaultdict[int, Fraction](Fraction)
            output, accepted = target * 0, Fraction(0)
            for drafts, prob in plan.draft_law.items():
                row = plan.output_given[drafts]
                assert row.sum() == 1
                assert min(row) >= 0
                assert hub in drafts
                first[drafts[0]] += prob
                output = output + prob * row
                accepted += prob * (row[drafts[0]] + row[drafts[1]])
            assert [first[token] for token in range(len(draft))] == draft.tolist()
            assert (output == target).all()
            assert accepted == plan.acceptance == min_cut_of_law(target, plan.draft_law).value


def test_the_transport_program_agrees() -> None:
    target, draft = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
    plan = hub_plan(target, draft)
    assert 1 - otm_optimum(target, draft_law=plan.draft_law).value == plan.acceptance == Fraction(5, 6)
    floats = hub_plan(np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.25, 0.5]))
    assert floats.acceptance == pytest.approx(0.25 + 0.5 + 0.25)


def test_partner_the_first_row_of_another_hub_is_not_lossless() -> None:
    target, draft = (np.array([Fraction(n, 6) for n in row]) for row in ((3, 2, 1), (1, 2, 3)))
    drafts, plan = hub_plan(target, draft, 2).draft_law, hub_plan(target, draft, 1).output_given
    output = sum(prob * plan.get(pair, target) for pair, prob in drafts.items())
    assert (output != target).any()
