"""The conditions of every statement at a leaf, as the checker holds a proof to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.proof.check_leaf import FaceRows, Law, law_at_leaf, numbers_of
from spectheory.exact.proof.check_numbers import NEGATIVE, POSITIVE, ZERO, Answers, Quotient, reject
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement
from spectheory.pairs.drafts.trees import Tree
from spectheory.verification.resolve import find_verifier
from spectheory.verification.verifier import Verifier
from spectheory.verification.verifier_code import code_digest

TREES = {"prefix_tree": PrefixTree, "without_replacement": WithoutReplacement}
Prefix = tuple[int, ...]


class Leaf(NamedTuple):
    """A leaf: what is known there, the rows by depth, the prefixes that drafts reach, and the laws."""

    answers: Answers
    rows: dict[str, list[np.ndarray]]
    reached: list[Prefix]
    laws: list[Law]

    @property
    def size(self) -> int:
        return self.rows["p"][0].shape[1]

    @property
    def length(self) -> int:
        return len(self.rows["q"])

    @property
    def one(self) -> Quotient:
        return self.answers.quotient(self.answers.ring.constant(1))

    def entry(self, letter: str, prefix: Prefix) -> Quotient:
        """The probability of the last token of a prefix behind the others."""
        number = sum(token * self.size**place for place, token in enumerate(reversed(prefix[:-1])))
        return self.rows[letter][len(prefix) - 1][number][prefix[-1]]

    def prefixes(self, leaf: int) -> set[Prefix]:
        """Those of a drafted path."""
        path = tuple(leaf // self.size**place % self.size for place in reversed(range(self.length)))
        return {path[:depth] for depth in range(self.length + 1)}

    def masses(self) -> dict[Prefix, Quotient]:
        """1 at the root, and behind it mass(a) p(x|a) less the probability of the output (a, x)."""
        law = self.laws[0]
        found: dict[Prefix, Quotient] = {(): self.one}
        for prefix in self.reached:
            for token in range(self.size):
                given = self.one - 1
                for weight, output in zip(law.weights, law.outputs, strict=True):
                    given = given + weight * output[prefix][token] if prefix in output else given
                mass = found[prefix] * self.entry("p", (*prefix, token))
                found[*prefix, token] = mass - self.answers.simplified(given)
        return found


class ClaimedStatement(NamedTuple):
    """What a proof states: its kind, and the verifiers with the processes of their drafts."""

    kind: str
    subjects: list[tuple[Verifier, DraftProcess]]

    @staticmethod
    def of(document: Mapping[str, Any], verifier: Verifier) -> ClaimedStatement:
        """What a document states of a verifier."""
        drafts, name, length = document["drafts"], document["statement"], document["draft_length"]
        process: Iid | Tree = (
            Iid(drafts["num_drafts"])
            if drafts["process"] == "iid"
            else TREES[drafts["process"]](tuple(drafts["widths"]))
        )
        widths = {} if isinstance(process, Iid) else {"widths": list(process.widths)}
        if drafts != {"process": process.name, "num_drafts": process.num_drafts, **widths}:
            reject("its words on the drafts are not those of one process")
        kind, _, other = name.partition(":")
        compared: list[tuple[Verifier, DraftProcess]] = []
        if kind == "at_least":
            other, _, count = other.partition("@")
            compared = [(find_verifier(other), Iid(int(count)) if count else process)]
        elif kind == "single_path":
            compared = [(verifier, process.first_path())]
        has_optimum = process.num_drafts == 1 or length == 1
        is_known = kind in CONDITIONS and bool(other) == (kind == "at_least")
        if (
            not is_known
            or (name == "optimal" and not has_optimum)
            or (name == "exchangeable" and not isinstance(process, Iid))
            or (name == "completed" and verifier.modified_target_rows is None)
        ):
            reject("it states something else")
        if any(
            getattr(one.bind(given), "has_own_bind", False) for one, given in [(verifier, process), *compared]
        ):
            reject("a verifier with a bind of its own may be another one on some pair")
        return ClaimedStatement(kind, [(verifier, process), *compared])

    @property
    def has_rows_beyond(self) -> bool:
        """Whether it speaks of the rows at contexts that cannot be drafted."""
        return self.kind == "completed"

    @property
    def digest(self) -> str:
        """Of the code of all its verifiers and draft processes."""
        return code_digest(*(one for subject in self.subjects for one in subject))

    def check(self, face: FaceRows, answers: Answers) -> None:
        """Reject the proof unless the statement holds at a leaf."""
        rows = numbers_of(face, answers)
        laws = [law_at_leaf(one.bind(process), process, rows, answers) for one, process in self.subjects]
        if self.has_rows_beyond:
            verifier, process = self.subjects[0]
            rows["m"] = _modified_levels(verifier, process.num_drafts, rows)
        CONDITIONS[self.kind](Leaf(answers, rows, sorted(face.reached, key=len), laws))
        if answers.has_failed:
            reject("the verifier left the array functions")


def _lossless(leaf: Leaf) -> None:
    for prefix, mass in leaf.masses().items():
        if prefix not in leaf.reached:
            leaf.answers.must(mass, ZERO)


def _optimal(leaf: Leaf) -> None:
    _lossless(leaf)
    law, one = leaf.laws[0], leaf.one
    if len(law.leaves[0]) == 1:
        mean = law.block_efficiency - 1
        accepted: dict[Prefix, Quotient] = {(): one}
        drafted: dict[Prefix, Quotient] = {(): one}
        for prefix in leaf.reached[1:]:
            drafted[prefix] = drafted[prefix[:-1]] * leaf.entry("q", prefix)
            mass = accepted[prefix[:-1]] * leaf.entry("p", prefix)
            accepted[prefix] = drafted[prefix] - (drafted[prefix] - mass).positive_part()
            mean = mean - accepted[prefix]
        leaf.answers.must(mean, ZERO | POSITIVE)
        return
    for inside in chain(*(combinations(range(leaf.size), count) for count in range(leaf.size + 1))):
        # No lossless verifier accepts more than p(H) + 1 - P(all drafts lie in H).
        rest = law.block_efficiency - 2
        for token in inside:
            rest = rest - leaf.entry("p", (token,))
        for weight, tokens in zip(law.weights, law.leaves, strict=True):
            rest = rest + weight if {*tokens} <= {*inside} else rest
        if not leaf.answers.signs(*rest.parts) & NEGATIVE:
            return
    reject("no cut bounds the block efficiency at a leaf")


def _at_least(leaf: Leaf) -> None:
    one, other = leaf.laws
    leaf.answers.must(one.block_efficiency - other.block_efficiency, ZERO | POSITIVE)


def _prefix_matching(leaf: Leaf) -> None:
    masses, law = leaf.masses(), leaf.laws[0]
    passed = [set().union(*map(leaf.prefixes, leaves)) for leaves in law.leaves]
    for antichain in _antichains((), set(leaf.reached), leaf.size):
        hit = leaf.one - 1
        for weight, prefixes in zip(law.weights, passed, strict=True):
            hit = hit + weight if prefixes & antichain else hit
        leaf.answers.must(sum((-masses[prefix] for prefix in antichain), hit), ZERO | POSITIVE)


def _antichains(prefix: Prefix, reached: set[Prefix], size: int) -> Iterator[frozenset[Prefix]]:
    """The antichains at and below a prefix."""
    yield frozenset([prefix])
    children = [(*prefix, token) for token in range(size) if (*prefix, token) in reached]
    for parts in product(*(_antichains(child, reached, size) for child in children)):
        yield frozenset().union(*parts)


def _exchangeable(leaf: Leaf) -> None:
    law = leaf.laws[0]
    of_tuple = dict(zip(law.leaves, law.outputs, strict=True))
    for leaves, output in of_tuple.items():
        _must_be_equal(leaf, output, of_tuple[tuple(sorted(leaves))])


def _single_path(leaf: Leaf) -> None:
    law, alone = leaf.laws
    of_path = {leaves[0]: output for leaves, output in zip(alone.leaves, alone.outputs, strict=True)}
    for leaves, output in zip(law.leaves, law.outputs, strict=True):
        _must_be_equal(leaf, output, of_path[leaves[0]])


def _completed(leaf: Leaf) -> None:
    law, nothing = leaf.laws[0], leaf.one - 1
    completed: dict[Prefix, Quotient] = {(): nothing}
    drawn: dict[Prefix, Quotient] = {(): leaf.one}
    waiting: list[Prefix] = [()]
    for prefix in waiting:
        letter = "m" if 0 < len(prefix) < leaf.length else "p"
        for token in range(leaf.size):
            longer: Prefix = (*prefix, token)
            mass = completed[prefix] * leaf.entry(letter, longer)
            for weight, output in zip(law.weights, law.outputs, strict=True):
                mass = mass + weight * output[prefix][token] if prefix in output else mass
            completed[longer], drawn[longer] = mass, drawn[prefix] * leaf.entry("p", longer)
            if longer not in leaf.reached:
                leaf.answers.must(drawn[longer] - mass, ZERO)
            if longer in leaf.reached or len(longer) < leaf.length:
                waiting.append(longer)


def _modified_levels(
    verifier: Verifier, num_drafts: int, rows: dict[str, list[np.ndarray]]
) -> list[np.ndarray]:
    """The rows of depth 0 and the modified rows of the depths below L."""
    modify: Any = deepcopy(verifier).modified_target_rows
    target, draft, found = rows["p"][0][0], rows["q"][0][0], rows["p"][:1]
    for p, q in zip(rows["p"][1:-1], rows["q"][1:], strict=True):
        changed = modify(p, q, target, draft, num_drafts)
        is_empty = [sum(row) == 0 for row in changed]  # never reached: the row stays as it was
        found.append(np.where(np.array(is_empty)[:, None], p, changed))
        target, draft = (target[:, None] * p).ravel(), (draft[:, None] * q).ravel()
    return found


def _must_be_equal(leaf: Leaf, one: dict[Prefix, Any], other: dict[Prefix, Any]) -> None:
    nothing = [leaf.one - 1] * leaf.size
    for prefix in one.keys() | other.keys():
        for a, b in zip(one.get(prefix, nothing), other.get(prefix, nothing), strict=True):
            leaf.answers.must(a - b, ZERO)


CONDITIONS: dict[str, Callable[[Leaf], None]] = {
    "lossless": _lossless,
    "optimal": _optimal,
    "at_least": _at_least,
    "prefix_matching": _prefix_matching,
    "exchangeable": _exchangeable,
    "single_path": _single_path,
    "completed": _completed,
    "law": lambda leaf: None,  # which ``law_at_leaf`` has checked
}
