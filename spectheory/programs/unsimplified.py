"""The multi-path program before its simplification, in the output law R (greedy2026 Lemma A.5).

It cross-checks ``multi_path`` through other variables: one optimum, and an output law with R = 0 where p = 0.
``lossy`` relaxes it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from spectheory.bounds.context_tree import prefix_sums
from spectheory.contexts import all_contexts, count_nodes, parent_nodes, prefix_of_leaf, split_by_depth
from spectheory.drafts import DraftProcess
from spectheory.pair import ModelPair
from spectheory.programs.budgets import PREFIX_MATCHING, feasible_budgets
from spectheory.programs.multi_path import antichains, multi_path_program
from spectheory.programs.solving.exact_solver import solve_in_its_arithmetic
from spectheory.programs.solving.linear_program import ConstraintBlock, LinearProgram, ones
from spectheory.programs.solving.solution import Solution

MAX_ANTICHAINS = 1_000
TARGET_MATCHING = "target matching"


def unsimplified_program(
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
) -> LinearProgram:
    """The multi-path program over output laws instead of node budgets.

    Source: greedy2026 Lemma A.5.  Variables: R(a), a ∈ V^{≤L+1} without the root.

        max  Σ_{i=1..L+1} Σ_{a ∈ V^i} i R(a)                                       (37)
        s.t. Σ_a R(a) = 1
             Σ_{i=0..L} R(a_{1:i+1}) / p(a_{1:i+1}) = 1   on every path of V^{L+1} (38)
             Σ_{a∈T} Σ_{b below a} R(b) ≤ 1 - (1 - Σ_{a∈T} q(a))^K   for all antichains T   (39)
             R ≥ 0

    (38) is stated multiplied by p(a_{1:L+1}), as in its derivation (36):
    Σ_i R(a_{1:i+1}) p(a_{i+2:L+1} | a_{1:i+1}) = p(a_{1:L+1}).  That also says what (38) leaves
    undefined: R = 0 where p = 0.

    Args:
        pair, num_drafts, max_antichains, process: as in ``multi_path_program``.

    Raises:
        InvalidInputError: num_drafts is not a whole number of at least 1.
        EnumerationTooLargeError: there are more antichains.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> unsimplified_program(pair, 2).size
        (14, 34)
    """
    budgets = multi_path_program(pair, drafts, max_antichains)
    members = antichains(pair.vocab_size, pair.draft_length, max_antichains)[1:]
    variables = all_contexts(pair.vocab_size, pair.draft_length + 1)[1:]
    one = ones(len(variables), pair.is_exact)
    lengths = np.array([len(context) for context in variables])
    zero = np.zeros(len(variables), dtype=int)
    sum_to_one = ConstraintBlock(
        "law", "greedy2026 Lemma A.5", "==", zero, np.arange(len(variables)), one, one[:1]
    )
    return LinearProgram(
        name="unsimplified multi-path LP",
        source="greedy2026 Lemma A.5",
        direction="max",
        variables=variables,
        objective=lengths * one,
        blocks=(
            sum_to_one,
            _target_matching(pair),
            _prefix_matching(pair, members, budgets.block(PREFIX_MATCHING).rhs),
        ),
        box=1.0,
        repair=partial(_as_law, budgets=budgets, pair=pair),
    )


def unsimplified_optimum(
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
) -> Solution:
    """The largest block efficiency of any valid verifier, with its output law.

    The optimum is that of ``multi_path_optimum``, found through other variables.

    Args and errors are those of ``unsimplified_program``.

    Returns:
        The solution (tokens per target call); ``primal`` is R, by output sequence.

    Raises:
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> print(unsimplified_optimum(pair, 2).value)
        17/9
    """
    program = unsimplified_program(pair, drafts, max_antichains)
    return solve_in_its_arithmetic(program)


def _target_matching(pair: ModelPair) -> ConstraintBlock:
    """(38) times p(a_{1:L+1}): one row per path of V^{L+1}."""
    V, L = pair.vocab_size, pair.draft_length
    path = np.arange(V ** (L + 1))
    terms = []
    continuation = ones(len(path), pair.is_exact)  # p(a_{length+1:L+1} | a_{1:length})
    for length in reversed(range(1, L + 2)):
        prefix = prefix_of_leaf(path, length, L + 1, V)
        present = continuation != 0
        column = count_nodes(V, length - 1) - 1 + prefix  # the root is no variable
        terms.append((path[present], column[present], continuation[present]))
        continuation = continuation * pair.target[length - 1].ravel()[prefix]
    rhs = pair.target_path_probs(L + 1)
    return ConstraintBlock.of_terms(TARGET_MATCHING, "greedy2026 Eq. 38", "==", rhs, *terms)


def _prefix_matching(pair: ModelPair, members: np.ndarray, limits: np.ndarray) -> ConstraintBlock:
    """(39): all output sequences strictly below a member of the antichain."""
    V = pair.vocab_size
    below = np.zeros((len(members), 1 + V * members.shape[1]), dtype=bool)
    for child, parent in enumerate(parent_nodes(V, pair.draft_length + 1), start=1):
        below[:, child] = members[:, parent] | below[:, parent]
    rows, columns = np.nonzero(below[:, 1:])
    one = ones(len(rows), pair.is_exact)
    return ConstraintBlock(PREFIX_MATCHING, "greedy2026 Eq. 39", "<=", rows, columns, one, limits)


def _as_law(program: LinearProgram, point: np.ndarray, budgets: LinearProgram, pair: ModelPair) -> np.ndarray:
    """An output law that satisfies every constraint: through its node budgets and back.

    D(a_{1:i}) = D(a_{1:i-1}) - R(a_{1:i}) / p(a_{1:i}), and R is the fall of D times p.
    """
    V, L = pair.vocab_size, pair.draft_length
    probs = np.concatenate([pair.target_path_probs(depth).astype(float) for depth in range(L + 2)])
    falls = np.where(probs[1:] > 0, point / np.where(probs[1:] > 0, probs[1:], 1.0), 0.0)
    steps = split_by_depth(np.concatenate([np.ones(1), -falls]), V, L + 1)
    found = np.concatenate(prefix_sums(steps, V))
    inner = budgets.num_variables
    found[:inner] = feasible_budgets(budgets, found[:inner], V, L)
    found[inner:] = 0.0
    return (found[parent_nodes(V, L + 1)] - found[1:]) * probs[1:]
