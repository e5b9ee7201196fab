"""Where two calls of a sampler are made in a row: on small pairs, on a path that leaves much open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from spectheory.audit.shipped import Shipped
from spectheory.contexts import context_number, prefix_numbers, rows_along
from spectheory.pair import ModelPair

MAX_OUTPUTS = 16
"""A pair is small if a completed output is one of at most so many."""


def pairs_of_calls(pairs: Iterable[ModelPair]) -> Iterator[ModelPair]:
    """Where two calls are made in a row: of each draft length the first pair with the most open decisions.

    Small pairs come first, as all branches of two calls are many.
    """
    by_length: dict[int, list[ModelPair]] = defaultdict(list)
    for pair in pairs:
        by_length[pair.draft_length].append(pair)
    for same_length in by_length.values():
        small = [pair for pair in same_length if pair.vocab_size ** (pair.draft_length + 1) <= MAX_OUTPUTS]
        yield max(small or same_length, key=lambda pair: least_accepted(pair)[1])


def least_accepted(pair: ModelPair) -> tuple[tuple[int, ...], int]:
    """The path of tokens that are the least likely to be accepted, those that may be coming first.

    Returns:
        The path, and how many decisions are open on it: acceptances, and corrections by two tokens or more.
    """
    path: tuple[int, ...] = ()
    decisions = 0
    for target, draft in zip(pair.target, pair.draft, strict=False):
        number = context_number(path, pair.vocab_size)
        p, q = target[number], draft[number]
        ratios = {token: p[token] / q[token] for token in np.flatnonzero(q).tolist()}
        path += (min(ratios, key=lambda token: (not 0 < ratios[token] < 1, ratios[token])),)
        decisions += int(0 < ratios[path[-1]] < 1) + int((p > q).sum() > 1)
    return path, decisions


def call_twice(sampler: Shipped, pair: ModelPair) -> int:
    """Two calls in a row on one path of drafts; how many runs were followed."""
    paths = np.array([least_accepted(pair)[0]])
    prefixes = prefix_numbers(paths, pair.vocab_size)
    return sampler.two_calls(paths, rows_along(pair.target, prefixes), rows_along(pair.draft, prefixes))
