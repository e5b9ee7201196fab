"""Mixed multi-path block verification: use the first draft with probability λ, else the highest-ranked."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar

from spectheory.foundation.arrays import (
    Array,
    argsort,
    like_entries,
    namespace,
    ones_like,
    quotients,
    take_along,
    take_paths,
    take_token,
    zeros_like,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import exact_number, float_tolerance
from spectheory.foundation.kernels import choice
from spectheory.optima.bounds.rankings import Ranking, ratio_ranking
from spectheory.optima.bounds.skewed_draft import RankedPowers, ranked_powers, skewed_draft_rows
from spectheory.verification.algorithms.path_selection.selection import (
    PathSelection,
    SelectedPaths,
    select_highest_ranked,
)

SLOPE_TOLERANCE = 1e-9
"""In floating point, slopes this close to 0 count as 0, so that rounding does not break ties."""


class MixedMultipath(PathSelection):
    """Block verification of the first draft with probability λ, otherwise of the highest-ranked one.

    An algorithm of this package (theory.md Statement 5.8), not of the papers:

    1. With probability λ, which depends on the context only, select the first drafted path.
       Otherwise select the highest-ranked path, as in ``greedy_multipath``
    2. The selected path has law r = λ q + (1-λ) q^Γ, because the first draft has law q and the
       highest-ranked one q^Γ.  Along a path r(x | a) = q(x | a) g(U_x, B_x) / g(U, B) with
       g = λ + (1-λ) S, and U, B, S as in ``skewed_draft_rows``.  This needs on-path values only
    3. Run block verification on the selected path with target p and draft r

    Lossless: λ and r do not depend on the drafts, so this is path selection followed by block
    verification against the law of the selected path (greedy2026 Lemma 4.4).  λ = 1 is
    ``block`` on the first path, λ = 0 is ``greedy_multipath``.  The block efficiency is concave in λ, and the
    best λ is at least as efficient as both.

    By default λ is chosen from the rows at the root, which all drafts share, to maximise the acceptance
    at the first position (``root_mixture``).  With L = 1 this λ is optimal.  For longer drafts it is a
    heuristic: it can be less efficient than ``greedy_multipath`` or ``block``.

    The law r assumes that the common length of the drafts does not depend on them (theory.md Statement 8.13).

    Args:
        first_draft_prob: λ, a Fraction, an int or a float in [0, 1]; a float is converted exactly.
            If it is None, λ is chosen from the rows at the root.
        ranking: any tree-based ranking, as in ``GreedyMultipath``; default p/q.

    Raises:
        InvalidInputError: λ is not a number in [0, 1].

    Example:
        >>> from spectheory import certify, instances
        >>> pair = instances.uniform_equal(1)  # identical models: any ranking does harm
        >>> certify(MixedMultipath(), pair, 2).block_efficiency
        Fraction(2, 1)
        >>> certify(MixedMultipath(Fraction(1, 2)), pair, 2).block_efficiency
        Fraction(15, 8)
        >>> certify("greedy_multipath", pair, 2).block_efficiency
        Fraction(7, 4)
    """

    name: ClassVar[str] = "mixed_multipath"
    source: ClassVar[str] = "this package (theory.md Statement 5.8)"

    def __init__(self, first_draft_prob: Any = None, ranking: Ranking = ratio_ranking) -> None:
        self.first_draft_prob = None if first_draft_prob is None else _as_fraction(first_draft_prob)
        self.ranking = ranking

    def select(self, paths: Array, target_rows: Array, draft_rows: Array) -> SelectedPaths:
        xp = namespace(target_rows)
        if paths.shape[-2] == 1:  # the one draft is selected either way, and r = q
            return SelectedPaths(
                xp.zeros_like(paths[..., 0]), ones_like(target_rows[..., 0, 0]), target_rows, draft_rows
            )
        selected, share, root = self._candidates(paths, target_rows, draft_rows)
        target_rows = take_paths(target_rows, selected)
        skewed_rows = skewed_draft_rows(
            take_paths(paths, selected),
            target_rows,
            take_paths(draft_rows, selected),
            paths.shape[-2],
            self.ranking,
            share[..., None] + zeros_like(target_rows[..., 0, 0]),
            root,
        )
        chances = xp.stack([share, 1 - share], axis=-1)
        return SelectedPaths(selected, chances, target_rows, skewed_rows)

    def candidates(self, paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array]:
        """Step 1: find the first path and the highest-ranked path, with their probabilities."""
        selected, share, _ = self._candidates(paths, target_rows, draft_rows)
        return selected, namespace(share).stack([share, 1 - share], axis=-1)

    def _candidates(
        self, paths: Array, target_rows: Array, draft_rows: Array
    ) -> tuple[Array, Array, RankedPowers]:
        """Return the two paths, [..., 2], λ, and the ranks at the root."""
        highest = select_highest_ranked(paths, target_rows, draft_rows, self.ranking)
        rows = target_rows[..., 0, 0, :], draft_rows[..., 0, 0, :]
        root = ranked_powers(*rows, paths.shape[-2], self.ranking)
        selected = namespace(target_rows).stack([0 * highest, highest], axis=-1)
        return selected, self._share(*rows, root.powers), root

    def _share(self, target_row: Array, draft_row: Array, powers: Array) -> Array:
        """Compute λ, one per batch element, from the rows at the root.  [..., V] -> [...]"""
        if self.first_draft_prob is not None:
            return like_entries(self.first_draft_prob, target_row[..., 0])
        return _best_share(target_row, draft_row, powers)


def root_mixture(
    target_row: Array, draft_row: Array, num_drafts: int, ranking: Ranking = ratio_ranking
) -> Array:
    """Compute the λ that maximises the acceptance at one position, in closed form.  [..., V] -> [...]

        h(λ) = Σ_x min(p(x), λ q(x) + (1-λ) g(x)),    g(x) = q^Γ(x), one position of the ranking

    h is concave and piecewise linear.  Tokens with r(x) < p(x) add q(x) - g(x) to its slope.  A token
    starts or stops to do so at λ_x = (p(x) - g(x)) / (q(x) - g(x)); in both cases the slope falls by
    |q(x) - g(x)|.

    1. The slope at 0+ is the sum of q - g over tokens with g < p, or g = p and q < g.
    2. Sort the λ_x in (0, 1), and subtract the falls one after the other.
    3. Among 0, the λ_x and 1, h is largest from the first point after which the slope is not positive, to
       the first point after which it is negative.

    If this is an interval, λ is its middle.  The block efficiency is concave too, so there it is at least the
    mean of its values at the two ends.

    Args:
        target_row, draft_row: the rows at the root, [..., V].
        num_drafts: K.
        ranking: the order of the tokens.

    Returns:
        λ, [...], rational for rational rows.

    Example:
        >>> import numpy as np
        >>> row = np.array([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)])
        >>> print(root_mixture(row, row, 2), root_mixture(row, row[::-1], 2))
        1 0
    """
    return _best_share(
        target_row, draft_row, ranked_powers(target_row, draft_row, num_drafts, ranking).powers
    )


def _best_share(target_row: Array, draft_row: Array, powers: Array) -> Array:
    """Compute ``root_mixture`` from ``powers``, the S(U_x, B_x) of every token.  q^Γ = q S."""
    share = namespace(draft_row).empty_like(draft_row[..., 0])
    for part in choice.parts_of(draft_row):
        share[part] = _best_share_of_few(target_row[part], draft_row[part], powers[part])
    return share


def _best_share_of_few(target_row: Array, draft_row: Array, powers: Array) -> Array:
    xp, size = namespace(draft_row), draft_row.shape[-1]
    skewed = draft_row * powers
    change, room = draft_row - skewed, target_row - skewed
    rises = (room > 0) | ((room == 0) & (change < 0))
    # A product is several times as fast as ``where`` if the condition is as good as random.
    slope = xp.sum(change * rises, axis=-1, keepdims=True)

    turn = quotients(room, change)
    falls = (turn > 0) & (turn < 1)
    if choice.rows_for_loops(turn):  # tokens without a fall leave the slope, and need not be sorted
        tokens = xp.nonzero(xp.any(falls.reshape((-1, size)), axis=0))[0]
        some = tokens if len(tokens) else slice(0, 1)
        turn, change, falls = turn[..., some], change[..., some], falls[..., some]
        size = turn.shape[-1]
    fall = abs(change) * falls
    turn = xp.where(falls, turn, ones_like(turn))
    order = argsort(turn)
    slopes = slope - xp.cumulative_sum(take_along(fall, order), axis=-1)

    def place_of(goes_on: Callable[[Array], Array]) -> Array:
        """Return the first of 0, the λ_x and 1 after which the slope of h fails the condition."""
        turns = sum(xp.sum(goes_on(some), axis=-1, dtype=xp.int64) for some in (slope, slopes))
        place = take_token(turn, take_token(order, xp.clip(turns - 1, 0, size - 1)))
        place = xp.where(turns == 0, zeros_like(place), place)
        return xp.where(turns > size, ones_like(place), place)

    tolerance = float_tolerance(draft_row, SLOPE_TOLERANCE)
    smallest = place_of(lambda slopes: slopes > tolerance)
    largest = place_of(lambda slopes: slopes >= -tolerance)
    return (smallest + largest) / 2


def _as_fraction(value: Any) -> Fraction:
    try:
        number = exact_number(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"first_draft_prob must be a number between 0 and 1, got {value!r}"
        ) from error
    if not 0 <= number <= 1:
        raise InvalidInputError(f"first_draft_prob must lie between 0 and 1, got {value}")
    return number
