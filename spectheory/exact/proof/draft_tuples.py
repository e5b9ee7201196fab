"""The tuples of drafts of a process, and their probabilities as nodes."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

import numpy as np

from spectheory.exact.proof.domain import Shape
from spectheory.exact.proof.graph import Graph, Node
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context, path_to
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair

MAX_TUPLES = 20_000
Paths = tuple[Context, ...]
"""The drafted paths, one per draft."""
Draw = tuple[Context, int, Node]
"""The context, the drawn token, and its probability given the draws before it."""


class Drafts:
    """The drafts of a process on a shape.

    Attributes:
        draws: whether a draft draws its own token at a depth, or shares an earlier draft's, [K, L].
        tuples: every way to draw K paths, where no entry of the draft is 0.
    """

    def __init__(self, shape: Shape, process: DraftProcess) -> None:
        if not isinstance(process, (Iid, PrefixTree, WithoutReplacement)):
            raise InvalidInputError(f"{process} is not i.i.d. drafts or a tree; a proof speaks of these")
        self.vocab_size, self.draft_length, self.process = shape.vocab_size, shape.draft_length, process
        self.draws = process.draws(shape.draft_length)
        self._draws: dict[Paths, list[Draw]] = {}
        if self.vocab_size ** min(int(self.draws.sum()), MAX_TUPLES.bit_length()) > MAX_TUPLES:
            raise InvalidInputError(
                f"{process} has more than {MAX_TUPLES} tuples of drafts of length {shape.draft_length} and "
                f"{shape.vocab_size} tokens; take fewer tokens, a shorter draft or fewer drafts"
            )

    @property
    def num_drafts(self) -> int:
        return len(self.draws)

    @property
    def least_support(self) -> tuple[int, ...]:
        """At every depth, the fewest tokens that a draft row must have."""
        return (
            self.process.widths if isinstance(self.process, WithoutReplacement) else (1,) * self.draft_length
        )

    @cached_property
    def tuples(self) -> list[Paths]:
        size, length = self.vocab_size, self.draft_length
        rows = [np.full((size**depth, size), Fraction(1, size)) for depth in range(length + 1)]
        pair = ModelPair(tuple(rows), tuple(rows[:-1]), tuple(map(str, range(size))))
        [(leaves, _)] = self.process.enumerate(pair, MAX_TUPLES)
        return [tuple(path_to(number, length, size) for number in some) for some in leaves.tolist()]

    def draws_of(self, graph: Graph, paths: Paths) -> list[Draw]:
        """The draws of a tuple of paths."""
        if paths not in self._draws:
            self._draws[paths] = self._draws_of(graph, paths)
        return self._draws[paths]

    def _draws_of(self, graph: Graph, paths: Paths) -> list[Draw]:
        found, distinct = [], isinstance(self.process, WithoutReplacement)
        for k, path in enumerate(paths):
            for depth in np.flatnonzero(self.draws[k, : len(path)]).tolist():
                context, token = path[:depth], path[depth]
                prob = graph.entry("q", context, token)
                gone = [
                    paths[j][depth]
                    for j in range(k)
                    if distinct and self.draws[j, depth] and paths[j][:depth] == context
                ]
                if gone:
                    left = (graph.entry("q", context, y) for y in range(self.vocab_size) if y not in gone)
                    prob = graph.divide(prob, graph.sum(left))
                found.append((context, token, prob))
        return found
