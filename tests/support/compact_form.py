"""The compact form of Statement 5.11 as it is stated: the second route to the certified interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.optima import LinearProgram, ProgramBuilder
from spectheory.optima.bounds.context_tree import node_probs
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
    V, L = pair.vocab_size, pair.draft_length
    nodes, inner, lines = count_nodes(V, L), count_nodes(V, L - 1), len(slopes)
    conditionals = np.concatenate([rows.ravel() for rows in pair.target[:-1]])
    model = ProgramBuilder(f"compact form, {side}", "theory.md §5")
    x = model.variables([("x", node) for node in range(nodes)])
    W = model.variables([("W", *place) for place in np.ndindex(lines, nodes)]).reshape(lines, nodes)
    model.maximise(x.sum())
    model.add("root", x[0] == 1)
    model.add("target matching", x[1:] <= conditionals * x[parent_nodes(V, L)])
    model.add("one node", x - slopes[:, None] * node_probs(pair)[1] <= W)
    model.add("below", W[:, :inner] >= W[:, 1:].reshape(lines, inner, V).sum(axis=2))
    model.add("line", W[:, 0] <= values - slopes * u)
    return model.program(box=1.0)
