"""The multi-path information-agnostic program over all antichains (greedy2026 Theorem 4.3)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.foundation.exact_numbers import flint_if_exact, fractions_if_exact, plain_number
from spectheory.optima.bounds.context_tree import Levels, node_probs
from spectheory.optima.bounds.dual_scores import feasible_scores
from spectheory.optima.budgets import PREFIX_MATCHING, budget_program
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import Context, all_contexts, split_by_depth
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair

# Membership is a dense array of booleans, antichains times contexts.
MAX_ANTICHAINS = 100_000
"""Largest number of antichains that are listed."""
MAX_LISTED_ANTICHAINS = 2_000
"""Largest number of antichains whose probabilities are computed one by one."""
LONG_COUNT = 10_000
"""Counting stops once the number of antichains has this many bits."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AntichainSolution(Solution):
    """A solution of ``multi_path_program`` with the antichains that its multipliers belong to.

    Attributes:
        members: booleans [antichains, nodes], True for the nodes of an antichain, breadth first.  The single
            nodes come first.
    """

    members: np.ndarray


def count_antichains(vocab_size: int, depth: int) -> int:
    """Count the antichains of V^{≤depth}, including the empty one: N_0 = 2, N_L = 1 + N_{L-1}^V.

    Example:
        >>> [count_antichains(2, depth) for depth in (1, 2, 3, 4)]
        [5, 26, 677, 458330]
    """
    count = 2
    for _ in range(depth):
        count = 1 + count**vocab_size
    return count


def antichains(vocab_size: int, depth: int, max_antichains: int = MAX_ANTICHAINS) -> np.ndarray:
    """List all antichains of V^{≤depth}: sets of contexts, none of which is a prefix of another.

    An antichain of a tree is its root alone, or any choice of one antichain per child's subtree.

    Args:
        vocab_size: V.
        depth: L.
        max_antichains: largest number of non-empty antichains to list.

    Returns:
        Membership, booleans [antichains, nodes]; nodes are numbered breadth first.  Row 0 is the
        empty antichain, rows 1..nodes are the single nodes in order, the others follow.

    Raises:
        EnumerationTooLargeError: there are more than ``max_antichains`` non-empty antichains.

    Example:
        >>> [tuple(np.flatnonzero(row).tolist()) for row in antichains(2, 1)]
        [(), (0,), (1,), (2,), (1, 2)]
    """
    count, counted = 1, 0
    while counted < depth and count.bit_length() < LONG_COUNT:  # the number of digits grows as V^depth
        counted += 1
        count = count_antichains(vocab_size, counted) - 1
    if count > max_antichains:
        shown = str(count) if count < 10**15 else f"about 1e{int(math.log10(count))}"
        shown = f"more than {shown.removeprefix('about ')}" if counted < depth else shown
        raise EnumerationTooLargeError(
            f"{vocab_size} tokens and draft length {depth} have {shown} non-empty antichains, the limit is "
            f"{max_antichains}; truncate the pair, restrict its tokens, or raise max_antichains"
        )
    levels = [np.array([[False], [True]])]  # membership by depth below the subtree's root
    for _ in range(depth):
        chosen = np.indices((len(levels[0]),) * vocab_size).reshape(vocab_size, -1)
        # the antichain of the root alone comes last
        below = [
            np.vstack([np.hstack([level[choice] for choice in chosen]), np.zeros((1, width), bool)])
            for level, width in ((level, vocab_size * level.shape[1]) for level in levels)
        ]
        root = np.zeros((len(below[0]), 1), bool)
        root[-1] = True
        levels = [root, *below]
    members = np.hstack(levels)
    sizes = members.sum(axis=1)
    first = np.where(sizes > 0, members.argmax(axis=1), -1)
    return members[np.lexsort((first, np.minimum(sizes, 2)))]


def named_antichains(pair: ModelPair, members: np.ndarray) -> list[tuple[Context, ...]]:
    """Convert the rows of ``antichains`` to tuples of contexts."""
    nodes = all_contexts(pair.vocab_size, pair.draft_length)
    return [tuple(nodes[node] for node in np.flatnonzero(row)) for row in members]


