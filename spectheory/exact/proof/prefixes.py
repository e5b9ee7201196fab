"""Statements about the probabilities of prefixes, of which all rows must be known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from spectheory.exact.certifying import certificate_of
from spectheory.exact.iteration import completed_law
from spectheory.exact.law import output_law
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, ZERO, Function
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.runs import Runs
from spectheory.exact.proof.statement import Asked, Statement, outputs
from spectheory.exact.proof.walk import Condition, Sum, Totals, Walk
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context
from spectheory.pairs.pair import ModelPair

MAX_SETS = 1_000
"""The most antichains of which conditions are written down."""


class PrefixMatching(Statement):
    """The node masses that the law of the output asks for satisfy the antichain conditions.

    Σ D(a) p(a) over an antichain is at most the probability that some draft passes through it.  D p is 1 at
    the root, and D(a) p(a) p(x|a) - R(a, x) at (a, x).
    """

    claim = "the node masses satisfy the antichain conditions"
    wrong = "an antichain is passed too often"

    def wrong_at(self, pair: ModelPair) -> str:
        verifier, process, _ = self.subjects[0]
        found = certificate_of(output_law(verifier, pair, process), 0)
        return "" if found.prefix_matching else self.wrong

    def walk(self, walk: Walk, runs: list[Runs]) -> None:
        field, drafts = walk.domain.field, runs[0].drafts

        def finish(region: Region, totals: Totals) -> Iterator[Condition]:
            masses: dict[Context, Function] = {(): field.one}
            for context, support in sorted(region.supports.items(), key=lambda one: (len(one[0]), one[0])):
                for token in support:
                    wanted = field.multiply(masses[context], region.entries["p", context, token])
                    mass = totals.get((0, context, token), field.zero)
                    masses[*context, token] = field.subtract(wanted, mass)
            probs = {
                paths: field.product(region.value(prob) for _, _, prob in drafts.draws_of(walk.graph, paths))
                for paths in drafts.tuples
                if all(path in masses for path in paths)
            }
            sets = antichains(list(masses))
            if len(sets) > MAX_SETS:
                raise InvalidInputError(f"more than {MAX_SETS} antichains; take a smaller shape")
            for some in sets:
                hits = (
                    prob
                    for paths, prob in probs.items()
                    if any(path[: len(context)] == context for path in paths for context in some)
                )
                left = field.subtract(field.sum(hits), field.sum(masses[context] for context in some))
                yield Condition([left], AT_LEAST_ZERO, self.wrong)

        walk.walk(Sum.of((runs[0], outputs(walk.graph))), finish)


def antichains(contexts: Sequence[Context], below: Context = ()) -> list[tuple[Any, ...]]:
    """The antichains at or below a context among some contexts, which are closed under prefixes.

    Example:
        >>> antichains([(), (0,), (1,)])
        [(), ((0,),), ((1,),), ((0,), (1,)), ((),)]
    """
    parts: list[tuple[Any, ...]] = [()]
    for child in contexts:
        if child and child[:-1] == below:
            parts = [(*one, *more) for more in antichains(contexts, child) for one in parts]
    return [*parts, (below,)]


class Completed(Statement):
    """The output has the law of the target if it is completed with the modified target.

    The probability that an output passes through a prefix, completed with the modified rows, is p(prefix)
    where no draft goes further.  With R(a, x) the probability of the output (a, x), the probability E that a
    text has been completed up to a prefix is E(a, x) = R(a, x) + E(a) m(x|a), with the modified row m at
    depths 1 to L-1, and the target's at depth L.
    """

    claim = "completed with the modified target, the output has the law of the target"
    wrong = "completed with the modified target, the output law is not the target's"

    @classmethod
    def compared(cls, other: str, main: Asked, draft_length: int) -> list[Asked]:
        if main[0].modified_target_rows is None:
            raise InvalidInputError(
                f"verifier {main[0].name!r} has no modified_target_rows; prove that it is lossless"
            )
        return []

    def wrong_at(self, pair: ModelPair) -> str:
        verifier, process, _ = self.subjects[0]
        wanted = pair.target_path_probs(pair.draft_length + 1)
        return self.wrong if np.any(completed_law(verifier, pair, process) != wanted) else ""

    def walk(self, walk: Walk, runs: list[Runs]) -> None:
        domain, field = walk.domain, walk.domain.field

        def finish(region: Region, totals: Totals) -> Iterator[Condition]:
            modified = runs[0].modified_rows(self.subjects[0].verifier, region)
            completed: dict[Context, Function] = {(): field.zero}
            drawn: dict[Context, Function] = {(): field.one}
            possible: set[Context] = {()}
            for context in domain.contexts:
                inside = region.supports[context] if context in possible else ()
                possible |= {(*context, token) for token in inside}
                target = [region.entries["p", context, token] for token in range(domain.vocab_size)]
                following = [region.value(node) for node in modified.get(context, ())] or target
                for token, entry in enumerate(target):
                    prefix = (*context, token)
                    mass = field.multiply(completed[context], following[token])
                    completed[prefix] = field.add(totals.get((0, context, token), field.zero), mass)
                    drawn[prefix] = field.multiply(drawn[context], entry)
                    if prefix not in possible:
                        left = field.subtract(drawn[prefix], completed[prefix])
                        yield Condition([left], ZERO, self.wrong)

        walk.walk(Sum.of((runs[0], outputs(walk.graph))), finish, domain.contexts)
