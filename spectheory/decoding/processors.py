"""Apply logits processors of transformers to both models."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spectheory.models.growing_texts import Texts


@dataclass(frozen=True)
class LogitsProcessors:
    """Apply processors written for transformers: functions of (token ids [B, n], scores [B, V]).

    A processor may depend on the text length, so we process texts of equal length together, with their
    padding.  It may depend on the index of a text in its batch, so each call has B rows with every text in
    its row, as in ``generate``; the other rows are arbitrary.  It must not keep state between calls.

    Attributes:
        processors: functions to apply in this order.
        batch_size: B.
    """

    processors: Sequence[Any]
    batch_size: int

    def __call__(self, texts: Texts, token_ids: Tensor, logits: Tensor) -> Tensor:
        """Process logits of the next token after drafted tokens [B, K, i].  [B, K, V] -> [B, K, V]"""
        processed = torch.empty_like(logits)
        for length in texts.ends.unique().tolist():
            rows = (texts.ends == length).nonzero()[:, 0]
            ids = texts.token_ids[rows, None, :length].expand(-1, token_ids.shape[1], -1)
            ids = torch.cat([ids, token_ids[rows]], dim=-1)
            for path in range(token_ids.shape[1]):
                scores = self._in_places(ids[:, path], logits[rows, path], texts.rows[rows])
                processed[rows, path] = scores.to(logits.dtype)
        return processed

    def _in_places(self, ids: Tensor, scores: Tensor, places: Tensor) -> Tensor:
        """Run the processors on a batch of B rows, with the given texts in rows ``places``."""
        all_ids, all_scores = (array.new_zeros((self.batch_size, array.shape[1])) for array in (ids, scores))
        ids, scores = all_ids.index_copy(0, places, ids), all_scores.index_copy(0, places, scores)
        for processor in self.processors:
            scores = processor(ids, scores)
        return scores[places]
