"""What the single-path and the multi-path program share: node budgets on the tree of contexts.

The nodes a ∈ V^{≤L} are numbered breadth first (``contexts.py``).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from spectheory.contexts import all_contexts, count_nodes
from spectheory.errors import EnumerationTooLargeError
from spectheory.pair import ModelPair
from spectheory.programs.solving.float_solver import MACHINE_EPSILON
from spectheory.programs.solving.linear_program import ConstraintBlock, LinearProgram, Repair, ones

PREFIX_MATCHING = "prefix matching"


def node_probs(pair: ModelPair) -> tuple[np.ndarray, np.ndarray]:
    """p(a) and q(a) at every node, each [nodes]."""
    depths = range(pair.draft_length + 1)
    return (
        np.concatenate([pair.target_path_probs(depth) for depth in depths]),
        np.concatenate([pair.draft_path_probs(depth) for depth in depths]),
    )


def some_draft_probs(draft_probs: np.ndarray, num_drafts: int) -> np.ndarray:
    """f(u) = 1 - (1 - u)^K: the probability that one of K i.i.d. drafts passes through a set.

    For floats f is computed through log1p and expm1, so that a small u keeps its relative
    accuracy; a sum of probabilities that rounding took above 1 counts as 1.

    Args:
        draft_probs: u, the draft probabilities of the sets, [...].
        num_drafts: K.

    Returns:
        f(u), [...], in the same arithmetic.

    Example:
        >>> from fractions import Fraction
        >>> some_draft_probs(np.array([Fraction(1, 3)]), 2)
        array([Fraction(5, 9)], dtype=object)
    """
    if num_drafts == 1:
        return draft_probs
    if draft_probs.dtype == object:
        return 1 - (1 - draft_probs) ** num_drafts
    with np.errstate(divide="ignore"):  # log1p(-1) = -inf gives f(1) = 1, as it should
        return -np.expm1(num_drafts * np.log1p(-np.minimum(draft_probs, 1.0)))


def check_node_count(pair: ModelPair, max_nodes: int) -> None:
    """Refuse a pair whose tree is too large.

    Raises:
        EnumerationTooLargeError: the tree has more than ``max_nodes`` nodes.
    """
    count = count_nodes(pair.vocab_size, pair.draft_length)
    if count > max_nodes:
        raise EnumerationTooLargeError(
            f"{pair.vocab_size} tokens and draft length {pair.draft_length} make a tree of {count} nodes; "
            f"the {pair.arithmetic} program takes at most {max_nodes}; truncate the pair, restrict its tokens"
            + (", use pair.to_float()" if pair.is_exact else "")
            + ", or raise max_nodes"
        )


def target_matching_blocks(pair: ModelPair, equation: str) -> tuple[ConstraintBlock, ConstraintBlock]:
    """1 = D(∅) ≥ D(a_1) ≥ .. ≥ D(a_{1:L}) as two blocks; the last step, ≥ D(a_{1:L+1}) = 0, is the
    sign of the variables."""
    V, exact = pair.vocab_size, pair.is_exact
    count = count_nodes(V, pair.draft_length)
    node = np.arange(1, count)
    zero = np.zeros(1, dtype=int)
    one = ones(count - 1, exact)
    root = ConstraintBlock("root budget", equation, "==", zero, zero, ones(1, exact), ones(1, exact))
    chain = ConstraintBlock(
        name="monotone budgets",
        equation=equation,
        sense=">=",
        rows=np.concatenate([node - 1, node - 1]),
        columns=np.concatenate([(node - 1) // V, node]),
        coefficients=np.concatenate([one, -one]),
        rhs=one - one,
    )
    return root, chain


def budget_program(
    pair: ModelPair,
    name: str,
    source: str,
    equations: tuple[str, str],
    members: tuple[np.ndarray, np.ndarray],
    limits: np.ndarray,
) -> LinearProgram:
    """max Σ D p with target matching and Σ_{a∈T} D(a)p(a) ≤ limit(T) for the listed sets T.

    Args:
        pair: the models.
        name, source: of the program.
        equations: of target matching and of prefix matching.
        members: (set number, node number) of every member of every set; the first set is {∅}, and
            the first ``count_nodes`` sets are the single nodes.
        limits: limit(T), [sets].
    """
    target_probs, _ = node_probs(pair)
    rows, columns = members
    present = target_probs[columns] != 0
    prefix = ConstraintBlock(
        name=PREFIX_MATCHING,
        equation=equations[1],
        sense="<=",
        rows=rows[present],
        columns=columns[present],
        coefficients=target_probs[columns[present]],
        rhs=limits,
    )
    repair: Repair = partial(feasible_budgets, vocab_size=pair.vocab_size, draft_length=pair.draft_length)
    return LinearProgram(
        name=name,
        source=source,
        direction="max",
        variables=all_contexts(pair.vocab_size, pair.draft_length),
        objective=target_probs,
        blocks=(*target_matching_blocks(pair, equations[0]), prefix),
        box=1.0,
        repair=repair,
    )


def feasible_budgets(
    program: LinearProgram, point: np.ndarray, vocab_size: int, draft_length: int
) -> np.ndarray:
    """Budgets that satisfy every constraint, next to ones that nearly do.

    1. D(∅) = 1, and down the tree D(a) = min(D(a), D(parent), limit({a})/p(a)), at least 0.
    2. The largest factor ≤ 1 on all budgets but the root's that satisfies every set's limit.
    3. A factor 1 - 4 ε (nodes + 16) more, for the rounding in 1, 2 and the coefficients.

    Args:
        program: a budget program.
        point: D, [nodes].
        vocab_size, draft_length: V and L.

    Returns:
        The feasible D, [nodes].
    """
    block = program.block(PREFIX_MATCHING)
    target_probs, count = program.matrices.c, program.num_variables
    limits = block.rhs.astype(float)
    caps = np.where(target_probs > 0, limits[:count] / np.where(target_probs > 0, target_probs, 1.0), 1.0)
    budgets = np.minimum(np.maximum(point, 0.0), caps)
    budgets[0] = 1.0
    start = 1
    for depth in range(1, draft_length + 1):
        level = np.arange(start, start + vocab_size**depth)
        budgets[level] = np.minimum(budgets[level], budgets[(level - 1) // vocab_size])
        start += vocab_size**depth
    masses = block.coefficients.astype(float) * budgets[block.columns]
    sums = np.bincount(block.rows, weights=masses, minlength=block.size)
    used = sums > 0
    used[0] = False  # {∅}: D(∅) p(∅) = 1 = f(1), and no other set holds the root
    factor = min(1.0, np.min(limits[used] / sums[used], initial=1.0))
    budgets[1:] *= factor * (1 - 4 * MACHINE_EPSILON * (count + 16))
    return budgets
