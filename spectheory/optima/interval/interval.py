"""The multi-path optimum of large trees: an interval that shrinks and is certified at every step.

The interval is valid whatever the search does: two passes of ``bounds`` compute its ends from a leaf law r
and from slacks z ≥ 0.  A wrong Newton step costs only time.  The search is an interior-point method, because
it is faster than a linear-programming solver with cuts.  On a pair of 1 000 leaves (V = 10, L = 3, K = 4) it
reaches a relative gap of 1e-6 in 0.1 s.  Warm-started HiGHS, which adds the most violated leaf set per
round, is still at 2.9e-3 after 30 s (``benchmarks/multi_path_scale.py``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.errors import EnumerationTooLargeError, SolverError
from spectheory.foundation.validation import check_num_drafts, check_positive
from spectheory.optima.bounds.context_tree import ContextTree, Levels
from spectheory.optima.bounds.dual_scores import (
    CertifiedUpperBound,
    block_verification_slacks,
    certified_bound_of_slacks,
    slacks_of_shares,
)
from spectheory.optima.bounds.lower_bounds import CertifiedLowerBound, certified_bound_of_draft, target_among
from spectheory.optima.interval.breakpoints import chord_errors, first_breakpoints, refined_breakpoints
from spectheory.optima.interval.live_tree import LiveTree
from spectheory.optima.one_position.ranking_plan import optimal_skewed_row
from spectheory.optima.solving.solution import Optimum
from spectheory.pairs.pair import ModelPair

if TYPE_CHECKING:
    from spectheory.optima.interval.interior_point import ChordProgram

_log = logging.getLogger(__name__)

# Few segments make the first stage cheap.  Every later stage adds breakpoints where the chords have errors.
FIRST_SEGMENTS = 24
MAY_MISS, SHALL_MISS = 0.5, 0.4
"""We add breakpoints if the error of the chords is above ``MAY_MISS`` times the requested gap, until it is at
most ``SHALL_MISS`` times this gap.  Steps with these chords close the remaining gap."""
MAX_CELLS = 140_000_000
"""Largest number of bins times segments: about 1.1 GB per array of float64, in about seven arrays."""
MAX_LEAVES = 2**20
"""Largest number of leaves for the interior-point method.  The first two bounds have no limit."""
MAX_STEPS = 150
"""Largest number of steps on one set of breakpoints."""

Progress = Callable[[int, float, float], None]
"""Called after every round with (round, lower, upper)."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CertifiedInterval(Optimum):
    """A certified interval around the multi-path optimum, with the points that prove both ends.

    Attributes:
        rounds: number of interior-point steps.
        segments: number of chords that replaced f at the end.
        seconds: wall-clock time.
        skewed_draft: r, a feasible leaf law, [V^L].  ``certified_lower_bound`` of it is ``lower``.
        node_masses: x(a) = D(a) p(a) by depth 0..L, [V^depth].
        scores, slacks: y and z by depth 0..L, [V^depth], for ``certified_upper_bound``.
    """

    rounds: int
    segments: int
    seconds: float
    skewed_draft: np.ndarray
    node_masses: Levels
    scores: Levels
    slacks: Levels


