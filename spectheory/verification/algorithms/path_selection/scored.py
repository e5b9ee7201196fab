"""Scored selection: every drafted path draws a private score, and the path with the largest is verified."""

from abc import abstractmethod
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
from array_api_compat import is_torch_array

from spectheory.foundation.arrays import (
    Array,
    add_scaled,
    divide_or_zero,
    namespace,
    ones_like,
    power_sum,
    take_along,
    zeros_like,
)
from spectheory.foundation.exact_numbers import flint_if_exact, fractions_if_exact, is_exact
from spectheory.foundation.kernels import choice
from spectheory.foundation.unique_rows import unique_row_indices
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.selection import PathSelection, SelectedPaths

LONG_ROWS = 512
"""Rows with at least this many entries are too long to be compared."""


class ScoreState(NamedTuple):
    """The state of a path at a context a: the law μ_a of its score, and t(a), the mass it can still serve.

    A score lies in one of M cells, adjacent intervals of [0, 1] in ascending order, and is uniform inside
    the cell.  So the masses of the cells determine the law exactly.

    Attributes:
        masses: [..., M], the probability of every cell; they sum to 1.
        win_rates: [..., M], the mean over the cell of φ(s) = K s^(K-1).  φ(s) is the density ratio of the
            selected path's score to a draft's score at s.
        served: [...], t(∅) = 1 and t(ax) = min(t(a) p(x|a)/q(x|a), R(ax)).  Block verification keeps a prefix
            a of the selected path with probability t(a)/R(a).  So the block efficiency is
            1 + Σ_{a ≠ ∅} q(a) t(a).
    """

    masses: Array
    win_rates: Array
    served: Array

    @property
    def level(self) -> Array:
        """R(a) = ∫ φ dμ_a, [...]: the selected path passes through a with probability q(a) R(a)."""
        return (self.masses * self.win_rates).sum(-1)


class ScoreSplit(NamedTuple):
    """A split of the law of the score among the next tokens: Σ_x q(x|a) μ_{ax} = μ_a.

    The tokens share G laws, the rows of the plan.  A token's law is the row ``row``, or the mixture of this
    row with weight 1 - ``next_share`` and the next row with weight ``next_share``.

    Attributes:
        plan: [..., G, M], masses of the cells.
        row: [..., V], row indices.
        next_share: [..., V], or ``None`` if no token has a mixture.
    """

    plan: Array
    row: Array
    next_share: Array | None = None

    def write_skewed_rows(self, state: ScoreState, draft_rows: Array, which: Array, room: Array) -> None:
        """Write r(x|a) = q(x|a) R(ax) / R(a) at the contexts ``which`` [N] of n into ``room`` [N, V]."""
        if self.next_share is not None and has_loops(draft_rows, room):
            from spectheory.foundation.kernels.knot_kernels import scale_between_knots

            scale_between_knots(
                draft_rows, self.row, self.next_share, self._factors(state, draft_rows), which, room
            )
        else:
            room[...] = self.skewed_rows(state, draft_rows)[which]

    def _factors(self, state: ScoreState, draft_rows: Array) -> Array:
        """Compute R(ax) / R(a) for every row of the plan, [..., G], in float64, then in the rows' dtype."""
        levels = (self.plan * state.win_rates[..., None, :]).sum(-1)
        return in_kind_of(draft_rows, divide_or_zero(levels, state.level[..., None]))

    def skewed_rows(self, state: ScoreState, draft_rows: Array) -> Array:
        """Compute r(x|a) = q(x|a) R(ax) / R(a) at every context, [..., V]."""
        levels = self._factors(state, draft_rows)
        factors = take_along(levels, self.row)
        if self.next_share is not None:
            steps = take_along(levels[..., 1:] - levels[..., :-1], self.row)
            factors = add_scaled(factors, self.next_share, steps)
        return draft_rows * factors

    def masses(self, context: Array, token: Array) -> Array:
        """Compute μ_{ax} for n contexts, given by index, and a token x each.  [n], [n] -> [n, M]"""
        row = namespace(self.row).astype(self.row[context, token], namespace(self.row).int64)
        masses = self.plan[context, row]
        if self.next_share is None:
            return masses
        return masses + self.next_share[context, token][:, None] * (self.plan[context, row + 1] - masses)


