"""Levels: feasible, at the min cut, and each what it says it is."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deep import first_is_quick
from score_rules import node_of, nodes
from spectheory.verification.algorithms.path_selection.score_levels import (
    Levels,
    MixedLevels,
    ScoreNode,
    cumulative,
    lazy_levels,
    proportional_levels,
)

RULES: dict[str, Levels] = {
    "lazy": lazy_levels,
    "proportional": proportional_levels,
    "mixed": MixedLevels(Fraction(3, 10)),
}


def served(node: ScoreNode, levels: np.ndarray) -> Fraction:
    """Σ_x q_x min(g_x, R_x)."""
    return (node.draft_masses * np.minimum(node.demands, levels)).sum()


@first_is_quick("name", RULES)
@given(node=nodes)
def test_levels_are_feasible_and_serve_the_min_cut(name: str, node: ScoreNode) -> None:
    """Exactly: the totals stay below F, all of it is used, and what is served is the min cut."""
    levels = RULES[name](node)
    totals, demanded = cumulative(node.draft_masses * levels), cumulative(node.draft_masses * node.demands)
    assert (totals <= node.limits).all()
    assert totals[0, -1] == node.limits[0, -1]
    mass = node.draft_masses > 0
    assert (np.diff(levels[mass]) <= 0).all()
    assert served(node, levels) == (node.limits + demanded[0, -1] - demanded).min()


@given(node=nodes)
def test_lazy_levels_stay_closest_to_the_demands(node: ScoreNode) -> None:
    """With a demand: nothing between two levels is both over- and underserved, and nothing without need."""
    levels, known = lazy_levels(node), (node.demands > 0) & (node.draft_masses > 0)
    levels, demands = levels[known], node.demands[known]
    short, long = levels < demands, levels > demands
    assert len(set(levels[short].tolist())) <= 1
    assert len(set(levels[long].tolist())) <= 1


@given(node=nodes, factor=st.fractions(1, 3, max_denominator=4))
def test_proportional_levels_do_not_depend_on_what_is_served(node: ScoreNode, factor: Fraction) -> None:
    """All demands times a factor: the same levels.  The partner: lazy levels change."""
    scaled = node._replace(demands=node.demands * factor.numerator / factor.denominator)
    assert (proportional_levels(node) == proportional_levels(scaled)).all()


def test_partner_lazy_levels_depend_on_what_is_served() -> None:
    one, half = (node_of([3, 2, 1], [1, 2, 3], [1, 1], 2, Fraction(t, 2)) for t in (2, 1))
    assert (proportional_levels(one) == proportional_levels(half)).all()
    assert (lazy_levels(one) != lazy_levels(half)).any()
    assert served(one, one.demands * 0) < served(one, lazy_levels(one))
