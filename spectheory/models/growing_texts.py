"""Texts of a batch that grow at their own pace: token ids in columns, each row between its own two ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(eq=False)
class Texts:
    """B texts.  All prompts end in one column, padded at the left; behind it each row grows by itself.

    Attributes:
        token_ids: [B, W]; entries outside a row's ends mean nothing.
        starts: [B], the column of the first token.
        ends: [B], one past the column of the last token.
        rows: [B], the number that each text had in the first batch.
        width: one past the last column that any row uses, known to the host; no text has more tokens.
    """

    token_ids: Tensor
    starts: Tensor
    ends: Tensor
    rows: Tensor
    width: int

    @staticmethod
    def of(texts: Sequence[Sequence[int]], device: torch.device) -> Texts:
        """Texts of at least one token each."""
        width = max(map(len, texts))
        ids = torch.zeros((len(texts), width), dtype=torch.int64)
        for row, tokens in enumerate(texts):
            ids[row, width - len(tokens) :] = torch.tensor(tokens)
        starts = torch.tensor([width - len(tokens) for tokens in texts])
        return Texts.padded(ids.to(device), starts.to(device))

    @staticmethod
    def padded(token_ids: Tensor, starts: Tensor) -> Texts:
        """Texts that all end in the last column, [B, W], and begin at ``starts``, [B]."""
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
        """The first tokens of each text, [B, count]; behind a shorter text they mean nothing."""
        columns = self.starts[:, None] + torch.arange(count, device=self.starts.device)
        return self.token_ids.gather(1, columns.clamp(max=self.token_ids.shape[1] - 1))

    def last(self, count: int) -> Tensor:
        """The last tokens of each text, [B, count]; before a shorter text they mean nothing."""
        columns = self.ends[:, None] + torch.arange(-count, 0, device=self.ends.device)
        return self.token_ids.gather(1, columns.clamp(min=0))

    def append(self, tokens: Tensor, counts: Tensor, width: int | None = None) -> None:
        """Lengthen each row by the first ``counts`` of its ``tokens``.

        Args:
            tokens: [B, n]; those beyond the count mean nothing.
            counts: [B], each from 0 to n.
            width: one past the last column used then, if the host knows it; otherwise n columns more.
        """
        room = self.width + tokens.shape[1] - self.token_ids.shape[1]
        if room > 0:  # twice as wide, so that texts are copied seldom
            more = self.token_ids.new_zeros((self.num_texts, room + self.token_ids.shape[1]))
            self.token_ids = torch.cat([self.token_ids, more], dim=1)
        columns = self.ends[:, None] + torch.arange(tokens.shape[1], device=self.ends.device)
        self.token_ids.scatter_(1, columns, tokens)
        self.ends = self.ends + counts
        self.width = self.width + tokens.shape[1] if width is None else width

    def select(self, rows: Tensor) -> Texts:
        return Texts(self.token_ids[rows], self.starts[rows], self.ends[rows], self.rows[rows], self.width)
