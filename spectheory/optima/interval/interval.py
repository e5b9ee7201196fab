"""The multi-path optimum at scale: an interval that closes, certified at every step.

The interval does not depend on the search: the two bounding passes (``bounds``) recompute it from a leaf law
r and from slacks z ≥ 0, so a wrong Newton step costs time, not soundness.  The search is an interior-point
method instead of a linear-programming solver with cuts because it is faster.  On a pair of 1 000 leaves (V =
10, L = 3, K = 4) it closes to a relative gap of 1e-6 in 0.1 s, while warm-started HiGHS with one most
violated leaf set per round is still at 2.9e-3 after 30 s (``benchmarks/multi_path_scale.py``).
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

# Few enough for a cheap first stage; every later stage adds breakpoints where the error of the chords is.
FIRST_SEGMENTS = 24
MAY_MISS, SHALL_MISS = 0.5, 0.4
"""Breakpoints are added if the error of the chords is above the first share of the gap asked for, until it is
at most the second.  Steps under the chords close the rest."""
MAX_CELLS = 140_000_000
"""Bins times segments: about 1.1 GB per array of float64, and some seven arrays."""
MAX_LEAVES = 2**20
"""The most leaves for the interior point; bounds alone have no limit."""
MAX_STEPS = 150
"""The most steps on one set of breakpoints."""

Progress = Callable[[int, float, float], None]
"""Called after every round with (round, lower, upper)."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CertifiedInterval(Optimum):
    """A certified interval around the multi-path optimum, with the points that prove both ends.

    Attributes:
        rounds: steps taken.
        segments: chords in the last piecewise linear stand-in of f.
        seconds: wall-clock time.
        skewed_draft: r, a feasible leaf law, [V^L]: ``certified_lower_bound`` accepts it, and it attains
            ``lower``.
        node_masses: x(a) = D(a) p(a) by depth.
        scores, slacks: y and z by depth: ``certified_upper_bound`` accepts them.
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
        """Bounds that meet as K grows, where the interior point is beyond float64.

        There every context is drafted almost surely, and the target limits it, or hardly ever.
        """
        tree, K = self.tree, self.num_drafts
        for expected in (0.0, 1.0, 10.0, 100.0):
            self.offer_draft(target_among(tree, K, [K * level > expected for level in tree.draft_probs]))
        limits = [hit_probability(level, K) for level in tree.draft_probs]
        for factor in (0.25, 1.0, 4.0):
            levels = zip(tree.target_probs, limits, strict=True)
            self.offer_slacks(slacks_of_shares(tree, [target <= factor * limit for target, limit in levels]))

    def _offer_min_cut(self) -> None:
        """Bounds that meet at one position: the min cut of optimal transport."""
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
            self.below = bound  # one assignment: Ctrl-C cannot part a bound from its proof
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
    """The largest block efficiency of any valid verifier of K i.i.d. paths, as a certified interval.

    Source: greedy2026 Theorem 4.3, in the form of Theorem 4.6 (theory.md §5):

        max Σ_a x(a)  s.t.  x(∅) = 1,  x(a) ≤ r(a),  x(a, t) ≤ p(t|a) x(a),
                            r(S) ≤ f(q(S)) for all sets S of leaves,  f(u) = 1 - (1 - u)^K.

    1. Replace f by its chords between breakpoints (``ChordProgram``): an interior-point step costs
       a few passes over leaves × segments.
    2. After every step read off r, which is feasible for f, and slacks, which are dual feasible for
       f: two sorts give a lower and an upper bound with f itself, whatever the accuracy of the step.
    3. When the chords' error is a fair part of the gap between the bounds, add breakpoints at the level sets
       of the path scores with the largest errors, and go on.  With a breakpoint at every level set of an
       optimal dual the chords have no error.

    Memory: some seven arrays of leaves × segments, at most 9 GB.  The arrays are small for threaded BLAS: on
    a busy machine one thread (OPENBLAS_NUM_THREADS=1) is several times faster.  The first call in a process
    takes 0.2 s more, to load the compiled loops, and the first call after an installation some 3 s, to
    compile them.

    Args:
        pair: the models; exact pairs are converted to float64, and the bounds allow for that.
        num_drafts: K.
        relative_gap: stop when upper - lower ≤ relative_gap · lower.  Below about 1e-8 float64 may not
            get there; the status is then ``"stalled"``.
        time_limit: stop after so many seconds, or None.  The clock is read after every step, so the limit is
            overrun by up to one step; at least the tree and the first two bounds are computed.
        progress: called after every step with (round, lower, upper).

    Returns:
        The interval and its proofs.  A time limit and Ctrl-C (KeyboardInterrupt) end the search and return
        the best interval so far.  Ctrl-C before the first two bounds is raised to the caller.

    Raises:
        InvalidInputError: a bad number of drafts, gap or time limit, or a draft row whose sum is off by 1
            or more.
        EnumerationTooLargeError: more than 2^20 leaves, unless the first two bounds meet, as those for one
            path do.

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
    """Raise the lower and cut the upper bound until the gap is reached or neither moves."""
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
    # some context is live: otherwise the limits of many drafts meet within 1 % of the goal
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
    """Steps on one set of breakpoints, until more breakpoints are better.

    That is when the gap under the chords is at most five times the error of the chords: refining raises the
    gap by about twice that error.

    Returns:
        The last upper bound, and whether the iterate is good to start from.
    """
    live = program.live
    above, small_steps = best.above, 0
    for _ in range(MAX_STEPS):
        try:
            length = program.step()
        except SolverError:  # machine precision is exhausted here; other breakpoints may still help
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