class ScoredSelection(PathSelection):
    """Every drafted path draws a score; the path with the largest score is selected and block-verified.

    An algorithm of this package (theory.md Statement 5.18), not of the papers:

    1. Along every drafted path refine the law of its score, from μ_∅ uniform on [0, 1], such that
       Σ_x q(x|a) μ_{ax} = μ_a.  An algorithm supplies this step as ``split``
    2. Path k draws a score from the law at its end.  Select the path with the largest score.  By step 1 the K
       scores are independent and uniform, so the selected path has law r(a) = q(a) R(a) with
       R(a) = ∫ K s^(K-1) μ_a(ds)
    3. Run block verification on it with target p and draft r, r(x|a) = q(x|a) R(ax) / R(a)

    Lossless for every ``split``, because step 2 holds for every choice of the μ.  The μ may depend on
    the rows on the way to a.  We never draw a score: ``winning_chances`` integrates over it.
    """

    exchangeable: ClassVar[bool] = True

    @abstractmethod
    def cell_edges(self, target_row: Array, draft_row: Array, num_drafts: int) -> Array:
        """Choose the cell edges 0 = e_0 ≤ e_1 ≤ .. ≤ e_M = 1 from the rows at the root.  -> [..., M+1]"""

    @abstractmethod
    def split(self, state: ScoreState, target_row: Array, draft_row: Array) -> ScoreSplit:
        """Choose the laws of the score after every next token, from the state and the rows, [..., V] each."""

    def select(self, paths: Array, target_rows: Array, draft_rows: Array) -> SelectedPaths:
        xp = namespace(target_rows)
        *batch, num_drafts, length = paths.shape
        if num_drafts == 1:  # φ = 1: the only path is selected, with the law of a draft
            return SelectedPaths(paths[..., 0] * 0, ones_like(draft_rows[..., 0, 0]), target_rows, draft_rows)
        target_rows, draft_rows = at_least_single(target_rows), at_least_single(draft_rows)
        # Flatten batch and paths: one row of tokens per drafted path.
        tokens = paths.reshape((-1, length))
        targets, drafts = (rows.reshape((-1, *rows.shape[-2:])) for rows in (target_rows, draft_rows))
        state, which, skewed_rows = self._along(tokens, targets, drafts, num_drafts, together=num_drafts)
        ends = which.reshape((-1, num_drafts))
        first, which = unique_row_indices(ends)
        chances = winning_chances(state.masses[ends[first]])[which].reshape((*batch, num_drafts))
        every = xp.zeros_like(paths[..., 0]) + xp.arange(num_drafts, device=paths.device)
        rows = skewed_rows.reshape(draft_rows.shape)
        return SelectedPaths(every, in_kind_of(drafts, chances), target_rows, rows)

    def score_states(
        self, tokens: Array, target_rows: Array, draft_rows: Array, num_drafts: int
    ) -> ScoreState:
        """Compute the states after n prefixes of drafted paths.  [n, l], [n, ≥l, V], [n, ≥l, V]"""
        rows = at_least_single(target_rows), at_least_single(draft_rows)
        state, which, _ = self._along(tokens, *rows, num_drafts)
        return ScoreState(*(array[which] for array in state))

    def _along(
        self, tokens: Array, targets: Array, drafts: Array, num_drafts: int, together: int = 1
    ) -> tuple[ScoreState, Array, Array]:
        """Compute the score states at the ends of n drafted paths.

        Each distinct context is split only once.  For short rows, two contexts count as equal if their rows
        are equal.  Long rows are too expensive to compare, so we compare the text and the drafted prefix.

        Args:
            tokens, targets, drafts: drafted tokens and the rows along them, [n, l], [n, ≥l, V], [n, ≥l, V].
            num_drafts: number K of paths of a tuple.
            together: number of consecutive paths that continue the same text.

        Returns:
            The distinct states, the index of every path's state, and the rows of r along the paths.
        """
        texts = None
        if is_torch_array(drafts) and drafts.shape[-1] >= LONG_ROWS:
            texts = namespace(tokens).arange(len(tokens), device=tokens.device) // together
        rows = (targets[:, 0], drafts[:, 0]) if texts is None else (texts,)
        first, which = unique_row_indices(*rows, same_objects=True)
        state = self._first_state(targets[first, 0], drafts[first, 0], num_drafts)
        skewed_rows = choice.room_like(drafts)
        for depth in range(tokens.shape[-1]):
            rows = targets[:, depth], drafts[:, depth]
            compared = rows if texts is None else (texts, tokens[:, :depth])
            first, context = unique_row_indices(*compared, which, same_objects=True)
            if len(first) == len(tokens):  # in their own order rows need no copy
                first = context = namespace(tokens).arange(len(tokens), device=tokens.device)
                target_row, draft_row = rows
            else:
                target_row, draft_row = (part[first] for part in rows)
            above = ScoreState(*(array[which[first]] for array in state))
            split = self.split(above, target_row, draft_row)
            split.write_skewed_rows(above, draft_row, context, skewed_rows[:, depth])
            first, which = unique_row_indices(tokens[:, depth], context)
            state = _behind(above, split, target_row, draft_row, context[first], tokens[first, depth])
            del split  # its memory serves the next one
        return state, which, skewed_rows

    def skewed_draft(self, pair: ModelPair, num_drafts: int) -> SkewedDraft:
        """Compute r, the law of the selected path: r(a) = q(a) R(a) at every context of an enumerated pair.

        Its ``block_efficiency`` is the verifier's, computed without enumerating tuples of drafts.

        Example:
            >>> from spectheory import instances, verifiers
            >>> law = verifiers["scored_multipath"].skewed_draft(instances.two_token(1), 2)
            >>> print(law.leaf_law, law.block_efficiency(instances.two_token(1)))
            [Fraction(4, 9) Fraction(5, 9)] 17/9
        """
        num_drafts = check_num_drafts(num_drafts)
        rows = [
            (flint_if_exact(p), flint_if_exact(q)) for p, q in zip(pair.target[:-1], pair.draft, strict=True)
        ]
        state = self._first_state(*rows[0], num_drafts)
        probs = flint_if_exact(pair.draft_path_probs(0))
        levels = [probs * state.level]
        for target_rows, draft_rows in rows:
            contexts, size = draft_rows.shape
            context, token = np.repeat(np.arange(contexts), size), np.tile(np.arange(size), contexts)
            split = self.split(state, target_rows, draft_rows)
            state = _behind(state, split, target_rows, draft_rows, context, token)
            probs = (probs[:, None] * draft_rows).ravel()
            levels.append(probs * state.level)
        return SkewedDraft(tuple(fractions_if_exact(level) for level in levels), pair.vocab_size)

    def _first_state(self, target_row: Array, draft_row: Array, num_drafts: int) -> ScoreState:
        edges = in_double(self.cell_edges(target_row, draft_row, num_drafts))
        lower, upper = edges[..., :-1], edges[..., 1:]
        one = ones_like(edges[..., 0])
        return ScoreState(upper - lower, power_sum(upper, lower, num_drafts), one)


