"""Samplers of batches with the faults of public reports, each beside its mended form.

The last argument of a function says which form it takes, as in ``public_reports``.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import torch
from torch import Tensor

from public_reports import drawn, residual, verified


def served(row: Any, generator: Any, **changed: Any) -> list[int]:
    """One request of a batch, which may be greedy; a mistake changes its fields first."""
    row = row._replace(**changed)
    if row.is_greedy:
        return greedy(row.draft_tokens.tolist(), row.target_probs)
    return verified(row.draft_tokens.tolist(), row.target_probs, row.draft_probs, generator)


def greedy(path: list[int], p: Tensor) -> list[int]:
    """The likeliest tokens: those that are drafted and one more."""
    likeliest = p.argmax(-1).tolist()
    wrong = (place for place, token in enumerate(path) if token != likeliest[place])
    return list(likeliest[: next(wrong, len(path)) + 1])


def of_greedy_requests(step: Callable[..., list[int]]) -> Callable[..., list[list[int]]]:
    """A sampler of batches that verifies the drafts of greedy requests only: (path, p, form).

    The others get one token of the target, so that branches are few.
    """

    @wraps(step)
    def sampler(rows: Any, generator: Any, right: bool) -> list[list[int]]:
        return [
            step(row.draft_tokens.tolist(), row.target_probs, right)
            if row.is_greedy
            else [drawn(row.target_probs[0], generator)]
            for row in rows
        ]

    return sampler


def filler_temperature(rows: Any, generator: Any, right: bool) -> list[list[int]]:
    """Requests are dealt to two shards of two places; temperatures lie in order, with -1 for no request."""
    found = []
    for number, row in enumerate(rows):
        place = number if right else number % 2 * 2 + number // 2
        p = (row.target_probs.log() / (1 if place < len(rows) else -1)).softmax(-1).nan_to_num(1.0)
        found.append(served(row, generator, target_probs=p))
    return found


@of_greedy_requests
def first_unchecked(path: list[int], p: Tensor, right: bool) -> list[int]:
    """The first draft is kept unseen."""
    kept = 0 if right else len(path[:1])
    return [*path[:kept], *greedy(path[kept:], p[kept:])]


@of_greedy_requests
def zero_temperature(path: list[int], p: Tensor, right: bool) -> list[int]:
    """Logits are divided by the temperature, which is 0."""
    return greedy(path, (p.log() / (1 if right else 0)).softmax(-1))


@of_greedy_requests
def padded_rows(path: list[int], p: Tensor, right: bool) -> list[int]:
    """Logits are padded to a multiple of four, with 0 for minus infinity."""
    filler = torch.full((len(p), -p.shape[-1] % 4), float("-inf") if right else 0.0)
    return greedy(path, torch.cat([p.log(), filler], -1))


def placeholder_is_last_token(rows: Any, generator: Any, right: bool) -> list[list[int]]:
    """The placeholder -1 is an index: it stands for the last token of the vocabulary, and can be accepted."""
    found = []
    for row in rows:
        more = 0 if right or row.is_greedy else row.padding
        last = row.target_probs[-1:].expand(more, -1)
        changed = {
            "draft_tokens": torch.cat([row.draft_tokens, torch.full((more,), last.shape[-1] - 1)]),
            "target_probs": torch.cat([row.target_probs, last]),
            "draft_probs": torch.cat([row.draft_probs, torch.zeros_like(last)]),
        }
        found.append(served(row, generator, **changed))
    return found


def only_placeholders(rows: Any, generator: Any, right: bool) -> list[list[int]]:
    """A request of placeholders only has them as token 0, and they are verified as if drafted for certain."""
    found = []
    for row in rows:
        changed = {}
        if row.padding and not len(row.draft_tokens) and not right:
            changed = {
                "draft_tokens": torch.tensor([0]),
                "target_probs": row.target_probs.expand(2, -1),
                "draft_probs": torch.eye(row.target_probs.shape[-1])[:1],
            }
        found.append(served(row, generator, **changed))
    return found


def _into_a_copy(noise: Tensor, generator: Any) -> None:
    noise[0].exponential_(generator=generator)
    noise[list(range(1, len(noise)))].exponential_()


def _into_rows(noise: Tensor, generator: Any) -> None:
    noise[0].exponential_(generator=generator)
    noise[1:].exponential_()


def _at_once(noise: Tensor, generator: Any) -> None:
    noise.exponential_()


FILLED = {"a copy": _into_a_copy, "rows": _into_rows, "all at once": _at_once}


def seeded_rows(rows: Any, generator: Any, filled: str) -> list[list[int]]:
    """The first request fills its noise by a generator; the others share a draw, into a copy where wrong."""
    q, p = torch.stack([row.draft_probs for row in rows]), torch.stack([row.target_probs for row in rows])
    coins, rest = torch.rand(q.shape[:2]), residual(p[:, :-1], q)
    noise = torch.empty_like(rest)
    FILLED[filled](noise, generator)
    winners, last = (rest / noise).argmax(-1), torch.multinomial(p[:, -1], 1)
    return [
        _told(row, coins[i], winners[i], last[i], row.target_probs, row.draft_probs)
        for i, row in enumerate(rows)
    ]


def _told(row: Any, coins: Tensor, winners: Tensor, last: Any, p: Tensor, q: Tensor) -> list[int]:
    """The tokens of a request whose coins [L], correction tokens [L] and last token are drawn."""
    path = row.draft_tokens.tolist()
    for place, token in enumerate(path):
        if not coins[place] * q[place, token] < p[place, token]:
            return [*path[:place], int(winners[place])]
    return [*path, int(last)]


def flat_engine(rows: Any, generator: Any, fault: str) -> list[list[int]]:
    """A batch is laid out flat, as engines have it: the rows of a request start after those before it.

    A fault is a row, a coin, or noise that is another's, or a start that is right for some lengths only.
    """
    counts = [len(row.draft_tokens) for row in rows]
    starts = [sum(counts[:number]) for number in range(len(rows))]
    if fault == "offset of one length":  # right for two requests
        starts = [0, *counts[:-1]]
    if fault == "offset of equal lengths":
        starts = [counts[0] * number for number in range(len(rows))]
    q = torch.cat([row.draft_probs for row in rows])
    p = torch.cat([row.target_probs[:-1] for row in rows])
    p = p.half().float() if fault == "half precision" else p
    rests = {"no residual": p, "absolute residual": (p - q).abs()}
    rest = rests.get(fault, residual(p, q))
    coins = torch.rand(len(p), generator=generator)
    noise = torch.empty_like(rest[:1] if fault == "noise of tokens" else rest).exponential_(
        generator=generator
    )
    winners = (rest / noise).argmax(-1)
    found = []
    for number, row in enumerate(rows):
        at = slice(starts[number], starts[number] + counts[number])
        mine, chosen, other = q[at], winners[at], coins[at]
        if fault == "draft rows of the first":
            mine = q[: counts[number]]
        if fault == "a thousandth more":
            mine = mine + 0.001
        if fault == "coins of places":
            other = coins[: counts[number]]
        if fault == "winner of the start":
            chosen = chosen[:1].expand(counts[number])
        last = drawn(row.target_probs[-1], generator)
        tokens = _told(row, other, chosen, last, p[at], mine)
        if fault == "bonus always" and len(tokens) <= counts[number]:
            tokens = [*tokens, last]
        found.append(tokens)
    return found


pads_with_zeros = partial(padded_rows, right=False)
"""By name, for the command line."""
