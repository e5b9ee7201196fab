"""Levels: feasible, at the min cut, and each what it says it is."""

from fractions import Fraction

import numpy as np
from hypothesis import given

from deep import first_is_quick
from score_rules import nodes
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
