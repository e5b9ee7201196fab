"""Rounds with one mistake each, as they have shipped, each with its mended partner.

They are the negative controls of audits of rounds.  The verification alone is right: the mistake is in what
the drafter and the verifier share, or in what the drafter says of itself.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from spectheory.auditing.subjects.drafting_rounds import Model


def _as_it_is(row: Tensor) -> Tensor:
    return row


def speculative_round(
    text: Sequence[int],
    target: Model,
    draft: Model,
    draft_length: int,
    generator: Any,
    *,
    drawn_from: Callable[[Tensor], Tensor] = _as_it_is,
    reported: Callable[[Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]] = lambda drawn, rows: drawn,
    shares_noise: bool = False,
    behind: Callable[[Sequence[int], int], Sequence[int]] = lambda text, length: text,
) -> tuple[list[int], Tensor, list[int]]:
    """Draft with Gumbel noise and verify token by token; lossless without a mistake.

    Args:
        text, target, draft, draft_length, generator: as of all rounds.
        drawn_from: the draft model's row -> the row that the token is drawn from.
        reported: (rows that were drawn from, rows of the draft model) -> the draft probabilities.
        shares_noise: a mistake: the correction token is drawn with the noise of the drafted token.
        behind: (text, L) -> the text that the target is asked about; a mistake leaves a token out.
    """
    drafted: list[int] = []
    rows, drawn, noise = [], [], []
    for _ in range(draft_length):
        rows.append(draft([*text, *drafted]))
        drawn.append(drawn_from(rows[-1]))
        noise.append(torch.empty_like(rows[-1]).exponential_(generator=generator))
        drafted.append(int((drawn[-1] / noise[-1]).argmax()))
    told = torch.stack(list(reported(drawn, rows)))
    known = behind(text, draft_length)
    tokens: list[int] = []
    for token, q, shared in zip(drafted, told, noise, strict=True):
        p = target([*known, *tokens])
        if not torch.rand((), generator=generator) * q[token] < p[token]:
            fresh = torch.empty_like(p).exponential_(generator=generator)
            residual = (p - q).clamp(min=0)
            return drafted, told, [*tokens, int((residual / (shared if shares_noise else fresh)).argmax())]
        tokens.append(token)
    return drafted, told, [*tokens, int(torch.multinomial(target([*known, *tokens]), 1, generator=generator))]


def gumbel_coupling(
    text: Sequence[int], target: Model, draft: Model, draft_length: int, generator: Any
) -> tuple[list[int], Tensor, list[int]]:
    """Draft and target draw with the same noise, and the round goes on while they agree; lossless."""
    drafted: list[int] = []
    rows, noise = [], []
    for _ in range(draft_length):
        rows.append(draft([*text, *drafted]))
        noise.append(torch.empty_like(rows[-1]).exponential_(generator=generator))
        drafted.append(int((rows[-1] / noise[-1]).argmax()))
    tokens: list[int] = []
    for token, shared in zip(drafted, noise, strict=True):
        tokens.append(int((target([*text, *tokens]) / shared).argmax()))
        if tokens[-1] != token:
            return drafted, torch.stack(rows), tokens
    bonus = torch.multinomial(target([*text, *tokens]), 1, generator=generator)
    return drafted, torch.stack(rows), [*tokens, int(bonus)]


def _sharper(row: Tensor) -> Tensor:
    return row**2 / (row**2).sum()


def _likeliest(row: Tensor) -> Tensor:
    kept = row * (row >= row.max())
    return kept / kept.sum()


def _in_bfloat16(row: Tensor) -> Tensor:
    rounded = row.bfloat16().float()
    return rounded / rounded.sum()


def _rows_of_the_model(drawn: Sequence[Tensor], rows: Sequence[Tensor]) -> Sequence[Tensor]:
    return rows


def _one_too_early(drawn: Sequence[Tensor], rows: Sequence[Tensor]) -> Sequence[Tensor]:
    return [drawn[0], *drawn[:-1]]


def _without_last_draft(text: Sequence[int], length: int) -> Sequence[int]:
    """A mistake: behind a fully accepted path the cache lacks the last drafted token."""
    return [*text[: length - 1], *text[length:]] if len(text) == length + 1 else text


def _both(**mistake: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The wrong round, and one that draws from the same rows and says so."""
    mended = {name: value for name, value in mistake.items() if name == "drawn_from"}
    return partial(speculative_round, **mistake), partial(speculative_round, **mended)


ROUND_SPECIMENS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "shared_noise": _both(shares_noise=True),
    "other_temperature": _both(drawn_from=_sharper, reported=_rows_of_the_model),
    "filter_on_the_draft_only": _both(drawn_from=_likeliest, reported=_rows_of_the_model),
    "drafts_in_bfloat16": _both(drawn_from=_in_bfloat16, reported=_rows_of_the_model),
    "rows_off_by_one": _both(reported=_one_too_early),
    "cache_without_last_draft": _both(behind=_without_last_draft),
}
"""Name -> (the wrong round, the mended round); the last is wrong in the second of two rounds only."""
