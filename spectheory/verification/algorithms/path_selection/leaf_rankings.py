"""Rankings of the leaves of one enumerated pair: draw a ranking, select its top draft, block-verify it."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.arrays import Array, like_entries, like_rows, namespace, ones_like, zeros_like
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.bounds.rankings import LeafOrder, check_leaf_order
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.contexts import prefix_numbers, rows_along
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.path_selection.selection import (
    PathSelection,
    SelectedPaths,
)
from spectheory.verification.verifier import Verifier


class LeafRankings(PathSelection):
    """Draw one of several orders on the leaves, select the top draft, block-verify it against its law.

    The verifier is bound to one enumerated pair and refuses other pairs, on which it would not be lossless.
    So several iterations need a context-free pair.  It also accepts the float64 version of an exact pair.

    1. Draw an order P_1 < .. < P_M by its probability, independently of the drafts
    2. Select the highest drafted path                                                   (Def. 5.1)
    3. The selected path has law r = sum of probability * r_order, r_order(P_i) = F_i^K - F_{i-1}^K
       with F_i the draft mass of P_1 .. P_i    (Eq. 19, read with q(P_j) inside the sums over j)
    4. Run block verification on it with target p and draft r                          (Lemma 4.4)

    The verification uses the law of the mixture, not the law of the order that was drawn.

    Args:
        pair: the models whose leaves are ordered.
        weights: the probabilities of the orders.
        orders: total orders on the leaves, lowest rank first.

    Raises:
        InvalidInputError: an order does not list every leaf once, or the weights are not a law.  ``bind`` and
            ``outcome`` raise it for another pair.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.exact.law import output_law
        >>> verifier = LeafRankings(instances.two_token(1), [1], [[0, 1]])
        >>> output_law(verifier, instances.uniform_equal(1), 2)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        spectheory.foundation.errors.InvalidInputError: verifier 'leaf_rankings' is bound to another pair: ...
    """

    name: ClassVar[str] = "leaf_rankings"
    source: ClassVar[str] = "greedy2026 Def. 5.1, App. H"
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

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> Verifier:
        super().bind(process, pair)
        if pair is None:
            return self
        self._check_shape((pair.draft_length, pair.vocab_size))
        # An exact and a float64 pair are compared as floats, because the rounded exact rows are accepted.
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
        """Return r, the law of the selected path with K drafts."""
        if num_drafts not in self._drafts:
            drafts = [SkewedDraft.from_order(self.pair, num_drafts, order) for order in self.orders]
            weights = self.weights if self.pair.is_exact else [float(weight) for weight in self.weights]
            self._drafts[num_drafts] = SkewedDraft.mixture(weights, drafts)
        return self._drafts[num_drafts]

    def select(self, paths: Array, target_rows: Array, draft_rows: Array) -> SelectedPaths:
        self._check_shape(tuple(draft_rows.shape[-2:]))
        xp = namespace(target_rows)
        prefixes = prefix_numbers(paths, self.pair.vocab_size)
        tables = self.skewed_draft(paths.shape[-2]).rows
        skewed_rows = rows_along([like_rows(table, target_rows) for table in tables], prefixes)
        every = xp.zeros_like(paths[..., 0]) + xp.arange(paths.shape[-2], device=paths.device)
        chances, one = zeros_like(target_rows[..., 0, 0]), ones_like(target_rows[..., 0, 0])
        for weight, order in zip(self.weights, self.orders, strict=True):
            position = xp.asarray(np.argsort(order), device=paths.device)
            top = xp.argmax(position[prefixes[..., -1]], axis=-1)
            is_top = xp.where(every == top[..., None], one, zeros_like(one))
            chances = chances + like_entries(weight, chances) * is_top
        return SelectedPaths(every, chances, target_rows, skewed_rows)

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        bound = (self.pair.draft_length, self.pair.vocab_size)
        if shape != bound:
            raise InvalidInputError(
                f"verifier {self.name!r} is bound to a pair with (L, V) = {bound}; "
                f"it was given one with {shape}; make one for this pair"
            )


def _first_difference(bound: ModelPair, given: ModelPair) -> str | None:
    """Describe the first context at which two pairs of the same shape have different rows, or None."""
    for side in ("draft", "target"):
        levels = zip(getattr(bound, side), getattr(given, side), strict=True)
        for depth, (row, other) in enumerate(levels):
            different = np.flatnonzero((row != other).any(axis=1))
            if different.size:
                return f"the {side} rows at context {given.context(depth, int(different[0]))}"
    return None
