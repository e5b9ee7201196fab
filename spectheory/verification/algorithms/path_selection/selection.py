"""Path selection: select one drafted path, then block-verify it against the law of the selected path."""

from abc import abstractmethod
from typing import NamedTuple

from spectheory.foundation.arrays import (
    Array,
    first_true,
    namespace,
    take_path,
    take_paths,
    take_token,
)
from spectheory.optima.bounds.rankings import Ranking, coarse_ratio_ranking, ranking_keys, ratio_ranking
from spectheory.pairs.contexts import credit_to_first, first_path_with_prefix
from spectheory.verification.algorithms.one_path.block import Block
from spectheory.verification.algorithms.one_path.first_path import path_ratios
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier


class SelectedPaths(NamedTuple):
    """C candidate paths, of which one is selected at random.

    Attributes:
        candidates: [..., C], indices of drafted paths.
        chances: [..., C], selection probability of each candidate; they sum to 1.
        target_rows: [..., C, L+1, V], target rows along the candidates.
        skewed_rows: [..., C, L, V], conditionals of r along each candidate.  r is the law of the selected
            path, over the randomness of drafts and selection.
    """

    candidates: Array
    chances: Array
    target_rows: Array
    skewed_rows: Array


class PathSelection(Verifier):
    """Select one of K drafted paths and block-verify it with target p and draft r, its law.

    An algorithm supplies ``select``.  The verifier is lossless if r really is the law of the selected path
    (theory.md Statement 5.3; greedy2026 Lemma 4.4).

    Example:
        Select the last drafted path, which has the law q like every drafted path:

        >>> from spectheory import certify, instances
        >>> class LastPath(PathSelection):
        ...     name, source = "last_path", "an example"
        ...     def select(self, paths, target_rows, draft_rows):
        ...         last = 0 * paths[..., :1, 0] + paths.shape[-2] - 1
        ...         return SelectedPaths(last, 0 * target_rows[..., :1, 0, 0] + 1,
        ...                              target_rows[..., -1:, :, :], draft_rows[..., -1:, :, :])
        >>> certificate = certify(LastPath(), instances.two_token(2), drafts=2)
        >>> certificate.verdict, certificate.block_efficiency
        ('lossless', Fraction(20, 9))
    """

    @abstractmethod
    def select(self, paths: Array, target_rows: Array, draft_rows: Array) -> SelectedPaths:
        """Choose the candidate paths.  Takes the arguments of ``outcome``."""

    def candidates(self, paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array]:
        """Return ``candidates`` and ``chances`` of ``select``.

        Override it if the rows of ``select`` cost more.  ``output_law`` calls it to find which of two paths
        is selected.
        """
        selected = self.select(paths, target_rows, draft_rows)
        return selected.candidates, selected.chances

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        return block_verify(paths, self.select(paths, target_rows, draft_rows))


def block_verify(paths: Array, selected: SelectedPaths) -> Outcome:
    """Compute the outcome of drawing a candidate from ``paths`` [..., K, L] and block-verifying it."""
    candidates, chances, target_rows, skewed_rows = selected
    block = Block()
    accepted = block.weights(path_ratios(take_paths(paths, candidates), target_rows, skewed_rows))
    on_paths = chances[..., None] * block.stops(accepted, target_rows, skewed_rows)
    numbers = range(candidates.shape[-1])
    parts = [credit_to_first(paths, candidates[..., i], on_paths[..., i, :]) for i in numbers]
    holders = take_paths(first_path_with_prefix(paths), candidates)

    def residual(path_index: Array, length: Array) -> Array:
        """Use the first candidate with this prefix: the row is the same on all candidates that share it."""
        lengths = namespace(candidates).zeros_like(candidates) + length[..., None]
        first = first_true(take_token(holders, lengths) == path_index[..., None])
        rows = CorrectionRows(target_rows, skewed_rows, first, length)
        return block.residual(take_token(take_path(accepted, first), length), rows)

    return Outcome.from_weights(sum(parts[1:], start=parts[0]), residual)


def select_highest_ranked(
    paths: Array, target_rows: Array, draft_rows: Array, ranking: Ranking = ratio_ranking
) -> Array:
    """Find the index of the drafted path with the lexicographically largest (key, token id).  -> [...]

    Paths that are still tied at depth i share their first i tokens and hence their row, so their keys are
    comparable.
    """
    xp = namespace(target_rows)
    in_race = paths[..., 0] == paths[..., 0]
    for depth in range(paths.shape[-1]):
        keys = _keys_on_path(ranking, paths, target_rows, draft_rows, depth)
        for key in (keys, paths[..., depth]):
            # Keys at other contexts are not comparable, so they are replaced by the first key.
            first = take_token(key, first_true(in_race))[..., None]
            best = xp.max(xp.where(in_race, key, first), axis=-1)
            in_race = in_race & (xp.where(in_race, key, first) == best[..., None])
    return xp.argmax(xp.astype(in_race, xp.int64), axis=-1)


def _keys_on_path(ranking: Ranking, paths: Array, target_rows: Array, draft_rows: Array, depth: int) -> Array:
    """Compute the key of every path's token at one depth, [..., K]."""
    tokens = paths[..., depth]
    target_row, draft_row = target_rows[..., depth, :], draft_rows[..., depth, :]
    if ranking in (ratio_ranking, coarse_ratio_ranking):  # each key depends on p and q of its token only
        return ranking(take_token(target_row, tokens), take_token(draft_row, tokens))
    return take_token(ranking_keys(ranking, target_row, draft_row), tokens)
