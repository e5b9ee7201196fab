"""The best block efficiency with trees of drafts, when there are too many antichains to list."""

from dataclasses import replace

import numpy as np

from spectheory.foundation.errors import CertificationError, EnumerationTooLargeError, InvalidInputError
from spectheory.optima.bounds.context_tree import node_probs
from spectheory.optima.bounds.tree_antichains import most_violated_antichains
from spectheory.optima.budgets import budget_program
from spectheory.optima.solving.exact_solver import solve_exact_after
from spectheory.optima.solving.float_solver import solve
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import Context, all_contexts, context_node, count_nodes, split_by_depth
from spectheory.pairs.drafts.trees import Tree
from spectheory.pairs.pair import ModelPair

AT_ONCE = 8
"""Number of antichains added per round."""
# The rounds end when no antichain is violated.  This limit ends a cycle that rounding causes.
MAX_ROUNDS = 500
MAX_NODES = 600
"""Largest number of contexts.  Exact programs of this size take seconds."""
CLEAR = 1e-9
"""Violations of a float solution below this are ignored; the rational rounds find the true ones."""


def tree_optimum(pair: ModelPair, process: Tree) -> Solution:
    """Compute the largest block efficiency E[τ+1] of any valid verifier of a tree of drafts, exactly.

    Source: theory.md Statements 5.16 and 5.32.  It is the program of ``multi_path_optimum``.  We add the
    constraints of violated antichains, first in floats and then in rationals.  In the end no antichain is
    violated, and the multipliers of the added antichains prove the value.

    Args:
        pair: the models, exact.
        process: a tree of drafts.

    Returns:
        The exact solution (tokens per target call) of the program with the added antichains.

    Raises:
        InvalidInputError: the pair is in floats, or the process cannot draft from it.
        EnumerationTooLargeError: there are more than 600 contexts, or the draws at a node are not independent
            and have too many tokens.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.pairs.drafts import PrefixTree, WithoutReplacement
        >>> pair = instances.two_token(2)
        >>> print(*(tree_optimum(pair, kind((2, 1))).value for kind in (PrefixTree, WithoutReplacement)))
        212/81 26/9
    """
    if not pair.is_exact:
        raise InvalidInputError("the optimum of a tree this large takes an exact pair, got floats")
    if count_nodes(pair.vocab_size, pair.draft_length) > MAX_NODES:
        raise EnumerationTooLargeError(
            f"{pair.vocab_size} tokens and draft length {pair.draft_length} have more than {MAX_NODES} "
            "contexts, the limit for the optimum of trees of drafts; truncate the pair or restrict its tokens"
        )
    sets: list[tuple[Context, ...]] = [(node,) for node in all_contexts(pair.vocab_size, pair.draft_length)]
    floats, tolerance = pair.to_float(), CLEAR
    basis: list[int] | None = None
    for _ in range(MAX_ROUNDS):
        if tolerance > 0:
            found = solve(_program(floats, process, sets))
        else:
            found, basis = solve_exact_after(_program(pair, process, sets), basis)
        shown = floats if tolerance > 0 else pair
        masses = np.array(list(found.primal.values())) * node_probs(shown)[0]
        levels = split_by_depth(masses, pair.vocab_size, pair.draft_length)
        violated = most_violated_antichains(shown, levels, process, AT_ONCE)
        known = set(sets)
        new = [some for excess, some in violated if excess > tolerance and some not in known]
        if not new:
            if tolerance == 0:
                return found
            tolerance = 0.0
        sets = [*sets, *new]
    raise CertificationError(f"antichains were still violated after {MAX_ROUNDS} rounds")


def _program(pair: ModelPair, process: Tree, sets: list[tuple[Context, ...]]) -> LinearProgram:
    """State the antichain program for the given antichains, of which the single nodes come first."""
    size = pair.vocab_size
    rows, columns = np.array(
        [(row, context_node(context, size)) for row, some in enumerate(sets) for context in some]
    ).T
    members = np.zeros((len(sets), count_nodes(size, pair.draft_length)), dtype=bool)
    members[rows, columns] = True
    program = budget_program(
        pair,
        name="multi-path antichain LP by rows",
        source="theory.md Statement 5.32",
        equations=("greedy2026 Eq. 11", "greedy2026 Eq. 12"),
        members=(rows, columns),
        limits=process.hit_probabilities(pair, members),
    )
    return replace(program, repair=None)
