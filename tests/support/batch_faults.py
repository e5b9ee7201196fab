"""Ten honest bugs of batched samplers, and the right samplers that each differs from in one step.

All have the signature ``batch`` and claim every batch: ragged, with requests without drafts, with
placeholders, and with greedy requests beside random ones.  A greedy request has one-hot target rows.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot
from torch.nn.utils.rnn import pad_sequence

PLACEHOLDER = -1


class Flat(NamedTuple):
    """The tensors of a batch as a scheduler lays them out, one request behind the other.

    Attributes:
        draft_tokens: [N], with placeholders.
        counts: [B], the places of every request in ``draft_tokens``.
        target_probs: [N+B, V], a request has one row more than places.
        draft_probs: [N, V], zeros at a placeholder.
        greedy: [B].
    """

    draft_tokens: Tensor
    counts: Tensor
    target_probs: Tensor
    draft_probs: Tensor
    greedy: Tensor


def _padded_request(row: Any) -> tuple[Tensor, Tensor, Tensor]:
    """A request's tokens, target rows and draft rows, with its placeholders."""
    vocabulary = row.target_probs.shape[-1]
    return (
        torch.cat([row.draft_tokens, torch.full((row.padding,), PLACEHOLDER)]),
        torch.cat([row.target_probs, torch.full((row.padding, vocabulary), 1 / vocabulary)]),
        torch.cat([row.draft_probs, torch.zeros(row.padding, vocabulary)]),
    )


def _flat(rows: Sequence[Any]) -> Flat:
    tokens, target, draft = zip(*map(_padded_request, rows), strict=True)
    return Flat(
        torch.cat(tokens),
        torch.tensor([len(own) for own in tokens]),
        torch.cat(target),
        torch.cat(draft),
        torch.tensor([row.is_greedy for row in rows]),
    )


def _sharpened(target: Tensor, greedy: Tensor) -> Tensor:
    """Rows of temperature 0 become one-hot."""
    return torch.where(greedy[..., None], one_hot(target.argmax(-1), target.shape[-1]).to(target), target)


def _correction(target: Tensor, draft: Tensor) -> Tensor:
    """The residual, or the target where rounding leaves none."""
    residual = (target - draft).clamp(min=0)
    return torch.where(residual.sum(-1, keepdim=True) > 0, residual, target)


def _winners(weights: Tensor, generator: Any) -> Tensor:
    return (weights / torch.empty_like(weights).exponential_(generator=generator)).argmax(-1)


def _answers(buffer: Tensor) -> list[list[int]]:
    return [[token for token in row if token != PLACEHOLDER] for row in buffer.tolist()]


def _starts(counts: Tensor, rows: Sequence[Any]) -> Tensor:
    return counts.cumsum(0) - counts


def _flags(greedy: Tensor, counts: Tensor) -> Tensor:
    return greedy.repeat_interleave(counts)


def _bonus_rows(counts: Tensor) -> Tensor:
    return (counts + 1).cumsum(0) - 1


def _bonus_places(finished: list[int]) -> list[int]:
    return finished


def _buffer(requests: int, width: int) -> Tensor:
    return torch.full((requests, width), PLACEHOLDER)


def _flat_verified(
    rows: Sequence[Any],
    generator: Any,
    *,
    starts: Callable[[Tensor, Sequence[Any]], Tensor] = _starts,
    flags: Callable[[Tensor, Tensor], Tensor] = _flags,
    bonus_rows: Callable[[Tensor], Tensor] = _bonus_rows,
    bonus_places: Callable[[list[int]], list[int]] = _bonus_places,
    buffer: Callable[[int, int], Tensor] = _buffer,
) -> list[list[int]]:
    """Token verification of a flat batch; bonus tokens are drawn for the requests without a rejection."""
    tokens, counts, probs, draft, greedy = _flat(rows)
    places = torch.arange(len(tokens))
    requests = torch.arange(len(rows))
    target = probs[places + requests.repeat_interleave(counts)]
    target = _sharpened(target, flags(greedy, counts)[: len(tokens)])
    last = _sharpened(probs[bonus_rows(counts)], greedy)
    coins = torch.rand(len(tokens), generator=generator)
    corrections = _winners(_correction(target, draft), generator)
    answers = buffer(len(rows), int(counts.max()) + 1)
    finished = []
    begin = starts(counts, rows).tolist()
    for request, count in enumerate(counts.tolist()):
        start = begin[request]
        for place in range(count):
            slot, token = start + place, int(tokens[start + place])
            if token == PLACEHOLDER or not coins[slot] * draft[slot, token] < target[slot, token]:
                answers[request, place] = int(corrections[slot])
                break
            answers[request, place] = token
        else:
            finished.append(request)
    bonus = torch.zeros(len(rows), dtype=torch.int64)
    if finished:
        drawn = _winners(last[finished], generator)
        for place, token in zip(bonus_places(finished), drawn, strict=True):
            bonus[place] = int(token)
        for request in finished:
            answers[request, counts[request]] = bonus[request]
    return _answers(answers)


