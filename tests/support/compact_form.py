"""The compact form of Statement 5.11 as it is stated: the second route to the certified interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.optima import ConstraintBlock, LinearProgram
from spectheory.optima.bounds.context_tree import node_probs
from spectheory.optima.budgets import mass_chain
from spectheory.optima.solving.linear_program import ones
from spectheory.pairs.contexts import count_nodes, parent_nodes
from spectheory.pairs.pair import ModelPair


def compact_form_program(pair: ModelPair, num_drafts: int, points: Sequence[Any], side: str) -> LinearProgram:
    """max Σ x(a) with x(∅) = 1, x(a, t) ≤ p(t|a) x(a), and for every line α + s u

        W_s(a) ≥ x(a) - s q(a),   W_s(a) ≥ Σ_t W_s(a, t),   W_s(∅) ≤ α,   W ≥ 0.

    ``outer`` takes the tangents of f(u) = 1 - (1 - u)^K at the points, ``inner`` the chords between them.
    """
    u = np.array(points, dtype=object if pair.is_exact else float)
    values, slopes = hit_probability(u, num_drafts), num_drafts * (1 - u) ** (num_drafts - 1)
    if side == "inner":
        slopes, u, values = np.diff(values) / np.diff(u), u[:-1], values[:-1]
    V, nodes, lines = pair.vocab_size, count_nodes(pair.vocab_size, pair.draft_length), len(slopes)
    inner, (line, node) = count_nodes(V, pair.draft_length - 1), np.divmod(np.arange(lines * nodes), nodes)
    column, child, row = nodes + np.arange(lines * nodes), node > 0, np.arange(lines * nodes)
    parents = line[child] * inner + parent_nodes(V, pair.draft_length)[node[child] - 1]
    one, first = ones(lines * nodes, pair.is_exact), np.zeros(1, dtype=int)

    def block(name: str, sense: Any, rhs: np.ndarray, *terms: Any) -> ConstraintBlock:
        return ConstraintBlock.of_terms(name, "theory.md §5", sense, rhs, *terms)

    below = (np.arange(lines * inner), column[node < inner], one[: lines * inner])
    return LinearProgram(
        name=f"compact form, {side}",
        source="theory.md §5",
        direction="max",
        variables=tuple(range(nodes * (lines + 1))),
        objective=np.concatenate([one[:nodes], one - one]),
        blocks=(
            block("root", "==", one[:1], (first, first, one[:1])),
            mass_chain(pair, "target matching", "greedy2026 Eq. 11"),
            block(
                "one node",
                ">=",
                -slopes[line] * node_probs(pair)[1][node],
                (row, column, one),
                (row, node, -one),
            ),
            block("below", ">=", below[2] - below[2], below, (parents, column[child], -one[child])),
            block("line", "<=", values - slopes * u, (np.arange(lines), column[node == 0], one[:lines])),
        ),
        box=1.0,
    )
