"""Samplers of one path, and rounds, with the faults of public reports, each beside its mended form.

The last argument of a function says which form it takes; ``test_public_reports`` gives it.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

import numpy as np
import torch
from torch import Tensor

MIN_P = 0.4
TEMPERATURE = 0.5
RATES = (0.75, 0.5, 0.25)
SEEN: list[int] = []
"""The tokens that the cache of ``rejected_drafts_stay`` holds."""


def drawn(weights: Tensor, generator: Any) -> int:
    return int(torch.multinomial(weights, 1, generator=generator))


def residual(p: Tensor, q: Tensor) -> Tensor:
    return (p - q).clamp(min=0)


def residual_or_target(p: Tensor, q: Tensor) -> Tensor:
    """The residual; the target's row where rounding, or a filter, has left nothing."""
    rest = residual(p, q)
    return rest if rest.sum() > 0 else p


def verified(
    path: Sequence[int],
    p: Tensor,
    q: Tensor,
    generator: Any,
    accepts: Callable[[int, int, Tensor], Any] | None = None,
    corrects: Callable[[int, int, Tensor], int] | None = None,
    draw: Callable[[Tensor, Any], int] = drawn,
) -> list[int]:
    """Token verification; a mistake replaces the test, the correction token, or every draw from a row.

    Args:
        path, p, q: L drafted tokens, target rows [L+1, V], draft rows [L, V].
        generator: of the random numbers.
        accepts, corrects: called with a place, the token that was drafted there, and the coin.
        draw: called with weights and the generator.
    """
    for place, token in enumerate(path):
        coin = torch.rand((), generator=generator)
        if accepts(place, token, coin) if accepts else coin * q[place, token] < p[place, token]:
            continue
        if corrects is not None:
            return [*path[:place], corrects(place, token, coin)]
        return [*path[:place], draw(residual_or_target(p[place], q[place]), generator)]
    return [*path, draw(p[len(path)], generator)]


def of_first_path(step: Callable[..., list[int]]) -> Callable[..., list[int]]:
    """A sampler of the signature "sampler" that looks at the first path: (path, p, q, generator, form)."""

    @wraps(step)
    def sampler(
        paths: Tensor, target: Tensor, draft: Tensor, generator: Any, *form: Any, **forms: Any
    ) -> Any:
        return step(paths[0].tolist(), target[0], draft[0], generator, *form, **forms)

    return sampler


