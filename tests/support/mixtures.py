"""The best share of the first draft in ``mixed_multipath``, as a linear program."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory.optima import ConstraintBlock, LinearProgram
from spectheory.optima.bounds.rankings import Ranking, ratio_ranking
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.optima.budgets import mass_chain
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.optima.solving.linear_program import ones
from spectheory.pairs.pair import ModelPair


def best_mixture(pair: ModelPair, num_drafts: int, ranking: Ranking = ratio_ranking) -> tuple[Any, Any]:
    """(λ, E(λ)) that maximises Σ x(a) with x(a) ≤ λ q(a) + (1-λ) q^Γ(a) and the chain of target matching."""
    ranked = np.concatenate(SkewedDraft.from_ranking(pair, num_drafts, ranking).node_laws)
    own = np.concatenate([pair.draft_path_probs(depth) for depth in range(pair.draft_length + 1)])
    node, one = np.arange(len(own)), ones(len(own), pair.is_exact)
    share = np.full(len(own), len(own))
    law = ConstraintBlock.of_terms(
        "law", "greedy2026 Eq. 16", "<=", ranked, (node, node, one), (node, share, ranked - own)
    )
    limit = ConstraintBlock("share", "-", "<=", node[:1], share[:1], one[:1], one[:1])
    chain = mass_chain(pair, "chain", "greedy2026 Eq. 16")
    objective, names = np.append(one, one[:1] - one[:1]), (*node.tolist(), "share")
    program = LinearProgram("mixture LP", "greedy2026 Eq. 16", "max", names, objective, (chain, law, limit))
    found = solve_in_its_arithmetic(program)
    return found.primal["share"], found.value