def _behind(
    above: ScoreState, split: ScoreSplit, target_row: Array, draft_row: Array, context: Array, token: Array
) -> ScoreState:
    """Compute the states after one token at each of n contexts, given by index.  [n], [n]"""
    target, draft = (in_double(row[context, token]) for row in (target_row, draft_row))
    demand = above.served[context] * divide_or_zero(target, draft)
    state = ScoreState(split.masses(context, token), above.win_rates[context], demand)
    return state._replace(served=namespace(demand).minimum(demand, state.level))


def has_loops(*rows: Array) -> bool:
    """True if the compiled loops can read the rows: long rows [n, V] on the host."""
    return choice.rows_for_loops(*rows) and rows[0].ndim == 2


def at_least_single(rows: Array) -> Array:
    """Convert half precision to single; return other rows unchanged.

    The cast reads the rows once.  Without it several operators would each convert them, about ten times.
    """
    return rows.float() if is_torch_array(rows) and rows.itemsize == 2 else rows


def in_double(array: Array) -> Array:
    """Convert floats to float64, because a state is rounded at every token.  Rationals stay unchanged."""
    return array if is_exact(array) else namespace(array).astype(array, namespace(array).float64)


def in_kind_of(rows: Array, array: Array) -> Array:
    """Convert numbers to the dtype of the rows.  Rationals stay unchanged."""
    return array if is_exact(array) else namespace(array).astype(array, rows.dtype)


def winning_chances(masses: Array) -> Array:
    """Compute the probability that each of K independent scores is the largest.  [..., K, M] -> [..., K]"""
    chances = [winning_masses(masses, one).sum(-1) for one in range(masses.shape[-2])]
    return namespace(masses).stack(chances, axis=-1)


def winning_masses(masses: Array, one: int) -> Array:
    """Compute, for each cell, the probability that score k of K is the largest and lies in this cell.

    Score k is in cell j with probability m_kj and uniform inside it.  F_kj is the probability that it lies in
    a cell below j.

        P(k wins in j) = m_kj ∫_0^1 Π_{l ≠ k} (F_lj (1-u) + (F_lj + m_lj) u) du.

    We expand the product in the basis u^i (1-u)^(K-1-i), with nonnegative coefficients.  Each basis function
    integrates to 1 / (K binom(K-1, i)).

    Args:
        masses: m, [..., K, M].
        one: k, the index of the winning score.

    Returns:
        [..., M].
    """
    num_drafts = masses.shape[-2]
    upper = namespace(masses).cumulative_sum(masses, axis=-1)
    lower = upper - masses
    products = [ones_like(masses[..., one, :])]
    for other in range(num_drafts):
        if other != one:
            below, above = lower[..., other, :], upper[..., other, :]
            between = [below * same + above * less for less, same in pairwise(products)]
            products = [below * products[0], *between, above * products[-1]]
    binomial, total = 1, zeros_like(products[0])
    for i, product in enumerate(products):
        total = total + product / (num_drafts * binomial)
        binomial = binomial * (num_drafts - 1 - i) // (i + 1)
    return masses[..., one, :] * total
