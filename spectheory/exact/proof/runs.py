"""The runs of a verifier on formal numbers: one for every way to answer the comparisons that it makes.

The runs on one tuple of drafts make a tree of questions.  On a region a tuple descends its tree to a leaf,
and the verifier runs only where the tree has no leaf yet.  For draft length 1, all tuples that can be drafted
run in one batch: their comparisons are the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from flint import fmpq

from spectheory.exact.proof.coins import FormalGenerator, all_runs
from spectheory.exact.proof.domain import Domain
from spectheory.exact.proof.draft_tuples import Drafts, Paths
from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.numbers import POSITIVE, Function
from spectheory.exact.proof.oracle import Oracle
from spectheory.exact.proof.region import EmptyRegionError, Region, SplitError
from spectheory.exact.proof.trace import NotFollowedError, Number, Question, Run
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.pairs.contexts import Context, context_number
from spectheory.verification.evaluator import Evaluator, Tuples
from spectheory.verification.modification import modified_rows
from spectheory.verification.sampler_runs import RunsOnTuples, SamplerRun, runs_a_sampler
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

Rows = frozenset[Context]


class FailedRunError(Exception):
    """A verifier raised an error on formal numbers, at a guide point if the region has one."""

    def __init__(self, region: Region, error: Exception) -> None:
        super().__init__(str(error))
        self.region, self.error = region, error


class Leaf:
    """What a verifier returned for one tuple of drafts.

    Attributes:
        paths: the tuple.
        stops: the stop probabilities, [K][L+1].
        masses: of the tokens after every stop, [K][L+1][V].
        notes: what is computed from it once.
    """

    def __init__(self, paths: Paths, stops: list[list[Node]], masses: list[list[list[Node]]]) -> None:
        self.paths, self.stops, self.masses = paths, stops, masses
        self.notes: dict[Any, Any] = {}

    def passes(self, graph: Graph, prefix: Context) -> Node:
        """The probability that the accepted path goes through a prefix."""
        if not prefix:
            return graph.one
        depth = len(prefix)
        through = [k for k, path in enumerate(self.paths) if path[:depth] == prefix]
        return graph.sum(stop for k in through for stop in self.stops[k][depth:])

    def output(self, graph: Graph, prefix: Context) -> list[Node]:
        """The probability that exactly a prefix is accepted, with each token after it."""
        depth = len(prefix)
        rows = [self.masses[k][depth] for k, path in enumerate(self.paths) if path[:depth] == prefix]
        return [graph.sum(entries) for entries in zip(*rows, strict=True)]


class _Place:
    """A place in a tree of questions: nothing yet, a question with two places below, or leaves."""

    __slots__ = ("leaves", "no", "question", "yes")

    def __init__(self) -> None:
        self.question: tuple[Node, int] | None = None
        self.yes: _Place | None = None
        self.no: _Place | None = None
        self.leaves: dict[Paths, Leaf] | None = None


Fixed = tuple[Question, ...]
"""The questions on the way to a leaf, with their answers."""


class Runs:
    """The runs of one verifier.

    Attributes:
        verifier: bound to the draft process.
        drafts: the tuples.
        count: of the runs.
    """

    def __init__(
        self, verifier: Verifier, drafts: Drafts, domain: Domain, graph: Graph, oracle: Oracle
    ) -> None:
        self.verifier, self.drafts, self.count = verifier, drafts, 0
        self._domain, self._graph, self._oracle = domain, graph, oracle
        self._trees: dict[Any, _Place] = {}

    @property
    def in_batches(self) -> bool:
        """Whether all tuples run together."""
        return self._domain.draft_length == 1

    def leaf(self, paths: Paths, region: Region, rows: Rows) -> Leaf | Rows:
        """The leaf of a tuple on a region, or the rows that its next question is about.

        Args:
            paths: the tuple.
            region: where all ``rows`` are entered.
            rows: of which questions can be answered.
        """
        batch, key = [paths], (id(self), paths)
        if self.in_batches:
            if () not in rows:
                return frozenset({()})
            support = region.supports[()]
            batch = [one for one in self.drafts.tuples if all(path[0] in support for path in one)]
            key = id(self), support  # type: ignore[assignment]
        root = self._trees.setdefault(key[1], _Place())
        place = region.places.get(key, root)
        while True:
            if place.question is None and place.leaves is None:
                self._grow(root, place, batch, region, rows)
            region.places[key] = place
            if place.leaves is not None:
                return place.leaves[paths]
            node, mask = place.question
            if not node.rows <= rows:
                return node.rows
            place = place.yes if region.has_sign(region.value(node), mask) else place.no

    def leaves(self, paths: Paths) -> list[tuple[Leaf, Fixed, tuple[int, ...]]]:
        """All leaves of a tuple, with the questions on the way and the root's support, () for every one."""
        found, keys = [], [paths]
        if self.in_batches:
            keys = [key for key in self._trees if all(path[0] in key for path in paths)]
        for key in keys:
            waiting: list[tuple[_Place | None, Fixed]] = [(self._trees.get(key), ())]
            while waiting:
                place, fixed = waiting.pop()
                if place is None:
                    continue
                if place.leaves is not None:
                    found.append((place.leaves[paths], fixed, key if self.in_batches else ()))
                elif place.question is not None:
                    waiting += [(place.no, (*fixed, (*place.question, False)))]
                    waiting += [(place.yes, (*fixed, (*place.question, True)))]
        return found  # type: ignore[return-value]

    def _grow(self, root: _Place, place: _Place, batch: Sequence[Paths], region: Region, rows: Rows) -> None:
        """Run the verifier at a guide point of the region, and add its questions to the tree."""
        before = _answers_to(root, place)
        run, leaves = self._run(batch, before or [], region, rows)
        here = root
        for node, mask, answer in run.asked:
            if here.question is None and here.leaves is None:
                here.question, here.yes, here.no = (node, mask), _Place(), _Place()
            if here.question != (node, mask):
                raise InvalidOutcomeError(
                    f"verifier {self.verifier.name!r} makes other comparisons when it runs again; it must "
                    "not depend on earlier calls or on chance"
                )
            here = here.yes if answer else here.no  # type: ignore[assignment]
        if here.question is not None:
            raise InvalidOutcomeError(
                f"verifier {self.verifier.name!r} makes fewer comparisons when it runs again"
            )
        here.leaves = leaves
        if place.question is None and place.leaves is None:
            raise RuntimeError("the guide point lies outside of its region")

    def modified_rows(self, verifier: Verifier, region: Region) -> dict[Context, list[Function]]:
        """The rows at depths 1 to L-1 that the target has after an output, on a region of all rows.

        Raises:
            SplitError: the verifier asks for a sign that is open.
        """
        domain, splits = self._domain, list[SplitError]()

        def decide(node: Node, mask: int, asked: list[Question]) -> bool:
            try:
                return region.has_sign(region.value(node), mask)
            except SplitError as split:
                splits.append(split)
                raise NotFollowedError from None  # code of a user does not catch it

        run, found = self._new_run(decide), dict[Context, list[Function]]()
        target, draft = self._rows(run, None, region)
        probs = [level[:1, 0] * 0 + 1 for level in (target[0], draft[0])]
        try:
            for depth in range(1, domain.draft_length):
                above = (target[depth - 1], draft[depth - 1])
                probs = [(prob[:, None] * level).ravel() for prob, level in zip(probs, above, strict=True)]
                modify: Any = deepcopy(verifier).modified_target_rows
                rows = target[depth], draft[depth]
                changed = modified_rows(modify, *rows, probs[0], probs[1], self.drafts.num_drafts)
                some = (context for context in domain.contexts if len(context) == depth)
                for context, row in zip(some, changed, strict=True):
                    found[context] = [region.value(run.node_of(entry)) for entry in row]
        except NotFollowedError:
            if splits:
                raise splits[0] from None
            run.check_followed(self.verifier.name)
            raise
        run.check_followed(self.verifier.name)
        return found

    def _new_run(self, decide: Callable[[Node, int, list[Question]], bool]) -> Run:
        run = Run(self._graph, decide)
        if isinstance(self.verifier, UserVerifier):
            run.with_flint = isinstance(self.verifier.user_object, Verifier)
        return run

    def _run(
        self, batch: Sequence[Paths], before: list[bool], region: Region, rows: Rows
    ) -> tuple[Run, dict[Paths, Leaf]]:
        self.count += 1
        guide = self._oracle.guide(region)
        if guide is None:  # answers that no pair gives can lead code astray
            if self._oracle.is_empty(region):
                raise EmptyRegionError
            guide = self._oracle.guide(region)

        def decide(node: Node, mask: int, asked: list[Question]) -> bool:
            if len(asked) < len(before):
                return before[len(asked)]
            if node.rows <= rows:
                try:
                    return region.has_sign(region.value(node), mask)
                except SplitError:
                    pass
            return bool(mask & POSITIVE)

        run, name = self._new_run(decide), self.verifier.name
        try:
            leaves = self._leaves(run, batch, self._rows(run, guide, region))
        except NotFollowedError:
            run.check_followed(name)
            raise
        except InvalidInputError as error:
            run.check_followed(name)
            if isinstance(error, InvalidOutcomeError) or guide is None:
                raise FailedRunError(region, error) from error
            raise
        except Exception as error:
            run.check_followed(name)
            raise FailedRunError(region, error) from error
        run.check_followed(name)
        return run, leaves

    def _rows(self, run: Run, guide: Sequence[fmpq] | None, region: Region) -> tuple[Any, Any]:
        """The rows of both models by depth, with their values at a guide point; generic rows elsewhere."""
        domain = self._domain
        target: list[np.ndarray] = []
        draft: list[np.ndarray] = []
        for depth in range(domain.draft_length + 1):
            some = [context for context in domain.contexts if len(context) == depth]
            for letter, place, levels in (("p", 0, target), ("q", 1, draft)):
                if letter == "q" and depth == domain.draft_length:
                    continue
                level = np.empty((len(some), domain.vocab_size), dtype=object)
                for number, context in enumerate(some):
                    values: Any = [None] * domain.vocab_size
                    if guide is not None:
                        known = context in region.supports
                        both = domain.rows_at(guide, context) if known else domain.generic_rows[context]
                        values = both[place]
                    for token, value in enumerate(values):
                        level[number, token] = Number(run, self._graph.entry(letter, context, token), value)
                levels.append(level)
        return tuple(target), tuple(draft)

    def _leaves(self, run: Run, batch: Sequence[Paths], rows: tuple[Any, Any]) -> dict[Paths, Leaf]:
        domain, graph, drafts = self._domain, self._graph, self.drafts.num_drafts
        verifier = deepcopy(self.verifier)  # one that has seen no call
        evaluator = Evaluator(verifier, rows[0], [rows[1]] * drafts)
        numbers = [[context_number(path, domain.vocab_size) for path in paths] for paths in batch]
        if runs_a_sampler(verifier):
            sampler = verifier.user_object  # type: ignore[attr-defined]
            return {
                paths: self._leaf_of_sampler(run, sampler, paths, evaluator.tuples(np.array([some])))
                for paths, some in zip(batch, numbers, strict=True)
            }
        outcome = verifier.outcome(*evaluator.tuples(np.array(numbers))[1:])
        shape = len(batch), drafts, domain.draft_length + 1
        self._check_shape("stop_probs", outcome.stop_probs, shape)
        stops = np.frompyfunc(run.node_of, 1, 1)(outcome.stop_probs)
        masses = np.full((*shape, domain.vocab_size), graph.zero, dtype=object)
        for k in range(drafts):
            for depth in range(shape[2]):
                made = [number for number in range(len(batch)) if stops[number, k, depth] is not graph.zero]
                if not made:
                    continue
                places = np.full(len(batch), k), np.full(len(batch), depth)
                correction = outcome.correction(*places)
                self._check_shape("correction rows", correction, (len(batch), domain.vocab_size))
                for number in made:
                    for token, entry in enumerate(correction[number]):
                        node = run.node_of(entry)
                        masses[number, k, depth, token] = graph.mass(stops[number, k, depth], node)
        found = zip(batch, stops.tolist(), masses.tolist(), strict=True)
        return {paths: Leaf(paths, some, rest) for paths, some, rest in found}

    def _leaf_of_sampler(self, run: Run, sampler: RunsOnTuples, paths: Paths, tuples: Tuples) -> Leaf:
        """The law of a sampler's output on one tuple, from all cases of its random numbers."""
        graph, size = self._graph, self._domain.vocab_size
        drafts, length = len(paths), self._domain.draft_length
        masses = [[[graph.zero] * size for _ in range(length + 1)] for _ in range(drafts)]

        def once(generator: FormalGenerator) -> SamplerRun:
            tokens, target, draft = (array[0].copy() for array in tuples[1:])
            return sampler.run_on_tuple(tokens, target, draft, generator)

        for output, probability in all_runs(once, tuples.target_rows.flat[0] * 0):
            row = masses[output.path_index][output.length]
            row[output.token] = graph.add(row[output.token], probability.node)
        stops = [[graph.sum(entries) for entries in rows] for rows in masses]
        return Leaf(paths, stops, masses)

    def _check_shape(self, what: str, array: Any, shape: tuple[int, ...]) -> None:
        if getattr(array, "shape", None) != shape:
            raise InvalidOutcomeError(
                f"verifier {self.verifier.name!r} returned {what} of another shape than {shape}"
            )


def _answers_to(root: _Place, place: _Place) -> list[bool] | None:
    """The answers on the way from the root of a tree to a place."""
    if root is place:
        return []
    for answer, below in ((True, root.yes), (False, root.no)):
        found = None if below is None else _answers_to(below, place)
        if found is not None:
            return [answer, *found]
    return None


Vector = Callable[[Leaf], dict[Any, Node]]
"""The numbers of a tuple that are summed over all tuples, each under a key."""
