"""Compute the law of ``traversal`` with K i.i.d. drafts, from its state at every context.

The weight with which a draw enters its context depends only on the number of draws before it.  So a context
of depth d has K^d weights.  For each weight and each n we list the V^n tuples of next tokens of n drafts.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from spectheory.exact.laws.outputs import Masses, emitted
from spectheory.foundation.arrays import at_most_one, divide_or_zero, ones_like, residual_rows, zeros_like
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.traversal import TriedContext


class _Level(NamedTuple):
    """The contexts of one depth, with W weights each.  Entry n of a list belongs to n draws, n = 0..K.

    Attributes:
        draft: draft rows, [C, V].
        accept: P(the context is accepted | everything below is rejected), [C, W] each.
        rows: correction rows, not normalised, [C, W, V] each.
    """

    draft: np.ndarray
    accept: list[np.ndarray]
    rows: list[np.ndarray]

    def trials(
        self, reach: np.ndarray, num_drafts: int, rejects: dict[int, np.ndarray]
    ) -> Iterator[tuple[np.ndarray, int | None, int, int]]:
        """List the trials of n drafts at each context, for all tuples of their next tokens.

        Args:
            reach: the mass that enters, [C, W].
            num_drafts: n.
            rejects: number of drafts at a context below -> P(everything is rejected), [C, V, W, K].

        Yields:
            The mass that reaches the trial, [C, W], its token, the number of draws before it, and the number
            of drafts with this token.  After the last trial of a tuple: the mass that is left, and None as
            token.
        """
        for tokens in product(range(self.draft.shape[1]), repeat=num_drafts):
            mass = reach * np.prod(self.draft[:, list(tokens)], axis=1)[:, None]
            for token in dict.fromkeys(tokens):
                place, count = tokens.index(token), tokens.count(token)
                yield mass, token, place, count
                mass = mass * rejects[count][:, token, :, place]
            yield mass, None, 0, 0


def law_by_trials(pair: ModelPair, num_drafts: int) -> Masses:
    """Compute the law of ``Traversal`` with K i.i.d. drafts."""
    levels, last = _levels(pair, num_drafts)
    size, numbers = pair.vocab_size, range(1, num_drafts + 1)

    # From the leaves up, P(all below a context is rejected) and P(all is rejected), by the number of drafts
    none_below, rejected = [], [dict.fromkeys(numbers, 1 - last)]
    for level in reversed(levels):
        shape = (len(level.draft), size, level.accept[0].shape[1], num_drafts)
        rejected[-1] = {n: chances.reshape(shape) for n, chances in rejected[-1].items()}
        start = ones_like(level.accept[0])
        left = {n: level.trials(start, n, rejected[-1]) for n in numbers}
        none_below.append({n: sum(mass for mass, token, *_ in left[n] if token is None) for n in numbers})
        rejected.append({n: none_below[-1][n] * (1 - level.accept[n]) for n in numbers})

    # From the root down, the masses that enter
    nothing = zeros_like(levels[0].accept[0])
    entered = {n: nothing + (n == num_drafts) for n in numbers}
    masses, undefined = [], nothing[0, 0]
    for level, rejects, below in zip(levels, rejected[-2::-1], none_below[::-1], strict=True):
        here = zeros_like(level.draft)
        following = {n: zeros_like(rejects[n]) for n in numbers}
        for n in numbers:
            if not (entered[n] != 0).any():
                continue
            stop, rows = entered[n] * below[n] * level.accept[n], level.rows[n].reshape(-1, size)
            outputs, missing = emitted(stop.ravel(), rows, rows.sum(axis=1))
            here, undefined = here + outputs.reshape(level.rows[n].shape).sum(axis=1), undefined + missing
            for mass, token, place, count in level.trials(entered[n], n, rejects):
                if token is not None:
                    following[count][:, token, :, place] += mass
        masses.append(here.ravel())
        entered = {n: mass.reshape(here.size, -1) for n, mass in following.items()}
    whole = (sum(entered.values()) * last).sum(axis=1)
    masses.append((whole[:, None] * pair.numbers.target[-1]).ravel())
    return Masses(tuple(masses), undefined)


def work_by_trials(pair: ModelPair, num_drafts: int) -> int:
    """Count the cases: a context, a weight, and the next tokens of the drafts at the context."""
    size = pair.vocab_size
    tuples = sum(size**n for n in range(1, num_drafts + 1))
    return sum((size * num_drafts) ** depth * tuples for depth in range(pair.draft_length))


def _levels(pair: ModelPair, num_drafts: int) -> tuple[list[_Level], np.ndarray]:
    """Compute the contexts by depth 0..L-1, and the weights at depth L, [V^L, K^L]."""
    numbers = pair.numbers
    weight, levels = ones_like(numbers.target[0][:, :1]), []
    for target, draft in zip(numbers.target[:-1], numbers.draft, strict=True):
        shape = (*weight.shape, pair.vocab_size)
        target_rows, draft_rows = (np.broadcast_to(part[:, None], shape) for part in (target, draft))
        states, entering = [TriedContext.entered(weight)], []
        ratio = divide_or_zero(target, draft)[:, None]
        for _ in range(num_drafts):
            columns = TriedContext(*(entry[..., None] for entry in states[-1]))
            entering.append(columns.entering(ratio))
            states.append(states[-1].after_rejection(target_rows, draft_rows))
        residuals = [residual_rows(target_rows, draft_rows, state.alpha, state.beta) for state in states]
        levels.append(_Level(draft, [state.weight for state in states], residuals))
        # A row for every context, a column for every weight here and the number of draws before
        entered = np.moveaxis(np.stack(entering, axis=-1), 2, 1)
        weight = at_most_one(entered).reshape(target.size, -1)
    return levels, weight
