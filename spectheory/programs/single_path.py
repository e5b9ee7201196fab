"""The single-path information-agnostic program (greedy2026 Theorem 3.3).

``optimum`` solves it for one drafted path.  Its value is block verification's closed form, and that of the
multi-path program at K = 1: the tests hold the three together.
"""

from __future__ import annotations

import numpy as np

from spectheory.bounds.context_tree import node_probs
from spectheory.contexts import count_nodes
from spectheory.errors import EnumerationTooLargeError
from spectheory.pair import ModelPair
from spectheory.programs.budgets import budget_program
from spectheory.programs.solving.exact_solver import solve_exact
from spectheory.programs.solving.float_solver import solve
from spectheory.programs.solving.linear_program import LinearProgram
from spectheory.programs.solving.solution import Solution

MAX_EXACT_NODES = 1_100
MAX_FLOAT_NODES = 100_000


def single_path_program(pair: ModelPair) -> LinearProgram:
    """The linear program whose optimum is the best block efficiency with one drafted path.

    Source: greedy2026 Theorem 3.3.  Variables: node budgets D(a), a ∈ V^{≤L}.

        max  Σ_{a ∈ V^{≤L}} D(a) p(a)                                              (7)
        s.t. 1 = D(∅) ≥ D(a_1) ≥ .. ≥ D(a_{1:L}) ≥ 0   on every path               (8)
             D(a) p(a) ≤ q(a)                          for all a ∈ V^{≤L}          (9)

    A node with p(a) = 0 has no objective and no mass; its budget only has to lie between 0 and
    its parent's.

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
        name="single-path LP",
        source="greedy2026 Theorem 3.3",
        equations=("greedy2026 Eq. 8", "greedy2026 Eq. 9"),
        members=(nodes, nodes),
        limits=draft_probs,
    )


def single_path_optimum(pair: ModelPair, max_nodes: int | None = None) -> Solution:
    """The largest block efficiency E[τ+1] of any valid verifier of one drafted path.

    Args:
        pair: the models.
        max_nodes: refuse larger trees; default 1 100 nodes exact, 100 000 in float64.

    Returns:
        The solution (tokens per target call), exact for exact pairs.

    Raises:
        EnumerationTooLargeError: the tree has more nodes.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=3)
        >>> print(single_path_optimum(pair).value)
        8/3
    """
    if max_nodes is None:
        max_nodes = MAX_EXACT_NODES if pair.is_exact else MAX_FLOAT_NODES
    count = count_nodes(pair.vocab_size, pair.draft_length)
    if count > max_nodes:
        raise EnumerationTooLargeError(
            f"{pair.vocab_size} tokens and draft length {pair.draft_length} make a tree of {count} nodes; "
            f"the {pair.arithmetic} program takes at most {max_nodes}; truncate the pair, restrict its tokens"
            + (", use pair.to_float()" if pair.is_exact else "")
            + ", or raise max_nodes"
        )
    program = single_path_program(pair)
    return solve_exact(program) if pair.is_exact else solve(program)