class _Best:
    """The best bounds so far, with their proofs."""

    def __init__(self, tree: ContextTree, num_drafts: int) -> None:
        self.tree, self.num_drafts = tree, num_drafts
        self.rounds, self.segments = 0, 0
        draft = tree.draft_probs[-1]
        self.below = certified_bound_of_draft(tree, num_drafts, draft)
        self.above = certified_bound_of_slacks(tree, num_drafts, block_verification_slacks(tree, draft))
        self._offer_limits_of_many_drafts()
        if tree.draft_length == 1:
            self._offer_min_cut()

    def _offer_limits_of_many_drafts(self) -> None:
        """Try bounds whose gap tends to 0 for large K, where the interior point exceeds float64's accuracy.

        For large K a context is either drafted almost surely, so that the target limits it, or hardly ever.
        """
        tree, K = self.tree, self.num_drafts
        for expected in (0.0, 1.0, 10.0, 100.0):
            self.offer_draft(target_among(tree, K, [K * level > expected for level in tree.draft_probs]))
        limits = [hit_probability(level, K) for level in tree.draft_probs]
        for factor in (0.25, 1.0, 4.0):
            levels = zip(tree.target_probs, limits, strict=True)
            self.offer_slacks(slacks_of_shares(tree, [target <= factor * limit for target, limit in levels]))

    def _offer_min_cut(self) -> None:
        """Try the bounds from the minimum cut of optimal transport, which are equal if L = 1."""
        (target,), draft = self.tree.target_rows[0], self.tree.draft_probs[-1]
        best = optimal_skewed_row(target, draft, self.num_drafts)
        self.offer_draft(best.skewed_row)
        limited_by_target = np.zeros(len(draft))
        limited_by_target[best.order[best.cut :]] = 1
        self.offer_slacks(slacks_of_shares(self.tree, [np.zeros(1), limited_by_target]))

    @property
    def gap(self) -> float:
        return self.above.value - self.below.value

    def offer_draft(self, skewed_draft: np.ndarray) -> CertifiedLowerBound:
        bound = certified_bound_of_draft(self.tree, self.num_drafts, skewed_draft)
        if bound.value > self.below.value:
            self.below = bound  # a single assignment, so that Ctrl-C cannot separate a bound from its proof
        return bound

    def offer_slacks(self, slacks: Levels) -> CertifiedUpperBound:
        bound = certified_bound_of_slacks(self.tree, self.num_drafts, slacks)
        if bound.value < self.above.value:
            self.above = bound
        return bound


class _TimeLimitReachedError(Exception):
    pass


