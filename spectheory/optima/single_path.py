"""The single-path information-agnostic program (greedy2026 Theorem 3.3)."""

import math
import sys
from functools import partial

import numpy as np

from spectheory.foundation.arrays import divide_or_zero
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.optima.bounds.context_tree import ContextTree, accepted_masses, node_probs
from spectheory.optima.bounds.dual_scores import block_verification_slacks, least_scores
from spectheory.optima.bounds.tolerances import MACHINE_EPSILON
from spectheory.optima.budgets import budget_program
from spectheory.optima.solving.exact_solver import exact_solution
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.solution import Deferred, Solution
from spectheory.pairs.contexts import Context, all_contexts, count_nodes
from spectheory.pairs.pair import ModelPair

NAME = "single-path LP"
# The closed form stores about ten rationals per node.  Larger trees get a float interval in ``optimum``.
MAX_NODES = 100_000
"""Largest number of contexts of the tree."""


def single_path_program(pair: ModelPair) -> LinearProgram:
    """State the linear program whose optimum is the best block efficiency with one drafted path.

    Source: greedy2026 Theorem 3.3.  Variables: node budgets D(a), a ∈ V^{≤L}.

        max  Σ_{a ∈ V^{≤L}} D(a) p(a)                                              (7)
        s.t. 1 = D(∅) ≥ D(a_1) ≥ .. ≥ D(a_{1:L}) ≥ 0   on every path               (8)
             D(a) p(a) ≤ q(a)                          for all a ∈ V^{≤L}          (9)

    A node with p(a) = 0 adds nothing to the objective or to (9).  Its budget only has to lie between 0 and
    its parent's budget.

    Args:
        pair: the models; an exact pair gives an exact program.

    Returns:
        The program, with one variable per context (a tuple of token ids).

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> single_path_program(pair).size
        (7, 14)
    """
    _, draft_probs = node_probs(pair)
    nodes = np.arange(len(draft_probs))
    return budget_program(
        pair,
        name=NAME,
        source="greedy2026 Theorem 3.3",
        equations=("greedy2026 Eq. 8", "greedy2026 Eq. 9"),
        members=(nodes, nodes),
        limits=draft_probs,
    )


def single_path_optimum(pair: ModelPair, max_nodes: int | None = None) -> Solution:
    """Compute the largest block efficiency E[τ+1] of any valid verifier of one drafted path.

    The program has a closed form.  In the node masses x(a) = D(a) p(a) it reads

        max Σ_a x(a),   x(∅) = 1,   x(a) ≤ q(a),   x(a, t) ≤ p(t | a) x(a),

    and x(a, t) = min(q(a, t), p(t | a) x(a)) is the largest point at every context at once.  The constraint
    that binds has the multiplier w(a) = 1 + Σ_t p(t | a) z(a, t): y(a) = w(a) and z(a) = 0 where the draft
    binds, else y(a) = 0 and z(a) = w(a).  In rationals we check in the program that the primal point x and
    the dual point (y, z) are both optimal.  In floats the value has a bound on its rounding.

    Args:
        pair: the models.
        max_nodes: largest number of contexts of the tree; by default 100 000.

    Returns:
        The solution (tokens per target call), exact for exact pairs.

    Raises:
        EnumerationTooLargeError: the tree has more than ``max_nodes`` contexts.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=3)
        >>> print(single_path_optimum(pair).value)
        8/3
    """
    max_nodes = MAX_NODES if max_nodes is None else max_nodes
    count = count_nodes(pair.vocab_size, pair.draft_length)
    if count > max_nodes:
        raise EnumerationTooLargeError(
            f"{pair.vocab_size} tokens and draft length {pair.draft_length} make a tree of {count} nodes; "
            f"the program takes at most {max_nodes}; truncate the pair, restrict its tokens, or raise "
            "max_nodes"
        )
    if pair.is_exact:
        program = single_path_program(pair)
        return exact_solution(program, *_closed_form(pair))
    return _bracketed(pair)


def _bracketed(pair: ModelPair) -> Solution:
    """Compute the closed form in floats, with certified bounds.

    x(a) comes from at most L rounded entries by at most L products and by minima, all ≥ 0, and the sum has
    one rounding.  So the relative error is below (2 L + 4) 2^-53.  An entry below the normal floats loses at
    most 2^-1022.
    """
    masses = accepted_masses(pair.numbers.draft_path_probs, pair.numbers.target[:-1])
    value = math.fsum(np.concatenate(masses).tolist())
    error = value * (pair.draft_length + 2) * MACHINE_EPSILON + sum(map(len, masses)) * sys.float_info.min
    return Solution(
        program=NAME,
        method=NAME,
        value=value,
        primal=Deferred(partial(_budgets, pair)),
        dual=Deferred(partial(_multipliers, pair)),
        gap=0.0,
        arithmetic="float64",
        lower=value - error,
        upper=value + error,
    )


def _budgets(pair: ModelPair) -> dict[Context, float]:
    budgets, _ = _closed_form(pair)
    return dict(zip(all_contexts(pair.vocab_size, pair.draft_length), budgets.tolist(), strict=True))


def _multipliers(pair: ModelPair) -> dict[str, np.ndarray]:
    _, multipliers = _closed_form(pair)
    return single_path_program(pair).split_by_block(multipliers)


def _closed_form(pair: ModelPair) -> tuple[np.ndarray, np.ndarray]:
    """Compute D(a) = x(a) / p(a), with multipliers y of the block (9) and -p z of the monotone budgets (8).

    Where p(a) = 0 the budget has no mass and the target binds, so y(a) = 0 is the right multiplier.
    """
    tree = ContextTree.of(pair)
    slacks = block_verification_slacks(tree, tree.draft_probs[-1])
    masses = np.concatenate(accepted_masses(tree.draft_probs, tree.target_rows))
    target_probs, y, z = (
        np.concatenate(levels) for levels in (tree.target_probs, least_scores(tree, slacks), slacks)
    )
    # The equation D(∅) = 1 fixes the root's budget, so (9) at ∅ needs no multiplier.
    root, y[0] = y[:1].copy(), y[0] - y[0]
    multipliers = np.concatenate([root, (-target_probs * z)[1:], y])
    return divide_or_zero(masses, target_probs), multipliers
