"""The dual of the multi-path program: scores on the tree that bound every valid verifier from above."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from spectheory.arrays import is_exact, to_flint, to_fraction, to_fractions
from spectheory.contexts import Context, all_contexts
from spectheory.drafts import DraftProcess
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs.budgets import PREFIX_MATCHING
from spectheory.programs.multi_path import antichains, multi_path_program
from spectheory.programs.solving.exact_solver import solve_exact
from spectheory.programs.solving.float_solver import solve
from spectheory.programs.solving.linear_program import ConstraintBlock, LinearProgram, ones
from spectheory.programs.solving.solution import Solution
from spectheory.validate import check_num_drafts

MAX_ANTICHAINS = 2_000


class SampledBound(NamedTuple):
    """A Monte Carlo estimate of an upper bound (tokens per target call).

    Attributes:
        mean: the mean of max_k c(X^(k)) over the samples.
        standard_error: of the mean.
        low, high: the normal interval of the confidence asked for.
        samples: how many K-tuples of drafts.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    samples: int


def dual_program(
    pair: ModelPair, drafts: int | DraftProcess, max_antichains: int = MAX_ANTICHAINS
) -> LinearProgram:
    """The dual of the multi-path program over all antichains.

    Source: the dual of greedy2026 Theorem 4.3 in the node masses x(a) = D(a) p(a)
    (theory.md §5; not in the paper).  Variables: scores y(a) and slacks z(a), a ∈ V^{≤L}, and a weight
    λ(T) per non-empty antichain.

        min  Σ_T λ(T) f(q(T)),   f(u) = 1 - (1 - u)^K
        s.t. y(a) + z(a) = 1 + Σ_x p(x|a) z(a,x)   for all a ∈ V^{≤L} (no sum at depth L)
             z(∅) = 0
             Σ_{T∋a} λ(T) = y(a)                   for all a ∈ V^{≤L}
             y, z, λ ≥ 0

    For given y the cheapest weights are those of the level sets of the path scores
    c(a_{1:L}) = Σ_{i=0..L} y(a_{1:i}), and the objective is E[max_k c(X^(k))], the Choquet integral
    of c (``upper_bound_from_scores``).  For another draft process f(q(T)) is P(some draft passes T).

    Args:
        pair: the models; an exact pair gives an exact program.
        drafts: K for i.i.d. paths, or a draft process.
        max_antichains: refuse to state more weights.

    Returns:
        The program; variables are labelled ("y", a), ("z", a) and ("weight", (a, b, ..)).  The
        multipliers of the block "stationarity" are optimal node masses x(a).

    Raises:
        InvalidInputError: num_drafts is not a whole number of at least 1.
        EnumerationTooLargeError: there are more antichains.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> dual_program(pair, 2).size
        (10, 7)
    """
    prefix = multi_path_program(pair, drafts, max_antichains).block(PREFIX_MATCHING)
    members = antichains(pair.vocab_size, pair.draft_length, max_antichains)[1:]
    nodes = all_contexts(pair.vocab_size, pair.draft_length)
    count, exact = len(nodes), pair.is_exact
    sets = [tuple(nodes[node] for node in np.flatnonzero(row)) for row in members]
    zero = ones(2 * count, exact) * 0
    root = ConstraintBlock(
        "root slack", "theory.md §5", "==", np.zeros(1, int), np.array([count]), ones(1, exact), zero[:1]
    )
    return LinearProgram(
        name="dual of the multi-path antichain LP",
        source="theory.md §5",
        direction="min",
        variables=(
            *(("y", context) for context in nodes),
            *(("z", context) for context in nodes),
            *(("weight", antichain) for antichain in sets),
        ),
        objective=np.concatenate([zero, prefix.rhs]),
        blocks=(_stationarity(pair, count), root, _weights_of_scores(members, exact)),
        box=float(pair.draft_length + 1),
        repair=partial(_feasible_point, pair=pair, columns={T: 2 * count + i for i, T in enumerate(sets)}),
    )


