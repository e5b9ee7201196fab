"""The dual of the multi-path program: the path scores with the least upper bound.

Nothing in the package uses it.  It cross-checks ``multi_path`` by strong duality.  Its scores are optimal
ones for ``bounds.dual_scores``, which states the bound for any scores.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from spectheory.bounds.context_tree import ContextTree, Levels
from spectheory.bounds.dual_scores import feasible_scores, level_set_weights, slacks_from_leaves
from spectheory.contexts import Context, all_contexts, parent_nodes, split_by_depth
from spectheory.drafts import DraftProcess
from spectheory.pair import ModelPair
from spectheory.programs.budgets import PREFIX_MATCHING
from spectheory.programs.multi_path import antichains, multi_path_program, named_antichains
from spectheory.programs.solving.exact_solver import solve_in_its_arithmetic
from spectheory.programs.solving.linear_program import ConstraintBlock, LinearProgram, ones
from spectheory.programs.solving.solution import Solution

MAX_ANTICHAINS = 2_000
EQUATION = "theory.md §5"


def dual_program(
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
) -> LinearProgram:
    """The dual of the multi-path program over all antichains.

    Source: ``bounds.dual_scores``, with equality in its condition.  Variables: scores y(a) and slacks z(a),
    a ∈ V^{≤L}, and a weight λ(T) per non-empty antichain.

        min  Σ_T λ(T) f(q(T)),   f(u) = 1 - (1 - u)^K
        s.t. y(a) + z(a) = 1 + Σ_x p(x|a) z(a,x)   for all a ∈ V^{≤L} (no sum at depth L)
             z(∅) = 0
             Σ_{T∋a} λ(T) = y(a)                   for all a ∈ V^{≤L}
             y, z, λ ≥ 0

    For given y the cheapest weights are those of the level sets of the path scores, and the objective is
    E[max_k c(X^(k))] (``upper_bound``).  For another draft process f(q(T)) is P(some draft passes T).

    Args:
        pair, drafts, max_antichains: as in ``multi_path_program``.

    Returns:
        The program; variables are labelled ("y", a), ("z", a) and ("weight", (a, b, ..)).  The
        multipliers of the block "stationarity" are optimal node masses x(a).

    Raises:
        InvalidInputError: ``drafts`` is neither a whole number of at least 1 nor a draft process.
        EnumerationTooLargeError: there are more antichains.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> dual_program(pair, 2).size
        (10, 7)
    """
    limits = multi_path_program(pair, drafts, max_antichains).block(PREFIX_MATCHING).rhs
    members = antichains(pair.vocab_size, pair.draft_length, max_antichains)[1:]
    sets = named_antichains(pair, members)
    nodes = all_contexts(pair.vocab_size, pair.draft_length)
    count, one = len(nodes), ones(2 * len(nodes), pair.is_exact)
    root = np.zeros(1, dtype=int)
    return LinearProgram(
        name="dual of the multi-path antichain LP",
        source=EQUATION,
        direction="min",
        variables=(
            *(("y", context) for context in nodes),
            *(("z", context) for context in nodes),
            *(("weight", antichain) for antichain in sets),
        ),
        objective=np.concatenate([one - one, limits]),
        blocks=(
            _stationarity(pair, count),
            ConstraintBlock("root slack", EQUATION, "==", root, root + count, one[:1], one[:1] - one[:1]),
            _weights_of_scores(members, pair.is_exact),
        ),
        box=float(pair.draft_length + 1),
        repair=partial(_feasible_point, pair=pair, columns={T: 2 * count + i for i, T in enumerate(sets)}),
    )


def dual_optimum(
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
) -> Solution:
    """The smallest upper bound of this form; it equals the optimum of ``multi_path_optimum``.

    Args and errors are those of ``dual_program``.

    Returns:
        The solution (tokens per target call); ``scores_of`` reads the scores y off it.

    Raises:
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> from spectheory.bounds import upper_bound
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> solution = dual_optimum(pair, 2)
        >>> print(solution.value, upper_bound(pair, 2, scores_of(pair, solution)))
        17/9 17/9
    """
    program = dual_program(pair, drafts, max_antichains)
    return solve_in_its_arithmetic(program)


def scores_of(pair: ModelPair, solution: Solution) -> Levels:
    """The scores y of a solution of ``dual_program``, by depth 0..L, arrays [V^depth]."""
    nodes = all_contexts(pair.vocab_size, pair.draft_length)
    values = np.array([solution.primal["y", node] for node in nodes], dtype=pair.target[0].dtype)
    return split_by_depth(values, pair.vocab_size, pair.draft_length)


def _stationarity(pair: ModelPair, count: int) -> ConstraintBlock:
    """y(a) + z(a) - Σ_x p(x|a) z(a,x) = 1, one row per node."""
    node, child = np.arange(count), np.arange(1, count)
    one = ones(count, pair.is_exact)
    conditionals = np.concatenate([rows.ravel() for rows in pair.target[:-1]])
    present = conditionals != 0
    parents = parent_nodes(pair.vocab_size, pair.draft_length)[present]
    terms = (
        (node, node, one),
        (node, count + node, one),
        (parents, count + child[present], -conditionals[present]),
    )
    return ConstraintBlock.of_terms("stationarity", EQUATION, "==", one, *terms)


def _weights_of_scores(members: np.ndarray, exact: bool) -> ConstraintBlock:
    """Σ_{T∋a} λ(T) - y(a) = 0, one row per node."""
    sets, nodes = np.nonzero(members)
    node = np.arange(members.shape[1])
    one = ones(len(node), exact)
    terms = (nodes, 2 * len(node) + sets, ones(len(nodes), exact)), (node, node, -one)
    return ConstraintBlock.of_terms("weights", EQUATION, "==", one - one, *terms)


def _feasible_point(
    program: LinearProgram, point: np.ndarray, pair: ModelPair, columns: dict[tuple[Context, ...], int]
) -> np.ndarray:
    """Scores next to the point's that are feasible, their slacks, and the weights of their level sets."""
    tree = ContextTree.of(pair.to_float())
    nodes = len(all_contexts(pair.vocab_size, pair.draft_length))
    scores = feasible_scores(tree.pair, split_by_depth(point[:nodes], pair.vocab_size, pair.draft_length))
    slacks = slacks_from_leaves(tree, lambda depth, needed: needed - scores[depth])
    repaired = np.concatenate([*scores, *slacks, np.zeros(program.num_variables - 2 * nodes)])
    for antichain, weight in level_set_weights(tree.pair, scores).items():
        repaired[columns[antichain]] += weight
    return repaired
