"""The walks of a statement: what is summed over the tuples of drafts, and what the sums must satisfy.

*Lossless* is local.  With A(a) the probability that the accepted path goes through a, and R(a, y) the
probability that a is accepted and y is the token after it, the output has the law of the target if and only
if A(a) p(y|a) = R(a, y) + A(a, y) for every context a that can be drafted and every token y, where A(a, y) is
0 at depth L.  With D(a) the probability that the output goes on beyond a with a token of the target, the
condition says D = A from the root on, and from the leaves up it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from math import inf
from typing import Any

from spectheory.exact.proof.domain import Domain
from spectheory.exact.proof.draft_tuples import Drafts
from spectheory.exact.proof.graph import Graph, Node
from spectheory.exact.proof.laws import Laws
from spectheory.exact.proof.numbers import AT_LEAST_ZERO, ZERO, Function
from spectheory.exact.proof.oracle import Oracle
from spectheory.exact.proof.region import Region
from spectheory.exact.proof.runs import Leaf, Runs, Vector
from spectheory.exact.proof.statements import SAY_LOSSLESS, WRONG, Statement, Subject, antichains
from spectheory.exact.proof.walk import Condition, Finish, Sum, Totals, Walk
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context
from spectheory.pairs.pair import ModelPair
from spectheory.verification.verifier import Verifier

MAX_SETS = 1_000
"""The most antichains of which conditions are written down."""
MOST_SPOTS = 50
"""Regions on which the verifier is asked at a rational pair, all tuples in one batch."""


class WrongPairError(Exception):
    """A statement does not hold at a rational pair of a region."""

    def __init__(self, wrong: str, pair: ModelPair) -> None:
        super().__init__(wrong)
        self.wrong, self.pair = wrong, pair


def begin_walk(
    statement: Statement, domain: Domain, drafts: Drafts, oracle: Oracle, deadline: float = inf
) -> tuple[Walk, list[Runs]]:
    """A walk with the runs of the subjects of a statement."""
    walk, (main, *others) = Walk(domain, Graph(), oracle, deadline), statement.subjects
    every = [drafts, *(_drafts_of(one, main, drafts, domain) for one in others)]
    runs = [
        Runs(subject.bound, some, domain, walk.graph, oracle)
        for subject, some in zip(statement.subjects, every, strict=True)
    ]
    return walk, runs


def _drafts_of(subject: Subject, main: Subject, drafts: Drafts, domain: Domain) -> Drafts:
    return drafts if subject.process == main.process else Drafts(domain.shape, subject.process)


def walk_statement(statement: Statement, walk: Walk, runs: list[Runs]) -> None:
    """Decide a statement on all pairs.

    Args:
        statement: what is said.
        walk: of the pairs.
        runs: of the subjects.

    Raises:
        WrongError: a condition fails on a region.
        WrongPairError: the verifier does something else on rationals.
    """
    kind, is_lossless = statement.kind, statement.kind in SAY_LOSSLESS
    laws = [Laws(walk, one, is_lossless) for one in runs]
    batches = {id(one): law for one, law in zip(runs, laws, strict=True) if one.in_batches}
    spots = iter(range(MOST_SPOTS))

    def check_leaf(own: Runs, leaf: Leaf, region: Region) -> None:
        if id(own) in batches:
            batches[id(own)].check_on(leaf, region)

    def check_spot(region: Region) -> None:
        if next(spots, None) is not None:
            point = walk.oracle.guide(region)
            pair = None if point is None else walk.domain.pair_at(point, region.supports)
            wrong = "" if pair is None else statement.wrong_at(pair)
            if pair is not None and wrong:
                raise WrongPairError(wrong, pair)

    walk.on_leaf, walk.on_region = check_leaf, check_spot
    if is_lossless:
        _walk_lossless(walk, runs[0], kind == "optimal")
    elif kind in ("exchangeable", "single_path"):
        _walk_tuples(walk, runs, kind)
    elif kind == "law":
        for item in Sum.of((runs[0], nothing)).items:  # so that every comparison is asked
            walk.jointly(Sum(((runs[0], nothing),), (item,)), lambda region, totals: iter(()))
    else:
        parts, finish = _joint_walk(statement, walk, runs)
        walk.jointly(Sum.of(*parts), finish, walk.domain.contexts if kind == "completed" else ())
    for law in laws:
        law.check_all()


def nothing(leaf: Leaf) -> dict[Any, Node]:
    """No number of a tuple."""
    return {}


def _joint_walk(
    statement: Statement, walk: Walk, runs: list[Runs]
) -> tuple[list[tuple[Runs, Vector]], Finish]:
    """What is summed over all tuples, on regions of all rows, and what the sums must satisfy."""
    graph = walk.graph
    if statement.kind == "at_least":
        return [(one, _expected_tokens(graph, number)) for number, one in enumerate(runs)], _at_least(walk)
    outputs = _outputs(graph)
    if statement.kind == "prefix_matching":
        return [(runs[0], outputs)], _prefix_matching(walk, runs[0].drafts)
    return [(runs[0], outputs)], _completed(walk, runs[0], statement.subjects[0].verifier)


def _walk_lossless(walk: Walk, runs: Runs, optimal: bool) -> None:
    """One walk for all contexts of one path, or of draft length 1; otherwise one per context."""
    contexts, length, drafts = walk.domain.contexts, walk.domain.draft_length, runs.drafts.num_drafts
    together = drafts == 1 or length == 1
    for group in [contexts] if together else [(context,) for context in contexts]:
        gain = _gain(walk.graph, drafts) if optimal and () in group else None
        total = Sum.of((runs, _identity(walk.graph, group, length, walk.domain.vocab_size, gain)))
        walk.eliminate(total.through(group), _lossless(walk, runs.drafts))


def _identity(
    graph: Graph, contexts: tuple[Context, ...], length: int, size: int, gain: Callable[[Leaf], Node] | None
) -> Vector:
    """A(a) p(y|a) - R(a, y) - A(a, y) under the key (a, y); the gain under the key ()."""

    def vector(leaf: Leaf) -> dict[Any, Node]:
        if contexts not in leaf.notes:
            found = {} if gain is None else {(): gain(leaf)}
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


def _gain(graph: Graph, drafts: int) -> Callable[[Leaf], Node]:
    """For one path, E[τ+1] minus the sum of the largest masses (theory.md Statement 4.2), given the tuple;
    otherwise the probability that a token of a draft is accepted.
    """

    def several(leaf: Leaf) -> Node:
        return graph.sum(row[1] for row in leaf.stops)

    def one(leaf: Leaf) -> Node:
        [path], [stops] = leaf.paths, leaf.stops
        gain = graph.sum(graph.multiply(graph.constant(i + 1), stop) for i, stop in enumerate(stops))
        weight = graph.one
        gain = graph.subtract(gain, weight)
        for depth, token in enumerate(path):
            entries = (graph.entry(letter, path[:depth], token) for letter in "pq")
            ratio = graph.multiply(weight, graph.node("quotient", *entries))
            weight = graph.subtract(graph.one, graph.positive_part(graph.subtract(graph.one, ratio)))
            gain = graph.subtract(gain, weight)
        return gain

    return one if drafts == 1 else several


def _lossless(walk: Walk, drafts: Drafts) -> Finish:
    def finish(region: Region, totals: Totals) -> Iterator[Condition]:
        for key, function in totals.items():
            if key != ():
                yield Condition([function], ZERO, WRONG["lossless"])
        if () not in totals:
            return
        if drafts.num_drafts == 1:
            yield Condition([totals[()]], AT_LEAST_ZERO, WRONG["optimal"])
        else:
            yield Condition(cuts(region, totals[()]), AT_LEAST_ZERO, WRONG["optimal"])

    def cuts(region: Region, accepted: Function) -> list[Function]:
        """The acceptance minus p(H) + 1 - P(all drafts in H), for every set H (theory.md Statement 3.2)."""
        field, found = walk.domain.field, []
        size = walk.domain.vocab_size
        for inside in (some for count in range(size + 1) for some in combinations(range(size), count)):
            cut = field.sum([field.one, *(region.entries["p", (), token] for token in inside)])
            for paths in drafts.tuples:
                if all(path[0] in inside for path in paths):
                    probs = (region.value(prob) for _, _, prob in drafts.draws_of(walk.graph, paths))
                    cut = field.subtract(cut, field.product(probs))
            found.append(field.subtract(accepted, cut))
        return found

    return finish


def _expected_tokens(graph: Graph, number: int) -> Vector:
    def vector(leaf: Leaf) -> dict[Any, Node]:
        pairs = ((depth + 1, stop) for row in leaf.stops for depth, stop in enumerate(row))
        return {number: graph.sum(graph.multiply(graph.constant(count), stop) for count, stop in pairs)}

    return vector


def _at_least(walk: Walk) -> Finish:
    def finish(region: Region, totals: Totals) -> Iterator[Condition]:
        yield Condition([walk.domain.field.subtract(totals[0], totals[1])], AT_LEAST_ZERO, WRONG["at_least"])

    return finish


def _outputs(graph: Graph, *, number: int | None = None) -> Vector:
    """R(a, y) of a tuple under the key (a, y), or (number, a, y)."""

    def vector(leaf: Leaf) -> dict[Any, Node]:
        found: dict[Any, Node] = {}
        for path in leaf.paths:
            for context in (path[:depth] for depth in range(len(path) + 1)):
                for token, mass in enumerate(leaf.output(graph, context)):
                    key = (context, token) if number is None else (number, context, token)
                    found[key] = mass
        return found

    return vector


def _prefix_matching(walk: Walk, drafts: Drafts) -> Finish:
    """Σ D(a) p(a) over an antichain is at most the probability that some draft passes through it.

    D p is 1 at the root, and D(a) p(a) p(x|a) - R(a, x) at (a, x).
    """

    def finish(region: Region, totals: Totals) -> Iterator[Condition]:
        field = walk.domain.field
        masses: dict[Context, Function] = {(): field.one}
        for context, support in sorted(region.supports.items(), key=lambda one: (len(one[0]), one[0])):
            for token in support:
                wanted = field.multiply(masses[context], region.entries["p", context, token])
                mass = totals.get((context, token), field.zero)
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
            yield Condition([left], AT_LEAST_ZERO, WRONG["prefix_matching"])

    return finish


def _walk_tuples(walk: Walk, runs: list[Runs], kind: str) -> None:
    """Compare the law given each tuple with the law given the ordered drafts, or the first draft alone."""
    graph, field = walk.graph, walk.domain.field
    is_drafted = "drafted"

    def mine(leaf: Leaf) -> dict[Any, Node]:
        return {is_drafted: graph.one, **_outputs(graph, number=0)(leaf)}

    def finish(region: Region, totals: Totals) -> Iterator[Condition]:
        if is_drafted not in totals:
            return
        for context, token in dict.fromkeys(key[1:] for key in totals if key != is_drafted):
            both = (totals.get((number, context, token), field.zero) for number in (0, 1))
            yield Condition([field.subtract(*both)], ZERO, WRONG[kind])

    parts = (runs[0], mine), (runs[-1], _outputs(graph, number=1))
    for paths in runs[0].drafts.tuples:
        other = paths[:1] if kind == "single_path" else tuple(sorted(paths))
        if other != paths:
            walk.jointly(Sum(parts, ((0, paths), (1, other)), weighted=False), finish)


def _completed(walk: Walk, runs: Runs, verifier: Verifier) -> Finish:
    """The probability that an output passes through a prefix, completed with the modified rows, is p(prefix)
    where no draft goes further.

    With R(a, x) the probability of the output (a, x), the probability E that a text has been completed up to
    a prefix is E(a, x) = R(a, x) + E(a) m(x|a), with the modified row m at depths 1 to L-1, and the target's
    at depth L.
    """
    domain, field = walk.domain, walk.domain.field
    size, length = domain.vocab_size, domain.draft_length

    def finish(region: Region, totals: Totals) -> Iterator[Condition]:
        modified = runs.modified_rows(verifier, region)
        completed: dict[Context, Function] = {(): field.zero}
        drawn: dict[Context, Function] = {(): field.one}
        possible: set[Context] = {()}
        for context in domain.contexts:
            inside = region.supports[context] if context in possible else ()
            possible |= {(*context, token) for token in inside if len(context) < length}
            target = [region.entries["p", context, token] for token in range(size)]
            following = modified[context] if 0 < len(context) < length else target
            for token in range(size):
                prefix = (*context, token)
                mass = field.multiply(completed[context], following[token])
                completed[prefix] = field.add(totals.get((context, token), field.zero), mass)
                drawn[prefix] = field.multiply(drawn[context], target[token])
                if prefix not in possible:
                    left = field.subtract(drawn[prefix], completed[prefix])
                    yield Condition([left], ZERO, WRONG["completed"])

    return finish
