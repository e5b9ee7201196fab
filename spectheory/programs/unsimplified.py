"""The multi-path program before its simplification, in the output law R (greedy2026 Lemma A.5).

``lossy_program`` relaxes it.  It cross-checks ``multi_path_program`` through other variables.
"""

from __future__ import annotations

import numpy as np

from spectheory.contexts import all_contexts, count_nodes, parent_nodes, prefix_of_leaf
from spectheory.drafts import DraftProcess
from spectheory.pair import ModelPair
from spectheory.programs.budgets import PREFIX_MATCHING
from spectheory.programs.multi_path import antichains, multi_path_program
from spectheory.programs.solving.linear_program import ConstraintBlock, LinearProgram, ones

MAX_ANTICHAINS = 1_000
TARGET_MATCHING = "target matching"


def unsimplified_program(
    pair: ModelPair,
    num_drafts: int | None = None,
    max_antichains: int = MAX_ANTICHAINS,
    *,
    process: DraftProcess | None = None,
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
    budgets = multi_path_program(pair, num_drafts, max_antichains, process=process)
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
    )


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