@of_first_path
def shared_coin(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """The coin that rejects a token draws the correction token too."""

    def inverse(weights: Tensor, coin: Tensor) -> int:
        return int((weights.cumsum(0) <= coin * weights.sum()).sum())

    def fresh(weights: Tensor, generator: Any) -> int:
        return inverse(weights, torch.rand((), generator=generator))

    def by_the_coin(place: int, token: int, coin: Tensor) -> int:
        return inverse(residual(p[place], q[place]), coin)

    return verified(path, p, q, generator, corrects=None if right else by_the_coin, draw=fresh)


@of_first_path
def point_residual(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """The correction subtracts the draft's row at the drafted token only."""

    def corrects(place: int, token: int, coin: Tensor) -> int:
        rest = residual(p[place], q[place])
        wrong = p[place].index_copy(0, torch.tensor([token]), rest[[token]])
        return drawn(rest if right else wrong, generator)

    return verified(path, p, q, generator, corrects=corrects)


@of_first_path
def next_row(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """The correction token is drawn from the row behind the rejected token."""
    corrects = None if right else lambda place, token, coin: drawn(p[place + 1], generator)
    return verified(path, p, q, generator, corrects=corrects)


@of_first_path
def match_rule(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """A draft is kept where a draw from the target equals it; the wrong form has the likeliest for the draw.

    Two reports call the right form biased.
    """
    likeliest = p.argmax(-1).tolist()
    wanted = torch.multinomial(p, 1, generator=generator)[:, 0].tolist()
    wanted = wanted if right else [*likeliest[:-1], wanted[-1]]
    kept = next((place for place, token in enumerate(path) if token != wanted[place]), len(path))
    return list(wanted[: kept + 1])


@of_first_path
def without_draft_probs(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """Sampled drafts are verified as certain ones; the wrong form does not leave out the rejected token.

    A report calls the right form a deviation.
    """

    def corrects(place: int, token: int, coin: Tensor) -> int:
        return drawn(p[place].index_fill(0, torch.tensor(token), 0) if right else p[place], generator)

    return verified(path, p, q, generator, lambda place, token, coin: coin < p[place, token], corrects)


@of_first_path
def seeded_coins(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """A fixed seed is set before every coin, so that all are one number."""
    for place, token in enumerate(path):
        if not right:
            torch.manual_seed(7)
        if not torch.rand(1) * q[place, token] < p[place, token]:
            return [*path[:place], drawn(residual(p[place], q[place]), None)]
    return [*path, drawn(p[-1], None)]


@of_first_path
def deep_rows(path: list[int], p: Tensor, q: Tensor, generator: Any, right_until: int) -> list[int]:
    """From some drafted token on the target's first row decides."""
    known = torch.stack([p[place if place < right_until else 0] for place in range(len(path))])
    return verified(path, torch.cat([known, p[-1:]]), q, generator)


@of_first_path
def empty_residual(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """The target's rows are normalised again, so that rounding can reject a token of equal models."""
    p = p.log().softmax(-1)
    corrects = None if right else lambda place, token, coin: drawn(residual(p[place], q[place]), generator)
    return verified(path, p, q, generator, corrects=corrects)


@of_first_path
def filter_on_bonus(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """A min-p filter is applied to the token after all drafts only; the right form applies it everywhere."""
    kept = torch.where(p >= MIN_P * p.amax(-1, keepdim=True), p, 0)
    kept = kept / kept.sum(-1, keepdim=True)
    return verified(path, kept if right else torch.cat([p[:-1], kept[-1:]]), q, generator)


@of_first_path
def small_offsets(path: list[int], p: Tensor, q: Tensor, generator: Any, wraps_at: int) -> list[int]:
    """Rows are found in flat memory by an offset, which wraps: with 128 numbers if it has eight bits."""
    size = p.shape[-1]
    flat, starts = p.flatten(), [place * size % wraps_at for place in range(len(path))]
    return verified(
        path, torch.stack([*(flat[start : start + size] for start in starts), p[-1]]), q, generator
    )


@of_first_path
def raises_on_a_token(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """A helper raises when it draws token 0."""

    def draw(weights: Tensor, generator: Any) -> int:
        token = drawn(weights, generator)
        if token == 0 and not right:
            raise RuntimeError("nothing was drawn")
        return token

    return verified(path, p, q, generator, draw=draw)


@of_first_path
def temperature_dropped(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """Logits and a temperature are given, whose quotient has the rows; the wrong form does not divide."""
    logits = [rows.log() * TEMPERATURE for rows in (p, q)]
    p, q = ((rows / TEMPERATURE if right else rows).softmax(-1) for rows in logits)
    return verified(path, p, q, generator)


@of_first_path
def synthetic_rates(path: list[int], p: Tensor, q: Tensor, generator: Any, right: bool) -> list[int]:
    """Drafts are accepted with stated rates; the wrong form takes them for those of all tokens so far."""

    def accepts(place: int, token: int, coin: Tensor) -> Any:
        return coin < RATES[place] / (1 if right or not place else RATES[place - 1])

    return verified(path, p, q, generator, accepts, lambda place, token, coin: drawn(p[place], generator))


@of_first_path
def arrays_of_temporaries(path: list[int], p: Tensor, q: Tensor, generator: Any) -> list[int]:
    """Rows are read by numpy from tensors that are gone before the coins, which can get their memory."""
    rows = [[row.clone().numpy().tolist() for row in model] for model in (p, q)]

    def accepts(place: int, token: int, coin: Tensor) -> Any:
        coins = torch.rand(p.shape[-1], generator=generator)
        return coins[0] * rows[1][place][token] < rows[0][place][token]

    return verified(path, p, q, generator, accepts)


@of_first_path
def doubles_of_temporaries(path: list[int], p: Tensor, q: Tensor, generator: Any) -> list[int]:
    """As ``arrays_of_temporaries``, with sums in float64."""

    def accepts(place: int, token: int, coin: Tensor) -> Any:
        target, draft = ((row + 0).double().numpy().tolist() for row in (p[place], q[place]))
        return torch.rand(2, generator=generator, dtype=torch.float64)[0] < target[token] / draft[token]

    return verified(path, p, q, generator, accepts)


@of_first_path
def row_of_coins(path: list[int], p: Tensor, q: Tensor, generator: Any) -> list[int]:
    """A row [L] is filled with coins [1, L], which torch allows."""
    coins = torch.empty(2, len(path))
    coins[0, :] = torch.rand(1, len(path), generator=generator)
    return verified(
        path, p, q, generator, lambda place, token, _: coins[0, place] * q[place, token] < p[place, token]
    )


@of_first_path
def numpy_global(path: list[int], p: Tensor, q: Tensor, generator: Any) -> list[int]:
    """Coins and tokens are drawn by numpy's global generator."""
    for place, token in enumerate(path):
        if np.random.random() >= float(p[place, token] / q[place, token]):  # noqa: NPY002
            rest = residual(p[place], q[place]).double().numpy()
            return [*path[:place], int(np.random.choice(len(rest), p=rest / rest.sum()))]  # noqa: NPY002
    last = p[-1].double().numpy()
    return [*path, int(np.random.choice(len(last), p=last / last.sum()))]  # noqa: NPY002


def _is_accepted(token: int, p: Tensor, q: Tensor) -> Tensor:
    return torch.rand(1) * q[token] < p[token]


@of_first_path
def compiled(
    path: list[int], p: Tensor, q: Tensor, generator: Any, compiler: Callable[..., Any]
) -> list[int]:
    """The step that draws a coin is handed to a compiler."""
    step = compiler(_is_accepted)
    return verified(path, p, q, generator, lambda place, token, _: step(token, p[place], q[place]))


def drafted(text: Sequence[int], draft: Any, draft_length: int, draw: Callable[[Tensor], int]) -> Any:
    """Drafted tokens, and the rows [L, V] they are reported to have."""
    path: list[int] = []
    rows = []
    for _ in range(draft_length):
        rows.append(draft([*text, *path]))
        path.append(draw(rows[-1]))
    return path, torch.stack(rows)


def target_rows(text: Sequence[int], target: Any, path: Sequence[int]) -> Tensor:
    return torch.stack([target([*text, *path[:place]]) for place in range(len(path) + 1)])


def certain_drafts(text: Any, target: Any, draft: Any, draft_length: int, generator: Any, right: bool) -> Any:
    """The likeliest tokens are drafted, and verified with the rows they were not drawn from."""
    draw = (lambda row: drawn(row, generator)) if right else (lambda row: int(row.argmax()))
    path, q = drafted(text, draft, draft_length, draw)
    return path, q, verified(path, target_rows(text, target, path), q, generator)


def rejected_drafts_stay(
    text: Any, target: Any, draft: Any, draft_length: int, generator: Any, right: bool
) -> Any:
    """The target reads a state that cannot be wound back: rejected drafts stay in it."""
    if not text:
        SEEN.clear()
    before = text if right else [*SEEN, *text[-1:]]
    path, q = drafted(text, draft, draft_length, lambda row: drawn(row, generator))
    SEEN[:] = [*before, *path]
    return path, q, verified(path, target_rows(before, target, path), q, generator)


def reduced_vocabulary(
    text: Any, target: Any, draft: Any, draft_length: int, generator: Any, right: bool
) -> Any:
    """The draft knows the first and the last token; a table has the offsets of its numbers from the tokens.

    The wrong form takes an offset for a token.
    """
    size = len(draft(text))
    kept = [0, size - 1]
    offsets = [0, size - 2]

    def row_of(text: Sequence[int]) -> Tensor:
        row = draft(text)[kept]
        return row / row.sum() if row.sum() > 0 else torch.full((2,), 0.5)

    def draw(row: Tensor) -> int:
        number = drawn(row, generator)
        return number + offsets[number] if right else offsets[number]

    path, small = drafted(text, row_of, draft_length, draw)
    q = torch.zeros(draft_length, size).index_copy(1, torch.tensor(kept), small)
    return path, q, verified(path, target_rows(text, target, path), q, generator)


def penalty_twice(text: Any, target: Any, draft: Any, draft_length: int, generator: Any, right: bool) -> Any:
    """A token that the text has loses half its weight; the wrong form takes two halves of the last one."""
    path, q = drafted(text, draft, draft_length, lambda row: drawn(row, generator))
    p = target_rows(text, target, path)
    for place, row in enumerate(p):
        again = text[-1:] if place and not right else []
        for token in [*{*text, *path[:place]}, *again]:
            row[token] /= 2
    return path, q, verified(path, p / p.sum(-1, keepdim=True), q, generator)


def round_of_arrays(text: Any, target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    """A round of one draft whose rows are numpy's."""
    q, p = draft(text).double().numpy(), target(text).double().numpy()
    token = drawn(torch.from_numpy(q), None)
    if torch.rand((), dtype=torch.float64) * q[token] < p[token]:
        return [token], torch.from_numpy(q)[None], [token, drawn(target([*text, token]), None)]
    return [token], torch.from_numpy(q)[None], [drawn(torch.from_numpy((p - q).clip(min=0)), None)]


def round_of_python(text: Any, target: Any, draft: Any, draft_length: int, generator: Any) -> Any:
    """A round of one draft whose coin is Python's."""
    q, p = draft(text), target(text)
    token = drawn(q, None)
    if random.random() <= float(p[token]) / float(q[token]):
        return [token], q[None], [token, drawn(target([*text, token]), None)]
    return [token], q[None], [drawn(residual(p, q), None)]


refuses_token_0 = partial(raises_on_a_token, right=False)
draws_every_token = partial(raises_on_a_token, right=True)
drafts_the_likeliest = partial(certain_drafts, right=False)
"""Three of them by name, for the command line."""
