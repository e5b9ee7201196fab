"""Schedules, draft maps and processors of engines: with one mistake each, and their right partners."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

LIKELY = 0.5
"""A drafted token with a smaller probability is unlikely."""


def _confidences(tokens: Tensor, rows: Tensor) -> Tensor:
    """The probabilities of the drafted tokens, [B, L]."""
    return rows.gather(-1, tokens[..., None])[..., 0]


def drop_unlikely(tokens: Tensor, rows: Tensor) -> Tensor:
    """Verifies the tokens before the first unlikely one."""
    return (_confidences(tokens, rows) > LIKELY).long().cumprod(1).sum(1)


def stop_after_unlikely(tokens: Tensor, rows: Tensor) -> Tensor:
    """Verifies the first unlikely token too, and nothing after it."""
    return (drop_unlikely(tokens, rows) + 1).clamp(max=tokens.shape[1])


def all_or_nothing(tokens: Tensor, rows: Tensor) -> Tensor:
    """Verifies the draft if every token is likely."""
    return (_confidences(tokens, rows) > LIKELY).all(1) * tokens.shape[1]


def look_ahead(tokens: Tensor, rows: Tensor) -> Tensor:
    """Verifies a token if the next one is likely too."""
    return (drop_unlikely(tokens, rows) - 1).clamp(min=0)


def one_length_for_all(tokens: Tensor, rows: Tensor) -> list[int]:
    """Stops all requests after the first position at which the likeliest token of some row is unlikely."""
    unsure = (rows.max(-1).values <= LIKELY + 0.25).any(0)
    return [int((~unsure).long().cumprod(0).sum())] * len(tokens)


def rank_by_survival(tokens: Tensor, rows: Tensor, of_drafted_token: bool = False) -> list[int]:
    """Gives L slots to the positions that survive most probably, by the largest probability of each row.

    Args:
        tokens, rows: as of all schedules.
        of_drafted_token: a mistake: the confidence is the probability of the drafted token itself.
    """
    confidences = _confidences(tokens, rows) if of_drafted_token else rows.max(-1).values
    lengths = [0] * len(tokens)
    for _ in range(tokens.shape[1]):
        survivals = [
            float(row[: done + 1].prod()) if done < len(row) else -1.0
            for row, done in zip(confidences, lengths, strict=True)
        ]
        lengths[survivals.index(max(survivals))] += 1
    return lengths


def both_if_equal(tokens: Tensor, rows: Tensor) -> list[int]:
    """Verifies one token of every request, if all requests drafted the same."""
    return [int(len(set(tokens[:, 0].tolist())) == 1)] * len(tokens)


def each_by_the_other(tokens: Tensor, rows: Tensor) -> list[int]:
    """Verifies one token of a request if the request beside it drafted token 0; one request always."""
    if len(tokens) == 1:
        return [1]
    return [int(tokens[number - 1, 0] == 0) for number in range(len(tokens))]


IMAGES = torch.tensor([0, 0, 1, 2])
"""Draft token -> target token: two tokens of one image."""
ORDER = torch.tensor([2, 0, 3, 1])
"""The same, one to one in another order."""
MAPPED = 3
"""The first tokens of the draft that the target has, where a head is pruned."""


def merge(tokens: Tensor, rows: Tensor, sums: bool = True) -> tuple[Tensor, Tensor]:
    """Maps two tokens to one and sums their probabilities; a mistake keeps the last of them."""
    found = torch.zeros(len(rows), MAPPED)
    return IMAGES[tokens], found.index_add_(1, IMAGES, rows) if sums else found.index_copy_(1, IMAGES, rows)


def reorder(tokens: Tensor, rows: Tensor, shift: int = 0) -> tuple[Tensor, Tensor]:
    """Maps tokens and rows by one table; a mistake moves the entries of the row, or returns it unmapped."""
    return ORDER[tokens], torch.zeros_like(rows).index_copy_(1, (ORDER + shift) % len(ORDER), rows)


def prune(tokens: Tensor, rows: Tensor, renormalise: bool = True) -> tuple[Tensor, Tensor]:
    """Ends the draft at a token that the target does not have; a mistake hands over the raw row."""
    count = int((tokens < MAPPED).long().cumprod(0).sum())
    kept = rows[:count, :MAPPED]
    return tokens[:count], kept / kept.sum(-1, keepdim=True) if renormalise else kept


def replace_unmapped(tokens: Tensor, rows: Tensor, adds: bool = True) -> tuple[Tensor, Tensor]:
    """Changes a token that the target does not have to token 0; a mistake does not add its probability."""
    found = rows[:, :MAPPED].clone()
    found[:, 0] += rows[:, MAPPED:].sum(-1) * adds
    return torch.where(tokens < MAPPED, tokens, 0), found


TextOf = Callable[[Sequence[int], Sequence[int], int], Sequence[int]]
"""(prompt, drafted tokens, row) -> the text that a penalty reads."""


def penalise(
    text: Sequence[int], draft_tokens: Sequence[int], rows: Tensor, text_of: TextOf | None = None
) -> Tensor:
    """A presence penalty that halves weights, on all rows of a window; a mistake reads another text."""
    weights = rows.clone()
    for number in range(len(rows)):
        known = [*text, *draft_tokens[:number]]
        for token in set(known if text_of is None else text_of(text, draft_tokens, number)):
            weights[number, token] /= 2
    return weights / weights.sum(-1, keepdim=True)


def keep_two(text: Sequence[int], draft_tokens: Sequence[int], rows: Tensor, bonus: bool = True) -> Tensor:
    """Top-k of 2 on all rows of a window; a mistake leaves the bonus row out."""
    kept = torch.where(rows >= rows.topk(2).values[:, -1:], rows, 0)
    kept /= kept.sum(-1, keepdim=True)
    return torch.cat([kept[:-1], rows[-1:]]) if draft_tokens and not bonus else kept


def _only_first_row(text: Sequence[int], drafted: Sequence[int], number: int) -> Sequence[int]:
    return text if number == 0 else ()


DRAFTER_SPECIMENS: Mapping[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    "drop_unlikely": ("schedule", drop_unlikely, stop_after_unlikely),
    "all_or_nothing": ("schedule", all_or_nothing, stop_after_unlikely),
    "look_ahead": ("schedule", look_ahead, one_length_for_all),
    "own_confidence": ("schedule", partial(rank_by_survival, of_drafted_token=True), rank_by_survival),
    "both_if_equal": ("schedule", both_if_equal, rank_by_survival),
    "each_by_the_other": ("schedule", each_by_the_other, rank_by_survival),
    "last_write_wins": ("draft_map", partial(merge, sums=False), merge),
    "shifted_row": ("draft_map", partial(reorder, shift=1), reorder),
    "permuted_row": ("draft_map", lambda tokens, rows: (ORDER[tokens], rows), reorder),
    "unmapped_dropped": ("draft_map", partial(prune, renormalise=False), prune),
    "unmapped_to_zero": ("draft_map", partial(replace_unmapped, adds=False), replace_unmapped),
    "without_drafted_tokens": ("processors", partial(penalise, text_of=lambda t, d, n: t), penalise),
    "lags_one_token": (
        "processors", partial(penalise, text_of=lambda t, d, n: [*t, *d[: max(0, n - 1)]]), penalise,
    ),
    "all_drafted_tokens": ("processors", partial(penalise, text_of=lambda t, d, n: [*t, *d]), penalise),
    "judged_token_included": (
        "processors", partial(penalise, text_of=lambda t, d, n: [*t, *d[: n + 1]]), penalise,
    ),
    "first_row_only": ("processors", partial(penalise, text_of=_only_first_row), penalise),
    "bonus_row_raw": ("processors", partial(keep_two, bonus=False), keep_two),
}  # fmt: skip
"""Name -> (signature of an audit, the mistake, its right partner)."""