def largest_listed_excess(
    pair: ModelPair,
    node_masses: Sequence[np.ndarray],
    process: DraftProcess,
) -> tuple[Any, tuple[Context, ...]]:
    """Find the antichain T with the largest Σ_{a∈T} x(a) - P(some draft passes through T), and this value.

    It lists the antichains and supports every draft process.  If no value is above 0, it returns 0 and the
    empty antichain.  For i.i.d. drafts ``most_violated_antichain`` needs no list.
    """
    masses = flint_if_exact(np.concatenate(node_masses))
    members = antichains(pair.vocab_size, pair.draft_length, MAX_LISTED_ANTICHAINS)
    hits = flint_if_exact(process.hit_probabilities(pair, members))
    excess = np.array([masses[row].sum() for row in members]) - hits
    worst = int(np.argmax(excess))
    if not excess[worst] > 0:
        return plain_number(masses[0] - masses[0]), ()
    nodes = all_contexts(pair.vocab_size, pair.draft_length)
    return plain_number(excess[worst]), tuple(nodes[node] for node in np.flatnonzero(members[worst]))


def multi_path_program(
    pair: ModelPair,
    drafts: int | DraftProcess = 1,
    members: np.ndarray | None = None,
) -> LinearProgram:
    """State the linear program whose optimum is the best block efficiency with K drafted paths.

    Source: greedy2026 Theorem 4.3.  Variables: node budgets D(a), a ∈ V^{≤L}.

        max  Σ_{a ∈ V^{≤L}} D(a) p(a)                                              (10)
        s.t. 1 = D(∅) ≥ D(a_1) ≥ .. ≥ D(a_{1:L}) ≥ 0   on every path               (11)
             Σ_{a∈T} D(a) p(a) ≤ 1 - (1 - Σ_{a∈T} q(a))^K   for all antichains T   (12)

    The empty antichain gives 0 ≤ 0 and is omitted.  For another draft process the right-hand side of (12) is
    P(some draft passes through T), the only property of the drafts that the proof uses.

    Args:
        pair: the models; an exact pair gives an exact program.
        drafts: K, for i.i.d. drafted paths, or another draft process.
        members: the antichains of (12), booleans [antichains, nodes], the single nodes first; by default all
            antichains.

    Raises:
        InvalidInputError: ``drafts`` is neither an integer of at least 1 nor a draft process.
        EnumerationTooLargeError: there are more than 100 000 antichains, and ``members`` is None.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> multi_path_program(pair, 2).block("prefix matching").size
        25
    """
    process = draft_process(drafts)
    if members is None:
        members = antichains(pair.vocab_size, pair.draft_length)[1:]
    rows, columns = np.nonzero(members)
    return budget_program(
        pair,
        name="multi-path antichain LP",
        source="greedy2026 Theorem 4.3",
        equations=("greedy2026 Eq. 11", "greedy2026 Eq. 12"),
        members=(rows, columns),
        limits=hit_probs(pair, members, process),
    )


def optimal_scores(pair: ModelPair, solution: Solution) -> Levels:
    """Compute path scores whose upper bound equals the optimum.

    Source: theory.md Statement 5.13.  With λ(T) the multipliers of (12), the scores are y(a) = Σ_{T∋a} λ(T).
    We clip them to feasible scores (``feasible_scores``), which only lowers the bound E[max_k c(X^(k))].

    Args:
        pair: the models.
        solution: the result of ``multi_path_optimum`` or ``single_path_optimum`` for this pair, with any
            draft process.

    Returns:
        y by depth 0..L, arrays [V^depth]: Fractions for an exact solution.

    Example:
        >>> from spectheory.optima import multi_path_optimum
        >>> from spectheory.optima.bounds import upper_bound
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> print(upper_bound(pair, 2, optimal_scores(pair, multi_path_optimum(pair, 2))))
        17/9
    """
    weights = solution.dual[PREFIX_MATCHING]
    # the program of one path has the single nodes only
    members = (
        solution.members if isinstance(solution, AntichainSolution) else np.eye(len(weights), dtype=bool)
    )
    used = np.flatnonzero(weights)
    rows, columns = np.nonzero(members[used])
    scores = np.full(members.shape[1], weights[0] - weights[0])
    np.add.at(scores, columns, weights[used[rows]])
    return feasible_scores(pair, split_by_depth(scores, pair.vocab_size, pair.draft_length))


def hit_probs(pair: ModelPair, members: np.ndarray, process: DraftProcess) -> np.ndarray:
    """Compute P(some draft passes through T) for every listed antichain, none of them empty, [sets]."""
    if not isinstance(process, Iid):
        return process.hit_probabilities(pair, members)
    rows, columns = np.nonzero(members)
    draft_probs = flint_if_exact(node_probs(pair)[1])[columns]
    sums = np.add.reduceat(draft_probs, np.searchsorted(rows, np.arange(len(members))))
    return fractions_if_exact(hit_probability(sums, process.num_drafts))
