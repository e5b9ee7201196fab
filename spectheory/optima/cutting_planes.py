"""The multi-path optimum by antichains that are added to the program when they are violated."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from spectheory.foundation.errors import EnumerationTooLargeError, SolverError
from spectheory.foundation.exact_numbers import flint_if_exact
from spectheory.optima.bounds.antichain_hulls import violated_antichains
from spectheory.optima.bounds.context_tree import Levels, node_probs
from spectheory.optima.bounds.tolerances import GAP_TOLERANCE, ROW_TOLERANCE, rounding_allowance
from spectheory.optima.bounds.tree_antichains import most_violated_antichains
from spectheory.optima.interval.interval import multi_path_interval
from spectheory.optima.multi_path import AntichainSolution, antichains, hit_probs, multi_path_program
from spectheory.optima.solving.exact_solver import solve_exact_after
from spectheory.optima.solving.float_solver import float_solution
from spectheory.optima.solving.simplex import Simplex
from spectheory.pairs.contexts import context_node, count_nodes, split_by_depth
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.trees import Tree
from spectheory.pairs.pair import ModelPair

AT_ONCE = 40
"""Largest number of antichains added per round.  More make the programs larger than they need to be."""
MAX_NODES = {Tree: 600, Iid: 2_500}
"""Largest number of contexts.  Exact programs of this size take about ten seconds."""
FEW_LEAVES = 64
"""Beyond this many leaves i.i.d. drafts start from the antichains that are nearly tight at the point of
``multi_path_interval``.  Below, the rounds that this saves take less time than its first use."""
NEARLY_TIGHT = 1e-4

Oracle = Callable[[Levels, int, Any], np.ndarray]
"""(node masses, n, tolerance) -> n or fewer antichains of larger excess, worst first, [antichains, nodes]."""


def multi_path_optimum(pair: ModelPair, drafts: int | DraftProcess = 1) -> AntichainSolution:
    """Compute the largest block efficiency E[τ+1] of any valid verifier of K drafted paths.

    Source: greedy2026 Theorem 4.3; theory.md Statements 5.12, 5.16 and 5.32.

    1. Solve ``multi_path_program`` in floats with the antichains of one node.  Add the antichains that the
       point violates most, and repeat from the last basis until none is violated.
    2. For an exact pair continue in rationals, from this basis, until no antichain at all is violated.

    Most antichains are never listed: hulls find the violated ones for i.i.d. drafts and trees of drafts.  The
    multipliers of the listed antichains prove that no point has a larger value.

    Args:
        pair: the models.
        drafts: K, for i.i.d. drafted paths, or another draft process.

    Returns:
        The solution (tokens per target call) of the program with the antichains that were added, exact for
        exact pairs.  Its bounds hold for all antichains.

    Raises:
        InvalidInputError: ``drafts`` is neither an integer of at least 1 nor a draft process, or the process
            cannot draft from the pair.
        EnumerationTooLargeError: the tree of contexts is too large, or the drafts are neither i.i.d. nor a
            tree and there are more than 100 000 antichains.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=4)
        >>> best = multi_path_optimum(pair, 2)
        >>> print(best.value, len(best.members))  # of 458 329 antichains
        662845/177147 36
    """
    process = draft_process(drafts)
    process.check(pair)
    _refuse_large(pair, process)
    floats, drafted = pair.to_float(), process.to_float()
    members, oracle = (
        np.eye(count_nodes(pair.vocab_size, pair.draft_length), dtype=bool),
        _oracle(floats, drafted),
    )
    if isinstance(process, Iid) and pair.vocab_size**pair.draft_length > FEW_LEAVES:
        start = multi_path_interval(floats, process.num_drafts).node_masses
        members = np.vstack([members, _new(oracle(start, 100_000, -NEARLY_TIGHT), members)])
    simplex = Simplex()
    while True:
        program = multi_path_program(floats, drafted, members)
        point, multipliers = simplex.solve(program)
        added = _new(oracle(_masses(floats, point), AT_ONCE, ROW_TOLERANCE), members)
        if not len(added):
            break
        members = np.vstack([members, added])
    if not pair.is_exact:
        solution = float_solution(program, point, multipliers)
        found = AntichainSolution(**vars(solution), members=members)
        return _for_all_antichains(floats, drafted, oracle, found)
    basis: list[int] | None = simplex.basis(program)
    oracle = _oracle(pair, process)
    while True:
        solution, basis = solve_exact_after(multi_path_program(pair, process, members), basis)
        point = flint_if_exact(np.array(list(solution.primal.values()), dtype=object))
        added = oracle(_masses(pair, point), AT_ONCE, 0)
        if not len(added):
            return AntichainSolution(**vars(solution), members=members)
        members = np.vstack([members, added])


def _refuse_large(pair: ModelPair, process: DraftProcess) -> None:
    V, L = pair.vocab_size, pair.draft_length
    for kind, most in MAX_NODES.items():
        if isinstance(process, kind) and count_nodes(V, L) > most:
            raise EnumerationTooLargeError(
                f"{V} tokens and draft length {L} have more than {most} contexts, the limit for the optimum "
                f"of {process.name} drafts; truncate the pair or restrict its tokens"
            )


def _masses(pair: ModelPair, point: np.ndarray) -> Levels:
    """Compute x(a) = D(a) p(a) by depth."""
    masses = point * flint_if_exact(node_probs(pair)[0])
    return split_by_depth(masses, pair.vocab_size, pair.draft_length)


def _oracle(pair: ModelPair, process: DraftProcess) -> Oracle:
    V, L = pair.vocab_size, pair.draft_length
    nodes = count_nodes(V, L)
    if isinstance(process, Iid):
        return lambda masses, most, tolerance: _members(
            violated_antichains(pair, masses, process.num_drafts, most, tolerance), nodes
        )
    if isinstance(process, Tree):

        def found_by_hulls(masses: Levels, most: int, tolerance: Any) -> np.ndarray:
            worst = most_violated_antichains(pair, masses, process, most)
            sets = [contexts for excess, contexts in worst if excess > tolerance]
            return _members([[context_node(context, V) for context in contexts] for contexts in sets], nodes)

        return found_by_hulls
    members = antichains(V, L)[1:]
    hits, (rows, columns) = flint_if_exact(hit_probs(pair, members, process)), np.nonzero(members)
    starts = np.searchsorted(rows, np.arange(len(members)))

    def found_in_list(masses: Levels, most: int, tolerance: Any) -> np.ndarray:
        excess = np.add.reduceat(np.concatenate(masses)[columns], starts) - hits
        worst = np.argsort(-excess, kind="stable")[:most]
        return members[worst[excess[worst] > tolerance]]

    return found_in_list


def _members(sets: Sequence[Sequence[int] | np.ndarray], nodes: int) -> np.ndarray:
    members = np.zeros((len(sets), nodes), dtype=bool)
    for row, numbers in zip(members, sets, strict=True):
        row[numbers] = True
    return members


def _new(found: np.ndarray, members: np.ndarray) -> np.ndarray:
    """Drop the antichains that are already listed, which a float point may violate by rounding."""
    known = {row.tobytes() for row in members}
    return found[[row.tobytes() not in known for row in found]]


def _for_all_antichains(
    pair: ModelPair, process: DraftProcess, oracle: Oracle, found: AntichainSolution
) -> AntichainSolution:
    """Lower the bound of a float solution, so that it holds for the antichains that are not listed.

    Raising all limits by δ raises the optimum by at most δ (L+1)(L+2)/2 (theory.md Statement 5.11).  So we
    subtract this for the largest excess and its rounding.
    """
    L = pair.draft_length
    masses = _masses(pair, np.array(list(found.primal.values())))
    worst = oracle(masses, 1, 0.0)
    excess = (
        float((worst @ np.concatenate(masses) - hit_probs(pair, worst, process)).max()) if len(worst) else 0.0
    )
    excess = max(excess, 0.0) + process.num_drafts * (L + 1) * rounding_allowance(found.members.shape[1])
    lower = found.lower - excess * (L + 1) * (L + 2) / 2
    if not found.upper - lower <= GAP_TOLERANCE * max(1.0, found.upper):
        raise SolverError(f"{found.program}: the bounds {lower!r} and {found.upper!r} differ by too much")
    return replace(found, lower=lower)
