"""Given the drafts, the stops and the tokens after them are a law: no number is negative, and all sum to 1.

Most of it holds by the form of the numbers.  The rest is decided on regions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spectheory.exact.proof.graph import Node
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, ZERO
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.runs import Leaf, Runs
from spectheory.exact.proof.walk import Condition, Sum, Totals, Walk

Check = tuple[Node, int, str]
"""A number, the signs that it may have, and what is wrong if it has another one."""


class Laws:
    """What the laws of all tuples of a verifier ask for.

    Args:
        walk: of the pairs.
        runs: of the verifier.
        is_lossless: whether the output law is known to be the target's.  Then rows of weights w ≥ 0 that are
            divided by their sum W need no check that they sum to 1.  They do where W > 0, and to 0 elsewhere.
            The law identity, summed over the tokens, says that the stops with W = 0 have probability 0.
    """

    def __init__(self, walk: Walk, runs: Runs, is_lossless: bool) -> None:
        self._walk, self._runs, self._graph, self._is_lossless = walk, runs, walk.graph, is_lossless

    def check_on(self, leaf: Leaf, region: Region) -> None:
        """Decide on a region of the root row what depends on no other row: it costs no walk of its own."""
        for node, mask, wrong in self._checks(leaf):
            if self._is_of_root(node):
                self._walk.require(region, Condition([region.value(node)], mask, wrong))

    def check_all(self) -> None:
        """Decide the rest, for tuples of which a leaf has one, or of which no leaf is known.

        Raises:
            WrongError: something fails.
        """
        for paths in self._runs.drafts.tuples:
            checks = [self._checks(leaf) for leaf in self._runs.leaves(paths)]
            if not checks or any(not self._is_of_root(node) for some in checks for node, _, _ in some):
                total = Sum(((self._runs, self._numbers),), ((0, paths),), weighted=False)
                self._walk.walk(total, self._finish)

    def _is_of_root(self, node: Node) -> bool:
        return self._runs.in_batches and node.rows <= {()}

    def _numbers(self, leaf: Leaf) -> dict[Any, Node]:
        return {(n, mask, wrong): node for n, (node, mask, wrong) in enumerate(self._checks(leaf))}

    @staticmethod
    def _finish(region: Region, totals: Totals) -> Iterator[Condition]:
        for (_, mask, wrong), function in totals.items():
            yield Condition([function], mask, wrong)

    def _checks(self, leaf: Leaf) -> list[Check]:
        """What does not hold by its form."""
        if "checks" not in leaf.notes:
            found = {check[:2]: check for check in self._asked(leaf) if not self._holds_by_form(check)}
            leaf.notes["checks"] = list(found.values())
        return leaf.notes["checks"]

    def _holds_by_form(self, check: Check) -> bool:
        node, mask, _ = check
        if mask == ZERO:
            return self._graph.is_zero_by_form(node, self._walk.domain.vocab_size)
        return self._graph.is_at_least_zero(node)

    def _asked(self, leaf: Leaf) -> Iterator[Check]:
        graph = self._graph
        total = graph.subtract(graph.sum(stop for row in leaf.stops for stop in row), graph.one)
        yield total, ZERO, "stop probabilities do not sum to 1"
        for stops, masses in zip(leaf.stops, leaf.masses, strict=True):
            for stop, entries in zip(stops, masses, strict=True):
                yield stop, AT_LEAST_ZERO, "a stop probability is negative"
                for entry in entries:
                    if not graph.is_at_least_zero(entry, given=stop):
                        yield entry, AT_LEAST_ZERO, "a correction row has a negative entry"
                if not (self._is_lossless and _is_one_row(entries)):
                    left = graph.subtract(stop, graph.sum(entries))
                    yield left, ZERO, "a correction row does not sum to 1"


def _is_one_row(entries: list[Node]) -> bool:
    """Whether the masses are those of all entries of one row of weights, divided by its sum."""
    if any(entry.operation != "mass" for entry in entries):
        return False
    rows = {(stop, *row) for stop, _, *row in (entry.arguments for entry in entries)}
    return len(rows) == 1 and [entry.arguments[1] for entry in entries] == list(entries[0].arguments[3:])
