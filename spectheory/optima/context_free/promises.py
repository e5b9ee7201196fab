"""The multi-path optimum of a context-free pair as a certified interval, without the tree of its contexts.

In a context-free pair the subtrees below two contexts of one depth are equal up to the factors p(a) and q(a).
The best verifier below a context depends on the rest of the tree through two numbers only
(theory.md Statement 5.33).  So we replace the tree by a dynamic program over the depth and these two numbers.
Its cost grows with the draft length, not with the number of leaves.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.errors import InvalidInputError, SolverError
from spectheory.foundation.validation import check_count, check_num_drafts, check_positive
from spectheory.optima.bounds.tolerances import rounding_allowance
from spectheory.optima.context_free.ratios import Ratios
from spectheory.optima.interval.interval import Progress
from spectheory.optima.solving.solution import Optimum
from spectheory.pairs.pair import ModelPair, check_pair

_log = logging.getLogger(__name__)

SEGMENTS = (32, 64, 128, 256, 512)
"""Numbers of promises per grid, from coarse to fine.  Twice as many make a policy take four times as long."""
MOST_WORK = 8_000_000
"""Largest draft length × ratios × promises² of a grid: about a second per policy."""
STEPS_PER_GRID = 400
"""Largest number of policies that are mixed on one grid."""
CAUTION = 0.7
"""The next prices are this share of the best prices so far plus new prices (smoothed column generation)."""
PRICED = 0.02
"""The search on a grid ends when its possible gain on this grid is at most this share of the gap."""
NEGLIGIBLE = 1e-11
"""Entries of the master program below this, relative to their row, are set to 0: HiGHS fails on them."""


MOST_CELLS = 40_000_000
"""Largest number of scores times slacks at one depth.  An array takes 0.3 GB, and there are three."""


class Promises(NamedTuple):
    """The grid for the lower bound.  A promise h is the mass r(a) planned at a context a, divided by q(a).

    Attributes:
        grid: the accepted masses x; from the index ``first`` on they also are the promises h, [n].
        first: the index of the smallest promise.
        one: the index of the promise 1.
        limit: a law of promises that f(u) = 1 - (1 - u)^K allows: slopes of chords of f, [n].
    """

    grid: np.ndarray
    first: int
    one: int
    limit: np.ndarray

    @staticmethod
    def of(segments: int, num_drafts: int) -> Promises:
        """Build a grid of the slopes of ``segments`` chords of f, the promise 1, and smaller masses x."""
        ranks = -np.expm1(3.0 / (num_drafts + 1.0) * np.log1p(-np.arange(segments) / segments))
        ranks = np.append(ranks, 1.0)
        widths = np.diff(ranks)
        slopes = np.diff(hit_probability(ranks, num_drafts)) / widths
        promises = np.unique(np.append(slopes, 1.0))
        small = promises[0] * 2.0 ** -np.arange(10.0, 0.0, -0.5)
        grid = np.concatenate([[0.0], small, promises])
        limit = np.zeros(len(grid))
        np.add.at(limit, np.searchsorted(grid, slopes), widths)
        first = len(grid) - len(promises)
        return Promises(grid, first, int(np.searchsorted(grid, 1.0)), limit)

    def excess(self, law: np.ndarray) -> np.ndarray:
        """Compute E (h - s)^+ under a law of promises h, [n], for every promise s but the largest."""
        return np.maximum(self.grid - self.grid[self.first : -1, None], 0.0) @ law


class Policy(NamedTuple):
    """A policy on a grid: its mean number E Σ_i x_i of tokens, and its law of promises at depth L, [n]."""

    accepted: float
    law: np.ndarray


def context_free_interval(
    pair: ModelPair,
    num_drafts: int,
    draft_length: int | None = None,
    *,
    relative_gap: float = 1e-4,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Optimum:
    """Compute the largest block efficiency of any valid verifier of K i.i.d. paths on a context-free pair.

    Source: theory.md Statement 5.33, a dynamic program for the program of greedy2026 Theorem 4.3.  No array
    has an entry per context, so V = 2 and L = 30 with its 10^9 leaves is possible.

    1. Lower bound: a policy promises masses to contexts, on a grid.  A linear program mixes policies, so that
       the law of promises at the leaves is allowed.  Its prices give the next policy (column generation).
    2. Upper bound: the prices define a convex function of path scores.  With this function we solve the dual
       on a grid of scores and slacks.
    3. Refine the grids, until the requested gap is reached.

    We first divide each row by its sum, as in the computation of the laws of verifiers.

    Args:
        pair: a context-free pair; exact pairs are converted to float64, and the bounds allow for that.
        num_drafts: K ≥ 1.
        draft_length: L; by default the draft length of the pair.
        relative_gap: stop when upper - lower ≤ relative_gap · lower.  The finest grid reaches a gap between
            1e-4 and 1e-3.  If this is not enough, the status is ``"stalled"``.
        time_limit: stop after so many seconds; the clock is read after every policy.
        progress: called after every bound with (policies so far, lower, upper).

    Returns:
        The interval.  After a time limit or Ctrl-C it is the best interval so far.

    Raises:
        InvalidInputError: the pair is not context-free, or the number of drafts, the length, the gap or the
            time limit is invalid.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> found = context_free_interval(pair, 2, relative_gap=1e-2)
        >>> found.lower <= 212 / 81 <= found.upper, found.reached
        (True, True)
    """
    pair, num_drafts = check_pair(pair), check_num_drafts(num_drafts)
    if not pair.context_free:
        raise InvalidInputError("the pair is not context-free; use multi_path_interval")
    length = pair.draft_length if draft_length is None else check_count("draft_length", draft_length)
    check_positive("relative_gap", relative_gap)
    if time_limit is not None:
        check_positive("time_limit", time_limit)
    started = time.monotonic()
    search = _Search(Ratios.of(pair), length, num_drafts, relative_gap)

    def after_step() -> None:
        _log.info("optimum: policy %d, [%.9f, %.9f]", search.rounds, search.lower, search.upper)
        if progress is not None:
            progress(search.rounds, search.lower, search.upper)
        if time_limit is not None and time.monotonic() - started >= time_limit:
            raise _TimeLimitReachedError

    status = "stalled"
    try:
        search.run(after_step)
    except _TimeLimitReachedError:
        status = "time limit"
    except KeyboardInterrupt:
        status = "interrupted"
    return Optimum(
        program="multi-path program of a context-free pair",
        method="dynamic programs over promises and scores",
        status="optimal" if search.reached else status,
        value=search.lower,
        lower=search.lower,
        upper=search.upper,
        gap=search.upper - search.lower,
        is_interval=True,
    )


class _TimeLimitReachedError(Exception):
    pass


class _Search:
    """The search over grids, with the best bounds so far."""

    def __init__(self, ratios: Ratios, length: int, num_drafts: int, relative_gap: float) -> None:
        target, draft = ratios.as_arrays()
        self.target, self.draft = target.astype(float), draft.astype(float)
        self.ratios = (target / draft).astype(float)
        self.length, self.num_drafts, self.relative_gap = length, num_drafts, relative_gap
        self.lower, self.upper = 1.0, length + 1.0
        self.rounds, self.segments = 0, 0

    @property
    def reached(self) -> bool:
        return self.upper - self.lower <= self.relative_gap * self.lower

    def run(self, after_step: Callable[[], None]) -> None:
        starts: list[tuple[np.ndarray, np.ndarray]] = []
        for segments in SEGMENTS:
            if self.segments and self.length * len(self.draft) * segments**2 > MOST_WORK:
                return
            self.segments = segments
            starts = self._on_grid(Promises.of(segments, self.num_drafts), starts, after_step)
            if self.reached or not starts:
                return

    def _on_grid(
        self,
        promises: Promises,
        starts: list[tuple[np.ndarray, np.ndarray]],
        after_step: Callable[[], None],
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Improve the bounds on one grid.

        Args:
            starts: initial prices, best first.  Each is (promises, slopes of the price A* at them).

        Returns:
            Initial prices for the next grid; an empty list if HiGHS failed.
        """
        grid = promises.grid
        prices = [_resampled(at, slopes, grid) for at, slopes in starts] or [np.full(len(grid) - 1, 0.0)]
        if not starts:
            prices[0] = np.linspace(0.0, min(2.0, self.length), len(grid) - 1)
        policies = [self._same_promise(promises)]
        best, center, bound = prices[0], prices[0], np.inf
        for step in range(STEPS_PER_GRID):
            trial = prices[step] if step < len(prices) else CAUTION * center + (1.0 - CAUTION) * best
            value, policy = self._policy(promises, trial)
            self.rounds += 1
            policies.append(policy)
            if value < bound:
                bound, center = value, trial
            if step + 1 < len(prices):
                continue
            try:
                shares, best = _mixture(promises, policies)
            except SolverError as error:
                _log.info("optimum: %s", error)
                return []
            lower = self._certified_lower(promises, policies, shares)
            self.lower = max(self.lower, lower)
            if step % 25 == 24:
                self.upper = min(self.upper, self._certified_upper(promises, center))
            after_step()
            if self.reached or bound - lower <= PRICED * (self.upper - self.lower):
                break
        self.upper = min(self.upper, self._certified_upper(promises, center))
        after_step()
        # we drop the policies of this grid: from the best prices the next grid finds similar ones
        middle = 0.5 * (grid[1:] + grid[:-1])
        return [(middle, slopes) for slopes in (center, best)]

    def _same_promise(self, promises: Promises) -> Policy:
        """Compute the policy with promise 1 at every context.

        Up to the grid, it is block verification of one path.
        """
        slopes = np.where(np.arange(len(promises.grid) - 1) < promises.one, -1e3, 1e3) * self.length
        return self._policy(promises, slopes)[1]

    def _policy(self, promises: Promises, slopes: np.ndarray) -> tuple[float, Policy]:
        """Compute the best policy if promises at the leaves cost A*, convex with these slopes, [n-1].

        Returns:
            E Σ_i x_i - E A*(h_L) + Σ limit A*, an upper bound on all mixtures on this grid; and the policy.
        """
        from spectheory.optima.context_free.promise_passes import best_promises, kept_promises

        grid, first, one, limit = promises
        price = np.append(0.0, np.cumsum(slopes * np.diff(grid)))
        price = price - price[one]
        levels = [np.tile(grid, (len(grid), 1)) - price[:, None]]
        for _ in range(self.length):
            here = np.zeros((len(grid), len(grid)))
            best_promises(levels[-1], grid, first, self.draft, self.ratios, here)
            levels.append(here)
        mass = np.zeros((len(grid), len(grid)))
        mass[one, one], accepted = 1.0, 1.0
        value = float(levels.pop()[one, one] + limit @ price)
        while levels:
            after = np.zeros_like(mass)
            kept_promises(levels.pop(), grid, first, self.draft, self.ratios, mass, after)
            mass = after
            accepted += float(mass.sum(axis=0) @ grid)
        return value, Policy(accepted, mass.sum(axis=1))

    def _certified_lower(self, promises: Promises, policies: list[Policy], shares: np.ndarray) -> float:
        """Certify a lower bound: the mean number of tokens of a mixture of policies, rounded down.

        If the mixture exceeds the limit, we mix in more of the first policy, whose promises are all 1.
        """
        slack = rounding_allowance(self.length * len(self.draft) * len(promises.grid))
        first, limit = policies[0], promises.excess(promises.limit) * (1.0 + slack)
        mixed = promises.excess(shares @ [policy.law for policy in policies])
        over, room = mixed - limit, mixed - promises.excess(first.law)
        wrong = over > 0
        if (room[wrong] <= over[wrong]).any():
            return self.lower
        part = float((over[wrong] / room[wrong]).max(initial=0.0)) * (1.0 + slack)
        accepted = float(shares @ [policy.accepted for policy in policies])
        return ((1.0 - part) * accepted + part * first.accepted) * (1.0 - slack * (self.num_drafts + 3.0))

    def _certified_upper(self, promises: Promises, slopes: np.ndarray) -> float:
        """Certify an upper bound: the dual value for the path scores given by slopes of A*, rounded up.

        A has the slope s at the score c if A* has the slope c at the promise s.  We use one s per cell of a
        grid of scores.  The price of A is the sum of E (φ(U) - s)^+ over the cells times their width.  φ = f'
        and U is uniform, so φ(U) has the limiting law of promises.
        """
        from spectheory.optima.context_free.promise_passes import best_scores

        middle, K = 0.5 * (promises.grid[1:] + promises.grid[:-1]), self.num_drafts
        kept = slice(promises.first, None)
        scores = np.maximum.accumulate(slopes[kept] - slopes[promises.first])
        unit = max(8, min(self.segments // 2, int(MOST_CELLS**0.5 / (self.length + 1))))
        cells = int(np.ceil(scores[-1] * unit)) + 1
        at = (np.arange(cells) + 0.5) / unit
        rising = scores + 1e-12 * np.arange(len(scores))
        found = np.interp(at, rising, middle[kept])
        total = np.append(0.0, np.cumsum(found / unit))  # A at 0, 1/unit, ..
        beyond = total[-1] + K * np.arange(1.0, unit + 1.0) / unit
        extended = np.append(total, beyond)
        rows = np.arange(cells + 1)[:, None] + unit - np.arange(unit + 1)
        level = extended[rows]
        for depth in range(1, self.length + 1):
            here = np.empty((cells + 1, (depth + 1) * unit + 1))
            best_scores(level, self.draft, self.target, unit, float(K), here)
            level = here
        price = float(_excess_of_limit(found, K).sum() / unit)
        value = float((level[0] + np.arange(level.shape[1]) / unit).min()) + price
        largest = K * (cells / unit + self.length + 1.0) + price
        terms = self.length * len(self.draft) * level.shape[1]
        return min(value + rounding_allowance(terms) * largest, self.length + 1.0)


def _excess_of_limit(promises: np.ndarray, num_drafts: int) -> np.ndarray:
    """Compute E (f'(U) - s)^+ = max_u f(u) - s u for every promise s in [0, K], with U uniform on [0, 1]."""
    if num_drafts == 1:
        return np.maximum(1.0 - promises, 0.0)
    ranks = 1.0 - np.minimum(promises / num_drafts, 1.0) ** (1.0 / (num_drafts - 1.0))
    return hit_probability(ranks, num_drafts) - promises * ranks


def _resampled(at: np.ndarray, slopes: np.ndarray, grid: np.ndarray) -> np.ndarray:
    return np.interp(0.5 * (grid[1:] + grid[:-1]), at, slopes)


def _mixture(promises: Promises, policies: list[Policy]) -> tuple[np.ndarray, np.ndarray]:
    """Compute the best mixture whose law of promises is allowed, and the slopes of the price A* of promises.

    We maximise Σ_k λ_k accepted_k over λ ≥ 0 of sum 1.  For every promise s, E (h - s)^+ of the mixed law may
    not exceed its value under ``limit``.  The multiplier of this constraint is the rise of A*'s slope at s.
    """
    from scipy.optimize import linprog

    allowed = promises.excess(promises.limit)
    matrix = np.array([promises.excess(policy.law) for policy in policies]).T / allowed[:, None]
    matrix[matrix < NEGLIGIBLE] = 0.0
    found = linprog(
        [-policy.accepted for policy in policies],
        A_ub=matrix,
        b_ub=np.ones(len(allowed)),
        A_eq=np.ones((1, len(policies))),
        b_eq=[1.0],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None or found.status != 0:
        raise SolverError(f"HiGHS could not mix the policies: {found.message}")
    slopes = np.zeros(len(promises.grid) - 1)
    slopes[promises.first :] = np.cumsum(np.maximum(-found.ineqlin.marginals, 0.0) / allowed)
    shares = np.maximum(found.x, 0.0)
    return shares / shares.sum(), slopes