def multi_path_interval(
    pair: ModelPair,
    num_drafts: int,
    *,
    relative_gap: float = 1e-6,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> CertifiedInterval:
    """Compute the largest block efficiency of any valid verifier of K i.i.d. paths, as a certified interval.

    Source: greedy2026 Theorem 4.3, in the form of Theorem 4.6 (theory.md §5):

        max Σ_a x(a)  s.t.  x(∅) = 1,  x(a) ≤ r(a),  x(a, t) ≤ p(t|a) x(a),
                            r(S) ≤ f(q(S)) for all sets S of leaves,  f(u) = 1 - (1 - u)^K.

    1. Replace f by its chords between breakpoints (``ChordProgram``).  An interior-point step then costs a
       few passes over leaves × segments.
    2. After every step take r, which is feasible for f, and the slacks, which are dual feasible for f.  Two
       sorts give a lower and an upper bound with f itself, which hold for steps of any accuracy.
    3. When the error of the chords is a large part of the gap between the bounds, add breakpoints at the
       level sets of the path scores with the largest errors, and continue.  With a breakpoint at every level
       set of an optimal dual the chords have no error.

    Memory: about seven arrays of leaves × segments, at most 9 GB.  The arrays are small for threaded BLAS: on
    a busy machine one thread (OPENBLAS_NUM_THREADS=1) is several times faster.  The first call in a process
    takes 0.2 s longer to load the compiled loops.  The first call after an installation takes about 3 s
    longer to compile them.

    Args:
        pair: the models; exact pairs are converted to float64, and the bounds allow for that.
        num_drafts: K.
        relative_gap: stop when upper - lower ≤ relative_gap · lower.  Below about 1e-8 float64 may not reach
            it; the status is then ``"stalled"``.
        time_limit: stop after so many seconds, or None.  We read the clock after every step, so the search
            can take one step longer, and always computes the tree and the first two bounds.
        progress: called after every step with (round, lower, upper).

    Returns:
        The interval and its proofs.  After a time limit or Ctrl-C (KeyboardInterrupt) it is the best interval
        so far.  Ctrl-C before the first two bounds is raised to the caller.

    Raises:
        InvalidInputError: an invalid number of drafts, gap or time limit; or a draft row whose sum differs
            from 1 by 1 or more.
        EnumerationTooLargeError: there are more than 2^20 leaves, and the first two bounds do not already
            reach the gap, as they do for one path.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> best = multi_path_interval(pair, num_drafts=2)
        >>> best.status, best.lower <= 212 / 81 <= best.upper, best.relative_gap <= 1e-6
        ('optimal', True, True)
    """
    num_drafts = check_num_drafts(num_drafts)
    check_positive("relative_gap", relative_gap)
    if time_limit is not None:
        check_positive("time_limit", time_limit)
    started = time.monotonic()
    tree = ContextTree.of(pair.to_float())
    best = _Best(tree, num_drafts)

    def after_round() -> None:
        _log.info("optimum: step %d, [%.9f, %.9f]", best.rounds, best.below.value, best.above.value)
        if progress is not None:
            progress(best.rounds, best.below.value, best.above.value)
        if time_limit is not None and time.monotonic() - started >= time_limit:
            raise _TimeLimitReachedError

    try:
        _close(best, relative_gap, after_round)
        status = "optimal" if best.gap <= relative_gap * best.below.value else "stalled"
    except _TimeLimitReachedError:
        status = "optimal" if best.gap <= relative_gap * best.below.value else "time limit"
    except KeyboardInterrupt:
        status = "interrupted"
    lower, upper = best.below.value, min(best.above.value, best.tree.draft_length + 1.0)
    return CertifiedInterval(
        program="multi-path program, chord form",
        method="interior point with adaptive chords",
        status=status,
        value=lower,
        lower=lower,
        upper=upper,
        gap=upper - lower,
        is_interval=True,
        rounds=best.rounds,
        segments=best.segments,
        seconds=time.monotonic() - started,
        skewed_draft=best.below.skewed_draft,
        node_masses=best.below.masses,
        scores=best.above.scores,
        slacks=best.above.slacks,
    )


def _close(best: _Best, relative_gap: float, after_round: Callable[[], None]) -> None:
    """Improve both bounds until the gap is reached or neither bound improves."""
    from spectheory.optima.interval.interior_point import ChordProgram  # it loads scipy and numba

    tree, K = best.tree, best.num_drafts
    after_round()
    if best.gap <= relative_gap * best.below.value:
        return
    leaves = len(tree.draft_probs[-1])
    if leaves > MAX_LEAVES:
        raise EnumerationTooLargeError(
            f"{tree.vocab_size} tokens and draft length {tree.draft_length} make {leaves} leaves, "
            f"the limit is {MAX_LEAVES}; truncate the pair or restrict its tokens"
        )
    nodes = sum(len(level) for level in tree.draft_probs)
    live = LiveTree.of(tree, K, 1e-2 * relative_gap / (nodes * (tree.draft_length + 1)))
    # at least one context is live: otherwise the bounds of many drafts differ by at most 1 % of the goal
    program, fresh = ChordProgram(live, K, first_breakpoints(FIRST_SEGMENTS, K)), True
    while True:
        best.segments = len(program.edges) - 1
        most = min(2 * best.segments, MAX_CELLS // len(live.bin_mass))
        latest, healthy = _run_stage(best, program, relative_gap, most > best.segments, after_round)
        goal = relative_gap * best.below.value
        if best.gap <= goal:
            return
        edges = refined_breakpoints(program.edges, K, latest.chain, SHALL_MISS * goal, most)
        if len(edges) - 1 == best.segments and (healthy or fresh):
            return
        fresh = not healthy
        program = ChordProgram(live, K, edges) if fresh else program.refined(edges)


def _run_stage(
    best: _Best,
    program: ChordProgram,
    relative_gap: float,
    may_refine: bool,
    after_round: Callable[[], None],
) -> tuple[CertifiedUpperBound, bool]:
    """Make steps on one set of breakpoints, until adding breakpoints is better.

    We stop when the gap under the chords is at most five times the error of the chords, because new
    breakpoints raise the gap by about twice this error.

    Returns:
        The last upper bound, and True if the next program can start from the iterate.
    """
    live = program.live
    above, small_steps = best.above, 0
    for _ in range(MAX_STEPS):
        try:
            length = program.step()
        except SolverError:  # rounding errors prevent a further step; other breakpoints may still help
            return above, False
        best.rounds += 1
        below = best.offer_draft(live.leaf_law(program.bin_law))
        above = best.offer_slacks(live.full_slacks(program.point.z))
        after_round()
        goal = relative_gap * best.below.value
        missed = float(chord_errors(program.edges, best.num_drafts, above.chain).sum())
        small_steps = small_steps + 1 if length < 1e-3 else 0
        if small_steps >= 8:
            return above, False
        share = 5.0 if may_refine and missed > MAY_MISS * goal else 0.2
        if best.gap <= goal or above.value - below.value - missed <= share * missed:
            break
    return above, True
