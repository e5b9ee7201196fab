"""transformers' logits processors, applied to both models alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spectheory.models.growing_texts import Texts


@dataclass(frozen=True)
class LogitsProcessors:
    """Processors in the form of transformers', functions of (token ids [B, n], scores [B, V]).

    A processor may look at how long a text is.  So those of one length are processed together, with the
    padding before them.  It may look at the row that a text has in its batch.  So every call has B rows, each
    text in its own, as in ``generate`` of transformers; the other rows then mean nothing.  It must not keep
    anything from call to call.

    Attributes:
        processors: applied one after the other.
        batch_size: B.
    """

    processors: Sequence[Any]
    batch_size: int

    def __call__(self, texts: Texts, token_ids: Tensor, logits: Tensor) -> Tensor:
        """Logits of the next token behind drafted tokens [B, K, i].  [B, K, V] -> [B, K, V]"""
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
        """Processed in these places among B rows."""
        all_ids, all_scores = (array.new_zeros((self.batch_size, array.shape[1])) for array in (ids, scores))
        ids, scores = all_ids.index_copy(0, places, ids), all_scores.index_copy(0, places, scores)
        for processor in self.processors:
            scores = processor(ids, scores)
        return scores[places]
