"""Verifiers as readers write them, each with one idea: right ones in four styles, and wrong ones.

``prove`` must refute every wrong one at the shape that stands beside it, and prove every right one.  A
verifier is a loop over one tuple of drafts, a class over a batch, or a sampler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory import from_loop, from_sampler
from spectheory.foundation.arrays import zeros_like
from spectheory.verification.outcome import Outcome

Shape = tuple[int, int, int]
"""V, L and K."""


def residual_of(target: Any, draft: Any) -> list[Any]:
    """The positive parts of p - q, divided by their sum; the target's row where the sum is 0."""
    weights = [max(p - q, 0) for p, q in zip(target, draft, strict=True)]
    total = sum(weights)
    return [weight / total for weight in weights] if total > 0 else list(target)


def rounds(
    paths: Any,
    target_rows: Any,
    draft_rows: Any,
    *,
    proposal: Any = lambda draft, k: draft,
    accept: Any = lambda left, proposed, token: min(1, left[token] / proposed[token]),
    update: Any = lambda left, proposed, target: residual_of(left, proposed),
    final: Any = lambda left, target: left,
    bonus: Any = lambda rows, k: rows[k, 1],
) -> Any:
    """Recursive rejection of K drafts of one token, with every step to be replaced."""
    stops, rows = 0 * target_rows[..., 0], 0 * target_rows
    left, reach = list(target_rows[0, 0]), 1
    for k, path in enumerate(paths):
        proposed = proposal(draft_rows[0, 0], k)
        accepted = accept(left, proposed, path[0])
        stops[k, 1], rows[k, 1] = reach * accepted, bonus(target_rows, k)
        reach = reach * (1 - accepted)
        left = update(left, proposed, target_rows[0, 0])
    stops[0, 0], rows[0, 0] = reach, final(left, target_rows[0, 0])
    return stops, rows


def _rounds(**steps: Any) -> Any:
    return from_loop(lambda *arguments: rounds(*arguments, **steps))


def block_loop(
    paths: Any,
    target_rows: Any,
    draft_rows: Any,
    *,
    cap: Any = lambda weight: min(1, weight),
    residual: Any = lambda weight, p, q: max(weight * p - q, 0),
    accept: Any = lambda total, weight: total / (total + 1 - weight),
    last: Any = lambda weight: weight,
) -> Any:
    """Block verification (block2024) of one path, from the longest block down."""
    length = paths.shape[1]
    stops, rows, weights = 0 * target_rows[..., 0], 0 * target_rows, [1]
    for depth, token in enumerate(paths[0]):
        ratio = target_rows[0, depth, token] / draft_rows[0, depth, token]
        weights.append(cap(weights[-1] * ratio))
    reach, rows[0, length] = 1, target_rows[0, length]
    for depth in range(length, -1, -1):
        weight = weights[depth]
        if depth == length:
            accepted = last(weight)
        else:
            target, draft = target_rows[0, depth], draft_rows[0, depth]
            left = [residual(weight, p, q) for p, q in zip(target, draft, strict=True)]
            total = sum(left)
            rows[0, depth] = [entry / total for entry in left] if total > 0 else target
            below = total + 1 - weight
            accepted = accept(total, weight) if below > 0 else 1
        accepted = 1 if depth == 0 else accepted
        stops[0, depth] = reach * accepted
        reach = reach * (1 - accepted)
    return stops, rows


def _blocks(**steps: Any) -> Any:
    return from_loop(lambda *arguments: block_loop(*arguments, **steps))


class Vectorised:
    """``token`` for draft length 1 over a whole batch, in numpy, with a line to be replaced."""

    def __init__(self, fallback: str = "target", gather: str = "token") -> None:
        self.fallback, self.gather = fallback, gather

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        batch = np.arange(len(paths))
        tokens = paths[:, 0, 0] if self.gather == "token" else paths[0, 0, 0]
        target, draft = target_rows[:, 0, 0], draft_rows[:, 0, 0]
        least = np.minimum(target, draft)
        accepted = least[batch, tokens] / draft[batch, tokens]
        stops = zeros_like(target_rows[..., 0])
        stops[:, 0, 0], stops[:, 0, 1] = 1 - accepted, accepted
        weights = target - least
        totals = weights.sum(axis=1)
        rows = np.array(target) if self.fallback == "target" else np.array(weights)
        for number in batch:
            if totals[number] != 0:
                rows[number] = weights[number] / totals[number]

        def correction(path_index: Any, length: Any) -> Any:
            return np.where((length == 0)[:, None], rows, target_rows[:, 0, 1])

        return Outcome(stops, correction)


