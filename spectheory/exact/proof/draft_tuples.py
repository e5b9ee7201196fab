"""The tuples of drafts of a process, and their probabilities as nodes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product

import numpy as np

from spectheory.exact.proof.domain import Shape
from spectheory.exact.proof.graph import Graph, Node
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement

MAX_TUPLES = 20_000
Paths = tuple[Context, ...]
"""The drafted paths, one per draft; some may end before L where only a beginning is spoken of."""
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
        if self.vocab_size ** min(int(self.draws.sum()), MAX_TUPLES.bit_length()) > MAX_TUPLES:
            raise InvalidInputError(
                f"{process} has more than {MAX_TUPLES} tuples of drafts of length {shape.draft_length} and "
                f"{shape.vocab_size} tokens; take fewer tokens, a shorter draft or fewer drafts"
            )

    @property
    def num_drafts(self) -> int:
        return len(self.draws)

    @property
    def are_independent(self) -> bool:
        """Whether the drafts are i.i.d."""
        return isinstance(self.process, Iid)

    @property
    def least_support(self) -> tuple[int, ...]:
        """At every depth, the fewest tokens that a draft row must have."""
        return (
            self.process.widths if isinstance(self.process, WithoutReplacement) else (1,) * self.draft_length
        )

    @cached_property
    def tuples(self) -> list[Paths]:
        return list(self._tuples())

    def _tuples(self) -> Iterator[Paths]:
        length, drafts = self.draft_length, self.num_drafts
        own = [(k, depth) for k, depth in np.argwhere(self.draws).tolist()]
        for tokens in product(range(self.vocab_size), repeat=len(own)):
            drawn, paths = dict(zip(own, tokens, strict=True)), list[list[int]]()
            for k in range(drafts):
                paths.append([drawn[k, i] if (k, i) in drawn else paths[k - 1][i] for i in range(length)])
            found = tuple(map(tuple, paths))
            if not isinstance(self.process, WithoutReplacement) or self._are_distinct(found):
                yield found

    def _earlier(self, paths: Paths, k: int, depth: int) -> list[int]:
        """The tokens that earlier drafts drew themselves at the same context."""
        context = paths[k][:depth]
        earlier = (j for j in range(k) if self.draws[j, depth] and paths[j][:depth] == context)
        return [paths[j][depth] for j in earlier]

    def _are_distinct(self, paths: Paths) -> bool:
        """Whether no draft draws a token again at one context."""
        own = np.argwhere(self.draws).tolist()
        return all(paths[k][depth] not in self._earlier(paths, k, depth) for k, depth in own)

    def draws_of(self, graph: Graph, paths: Paths) -> list[Draw]:
        """The draws of a tuple of paths, or of beginnings of paths."""
        found = []
        for k, path in enumerate(paths):
            for depth in range(len(path)):
                if self.draws[k, depth]:
                    context, token = path[:depth], path[depth]
                    prob = graph.entry("q", context, token)
                    if isinstance(self.process, WithoutReplacement):
                        gone = self._earlier(paths, k, depth)
                        left = (y for y in range(self.vocab_size) if y not in gone)
                        if gone:
                            total = graph.sum(graph.entry("q", context, y) for y in left)
                            prob = graph.divide(prob, total)
                    found.append((context, token, prob))
        return found