def dual_optimum(
    pair: ModelPair, drafts: int | DraftProcess, max_antichains: int = MAX_ANTICHAINS
) -> Solution:
    """The smallest upper bound of this form; it equals the optimum of ``multi_path_optimum``.

    Args:
        pair: the models.
        drafts: K for i.i.d. paths, or a draft process.
        max_antichains: refuse larger programs.

    Returns:
        The solution (tokens per target call); ``scores_of`` reads the scores y off it.

    Raises:
        InvalidInputError: num_drafts is not a whole number of at least 1.
        EnumerationTooLargeError: there are more antichains.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> solution = dual_optimum(pair, 2)
        >>> print(solution.value, upper_bound_from_scores(pair, 2, scores_of(pair, solution)))
        17/9 17/9
    """
    program = dual_program(pair, drafts, max_antichains)
    return solve_exact(program) if program.is_exact else solve(program)


def scores_of(pair: ModelPair, solution: Solution) -> list[np.ndarray]:
    """The scores y of a solution of ``dual_program``, by depth 0..L, arrays [V^depth]."""
    dtype = object if pair.is_exact else float
    values = [solution.primal["y", context] for context in all_contexts(pair.vocab_size, pair.draft_length)]
    ends = np.cumsum([pair.vocab_size**depth for depth in range(pair.draft_length)])
    return np.split(np.array(values, dtype=dtype), ends)


# ------------------------------------------------------------- bounds from given scores


def upper_bound_from_scores(
    pair: ModelPair, num_drafts: int, scores: Sequence[np.ndarray], tolerance: float = 1e-9
) -> Any:
    """An upper bound on the block efficiency of every valid verifier of K i.i.d. drafted paths.

    Source: weak duality with the multi-path program (theory.md §5).  The steps, O(M log M) for M
    leaves:

    1. z(a) = 1 + Σ_x p(x|a) z(a,x) - y(a) from the leaves up; y, z ≥ 0 and z(∅) = 0 are checked.
    2. c(a_{1:L}) = Σ_{i=0..L} y(a_{1:i}).
    3. E[max_k c(X^(k))] for K i.i.d. drafts.

    Args:
        pair: the models.
        num_drafts: K.
        scores: y(a) by depth 0..L, arrays [V^depth], in the arithmetic of the pair.
        tolerance: for float pairs, how far the scores may be from feasible; the bound is that of the
            nearby scores of ``feasible_scores``.  Exact scores must be feasible exactly.

    Returns:
        The bound (tokens per target call): a Fraction that is a proof, or a float up to rounding.

    Raises:
        InvalidInputError: wrong shapes or arithmetic, or infeasible scores; the text names the
            violated condition and the context.

    Example:
        Scores of 1 everywhere bound every verifier by L + 1:

        >>> from fractions import Fraction
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> ones = [np.array([Fraction(1)] * 2**depth) for depth in range(3)]
        >>> print(upper_bound_from_scores(pair, 2, ones))
        3
    """
    num_drafts = check_num_drafts(num_drafts)
    checked = _checked_scores(pair, scores)
    _check_feasible(pair, checked, 0 if pair.is_exact else tolerance)
    if not pair.is_exact:
        checked = feasible_scores(pair, checked)
    return expected_maximum(path_scores(pair, checked), pair.draft_path_probs(pair.draft_length), num_drafts)