def inverse_transform(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    """A sampler that draws the correction by a running sum of its row."""
    token, target, draft = paths[0, 0], target_rows[0, 0], draft_rows[0, 0]
    if generator.random() < target[token] / draft[token]:
        return [token, generator.choice(len(target), p=target_rows[0, 1])]
    uniform, total, row = generator.random(), 0 * target[0], residual_of(target, draft)
    for other, weight in enumerate(row[:-1]):
        total = total + weight
        if uniform < total:
            return [other]
    return [len(row) - 1]


def one_uniform_scaled(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    """A sampler that compares with p/q only where p < q, and skips the draw elsewhere."""
    token, target, draft = paths[0, 0], target_rows[0, 0], draft_rows[0, 0]
    if target[token] >= draft[token] or generator.random() < target[token] / draft[token]:
        return [token, generator.choice(len(target), p=target_rows[0, 1])]
    return [generator.choice(len(target), p=residual_of(target, draft))]


def no_bonus_row(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    """A sampler that draws the bonus token from the root row."""
    output = one_uniform_scaled(paths, target_rows, draft_rows, generator)
    bonus = generator.choice(len(target_rows[0, 0]), p=target_rows[0, 0])
    return [*output[:1], bonus] if len(output) > 1 else output


def shared_choice(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[Any]:
    """A sampler that draws the correction from the draft's row."""
    token, target, draft = paths[0, 0], target_rows[0, 0], draft_rows[0, 0]
    if generator.random() < target[token] / draft[token]:
        return [token, generator.choice(len(target), p=target_rows[0, 1])]
    return [generator.choice(len(target), p=draft)]


RIGHT: dict[str, tuple[Any, Shape]] = {
    "rounds": (_rounds(), (2, 1, 2)),
    "rounds, kept by a minimum": (
        _rounds(accept=lambda left, q, token: min(left[token], q[token]) / q[token]),
        (2, 1, 2),
    ),
    "rounds, the residual as a difference": (
        _rounds(
            update=lambda left, q, p: residual_of(left, [min(x, y) for x, y in zip(left, q, strict=True)])
        ),
        (2, 1, 2),
    ),
    "block": (_blocks(), (2, 2, 1)),
    "block, the cap as a case": (_blocks(cap=lambda weight: 1 if weight > 1 else weight), (2, 1, 1)),
    "block, divided the other way": (
        _blocks(accept=lambda total, weight: 1 - (1 - weight) / (total + 1 - weight)),
        (2, 2, 1),
    ),
    "a class over a batch": (Vectorised(), (3, 1, 1)),
    "a sampler with a running sum": (from_sampler(inverse_transform), (3, 1, 1)),
    "a sampler that skips a draw": (from_sampler(one_uniform_scaled), (2, 1, 1)),
}
"""With the eleven loops of test_readers.py: loops, loops over drafts, classes over batches, samplers."""
WRONG: dict[str, tuple[Any, Shape]] = {
    "rounds, always the target's ratio": (
        _rounds(update=lambda left, q, p: list(p)),
        (2, 1, 2),
    ),
    "rounds, the last row is the target's": (_rounds(final=lambda left, p: p), (2, 1, 2)),
    "rounds, the bonus row of the first path": (_rounds(bonus=lambda rows, k: rows[0, 1]), (2, 1, 2)),
    "rounds, the ratio of the first token": (
        _rounds(accept=lambda left, q, token: min(1, left[0] / q[token])),
        (2, 1, 2),
    ),
    "rounds, every draft accepted at half rate": (
        _rounds(accept=lambda left, q, token: min(1, left[token] / (2 * q[token]))),
        (2, 1, 2),
    ),
    "rounds, the residual is not divided": (
        _rounds(update=lambda left, q, p: [max(x - y, 0) for x, y in zip(left, q, strict=True)]),
        (2, 1, 2),
    ),
    "block, the weight is not carried": (_blocks(residual=lambda weight, p, q: max(p - q, 0)), (2, 2, 1)),
    "block, the draft is weighted, too": (
        _blocks(residual=lambda weight, p, q: max(weight * p - weight * q, 0)),
        (2, 2, 1),
    ),
    "block, accepted by the total": (_blocks(accept=lambda total, weight: total), (2, 2, 1)),
    "block, the last block always": (_blocks(last=lambda weight: (1 + weight) / 2), (2, 1, 1)),
    "a batch with the first tuple's token": (Vectorised(gather="first"), (2, 1, 1)),
    "a sampler with the root row twice": (from_sampler(no_bonus_row), (2, 1, 1)),
    "a sampler that corrects from the draft": (from_sampler(shared_choice), (2, 1, 1)),
}
