"""A batch of texts that grow at different speeds, in one array of token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(eq=False)
class Texts:
    """B texts in one array, padded on the left so that all prompts end in the same column.

    Attributes:
        token_ids: [B, W]; a text fills columns start to end - 1 of its row.  Other entries are arbitrary.
        starts: [B], the column of the first token.
        ends: [B], one past the column of the last token.
        rows: [B], index of each text in the original batch.
        width: one past the last column that any row uses, or an upper bound of it.  It is known without
            waiting for the device.  No text has more tokens.
    """

    token_ids: Tensor
    starts: Tensor
    ends: Tensor
    rows: Tensor
    width: int

    @staticmethod
    def of(texts: Sequence[Sequence[int]], device: torch.device) -> Texts:
        """Build from token ids; each text needs at least one."""
        width = max(map(len, texts))
        ids = torch.zeros((len(texts), width), dtype=torch.int64)
        for row, tokens in enumerate(texts):
            ids[row, width - len(tokens) :] = torch.tensor(tokens)
        starts = torch.tensor([width - len(tokens) for tokens in texts])
        return Texts.padded(ids.to(device), starts.to(device))

    @staticmethod
    def padded(token_ids: Tensor, starts: Tensor) -> Texts:
        """Build from rows [B, W] that begin at ``starts``, [B], and all end in the last column."""
        rows = torch.arange(len(starts), device=starts.device)
        width = token_ids.shape[1]
        return Texts(token_ids, starts, torch.full_like(starts, width), rows, width)

    @property
    def num_texts(self) -> int:
        return self.token_ids.shape[0]

    @property
    def lengths(self) -> Tensor:
        """Tokens per text, [B]."""
        return self.ends - self.starts

    def first(self, count: int) -> Tensor:
        """Return the first tokens of each text, [B, count]; arbitrary after the end of a shorter text."""
        columns = self.starts[:, None] + torch.arange(count, device=self.starts.device)
        return self.token_ids.gather(1, columns.clamp(max=self.token_ids.shape[1] - 1))

    def last(self, count: int) -> Tensor:
        """Return the last tokens of each text, [B, count]; arbitrary before the start of a shorter text."""
        columns = self.ends[:, None] + torch.arange(-count, 0, device=self.ends.device)
        return self.token_ids.gather(1, columns.clamp(min=0))

    def append(self, tokens: Tensor, counts: Tensor, width: int | None = None) -> None:
        """Append the first ``counts`` of its ``tokens`` to each text.

        Args:
            tokens: [B, n]; entries beyond the count are ignored.
            counts: [B], each from 0 to n.
            width: the new value of ``width``, if the caller knows it; by default ``width`` grows by n.
        """
        room = self.width + tokens.shape[1] - self.token_ids.shape[1]
        if room > 0:  # double the width, so that texts are rarely copied
            more = self.token_ids.new_zeros((self.num_texts, room + self.token_ids.shape[1]))
            self.token_ids = torch.cat([self.token_ids, more], dim=1)
        columns = self.ends[:, None] + torch.arange(tokens.shape[1], device=self.ends.device)
        self.token_ids.scatter_(1, columns, tokens)
        self.ends = self.ends + counts
        self.width = self.width + tokens.shape[1] if width is None else width

    def select(self, rows: Tensor) -> Texts:
        return Texts(self.token_ids[rows], self.starts[rows], self.ends[rows], self.rows[rows], self.width)
