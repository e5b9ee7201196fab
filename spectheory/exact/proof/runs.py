"""The runs of a verifier on formal numbers: one for every way to answer the comparisons that it makes.

The runs on one tuple of drafts make a tree of questions.  On a region a tuple descends its tree to a leaf,
and the verifier runs only where the tree is not known yet.  A run ends at the first question whose answer is
open on the region.  For draft length 1, all tuples that can be drafted run in one batch: their comparisons
are the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from spectheory.exact.proof.coins import FormalGenerator, all_runs
from spectheory.exact.proof.domain import Domain
from spectheory.exact.proof.draft_tuples import Drafts, Paths
from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.region import DividesByZeroError, Region, SplitError
from spectheory.exact.proof.trace import EndOfRunError, Number, Run
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import Context, context_number
from spectheory.verification.evaluator import Evaluator, Tuples
from spectheory.verification.modification import modified_rows
from spectheory.verification.sampler_runs import RunsOnTuples, SamplerRun, runs_a_sampler
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

Rows = frozenset[Context]
Answers = tuple[bool, ...]


class FailedRunError(Exception):
    """A verifier raised an error on formal numbers."""

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


class Runs:
    """The runs of one verifier.

    Attributes:
        verifier: bound to the draft process.
        drafts: the tuples.
    """

    def __init__(self, verifier: Verifier, drafts: Drafts, domain: Domain, graph: Graph) -> None:
        self.verifier, self.drafts, self._domain, self._graph = verifier, drafts, domain, graph
        self._tree: dict[tuple[Any, Answers], Any] = {}
        """A tuple or batch and the answers so far -> the next question, or what the run returned."""

    @property
    def in_batches(self) -> bool:
        """Whether all tuples run together."""
        return self._domain.draft_length == 1

    def leaf(self, paths: Paths, region: Region) -> Leaf | Rows:
        """The leaf of a tuple on a region, or the rows that its next question is about."""
        batch: Sequence[Paths] = [paths]
        key: tuple[Any, ...] = paths
        if self.in_batches:
            if () not in region.supports:
                return frozenset({()})
            key = region.supports[()]
            batch = [one for one in self.drafts.tuples if all(path[0] in key for path in one)]
        found = self._followed(key, region, lambda run: self._leaves(run, batch))
        return found if isinstance(found, frozenset) else found[paths]

    def leaves(self, paths: Paths) -> Iterator[Leaf]:
        """All leaves of a tuple that are known."""
        for found in self._tree.values():
            if isinstance(found, dict) and paths in found:
                yield found[paths]

    def modified_rows(self, verifier: Verifier, region: Region) -> dict[Context, list[Node]]:
        """The rows at depths 1 to L-1 that the target has after an output, on a region of all rows."""
        found = self._followed("modified", region, lambda run: self._modified(run, verifier))
        return found

    def _followed(self, key: Any, region: Region, compute: Callable[[Run], Any]) -> Any:
        """What a run returns on a region, or the rows that its next question is about.

        Raises:
            SplitError: the answer to its next question is open.
            FailedRunError: the verifier fails.
        """
        place, rows = (id(self), key), region.supports.keys()
        answers = region.answers.get(place, ())
        while True:
            if (key, answers) not in self._tree:
                self._run(key, answers, region, compute)
            found = self._tree[key, answers]
            region.answers[place] = answers
            if not isinstance(found, tuple):
                return found
            node, mask = found
            if not node.rows <= rows:
                return node.rows
            answers = (*answers, region.has_sign(region.value(node), mask))

    def _run(self, key: Any, known: Answers, region: Region, compute: Callable[[Run], Any]) -> None:
        """Run the verifier to its next open question, or to its end, and keep the way in the tree."""
        name, answers, rows = self.verifier.name, list[bool](), region.supports.keys()

        def keep(found: Any) -> None:
            if self._tree.setdefault((key, tuple(answers)), found) != found:
                raise InvalidOutcomeError(
                    f"verifier {name!r} makes other comparisons when it runs again; it must not depend on "
                    "earlier calls or on chance"
                )

        def decide(node: Node, mask: int) -> bool | None:
            keep((node, mask))
            if len(answers) < len(known):
                answers.append(known[len(answers)])
            elif not node.rows <= rows:
                return None
            else:
                try:
                    answers.append(region.has_sign(region.value(node), mask))
                except (SplitError, DividesByZeroError):
                    return None
            return answers[-1]

        users = self.verifier.user_object if isinstance(self.verifier, UserVerifier) else None
        with_flint = users is None or isinstance(users, Verifier)
        run = Run(self._graph, decide, with_flint)
        failure, found = None, None
        try:
            found = compute(run)
        except EndOfRunError:
            pass
        except Exception as error:
            failure = FailedRunError(region, error)
        run.check_followed(name)
        if run.is_open:
            return
        if failure is not None:
            raise failure from failure.error
        keep(found)

    def _rows(self, run: Run) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """The rows of both models by depth."""
        domain, graph = self._domain, self._graph

        def level(letter: str, depth: int) -> np.ndarray:
            some = [context for context in domain.contexts if len(context) == depth]
            rows = np.empty((len(some), domain.vocab_size), dtype=object)
            for number, token in np.ndindex(rows.shape):
                rows[number, token] = Number(run, graph.entry(letter, some[number], token))
            return rows

        depths = range(domain.draft_length + 1)
        return tuple(level("p", depth) for depth in depths), tuple(level("q", depth) for depth in depths[:-1])

    def _modified(self, run: Run, verifier: Verifier) -> dict[Context, list[Node]]:
        domain, (target, draft) = self._domain, self._rows(run)
        found: dict[Context, list[Node]] = {}
        probs = [level[:1, 0] * 0 + 1 for level in (target[0], draft[0])]
        for depth in range(1, domain.draft_length):
            above = (target[depth - 1], draft[depth - 1])
            probs = [(prob[:, None] * level).ravel() for prob, level in zip(probs, above, strict=True)]
            modify: Any = deepcopy(verifier).modified_target_rows
            rows = target[depth], draft[depth]
            changed = modified_rows(modify, *rows, probs[0], probs[1], self.drafts.num_drafts)
            some = (context for context in domain.contexts if len(context) == depth)
            for context, row in zip(some, changed, strict=True):
                found[context] = [run.node_of(entry) for entry in row]
        return found

    def _leaves(self, run: Run, batch: Sequence[Paths]) -> dict[Paths, Leaf]:
        domain, graph, drafts = self._domain, self._graph, self.drafts.num_drafts
        verifier, rows = deepcopy(self.verifier), self._rows(run)  # one that has seen no call
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
        for k, depth in np.ndindex(shape[1:]):
            made = np.flatnonzero(stops[:, k, depth] != graph.zero)
            if len(made):
                places = np.full(len(batch), k), np.full(len(batch), depth)
                correction = outcome.correction(*places)
                self._check_shape("correction rows", correction, (len(batch), domain.vocab_size))
                for number in made:
                    row = [graph.mass(stops[number, k, depth], run.node_of(x)) for x in correction[number]]
                    masses[number, k, depth] = row
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

        for output, probability in all_runs(once, Number(run, graph.zero)):
            row = masses[output.path_index][output.length]
            row[output.token] = graph.add(row[output.token], probability)
        stops = [[graph.sum(entries) for entries in rows] for rows in masses]
        return Leaf(paths, stops, masses)

    def _check_shape(self, what: str, array: Any, shape: tuple[int, ...]) -> None:
        if getattr(array, "shape", None) != shape:
            raise InvalidOutcomeError(
                f"verifier {self.verifier.name!r} returned {what} of another shape than {shape}"
            )


Vector = Callable[[Leaf], dict[Any, Node]]
"""The numbers of a tuple that are summed over all tuples, each under a key."""