def feasible_scores(pair: ModelPair, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The scores clipped, from the leaves up, to 0 ≤ y(a) ≤ 1 + Σ_x p(x|a) z(a,x), with equality at the root.

    Feasible scores are returned unchanged; any others become scores of a true upper bound.

    Args:
        pair: the models.
        scores: y(a) by depth 0..L, arrays [V^depth], in the arithmetic of the pair.

    Raises:
        InvalidInputError: wrong shapes or arithmetic.

    Example:
        >>> pair = ModelPair.context_free_pair([0.5, 0.5], [0.25, 0.75], draft_length=1)
        >>> [level.tolist() for level in feasible_scores(pair, [np.zeros(1), np.array([2.0, 0.5])])]
        [[1.25], [1.0, 0.5]]
    """
    found = []
    rest = None
    for depth, level in reversed(list(enumerate(_checked_scores(pair, scores)))):
        most = _most(pair, depth, rest)
        # at the root z = 0, so the score is all there is
        clipped = most if depth == 0 else np.maximum(np.minimum(level, most), level * 0)
        found.append(clipped)
        rest = most - clipped
    return found[::-1]


def path_scores(pair: ModelPair, scores: Sequence[np.ndarray]) -> np.ndarray:
    """c(a_{1:L}) = Σ_{i=0..L} y(a_{1:i}) at every path, [V^L]."""
    total = scores[0]
    for level in scores[1:]:
        total = np.repeat(total, pair.vocab_size) + level
    return total


def expected_maximum(values: np.ndarray, probs: np.ndarray, num_drafts: int) -> Any:
    """E[max_k value(X_k)] of K i.i.d. draws: Σ_i value_i (F_i^K - F_{i-1}^K), values ascending.

    Args:
        values, probs: [M], both exact or both float64.
        num_drafts: K.

    Returns:
        A Fraction or a float.

    Example:
        >>> expected_maximum(np.array([0.0, 1.0]), np.array([0.5, 0.5]), 2)
        0.75
    """
    exact = is_exact(values)
    if exact:
        values, probs = to_flint(values), to_flint(probs)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(probs[order]) ** num_drafts
    total = (values[order] * np.diff(below, prepend=below[:1] * 0)).sum()
    return to_fraction(total) if exact else float(total)


def sampled_upper_bound(
    leaf_scores: np.ndarray, leaves: np.ndarray, confidence: float = 0.99
) -> SampledBound:
    """The upper bound estimated from sampled drafts: the mean of the largest path score of each K-tuple.

    Args:
        leaf_scores: c at every path (``path_scores``), [V^L].
        leaves: the numbers of the drafted paths, [N, K], N independent tuples.
        confidence: of the interval.

    Raises:
        InvalidInputError: fewer than two tuples, unknown leaves, or a confidence outside (0, 1).

    Example:
        >>> sampled_upper_bound(np.array([1.0, 3.0]), np.array([[0, 0], [0, 1]])).mean
        2.0
    """
    if leaves.ndim != 2 or len(leaves) < 2 or leaves.shape[1] < 1:
        raise InvalidInputError(f"leaves has shape {leaves.shape}; expected (N, K) with N at least 2")
    if leaves.min() < 0 or leaves.max() >= len(leaf_scores):
        raise InvalidInputError(f"a leaf is outside 0..{len(leaf_scores) - 1}, the paths that have scores")
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must be between 0 and 1, got {confidence}")
    best = leaf_scores.astype(float)[leaves].max(axis=1)
    mean, error = float(best.mean()), float(best.std(ddof=1) / np.sqrt(len(best)))
    width = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return SampledBound(mean, error, mean - width, mean + width, len(best))


# ---------------------------------------------------------------------- kernels


def _checked_scores(pair: ModelPair, scores: Sequence[np.ndarray]) -> list[np.ndarray]:
    if len(scores) != pair.draft_length + 1:
        raise InvalidInputError(
            f"scores has {len(scores)} depths; expected {pair.draft_length + 1}, one per depth 0..L"
        )
    levels = [np.asarray(level) for level in scores]
    for depth, level in enumerate(levels):
        if level.shape != (pair.vocab_size**depth,):
            raise InvalidInputError(
                f"scores[{depth}] has shape {level.shape}; expected ({pair.vocab_size**depth},)"
            )
        if (level.dtype == object) != pair.is_exact:
            raise InvalidInputError(
                f"scores[{depth}] holds {level.dtype} entries but the pair is {pair.arithmetic}; use one kind"
            )
    return [to_fractions(level) if pair.is_exact else level.astype(float) for level in levels]


def _most(pair: ModelPair, depth: int, slack_below: np.ndarray | None) -> np.ndarray:
    """1 + Σ_x p(x|a) z(a,x) at every context of a depth; nothing lies below depth L."""
    if slack_below is None:
        return ones(pair.vocab_size**depth, pair.is_exact)
    return 1 + (pair.target[depth] * slack_below.reshape(-1, pair.vocab_size)).sum(axis=1)


def _check_feasible(pair: ModelPair, scores: list[np.ndarray], tolerance: float) -> None:
    """y, z ≥ 0 and z(∅) = 0, written so that a NaN is refused too."""
    slack = None
    for depth in reversed(range(pair.draft_length + 1)):
        level, most = scores[depth], _most(pair, depth, slack)
        slack = most - level
        conditions = [("y(a) >= 0, got {y} at context {context}", level >= -tolerance)]
        if depth:
            text = (
                "z(a) = 1 + Σ_x p(x|a) z(a,x) - y(a) >= 0, got y(a) = {y} above {most} at context {context}"
            )
            conditions.append((text, slack >= -tolerance))
        else:
            text = "z(∅) = 1 + Σ_x p(x) z(x) - y(∅) = 0, got y(∅) = {y}, expected {most}"
            conditions.append((text, abs(slack) <= tolerance))
        for text, holds in conditions:
            for number in np.flatnonzero(~holds.astype(bool)):
                context = pair.context(depth, int(number))
                shown = text.format(y=level[number], most=most[number], context=context)
                raise InvalidInputError(f"the scores are not feasible: {shown}; see feasible_scores")


def _stationarity(pair: ModelPair, count: int) -> ConstraintBlock:
    """y(a) + z(a) - Σ_x p(x|a) z(a,x) = 1, one row per node."""
    node, child = np.arange(count), np.arange(1, count)
    one = ones(count, pair.is_exact)
    conditional = np.concatenate([level.ravel() for level in pair.target[:-1]])
    present = conditional != 0
    parent = (child - 1) // pair.vocab_size
    return ConstraintBlock(
        name="stationarity",
        equation="theory.md §5",
        sense="==",
        rows=np.concatenate([node, node, parent[present]]),
        columns=np.concatenate([node, count + node, count + child[present]]),
        coefficients=np.concatenate([one, one, -conditional[present]]),
        rhs=one,
    )


def _weights_of_scores(members: np.ndarray, exact: bool) -> ConstraintBlock:
    """Σ_{T∋a} λ(T) - y(a) = 0, one row per node."""
    sets, nodes = np.nonzero(members)
    count = members.shape[1]
    one = ones(len(nodes) + count, exact)
    return ConstraintBlock(
        name="weights",
        equation="theory.md §5",
        sense="==",
        rows=np.concatenate([nodes, np.arange(count)]),
        columns=np.concatenate([2 * count + sets, np.arange(count)]),
        coefficients=np.concatenate([one[: len(nodes)], -one[len(nodes) :]]),
        rhs=one[:count] * 0,
    )


def level_set_weights(pair: ModelPair, scores: Sequence[np.ndarray]) -> dict[tuple[Context, ...], Any]:
    """The cheapest weights λ(T) with Σ_{T∋a} λ(T) = y(a): those of the level sets of the path scores.

    With s(a_{1:i}) = Σ_{j≤i} y(a_{1:j}), the antichain of a threshold t holds the contexts at which s
    first reaches t; its weight is the distance to the next smaller value of s.

    Args:
        pair: the models; only their shape is used.
        scores: y(a) ≥ 0 by depth 0..L.

    Example:
        >>> pair = ModelPair.context_free_pair([0.5, 0.5], [0.25, 0.75], draft_length=1)
        >>> scores = [np.array([1.0]), np.array([0.0, 0.5])]
        >>> {T: float(weight) for T, weight in level_set_weights(pair, scores).items()}
        {((),): 1.0, ((1,),): 0.5}
    """
    sums = [scores[0]]
    for level in scores[1:]:
        sums.append(np.repeat(sums[-1], pair.vocab_size) + level)
    reached = np.concatenate(sums)
    before = np.concatenate([scores[0] * 0, *(np.repeat(level, pair.vocab_size) for level in sums[:-1])])
    nodes = all_contexts(pair.vocab_size, pair.draft_length)
    weights, last = {}, reached[0] * 0
    for threshold in sorted(set(reached[reached > 0].tolist())):
        first = np.flatnonzero((before < threshold) & (reached >= threshold))
        weights[tuple(nodes[node] for node in first)] = threshold - last
        last = threshold
    return weights


def _feasible_point(
    program: LinearProgram, point: np.ndarray, pair: ModelPair, columns: dict[tuple[Context, ...], int]
) -> np.ndarray:
    """Scores next to the point's that are feasible, their slacks, and the weights of their level sets."""
    pair = pair.to_float()
    depths = range(pair.draft_length + 1)
    count = sum(pair.vocab_size**depth for depth in depths)
    ends = np.cumsum([pair.vocab_size**depth for depth in depths])[:-1]
    scores = feasible_scores(pair, np.split(point[:count], ends))
    slack, slacks = None, []
    for depth in reversed(depths):
        slack = _most(pair, depth, slack) - scores[depth]
        slacks.append(slack)
    repaired = np.concatenate([*scores, *slacks[::-1], np.zeros(program.num_variables - 2 * count)])
    for antichain, weight in level_set_weights(pair, scores).items():
        repaired[columns[antichain]] += weight
    return repaired
