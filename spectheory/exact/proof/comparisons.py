"""Statements that compare a verifier with another one, or with itself on other drafts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from spectheory.exact.law import output_law
from spectheory.exact.proof.draft_tuples import Paths
from spectheory.exact.proof.graph import Node
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, ZERO
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.runs import Leaf, Runs, Vector
from spectheory.exact.proof.statement import Asked, Statement, Subject, outputs
from spectheory.exact.proof.walk import Condition, Sum, Totals, Walk
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.resolve import Problem, find_verifier


class AtLeast(Statement):
    """At least the block efficiency of another verifier; ``OTHER@K`` has K drafts."""

    claim = "the block efficiency is at least that of {other}"
    wrong = "the block efficiency is below that of the other verifier"

    @classmethod
    def compared(cls, other: str, main: Asked, draft_length: int) -> list[Asked]:
        name, _, count = other.partition("@")
        if count and not count.isdecimal():
            raise InvalidInputError(f"at_least:OTHER@K needs a whole number K, got {count!r}")
        return [(find_verifier(name), Iid(int(count)) if count else main[1])]

    def wrong_at(self, pair: ModelPair) -> str:
        laws = (output_law(verifier, pair, process) for verifier, process, _ in self.subjects)
        mine, other = (law.block_efficiency for law in laws)
        return self.wrong if mine < other else ""

    def walk(self, walk: Walk, runs: list[Runs]) -> None:
        graph, field = walk.graph, walk.domain.field

        def expected_tokens(number: int) -> Vector:
            def vector(leaf: Leaf) -> dict[Any, Node]:
                pairs = [(depth + 1, stop) for row in leaf.stops for depth, stop in enumerate(row)]
                return {number: graph.sum(graph.multiply(graph.constant(n), stop) for n, stop in pairs)}

            return vector

        def finish(region: Region, totals: Totals) -> Iterator[Condition]:
            mine, other = (totals.get(number, field.zero) for number in (0, 1))
            yield Condition([field.subtract(mine, other)], AT_LEAST_ZERO, self.wrong)

        walk.walk(Sum.of(*((one, expected_tokens(number)) for number, one in enumerate(runs))), finish)


class Exchangeable(Statement):
    """The law of the output given the drafts does not depend on their order."""

    claim = "the law of the output does not depend on the order of the drafts"
    wrong = "another order of the drafts changes the law of the output"

    @classmethod
    def compared(cls, other: str, main: Asked, draft_length: int) -> list[Asked]:
        if not isinstance(main[1], Iid):
            raise InvalidInputError(f"exchangeable speaks of i.i.d. drafts, got {main[1]}")
        return []

    @staticmethod
    def same(drafts: tuple[Any, ...]) -> tuple[Any, ...]:
        """The drafts, given which the output has the same law as given these."""
        return tuple(sorted(drafts))

    def wrong_at(self, pair: ModelPair) -> str:
        mine, other = (_laws_given(one, pair) for one in (self.subjects[0], self.subjects[-1]))
        return "" if all(law == other[self.same(drafts)] for drafts, law in mine.items()) else self.wrong

    def walk(self, walk: Walk, runs: list[Runs]) -> None:
        is_drafted, field = "drafted", walk.domain.field

        def mine(leaf: Leaf) -> dict[Any, Node]:
            return {is_drafted: walk.graph.one, **outputs(walk.graph, 0)(leaf)}

        def finish(region: Region, totals: Totals) -> Iterator[Condition]:
            for place in {key[1:]: None for key in totals if is_drafted in totals and key != is_drafted}:
                one, other = (totals.get((number, *place), field.zero) for number in (0, 1))
                yield Condition([field.subtract(one, other)], ZERO, self.wrong)

        parts = (runs[0], mine), (runs[-1], outputs(walk.graph, 1))
        for paths in runs[0].drafts.tuples:
            other: Paths = self.same(paths)
            if other != paths:
                walk.walk(Sum(parts, ((0, paths), (1, other)), weighted=False), finish)


class SinglePath(Exchangeable):
    """The law of the output depends on the first draft only, and is the law given that draft alone."""

    claim = "the law of the output depends on the first draft only"
    wrong = "the law of the output is not that for the first draft alone"

    @classmethod
    def compared(cls, other: str, main: Asked, draft_length: int) -> list[Asked]:
        return [(main[0], main[1].first_path())]

    @staticmethod
    def same(drafts: tuple[Any, ...]) -> tuple[Any, ...]:
        return drafts[:1]


def _laws_given(subject: Subject, pair: ModelPair) -> dict[tuple[int, ...], dict[tuple[int, ...], Any]]:
    """The law of the output given each tuple of drafts: the numbers of the paths -> output -> probability."""
    _, process, bound = subject
    evaluator = Evaluator.of(Problem(bound, pair, process), process)
    [(leaves, _)] = process.enumerate(pair, 1 << 20)
    outcome, tuples = evaluator.evaluate(leaves, 0)
    found: dict[tuple[int, ...], dict[tuple[int, ...], Any]] = {tuple(some.tolist()): {} for some in leaves}
    for k, depth in np.ndindex(outcome.stop_probs.shape[1:]):
        rows = outcome.correction(np.full(len(leaves), k), np.full(len(leaves), depth))
        stops = zip(found.values(), tuples.tokens[:, k], outcome.stop_probs[:, k, depth], rows, strict=True)
        for output, tokens, prob, row in stops:
            for token, entry in enumerate(row) if prob else ():
                if entry:
                    key = (*tokens[:depth].tolist(), token)
                    output[key] = output.get(key, 0) + prob * entry
    return found
