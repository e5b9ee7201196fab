"""Other people's logits processors, applied to both models alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spectheory.models.growing_texts import Texts


@dataclass(frozen=True)
class LogitsProcessors:
    """Processors in the form of transformers', functions of (token ids [N, n], scores [N, V]).

    A processor may look at how long a text is.  So those of one length are processed together.  It must not
    keep anything from call to call.

    Attributes:
        processors: applied one after the other.
        whole_batch: None: texts come unpadded, in any number at a time.  A number B: as in ``generate`` of
            transformers, with the padding before them and in batches of B rows, each text in its own row.
            Processors that were made for such a batch need it.  The other rows then mean nothing.
    """

    processors: Sequence[Any]
    whole_batch: int | None = None

    def __call__(self, texts: Texts, token_ids: Tensor, logits: Tensor) -> Tensor:
        """Logits of the next token behind drafted tokens [B, K, i].  [B, K, V] -> [B, K, V]"""
        lengths = texts.ends - (0 if self.whole_batch else texts.starts)
        num_drafts = token_ids.shape[1]
        processed = torch.empty_like(logits)
        for length in lengths.unique().tolist():
            rows = (lengths == length).nonzero()[:, 0]
            columns = texts.ends[rows, None] + torch.arange(-length, 0, device=rows.device)
            ids = texts.token_ids[rows].gather(1, columns)[:, None].expand(-1, num_drafts, -1)
            ids = torch.cat([ids, token_ids[rows]], dim=-1)
            if self.whole_batch:
                paths = zip(ids.unbind(1), logits[rows].unbind(1), strict=True)
                places = texts.rows[rows]
                scores = torch.stack([self._in_places(*path, places, self.whole_batch) for path in paths], 1)
            else:
                scores = self._process(ids.flatten(0, 1), logits[rows].flatten(0, 1))
                scores = scores.unflatten(0, (-1, num_drafts))
            processed[rows] = scores.to(logits.dtype)
        return processed

    def _process(self, ids: Tensor, scores: Tensor) -> Tensor:
        for processor in self.processors:
            scores = processor(ids, scores)
        return scores

    def _in_places(self, ids: Tensor, scores: Tensor, places: Tensor, count: int) -> Tensor:
        """Processed in these places among ``count`` rows."""
        all_ids, all_scores = (array.new_zeros((count, array.shape[1])) for array in (ids, scores))
        return self._process(all_ids.index_copy(0, places, ids), all_scores.index_copy(0, places, scores))[
            places
        ]
