"""The best block efficiency with deterministic drafts, which the pair determines."""

import numpy as np

from spectheory.optima.bounds.context_tree import node_probs
from spectheory.optima.budgets import budget_program
from spectheory.optima.solving.exact_solver import exact_solution
from spectheory.optima.solving.float_solver import solve
from spectheory.optima.solving.linear_program import LinearProgram, ones
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import context_node, split_by_depth
from spectheory.pairs.drafts import Deterministic
from spectheory.pairs.pair import ModelPair


def deterministic_program(pair: ModelPair, process: Deterministic) -> LinearProgram:
    """State the multi-path program of deterministic drafts, without constraints that the others imply.

    Deterministic drafts pass through an antichain T with probability 1 or 0.  With 1, the constraint
    Σ_{a∈T} D(a) p(a) ≤ 1 always holds.  With 0, no draft passes through any a ∈ T, so the constraints
    D(a) p(a) ≤ 0 of the single nodes imply it.  This leaves

        max  Σ_{a ∈ V^{≤L}} D(a) p(a)
        s.t. 1 = D(∅) ≥ D(a_1) ≥ .. ≥ D(a_{1:L}) ≥ 0   on every path
             D(a) p(a) ≤ 1[a is drafted]               for all a ∈ V^{≤L}
    """
    target_probs, _ = node_probs(pair)
    drafted = ones(len(target_probs), pair.is_exact) - ones(len(target_probs), pair.is_exact)
    drafted[0] += 1
    for path in process.paths(pair):
        for length in range(1, len(path) + 1):
            drafted[context_node(path[:length], pair.vocab_size)] = drafted[0]
    nodes = np.arange(len(drafted))
    return budget_program(
        pair,
        name="deterministic drafts LP",
        source="theory.md Statement 5.27",
        equations=("greedy2026 Eq. 11", "greedy2026 Eq. 12"),
        members=(nodes, nodes),
        limits=drafted,
    )


def deterministic_optimum(pair: ModelPair, process: Deterministic) -> Solution:
    """Compute the best block efficiency with deterministic drafts: 1 + Σ p(a) over the tree of drafts.

    Source: theory.md Statement 5.27.  D is 1 on the tree of drafts and 0 elsewhere.  With
    w(a) = 1 + Σ_t p(t|a) z(a, t), the monotone budgets have the multiplier p(a) z(a), where z = w on the tree
    and 0 elsewhere.  The other constraint has the multiplier y = w off the tree and 0 on it.  We check
    against the program that the two points prove each other optimal.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.pairs.drafts import TopTree
        >>> print(deterministic_optimum(instances.two_token(2), TopTree((1, 1))).value)
        13/9
    """
    process.check(pair)
    program = deterministic_program(pair, process)
    if not pair.is_exact:
        return solve(program)
    target_probs, _ = node_probs(pair)
    drafted = program.blocks[-1].rhs
    weights = [np.ones(0, dtype=object)] * (pair.draft_length + 1)
    on_tree = split_by_depth(drafted, pair.vocab_size, pair.draft_length)
    below = on_tree[-1] * 0
    for depth in reversed(range(pair.draft_length + 1)):
        weights[depth] = below + 1
        kept = weights[depth] * on_tree[depth]
        if depth:
            rows = pair.target[depth - 1]
            below = (rows * kept.reshape(rows.shape)).sum(axis=1)
    w = np.concatenate(weights)
    root, y = w[:1].copy(), w * (1 - drafted)
    return exact_solution(program, drafted, np.concatenate([root, (-target_probs * w * drafted)[1:], y]))
