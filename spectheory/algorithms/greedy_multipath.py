"""Greedy multi-path block verification: take the highest-ranked path, block-verify against its law."""

from __future__ import annotations

from typing import ClassVar

from spectheory.algorithms.block import Block
from spectheory.arrays import (
    Array,
    divide_or_zero,
    namespace,
    ones_like,
    take_path,
    take_token,
    zeros_like,
)
from spectheory.outcome import Outcome, Verifier, credit_to_first


class GreedyMultipath(Verifier):
    """Greedy multi-path block verification, greedy_multipath.txt Algorithm 1.

    1. Rank tokens at every context by p(x|a)/q(x|a), ascending; tokens with equal ratios by their
       id.  Rank paths lexicographically by the ranks of their tokens             (lines 1-2, Eq. 21)
    2. Select the drafted path with the maximal rank                                       (line 3)
    3. The selected path has the skewed draft law q^Γ(a_{1:i}) = U_i^K - B_i^K, where B_i is the
       draft mass of the paths ranked below a_{1:i} and U_i = B_i + q(a_{1:i})    (line 5, Eqs. 22-23,
       read with the conditional q(t | a_{1:j}) in the inner sums)
    4. Run block verification on the selected path with target p and draft q^Γ             (line 6)

    Lossless; with K = 1 it is ``block``.  It can earn less than ``block`` does on one path, because
    every ranking skews q^Γ away from p when the models agree (THEORY, section 5).

    Example:
        >>> from spectheory import certify, instances
        >>> certify("greedy_multipath", instances.two_token(2), num_drafts=2,
        ...         with_optimum=False).block_efficiency
        Fraction(212, 81)
    """

    name: ClassVar[str] = "greedy_multipath"
    source: ClassVar[str] = "greedy_multipath Alg. 1"
    exchangeable: ClassVar[bool] = True

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        num_drafts = paths.shape[-2]
        selected = select_highest_ranked(paths, target_rows, draft_rows)
        path = take_path(paths, selected)
        target_rows = take_path(target_rows, selected)
        skewed_rows = skewed_draft_rows(path, target_rows, take_path(draft_rows, selected), num_drafts)
        on_path = Block().outcome(
            path[..., None, :], target_rows[..., None, :, :], skewed_rows[..., None, :, :]
        )
        stop_probs = credit_to_first(paths, selected, on_path.stop_probs[..., 0, :])
        # The correction at a prefix is the same whichever path holds it: ask the selected one.
        return Outcome(
            stop_probs, lambda path_index, length: on_path.correction(zeros_like(path_index), length)
        )


def select_highest_ranked(paths: Array, target_rows: Array, draft_rows: Array) -> Array:
    """The index of the drafted path with the lexicographically largest (ratio, token id).  -> [...]

    Paths still in the race at depth i share their first i tokens, hence their row, so that their
    ratios are comparable.
    """
    xp = namespace(target_rows)
    target_on_path = take_token(target_rows[..., :-1, :], paths)
    ratio = divide_or_zero(target_on_path, take_token(draft_rows, paths))
    lowest = zeros_like(ratio[..., 0]) - 1
    in_race = paths[..., 0] == paths[..., 0]
    for depth in range(paths.shape[-1]):
        for key, floor in ((ratio[..., depth], lowest), (paths[..., depth], -1)):
            best = xp.max(xp.where(in_race, key, floor), axis=-1)
            in_race = in_race & (key == best[..., None])
    return xp.argmax(xp.astype(in_race, xp.int64), axis=-1)


def skewed_draft_rows(path: Array, target_rows: Array, draft_rows: Array, num_drafts: int) -> Array:
    """q^Γ(. | a_{1:i}) along one path for i = 0..L-1 (Eqs. 22-23 and 14).  [..., L, V]

    With U - B = q(a_{1:i}), U^K - B^K = q(a_{1:i}) S(U, B) for S(U, B) = sum_j U^j B^(K-1-j), so

        q^Γ(x | a_{1:i}) = q(x | a_{1:i}) S(U_x, B_x) / S(U, B),

    which does not subtract nearly equal powers at deep, unlikely contexts.

    Args:
        path: [..., L] the selected path.
        target_rows: [..., L+1, V] target rows along it.
        draft_rows: [..., L, V] draft rows along it.
        num_drafts: K.
    """
    xp = namespace(draft_rows)
    path_prob = ones_like(draft_rows[..., 0, 0])
    below_path = zeros_like(path_prob)
    rows = []
    for depth in range(path.shape[-1]):
        row = draft_rows[..., depth, :]
        below_token = mass_ranked_below(target_rows[..., depth, :], row)
        below = below_path[..., None] + path_prob[..., None] * below_token
        upper = below + path_prob[..., None] * row
        here = power_sum(below_path + path_prob, below_path, num_drafts)
        rows.append(divide_or_zero(row * power_sum(upper, below, num_drafts), here[..., None]))
        token = path[..., depth]
        below_path = take_token(below, token)
        path_prob = path_prob * take_token(row, token)
    return xp.stack(rows, axis=-2)


def mass_ranked_below(target_rows: Array, draft_rows: Array) -> Array:
    """sum_{t ranked below x} q(t | a) for every token x, ratios p/q ascending, ties by id.  [..., V]

    Tokens with q = 0 may rank anywhere: they are never drafted and add no mass.
    """
    xp = namespace(draft_rows)
    order = xp.argsort(divide_or_zero(target_rows, draft_rows), axis=-1, stable=True)
    in_order = xp.take_along_axis(draft_rows, order, axis=-1)
    below = xp.cumulative_sum(in_order, axis=-1) - in_order
    return xp.take_along_axis(below, xp.argsort(order, axis=-1, stable=True), axis=-1)


def power_sum(upper: Array, lower: Array, num_drafts: int) -> Array:
    """S(u, b) = sum_{j=0}^{K-1} u^j b^(K-1-j), so that u^K - b^K = (u - b) S(u, b)."""
    total, power = ones_like(upper), ones_like(lower)
    for _ in range(num_drafts - 1):
        power = power * lower
        total = total * upper + power
    return total
