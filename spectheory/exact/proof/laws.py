"""Given the drafts, the stops and the tokens after them are a law: no number is negative, and all sum to 1.

Most of it holds by the form of the numbers.  The rest is decided on the regions of the rows that a number
depends on.
"""

from __future__ import annotations

from typing import NamedTuple

from spectheory.exact.proof.domain import Support
from spectheory.exact.proof.graph import Node
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, ZERO
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.runs import Fixed, Leaf, Rows, Runs
from spectheory.exact.proof.walk import Condition, Walk, WrongError
from spectheory.pairs.contexts import Context


class Check(NamedTuple):
    """A number whose sign must be in a mask."""

    node: Node
    mask: int
    wrong: str


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
        for check in self._checks(leaf):
            if check.node.rows <= {()}:
                self._walk.require(region, Condition([region.value(check.node)], check.mask, check.wrong))

    def check_all(self) -> None:
        """Decide the rest, on every leaf of every tuple.

        Raises:
            WrongError: something fails.
        """
        seen: set[object] = set()
        for paths in self._runs.drafts.tuples:
            drafted: dict[Context, set[int]] = {}
            for context, token, _ in self._runs.drafts.draws_of(self._graph, paths):
                drafted.setdefault(context, set()).add(token)
            for leaf, fixed, support in self._runs.leaves(paths):
                for check in self._checks(leaf):
                    if not (self._runs.in_batches and check.node.rows <= {()}):
                        self._check(check, fixed, drafted, support, seen)

    def _check(
        self,
        check: Check,
        fixed: Fixed,
        drafted: dict[Context, set[int]],
        support: Support,
        seen: set[object],
    ) -> None:
        """Decide a check on its own rows; if that fails, on the rows of the questions before, too."""
        more = check.node.rows.union(*(node.rows for node, _, _ in fixed))
        for rows in dict.fromkeys((check.node.rows, more)):
            near = tuple(question for question in fixed if question[0].rows <= rows)
            given = {context: tuple(sorted(tokens)) for context, tokens in drafted.items() if context in rows}
            questions = tuple((node.number, mask, answer) for node, mask, answer in near)
            key = check.node.number, check.mask, questions, tuple(given.items()), support
            if key in seen:
                return
            last = rows == more
            try:
                self._walk_rows(check, near, rows, given, support, last)
            except WrongError:
                if last:
                    raise
            else:
                seen.add(key)
                return

    def _walk_rows(
        self,
        check: Check,
        near: Fixed,
        rows: Rows,
        given: dict[Context, Support],
        support: Support,
        last: bool,
    ) -> None:
        walk = self._walk
        parts = [walk.oracle.start()]
        for context in sorted(rows, key=lambda context: (len(context), context)):
            parts = [
                part
                for region in parts
                for part in walk.oracle.entered(region, context)
                if {*given.get(context, ())} <= {*part.supports[context]}
                and (not support or context != () or part.supports[context] == support)
            ]

        def decide(region: Region) -> tuple[()]:
            if all(region.has_sign(region.value(node), mask) == answer for node, mask, answer in near):
                condition = Condition([region.value(check.node)], check.mask, check.wrong)
                walk.require(region, condition, last=last)
            return ()

        walk.each(parts, decide)

    def _checks(self, leaf: Leaf) -> list[Check]:
        """What does not hold by its form."""
        if "checks" not in leaf.notes:
            found = [check for check in self._asked(leaf) if not self._holds_by_form(check)]
            leaf.notes["checks"] = list({(check.node, check.mask): check for check in found}.values())
        return leaf.notes["checks"]

    def _holds_by_form(self, check: Check) -> bool:
        if check.mask == ZERO:
            return check.node is self._graph.zero or self._graph.is_zero_by_form(check.node)
        return self._graph.is_at_least_zero(check.node)

    def _asked(self, leaf: Leaf) -> list[Check]:
        graph, found = self._graph, []
        total = graph.subtract(graph.sum(stop for row in leaf.stops for stop in row), graph.one)
        found.append(Check(total, ZERO, "stop probabilities do not sum to 1"))
        for stops, masses in zip(leaf.stops, leaf.masses, strict=True):
            for stop, entries in zip(stops, masses, strict=True):
                found.append(Check(stop, AT_LEAST_ZERO, "a stop probability is negative"))
                for entry in entries:
                    if not graph.is_at_least_zero(entry, given=stop):
                        wrong = "a correction row has a negative entry"
                        found.append(Check(entry, AT_LEAST_ZERO, wrong))
                if not (self._is_lossless and _is_one_row(entries)):
                    left = graph.subtract(stop, graph.sum(entries))
                    found.append(Check(left, ZERO, "a correction row does not sum to 1"))
        return found


def _is_one_row(entries: list[Node]) -> bool:
    """Whether the masses are those of all entries of one row of weights, divided by its sum."""
    if any(entry.operation != "mass" for entry in entries):
        return False
    rows = {(stop, *row) for stop, _, *row in (entry.arguments for entry in entries)}
    return len(rows) == 1 and [entry.arguments[1] for entry in entries] == list(entries[0].arguments[3:])