def flat(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """A flat batch, token by token; lossless."""
    return _flat_verified(rows, generator)


def previous_bonus_rows(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """A bonus row is found without the bonus rows before it: wrong from the second request on."""
    return _flat_verified(rows, generator, bonus_rows=lambda counts: counts.cumsum(0))


def one_step_of_a_scan(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """A prefix sum has its first step only: wrong for the fourth request if the first one has drafts."""

    def starts(counts: Tensor, _: Sequence[Any]) -> Tensor:
        ends = counts.clone()
        ends[1:] += counts[:-1]
        return ends.roll(1).index_fill(0, torch.tensor(0), 0)

    return _flat_verified(rows, generator, starts=starts)


def placeholders_not_counted(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """Offsets leave out placeholders, which the tensors hold: wrong behind a request with placeholders."""

    def starts(_: Tensor, rows: Sequence[Any]) -> Tensor:
        counts = torch.tensor([len(row.draft_tokens) for row in rows])
        return counts.cumsum(0) - counts

    return _flat_verified(rows, generator, starts=starts)


def flags_of_empty_requests(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """Flags are repeated at least once: wrong behind a request without drafts where the flags differ."""
    return _flat_verified(
        rows, generator, flags=lambda greedy, counts: greedy.repeat_interleave(counts.clamp(min=1))
    )


def bonus_tokens_packed(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """Bonus tokens are stored by rank and read by request: wrong behind a request with a rejection."""
    return _flat_verified(rows, generator, bonus_places=lambda finished: list(range(len(finished))))


_KEPT: dict[tuple[int, int], Tensor] = {}


def buffer_kept(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """The answers' buffer is not refilled: a rejection is followed by the tokens of the batch before."""

    def buffer(requests: int, width: int) -> Tensor:
        return _KEPT.setdefault((requests, width), _buffer(requests, width))

    return _flat_verified(rows, generator, buffer=buffer)


def greedy_first(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """Greedy requests are sorted to the front, and the answers sorted back; lossless."""
    order = sorted(range(len(rows)), key=lambda request: not rows[request].is_greedy)
    answers = _flat_verified([rows[request] for request in order], generator)
    return [answers[order.index(request)] for request in range(len(rows))]


def sorted_twice(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """Answers are sorted once more instead of back: wrong for a greedy request behind two random ones."""
    order = sorted(range(len(rows)), key=lambda request: not rows[request].is_greedy)
    answers = _flat_verified([rows[request] for request in order], generator)
    return [answers[request] for request in order]


def _padded_verified(
    rows: Sequence[Any],
    generator: Any,
    *,
    bonus_columns: Callable[[Tensor], Any] = lambda counts: counts,
    coins_of: Callable[[Tensor, int, Any], Tensor] = lambda counts, width, generator: torch.rand(
        len(counts), width, generator=generator
    ),
) -> list[list[int]]:
    """Token verification of all requests at once; draft rows are repeated up to the longest request."""
    requests = [_padded_request(row) for row in rows]
    counts = torch.tensor([len(own) for own, _, _ in requests])
    width = int(counts.max())
    tokens = pad_sequence([own for own, _, _ in requests], batch_first=True, padding_value=PLACEHOLDER)
    target = pad_sequence([own for _, own, _ in requests], batch_first=True)
    target = _sharpened(target, torch.tensor([row.is_greedy for row in rows])[:, None])
    draft = torch.zeros_like(target)
    for request, (_, _, own) in enumerate(requests):
        if len(own):
            draft[request] = own[torch.arange(width + 1).clamp(max=len(own) - 1)]
    draft[torch.arange(len(rows)), bonus_columns(counts)] = 0
    chosen = tokens.clamp(min=0)[..., None]
    coins = coins_of(counts, width, generator)
    agrees = coins * draft[:, :-1].gather(-1, chosen)[..., 0] < target[:, :-1].gather(-1, chosen)[..., 0]
    accepted = (agrees & (tokens != PLACEHOLDER)).long().cumprod(1).sum(1).tolist()
    corrections = _winners(_correction(target, draft), generator)
    return [
        [*own[:length].tolist(), int(corrections[request, length])]
        for request, (own, length) in enumerate(zip(tokens, accepted, strict=True))
    ]


def padded(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """A batch that is padded to its longest request; lossless."""
    return _padded_verified(rows, generator)


def bonus_column_of_the_longest(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """Only the last column has no residual: wrong for the bonus of shorter requests with drafts."""
    return _padded_verified(rows, generator, bonus_columns=lambda counts: -1)


def coins_of_a_bucket(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """Coins are drawn once per length: requests of one length are each right, but not independent."""
    return _padded_verified(
        rows,
        generator,
        coins_of=lambda counts, width, own: torch.rand(width + 1, width, generator=own)[counts],
    )


def _fresh_weights(requests: int) -> Iterator[list[Tensor]]:
    return ([torch.ones(())] for _ in range(requests))


def _blocks_verified(
    rows: Sequence[Any], generator: Any, weights_of: Callable[[int], Iterator[list[Tensor]]] = _fresh_weights
) -> list[list[int]]:
    """Block verification, request by request, in a flat batch."""
    tokens, counts, probs, draft, greedy = _flat(rows)
    target = _sharpened(probs, greedy.repeat_interleave(counts + 1))
    coins = torch.rand(len(tokens), generator=generator)
    starts = (counts.cumsum(0) - counts).tolist()
    answers = []
    for request, (start, weights) in enumerate(zip(starts, weights_of(len(rows)), strict=True)):
        path = [token for token in tokens[start : start + counts[request]].tolist() if token != PLACEHOLDER]
        p, q, length, before = target[start + request :], draft[start:], len(path), len(weights) - 1
        for place, token in enumerate(path):
            weights.append((weights[-1] * p[place, token] / q[place, token]).clamp(max=1))
        accepted = 0
        for place in range(1, length + 1):
            weight = weights[before + place]
            if place < length:
                mass = (weight * p[place] - q[place]).clamp(min=0).sum()
                weight = mass / (mass + 1 - weight)
            if coins[start + place - 1] < weight:
                accepted = place
        row = p[length]
        if accepted < length:
            row = _correction(weights[before + accepted] * p[accepted], q[accepted])
        answers.append([*path[:accepted], int(_winners(row, generator))])
    return answers


def blocks(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """Block verification of a flat batch; lossless."""
    return _blocks_verified(rows, generator)


def weight_not_reset(rows: Sequence[Any], generator: Any) -> list[list[int]]:
    """A request's block starts with the weight of the request before: wrong where that was below 1."""

    def kept(requests: int) -> Iterator[list[Tensor]]:
        weights = [torch.ones(())]
        return (weights for _ in range(requests))

    return _blocks_verified(rows, generator, weights_of=kept)


RIGHT: dict[str, Callable[..., Any]] = {form.__name__: form for form in (flat, greedy_first, padded, blocks)}
"""Name -> sampler of the signature "batch"; all are lossless."""

FAULTS: dict[str, Callable[..., Any]] = {
    fault.__name__: fault
    for fault in (
        previous_bonus_rows,
        one_step_of_a_scan,
        placeholders_not_counted,
        flags_of_empty_requests,
        bonus_tokens_packed,
        buffer_kept,
        sorted_twice,
        bonus_column_of_the_longest,
        coins_of_a_bucket,
        weight_not_reset,
    )
}
"""Name -> sampler of the signature "batch"; each is wrong for the batches that its docstring names."""
