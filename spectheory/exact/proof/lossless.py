"""The statements that a verifier is lossless, and that no lossless one decodes more tokens.

*Lossless* is local.  With A(a) the probability that the accepted path goes through a, and R(a, y) the
probability that a is accepted and y is the token after it, the output has the law of the target if and only
if A(a) p(y|a) = R(a, y) + A(a, y) for every context a that can be drafted and every token y, where A(a, y) is
0 at depth L.  With D(a) the probability that the output goes on beyond a with a token of the target, the
condition says D = A from the root on, and from the leaves up it follows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from spectheory.exact.law import output_law
from spectheory.exact.proof.draft_tuples import Drafts
from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, ZERO, Function
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.runs import Leaf, Runs, Vector
from spectheory.exact.proof.statement import Asked, Statement
from spectheory.exact.proof.walk import Condition, Sum, Totals, Walk
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.pair_optimum import optimum
from spectheory.pairs.contexts import Context
from spectheory.pairs.pair import ModelPair

NOT_TARGET = "the output law is not the target's"


class Lossless(Statement):
    """The completed output has the law of the target."""

    claim, wrong = "the output has the law of the target", NOT_TARGET
    says_lossless = True

    def wrong_at(self, pair: ModelPair) -> str:
        verifier, process, _ = self.subjects[0]
        return NOT_TARGET if output_law(verifier, pair, process).total_variation != 0 else ""

    def walk(self, walk: Walk, runs: list[Runs]) -> None:
        """One walk for all contexts of one path, or of draft length 1; otherwise one per context."""
        contexts, domain = walk.domain.contexts, walk.domain
        together = runs[0].drafts.num_drafts == 1 or domain.draft_length == 1
        for group in [contexts] if together else [(context,) for context in contexts]:
            total = Sum.of(
                (runs[0], self._numbers(walk.graph, group, domain.draft_length, domain.vocab_size))
            )
            walk.walk(
                total,
                lambda region, totals: self._conditions(walk, runs[0].drafts, region, totals),
                eliminates=True,
            )

    def _conditions(self, walk: Walk, drafts: Drafts, region: Region, totals: Totals) -> Iterator[Condition]:
        for key, function in totals.items():
            if key != ():
                yield Condition([function], ZERO, NOT_TARGET)

    def _numbers(self, graph: Graph, contexts: tuple[Context, ...], length: int, size: int) -> Vector:
        """A(a) p(y|a) - R(a, y) - A(a, y) under the key (a, y)."""

        def vector(leaf: Leaf) -> dict[Any, Node]:
            if contexts not in leaf.notes:
                found = self._more(graph, leaf) if () in contexts else {}
                for context in contexts:
                    if any(path[: len(context)] == context for path in leaf.paths):
                        found |= local(leaf, context)
                leaf.notes[contexts] = {key: node for key, node in found.items() if node is not graph.zero}
            return leaf.notes[contexts]

        def local(leaf: Leaf, context: Context) -> dict[Any, Node]:
            through, found = leaf.passes(graph, context), {}
            for token, mass in enumerate(leaf.output(graph, context)):
                wanted = graph.multiply(through, graph.entry("p", context, token))
                left = graph.subtract(wanted, mass)
                if len(context) < length:
                    left = graph.subtract(left, leaf.passes(graph, (*context, token)))
                found[context, token] = left
            return found

        return vector

    def _more(self, graph: Graph, leaf: Leaf) -> dict[Any, Node]:
        """Other numbers of a tuple."""
        return {}


class Optimal(Lossless):
    """Lossless, and no lossless verifier decodes more tokens: for one draft, or draft length 1."""

    claim = "the verifier is lossless, and no lossless one has a larger block efficiency"
    wrong = "the block efficiency is below the optimum"

    @classmethod
    def compared(cls, other: str, main: Asked, draft_length: int) -> list[Asked]:
        if main[1].num_drafts > 1 < draft_length:
            raise InvalidInputError(
                f"the optimum has a closed form for one draft and for draft length 1, got "
                f"{main[1].num_drafts} drafts of length {draft_length}; compare with at_least:OTHER"
            )
        return []

    def wrong_at(self, pair: ModelPair) -> str:
        verifier, process, _ = self.subjects[0]
        least = optimum(pair, process).value
        is_less = output_law(verifier, pair, process).block_efficiency < least
        return super().wrong_at(pair) or (self.wrong if is_less else "")

    def _more(self, graph: Graph, leaf: Leaf) -> dict[Any, Node]:
        """For one path, E[τ+1] minus the sum of the largest masses (theory.md Statement 4.2), given the
        tuple; otherwise the probability that a token of a draft is accepted.
        """
        if len(leaf.paths) > 1:
            return {(): graph.sum(row[1] for row in leaf.stops)}
        [path], [stops] = leaf.paths, leaf.stops
        gain = graph.sum(graph.multiply(graph.constant(i + 1), stop) for i, stop in enumerate(stops))
        weight = graph.one
        gain = graph.subtract(gain, weight)
        for depth, token in enumerate(path):
            target, draft = (graph.entry(letter, path[:depth], token) for letter in "pq")
            ratio = graph.multiply(weight, graph.quotient(target, draft))
            weight = graph.subtract(graph.one, graph.positive_part(graph.subtract(graph.one, ratio)))
            gain = graph.subtract(gain, weight)
        return {(): gain}

    def _conditions(self, walk: Walk, drafts: Drafts, region: Region, totals: Totals) -> Iterator[Condition]:
        yield from super()._conditions(walk, drafts, region, totals)
        accepted = totals.get((), walk.domain.field.zero)
        one = drafts.num_drafts == 1
        gains = [accepted] if one else self._over_cuts(walk, drafts, region, accepted)
        yield Condition(gains, AT_LEAST_ZERO, self.wrong)

    @staticmethod
    def _over_cuts(walk: Walk, drafts: Drafts, region: Region, accepted: Function) -> list[Function]:
        """The acceptance minus p(H) + 1 - P(all drafts in H), for every set H (theory.md Statement 3.2)."""
        field, size, found = walk.domain.field, walk.domain.vocab_size, []
        for inside in (some for count in range(size + 1) for some in combinations(range(size), count)):
            cut = field.sum([field.one, *(region.entries["p", (), token] for token in inside)])
            for paths in drafts.tuples:
                if all(path[0] in inside for path in paths):
                    probs = (region.value(prob) for _, _, prob in drafts.draws_of(walk.graph, paths))
                    cut = field.subtract(cut, field.product(probs))
            found.append(field.subtract(accepted, cut))
        return found
