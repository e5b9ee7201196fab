"""Modify the target across iterations, for verifiers that are lossless only with it (theory.md §4.5).

If an iteration accepts fewer than L tokens, the target is modified for the tokens up to the L-th after its
start.  The next iteration uses this modified target, and may modify it again.  Several modifications can
therefore be active at once, at most L - 1 per text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from spectheory.models.drafting import DraftedBatch
from spectheory.verification.modification import modified_rows
from spectheory.verification.verifier import ModifiedTargetRows


class PathProbs(NamedTuple):
    """Probabilities of a text since the starts of J iterations, under target and draft, [..., J]."""

    target: Tensor
    draft: Tensor


@dataclass
class Modifications:
    """J = L - 1 modifications of the target per text, the oldest first.  An earlier iteration made each.

    Attributes:
        modify: ``modified_target_rows`` of the verifier.
        remaining: [B, J], number of further tokens to which each modification applies.  A modification with 0
            or less has ended.
        target_probs: [B, J], probability of the tokens since that earlier iteration began, under the target
            that the earlier iteration used.
        draft_probs: [B, J], probability of the same tokens under the draft.
    """

    modify: ModifiedTargetRows
    remaining: Tensor
    target_probs: Tensor
    draft_probs: Tensor

    @staticmethod
    def none(modify: ModifiedTargetRows, batch: int, draft_length: int, like: Tensor) -> Modifications:
        ones = like.new_ones((batch, draft_length - 1), dtype=torch.float64)
        return Modifications(modify, torch.zeros_like(ones, dtype=torch.int64), ones, ones)

    def apply(self, drafted: DraftedBatch) -> ModifiedDraft:
        """Apply the modifications to the target's rows on drafted paths."""
        num_drafts, draft_length = drafted.paths.shape[1:]
        rows = drafted.target_rows.clone()
        start = (self.target_probs, self.draft_probs)
        along = [PathProbs(*(probs[:, None].expand(-1, num_drafts, -1) for probs in start))]
        for depth in range(draft_length):
            draft_row, token = drafted.draft_rows[:, :, depth], drafted.paths[:, :, depth]
            active = (self.remaining > depth)[:, None].expand(-1, num_drafts, -1)
            rows[:, :, depth], met = self._over(rows[:, :, depth], draft_row, along[-1], active, num_drafts)
            along.append(_behind(along[-1], met, draft_row, token))
        return ModifiedDraft(drafted, rows, along)

    def after(self, met: ModifiedDraft, path_index: Tensor, length: Tensor, token: Tensor) -> Modifications:
        """Compute the state after an accepted prefix and its correction token; all arguments are [B]."""
        drafted, batch = met.drafted, torch.arange(len(length), device=length.device)
        num_drafts, draft_length = drafted.paths.shape[1:]
        # If a whole path was accepted, all modifications end, so that the row chosen here has no influence.
        depth = length.clamp(max=draft_length - 1)
        own_row = drafted.target_rows[batch, path_index, depth]
        draft_row = drafted.draft_rows[batch, path_index, depth]
        along = (torch.stack(levels, dim=2) for levels in zip(*met.along, strict=True))
        probs = PathProbs(*(levels[batch, path_index, depth] for levels in along))
        active = self.remaining > depth[:, None]
        row, rows_met = self._over(own_row, draft_row, probs, active, num_drafts)
        probs = _behind(probs, rows_met, draft_row, token)
        path = drafted.paths[batch, path_index]
        newest = [
            _prefix_prob(rows[batch, path_index, :draft_length], path, depth) * _entry(last, token)
            for rows, last in ((met.target_rows, row), (drafted.draft_rows, draft_row))
        ]
        remaining = self.remaining - (length + 1)[:, None]
        return Modifications(
            self.modify,
            torch.cat([remaining, (draft_length - 1 - length)[:, None]], dim=1)[:, 1:],
            torch.cat([probs.target, newest[0][:, None]], dim=1)[:, 1:],
            torch.cat([probs.draft, newest[1][:, None]], dim=1)[:, 1:],
        )

    def select(self, rows: Tensor) -> Modifications:
        return Modifications(
            self.modify, self.remaining[rows], self.target_probs[rows], self.draft_probs[rows]
        )

    def _over(
        self, target_row: Tensor, draft_row: Tensor, probs: PathProbs, active: Tensor, num_drafts: int
    ) -> tuple[Tensor, list[Tensor]]:
        """Apply all active modifications to a row, the oldest first.

        The row is [..., V]; ``probs`` and ``active`` are [..., J].

        Returns:
            The modified row, and for each modification the row before it.
        """
        met = []
        for number in range(active.shape[-1]):
            met.append(target_row)
            changed = modified_rows(
                self.modify,
                target_row.double(),
                draft_row.double(),
                probs.target[..., number],
                probs.draft[..., number],
                num_drafts,
            )
            target_row = torch.where(active[..., number, None], changed.to(target_row.dtype), target_row)
        return target_row, met


@dataclass
class ModifiedDraft:
    """Drafted paths with the rows of the modified target.

    Attributes:
        drafted: the drafted paths with the unmodified rows of the target.
        target_rows: [B, K, L+1, V], the modified rows.
        along: for each depth 0..L, the path probabilities [B, K, J] for each modification.
    """

    drafted: DraftedBatch
    target_rows: Tensor
    along: list[PathProbs]


def _behind(probs: PathProbs, met: list[Tensor], draft_row: Tensor, token: Tensor) -> PathProbs:
    """Extend path probabilities by one token.  ``met`` holds the target row that each iteration used."""
    if not met:
        return probs
    target = torch.stack([_entry(row, token) for row in met], dim=-1)
    return PathProbs(probs.target * target, probs.draft * _entry(draft_row, token)[..., None])


def _entry(rows: Tensor, token: Tensor) -> Tensor:
    """Compute the probability of a token, in float64.  [..., V], [...] -> [...]"""
    return rows.gather(-1, token[..., None])[..., 0].double()


def _prefix_prob(rows: Tensor, path: Tensor, length: Tensor) -> Tensor:
    """Compute the probability of the first ``length`` tokens of a path.  [B, L, V], [B, L], [B] -> [B]"""
    probs = _entry(rows, path)
    inside = torch.arange(path.shape[1], device=path.device) < length[:, None]
    return torch.where(inside, probs, 1.0).prod(dim=1)
