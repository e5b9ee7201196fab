"""An optimal transport plan at one position, as a random choice among at most V rankings of the tokens.

The plan of spectr2023 Eq. 4 has V^{K+1} entries.  The plan here has a few numbers per token for every K.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import (
    at_most_one,
    divide_or_zero,
    hit_probability,
    ones_like,
    positive_part,
    running_minimum,
    zeros_like,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import flint_if_exact, fractions_if_exact
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.optima.greedy_polymatroid import RankingDecomposition
from spectheory.optima.one_position.min_cut import check_single_rows


class OptimalRankings(NamedTuple):
    """A plan: draw a ranking, select the highest-ranked draft X ~ r, keep it with chance min(1, p(X)/r(X)).

    If X is not kept, the output follows max(p - r, 0), normalised.  A uniform number u in [0, 1) chooses the
    ranking: cut the tokens in descending order of p/q at every position whose cut time is at most u, and
    reverse every part.  The highest rank comes first.

    Attributes:
        target_probs: p, [V].
        skewed_row: r, [V], the distribution of the selected draft.
        order: the N tokens with q > 0, in descending order of p/q, [N].
        cut_times: the time of the cut after each of these tokens but the last, in [0, 1], [N-1].
    """

    target_probs: np.ndarray
    skewed_row: np.ndarray
    order: np.ndarray
    cut_times: np.ndarray

    def __bool__(self) -> bool:
        raise no_verdict(self, ".acceptance")

    @property
    def acceptance(self) -> Any:
        """α_K = Σ min(p, r), the probability that the selected draft is kept."""
        return np.minimum(self.target_probs, self.skewed_row).sum()

    @property
    def rankings(self) -> RankingDecomposition:
        """At most N rankings, each with the lowest rank first, and their weights."""
        zero = self.target_probs[0] - self.target_probs[0]
        times = [zero, *sorted(set(self.cut_times.tolist()) - {zero, zero + 1}), zero + 1]
        parts = (np.split(self.order, np.flatnonzero(self.cut_times <= time) + 1) for time in times[:-1])
        orders = tuple(np.concatenate(part[::-1]) for part in parts)
        return RankingDecomposition(tuple(after - time for time, after in pairwise(times)), orders)

    def law_given(self, drafts: Sequence[int]) -> np.ndarray:
        """Compute the law of the output given the drafted tokens, [V].

        The selected draft is the last drafted token in the part of the first drafted token, in the order of
        p/q.  It is the i-th drafted token or a later one if no cut between the first and the i-th is made.
        The probability of this is the smallest time of these cuts.

        Args:
            drafts: token ids that q can draw, in any order.

        Raises:
            InvalidInputError: ``drafts`` is empty or has a token that q cannot draw.

        Example:
            >>> plan = optimal_rankings(["1/3", "2/3"], ["2/3", "1/3"], 2)
            >>> print(*plan.law_given([0, 0]), *plan.law_given([0, 1]))
            3/4 1/4 0 1
        """
        places = np.flatnonzero(np.isin(self.order, drafts))
        if not len(places) or not np.isin(drafts, self.order).all():
            raise InvalidInputError(f"expected one or more tokens that the draft row can draw, got {drafts}")
        one = ones_like(self.target_probs[:1])
        times = (np.min(self.cut_times[first:last], keepdims=True) for first, last in pairwise(places))
        reached = running_minimum(np.concatenate([one, *times]))
        taken = reached - np.concatenate([reached[1:], one - one])
        ratio = divide_or_zero(self.target_probs, self.skewed_row)
        residual = positive_part(self.target_probs - self.skewed_row)
        law, tokens = zeros_like(residual), self.order[places]
        law[tokens] = taken * at_most_one(ratio)[tokens]
        return law + divide_or_zero(residual, zeros_like(residual) + residual.sum()) * (1 - law.sum())


def optimal_rankings(
    target_probs: Sequence[Any] | np.ndarray, draft_probs: Sequence[Any] | np.ndarray, num_drafts: int
) -> OptimalRankings:
    """Compute an optimal transport plan of K i.i.d. drafts at one position, exact for exact rows.

    Source: theory.md Statement 3.10.

    Args:
        target_probs, draft_probs: rows, [V]; strings and Fractions, or float64.
        num_drafts: K.

    Raises:
        InvalidInputError: the rows are not distributions over one vocabulary, or num_drafts is not an integer
            of at least 1.

    Example:
        >>> plan = optimal_rankings(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"], 3)
        >>> print(plan.acceptance, len(plan.rankings.weights))
        199/216 2
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_single_rows(target_probs, draft_probs)
    plan = rankings_of_rows(flint_if_exact(target), flint_if_exact(draft), num_drafts)
    arrays = (plan.target_probs, plan.skewed_row, plan.cut_times)
    exact = [fractions_if_exact(array) for array in arrays]
    return OptimalRankings(exact[0], exact[1], plan.order, exact[2])


def rankings_of_rows(target: np.ndarray, draft: np.ndarray, num_drafts: int) -> OptimalRankings:
    """Compute ``optimal_rankings`` without checks.  The rows must be distributions of one arithmetic."""
    best = optimal_skewed_row(target, draft, num_drafts)
    times = _cut_times(best.positions, best.limits, best.reached, num_drafts)
    return OptimalRankings(target, best.skewed_row, best.order, times)


class SkewedRow(NamedTuple):
    """An optimal law r of the selected draft, Σ min(p, r) = α_K, with the minimum cut that proves it.

    Attributes:
        skewed_row: r, [V].
        order: the N tokens with q > 0, in descending order of p/q, [N].
        cut: the number of tokens before the minimum cut.  They have r ≤ p, the tokens after it r ≥ p.
        positions: z_i, the probability under q of the first i tokens, [N+1].
        limits: F(z_i) = 1 - (1 - z_i)^K, the probability that one of these i tokens is drafted, [N+1].
        reached: r_1 + .. + r_i, [N+1].
    """

    skewed_row: np.ndarray
    order: np.ndarray
    cut: int
    positions: np.ndarray
    limits: np.ndarray
    reached: np.ndarray


def optimal_skewed_row(target: np.ndarray, draft: np.ndarray, num_drafts: int) -> SkewedRow:
    """Compute the optimal law r of the selected draft by a sort and sums (theory.md Statement 3.10).

    Let m_i = F(z_i) - (p_1 + .. + p_i) in descending order of p/q.  Its least entry is the minimum cut, and

        r_1 + .. + r_i = p_1 + .. + p_i + max(min_{k≤i} m_k, min_{k≥i} m_k).

    On each side of the cut r/q descends.
    """
    order = SortedByRatio.of(-target, draft).order
    order = order[draft[order] > 0]
    positions, demanded = (_cumulative(row[order]) for row in (draft, target))
    limits = hit_probability(positions, num_drafts)
    surplus = limits - demanded
    highest = np.maximum(running_minimum(surplus), running_minimum(surplus[::-1])[::-1])
    skewed = zeros_like(target)
    # r_i is p_i plus a difference that is often 0; rounding must not make it negative
    taken = positive_part(target[order] + np.diff(highest))
    # nor larger than P(the token is drafted), which can be below the rounding error
    skewed[order] = np.minimum(taken, hit_probability(draft[order], num_drafts))
    return SkewedRow(skewed, order, int(np.argmin(surplus)), positions, limits, demanded + highest)


def _cumulative(values: np.ndarray) -> np.ndarray:
    return np.concatenate([zeros_like(values[:1]), np.cumsum(values)])


def _cut_times(positions: np.ndarray, limits: np.ndarray, reached: np.ndarray, num_drafts: int) -> np.ndarray:
    """Compute the time at which each cut between neighbouring tokens is made, [N-1].

    A part a < i ≤ b of the tokens is reversed with the largest probability λ for which the remainder of r is
    still feasible.  Let P_i = r_1 + .. + r_i, and V_i the same sum under the reversal.  The remainder has the
    sums (P_i - λ V_i) / (1 - λ), which may not exceed F(z_i):

        λ = min_i (F(z_i) - P_i) / (F(z_i) - V_i),   V_i = F(z_a) + F(z_b) - F(z_a + z_b - z_i).

    The part is cut at the i that attains the minimum.  In the remainder r/q descends too, so we repeat this
    until every part is a single token.
    """
    times = ones_like(positions[1:-1])
    parts = [(0, len(times) + 1, zeros_like(positions[:1]), reached)]
    while parts:
        start, end, time, reached = parts.pop()
        if end - start < 2:
            continue
        inside = slice(start + 1, end)
        mirrored = positions[start] + positions[end] - positions[inside]
        reversed_ = limits[start] + limits[end] - hit_probability(mirrored, num_drafts)
        # negative only by rounding, if all tokens on one side of a cut are rare
        room, most = (positive_part(limits[inside] - mass) for mass in (reached[1:-1], reversed_))
        chances = at_most_one(divide_or_zero(room, most))
        chance = np.min(chances, keepdims=True)
        time = time + chance * (1 - time)
        cuts = start + 1 + np.flatnonzero(chances == chance)
        times[cuts - 1] = time
        if chance == 1:
            continue
        reached = np.concatenate([limits[start : start + 1], reached[1:-1], limits[end : end + 1]])
        reached[1:-1] = (reached[1:-1] - chance * reversed_) / (1 - chance)
        reached[cuts - start] = limits[cuts]
        for first, last in pairwise([start, *cuts.tolist(), end]):
            parts.append((first, last, time, reached[first - start : last - start + 1]))
    return times
