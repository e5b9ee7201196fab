"""The linear program over node budgets D(a) on the tree of contexts, which several files share.

The nodes a ∈ V^{≤L} are numbered breadth first (``contexts.py``).
"""

from functools import partial

import numpy as np

from spectheory.optima.bounds.context_tree import node_probs
from spectheory.optima.bounds.tolerances import rounding_allowance
from spectheory.optima.solving.linear_program import ConstraintBlock, LinearProgram, Repair, ones
from spectheory.pairs.contexts import all_contexts, parent_nodes, split_by_depth
from spectheory.pairs.pair import ModelPair

PREFIX_MATCHING = "prefix matching"


def budget_program(
    pair: ModelPair,
    name: str,
    source: str,
    equations: tuple[str, str],
    members: tuple[np.ndarray, np.ndarray],
    limits: np.ndarray,
) -> LinearProgram:
    """State max Σ D p with target matching and Σ_{a∈T} D(a)p(a) ≤ limit(T) for the listed sets T.

    Args:
        equations: the sources of target matching and of the limits.
        members: (set number, node number) of every member of every set; the first set is {∅}, and
            the first ``count_nodes`` sets are the single nodes.
        limits: limit(T), [sets].
    """
    target_probs, _ = node_probs(pair)
    rows, columns = members
    present = target_probs[columns] != 0
    coefficients = target_probs[columns[present]]
    prefix = ConstraintBlock(
        PREFIX_MATCHING, equations[1], "<=", rows[present], columns[present], coefficients, limits
    )
    repair: Repair = partial(feasible_budgets, vocab_size=pair.vocab_size, draft_length=pair.draft_length)
    return LinearProgram(
        name=name,
        source=source,
        direction="max",
        variables=all_contexts(pair.vocab_size, pair.draft_length),
        objective=target_probs,
        blocks=(*_target_matching(pair, equations[0]), prefix),
        box=1.0,
        repair=repair,
    )


def _target_matching(pair: ModelPair, equation: str) -> tuple[ConstraintBlock, ConstraintBlock]:
    """State 1 = D(∅) ≥ D(a_1) ≥ .. ≥ D(a_{1:L}) as two blocks.  D ≥ 0 needs no block."""
    parents = parent_nodes(pair.vocab_size, pair.draft_length)
    row, zero = np.arange(len(parents)), np.zeros(1, dtype=int)
    one, first = ones(len(parents), pair.is_exact), ones(1, pair.is_exact)
    root = ConstraintBlock("root budget", equation, "==", zero, zero, first, first)
    terms = (row, parents, one), (row, row + 1, -one)
    return root, ConstraintBlock.of_terms("monotone budgets", equation, ">=", one - one, *terms)


def feasible_budgets(
    program: LinearProgram, point: np.ndarray, vocab_size: int, draft_length: int
) -> np.ndarray:
    """Change nearly feasible budgets a little, so that they satisfy every constraint.

    1. Set D(∅) = 1, and down the tree D(a) = min(D(a), D(parent), limit({a})/p(a)), at least 0.
    2. Multiply all budgets but the root's by the largest factor ≤ 1 that satisfies every set's limit.
    3. Reduce this factor by the rounding allowance.
    """
    block = program.block(PREFIX_MATCHING)
    target_probs, count = program.matrices.c, program.num_variables
    limits = block.rhs.astype(float)
    caps = np.where(target_probs > 0, limits[:count] / np.where(target_probs > 0, target_probs, 1.0), 1.0)
    levels = split_by_depth(np.minimum(np.maximum(point, 0.0), caps), vocab_size, draft_length)
    levels[0] = np.ones(1)
    for depth in range(draft_length):
        levels[depth + 1] = np.minimum(levels[depth + 1], np.repeat(levels[depth], vocab_size))
    budgets = np.concatenate(levels)
    masses = block.coefficients.astype(float) * budgets[block.columns]
    sums = np.bincount(block.rows, weights=masses, minlength=block.size)
    used = sums > 0
    used[0] = False  # {∅}: D(∅) p(∅) = 1 = f(1), and no other set contains the root
    factor = np.min(limits[used] / sums[used], initial=1.0)
    budgets[1:] *= factor * (1 - rounding_allowance(count))
    return budgets
