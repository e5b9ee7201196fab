"""Greedy multi-path block verification: take the highest-ranked path, block-verify against its law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from spectheory.algorithms.block import Block
from spectheory.arrays import Array, namespace, ones_like, take_path, take_row, take_token, zeros_like
from spectheory.drafts import DraftProcess
from spectheory.errors import InvalidInputError
from spectheory.outcome import Outcome, Verifier, credit_to_first, first_path_with_prefix
from spectheory.pair import ModelPair
from spectheory.skewed_draft import (
    LeafOrder,
    Ranking,
    SkewedDraft,
    check_leaf_order,
    like_entries,
    like_rows,
    prefix_numbers,
    ranking_keys,
    ratio_ranking,
    skewed_draft_rows,
)


class GreedyMultipath(Verifier):
    """Greedy multi-path block verification, greedy_multipath.txt Algorithm 1.

    1. Rank tokens at every context by p(x|a)/q(x|a), ascending; tokens with equal ratios by their
       id.  Rank paths lexicographically by the ranks of their tokens             (lines 1-2, Eq. 21)
    2. Select the drafted path with the maximal rank                                       (line 3)
    3. The selected path has the skewed draft law q^Γ(a_{1:i}) = U_i^K - B_i^K, where B_i is the
       draft mass of the paths ranked below a_{1:i} and U_i = B_i + q(a_{1:i})    (line 5, Eqs. 22-23,
       read with the conditional q(t | a_{1:j}) in the inner sums)
    4. Run block verification on the selected path with target p and draft q^Γ             (line 6)

    Lossless, for every ranking; with K = 1 it is ``block``.  It can earn less than ``block`` does on
    one path, because every ranking skews q^Γ away from p when the models agree (THEORY, section 5).

    Args:
        ranking: any tree-based ranking (Def. 5.2), a function of a target and a draft row that
            returns one key per token, ascending; ties go by token id.  Default: Eq. 21.

    Example:
        >>> from spectheory import certify, instances
        >>> certify("greedy_multipath", instances.two_token(2), num_drafts=2,
        ...         with_optimum=False).block_efficiency
        Fraction(212, 81)
        >>> likeliest_last = GreedyMultipath(lambda target_rows, draft_rows: draft_rows)
        >>> certify(likeliest_last, instances.two_token(2), num_drafts=2).is_valid
        True
    """

    name: ClassVar[str] = "greedy_multipath"
    source: ClassVar[str] = "greedy_multipath Alg. 1"
    exchangeable: ClassVar[bool] = True

    def __init__(self, ranking: Ranking = ratio_ranking) -> None:
        self.ranking = ranking

    @staticmethod
    def with_order(pair: ModelPair, order: LeafOrder) -> ExplicitRanking:
        """The greedy verifier of any total order on the leaves of a pair (Def. 5.1), lowest first.

        It is bound to the pair, see ``LeafRankings``.
        """
        return ExplicitRanking(pair, order)

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        selected = select_highest_ranked(paths, target_rows, draft_rows, self.ranking)[..., None]
        target_rows = take_paths(target_rows, selected)
        skewed_rows = skewed_draft_rows(
            take_paths(paths, selected),
            target_rows,
            take_paths(draft_rows, selected),
            paths.shape[-2],
            self.ranking,
        )
        certain = ones_like(target_rows[..., 0, 0])
        return verify_selected(paths, selected, certain, target_rows, skewed_rows)


class LeafRankings(Verifier):
    """Draw one of several orders on the leaves, select the top draft, block-verify against its law.

    Bound to one enumerated pair, and refused on any other: verified against the law of another pair's
    drafts the output is not lossless.  Several iterations meet another pair after every context, unless
    it is context-free.  A verifier bound to an exact pair takes that pair in float64 too.

    1. Draw the order P_1 < .. < P_M with its probability, independently of the drafts
    2. Select the highest drafted path                                                   (Def. 5.1)
    3. The selected path has law r = sum of probability * r_order, r_order(P_i) = F_i^K - F_{i-1}^K
       with F_i the draft mass of P_1 .. P_i    (Eq. 19, read with q(P_j) inside the sums over j)
    4. Run block verification on it with target p and draft r                          (Lemma 4.4)

    The verification uses the mixture's law, not that of the order that was drawn.

    Args:
        pair: the models whose leaves are ordered.
        weights: the probabilities of the orders.
        orders: total orders on the leaves, lowest rank first.

    Raises:
        InvalidInputError: an order does not list every leaf once, or the weights are no law.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.law import output_law
        >>> verifier = LeafRankings(instances.two_token(1), [1], [[0, 1]])
        >>> output_law(verifier, instances.uniform_equal(1), 2)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spectheory.errors.InvalidInputError: verifier 'leaf_rankings' is bound to another pair: ...
    """

    name: ClassVar[str] = "leaf_rankings"
    source: ClassVar[str] = "greedy_multipath Def. 5.1, App. H"
    exchangeable: ClassVar[bool] = True

    def __init__(self, pair: ModelPair, weights: Sequence[Any], orders: Sequence[LeafOrder]) -> None:
        if len(weights) != len(orders) or min(weights) < 0 or sum(weights) != 1:
            raise InvalidInputError(
                f"got {len(orders)} orders with weights {[str(weight) for weight in weights]}; give one "
                "weight per order, not negative, with sum exactly 1"
            )
        self.pair = pair
        self.weights = tuple(weights)
        self.orders = tuple(check_leaf_order(pair, order) for order in orders)
        self._drafts: dict[int, SkewedDraft] = {}

    def for_pair(self, pair: ModelPair, process: DraftProcess) -> Verifier:
        """The verifier itself, on the pair it is bound to.

        Raises:
            InvalidInputError: the pair has other rows than that, or the drafts are not i.i.d.
        """
        self.for_drafts(process)
        self._check_shape((pair.draft_length, pair.vocab_size))
        # Rows of an exact and of a float64 pair are compared as floats: rounding one gives the other.
        same_kind = pair.is_exact == self.pair.is_exact
        bound, given = (self.pair, pair) if same_kind else (self.pair.to_float(), pair.to_float())
        difference = _first_difference(bound, given)
        if difference:
            raise InvalidInputError(
                f"verifier {self.name!r} is bound to another pair: {difference} differ; make one for this "
                "pair, or over several iterations, where the rows change with the context, use one that is "
                "bound to none, such as 'greedy_multipath' or 'optimal_multipath' by name"
            )
        return self

    def skewed_draft(self, num_drafts: int) -> SkewedDraft:
        """r, the law of the selected path with K drafts."""
        if num_drafts not in self._drafts:
            drafts = [SkewedDraft.from_order(self.pair, num_drafts, order) for order in self.orders]
            weights = self.weights if self.pair.is_exact else [float(weight) for weight in self.weights]
            self._drafts[num_drafts] = SkewedDraft.mixture(weights, drafts)
        return self._drafts[num_drafts]

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        self._check_shape(tuple(draft_rows.shape[-2:]))
        xp = namespace(target_rows)
        prefixes = prefix_numbers(paths, self.pair.vocab_size)
        tables = self.skewed_draft(paths.shape[-2]).rows
        skewed_rows = xp.stack(
            [like_rows(table, target_rows)[prefixes[..., depth]] for depth, table in enumerate(tables)],
            axis=-2,
        )
        every = xp.zeros_like(paths[..., 0]) + xp.arange(paths.shape[-2], device=paths.device)
        chances = zeros_like(target_rows[..., 0, 0])
        for weight, order in zip(self.weights, self.orders, strict=True):
            position = xp.asarray(np.argsort(order), device=paths.device)
            top = xp.argmax(position[prefixes[..., -1]], axis=-1)[..., None]
            share = like_entries(weight, chances)
            chances = chances + xp.where(every == top, share, zeros_like(share))
        return verify_selected(paths, every, chances, target_rows, skewed_rows)

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        """Refuse draft rows or a pair of another (L, V)."""
        bound = (self.pair.draft_length, self.pair.vocab_size)
        if shape != bound:
            raise InvalidInputError(
                f"verifier {self.name!r} is bound to a pair with (L, V) = {bound}; "
                f"it was given one with {shape}; make one for this pair"
            )


class ExplicitRanking(LeafRankings):
    """Greedy multi-path block verification with any total order on the leaves of one pair (Def. 5.1).

    Not computable on-path in general: the law of the selected path is looked up (Eq. 19).

    Args:
        pair: the models whose leaves are ordered.
        order: every leaf once, lowest rank first: leaf numbers or paths of token ids.

    Example:
        >>> from spectheory import certify, instances
        >>> pair = instances.two_token(2)
        >>> verifier = ExplicitRanking(pair, [(0, 0), (1, 1), (0, 1), (1, 0)])
        >>> certificate = certify(verifier, pair, num_drafts=2)
        >>> certificate.is_valid, certificate.block_efficiency
        (True, Fraction(596, 243))
    """

    name: ClassVar[str] = "explicit_ranking"
    source: ClassVar[str] = "greedy_multipath Def. 5.1, Eq. 19"

    def __init__(self, pair: ModelPair, order: LeafOrder) -> None:
        super().__init__(pair, [1], [order])


def _first_difference(bound: ModelPair, given: ModelPair) -> str | None:
    """Where two pairs of one shape first have different rows, in words; ``None`` if nowhere."""
    for side in ("draft", "target"):
        levels = zip(getattr(bound, side), getattr(given, side), strict=True)
        for depth, (row, other) in enumerate(levels):
            different = np.flatnonzero((row != other).any(axis=1))
            if different.size:
                return f"the {side} rows at context {given.context(depth, int(different[0]))}"
    return None


def verify_selected(
    paths: Array, candidates: Array, chances: Array, target_rows: Array, skewed_rows: Array
) -> Outcome:
    """Select one of C candidate paths at random and block-verify it against the law of the selection.

    Args:
        paths: [..., K, L] the drafted paths.
        candidates: [..., C] indices of drafted paths.
        chances: [..., C] the probability that each is selected; they sum to 1.
        target_rows: [..., C, L+1, V] target rows along the candidates.
        skewed_rows: [..., C, L, V] rows along them of the law r that the selected path has.
    """
    xp = namespace(target_rows)
    on_paths = Block().outcome(
        take_paths(paths, candidates)[..., None, :],
        target_rows[..., None, :, :],
        skewed_rows[..., None, :, :],
    )
    parts = []
    for number in range(candidates.shape[-1]):
        length_probs = chances[..., number, None] * on_paths.stop_probs[..., number, 0, :]
        parts.append(credit_to_first(paths, candidates[..., number], length_probs))
    stop_probs = sum(parts[1:], start=parts[0])
    holders = take_paths(first_path_with_prefix(paths), candidates)

    def correction(path_index: Array, length: Array) -> Array:
        """The row at a prefix is the same on every candidate that holds it: ask the first of them."""
        lengths = xp.zeros_like(candidates) + length[..., None]
        holds = take_token(holders, lengths) == path_index[..., None]
        rows = on_paths.correction(xp.zeros_like(candidates), lengths)
        return take_row(rows, xp.argmax(xp.astype(holds, xp.int64), axis=-1))

    return Outcome(stop_probs, correction)


def take_paths(array: Array, candidates: Array) -> Array:
    """The slices of several drafted paths.  [..., K, N(, V)], [..., C] -> [..., C, N(, V)]"""
    taken = [take_path(array, candidates[..., number]) for number in range(candidates.shape[-1])]
    return namespace(array).stack(taken, axis=candidates.ndim - 1)


def select_highest_ranked(
    paths: Array, target_rows: Array, draft_rows: Array, ranking: Ranking = ratio_ranking
) -> Array:
    """The index of the drafted path with the lexicographically largest (key, token id).  -> [...]

    Paths still in the race at depth i share their first i tokens, hence their row, so that their
    keys are comparable.
    """
    xp = namespace(target_rows)
    in_race = paths[..., 0] == paths[..., 0]
    for depth in range(paths.shape[-1]):
        keys = _keys_on_path(ranking, paths, target_rows, draft_rows, depth)
        for key in (keys, paths[..., depth]):
            lowest = xp.min(key, axis=-1)[..., None]
            best = xp.max(xp.where(in_race, key, lowest), axis=-1)
            in_race = in_race & (key == best[..., None])
    return xp.argmax(xp.astype(in_race, xp.int64), axis=-1)


def _keys_on_path(ranking: Ranking, paths: Array, target_rows: Array, draft_rows: Array, depth: int) -> Array:
    """The key of every path's token at one depth, [..., K]."""
    tokens = paths[..., depth]
    target_row, draft_row = target_rows[..., depth, :], draft_rows[..., depth, :]
    if ranking is ratio_ranking:
        # The ratio is elementwise: at full vocabulary the drafted tokens' entries are enough.
        return ratio_ranking(take_token(target_row, tokens), take_token(draft_row, tokens))
    return take_token(ranking_keys(ranking, target_row, draft_row), tokens)
