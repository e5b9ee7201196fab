"""Proofs as documents: JSON, compressed, in which polynomials, lemmas and nodes are lists.

Signs are masks: 1 for negative, 2 for zero, 4 for positive.  A monomial is a list of its coefficient, a
variable, its exponent, and so on.  A node is its polynomial followed by pairs of a mask and a target.  A
target is the number of a node, -1 for a leaf, or -2 - i for the lemma i.  In a search that was stopped the
target of an open part is the list of the coordinates of a point of it, an empty one where none is known.

A proof that postpones decisions has atoms, facts and sums in place of roots.  A function is its numerator
and its denominator.  An atom is one function f, for max(f, 0), or n, d and e, for n/d with e in its place
where d = 0.  The atoms are variables behind those of the rows.  A fact is a function, its mask, the prefixes
that are drafted, its open atoms, the facts that it uses and the root of its tree.  A sum is a function with
pairs of a factor and a fact.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spectheory.exact.proof.certificates import Node, Part, Term
from spectheory.exact.proof.domain import Face
from spectheory.exact.proof.points import Point
from spectheory.exact.proof.postponed import Postponement
from spectheory.exact.proof.rational_functions import Factor, RationalFunction
from spectheory.exact.proof.regions import LEAF, Branch, Walk
from spectheory.foundation.documents import replace_file

FORMAT, SEARCH_FORMAT = "spectheory-proof/1", "spectheory-search/1"


def tree_document(walk: Walk, left: Sequence[Branch] = ()) -> dict[str, Any]:
    """The polynomials, lemmas and nodes of a walk; lemmas that close nothing are left out.

    Args:
        walk: through all but the branches that are left.
        left: the branches that are open.
    """
    trees = _Trees(walk, {id(branch.part): branch.points[:1] for branch in left})
    roots = [[_face(face), trees.root(part)] for face, part in walk.roots]
    return {**trees.document(), "roots": roots}


def branch_document(walk: Walk, branch: Branch) -> dict[str, Any]:
    """An open branch as a search of its own: its root has a third entry, what is known of signs there."""
    trees = _Trees(walk, {id(branch.part): branch.points[:1]})
    known = [[trees.number(factor), mask] for factor, mask in branch.known.items()]
    return {"roots": [[_face(branch.pair.face), trees.root(branch.part), known]], **trees.document()}


def _face(face: Face) -> list[list[list[int]]]:
    return [[list(context), list(support)] for context, support in face.items()]


def postponed_document(search: Postponement) -> dict[str, Any]:
    """The atoms, facts and sums of a proof that postpones decisions, with the trees of the facts."""
    trees, numbers = _Trees(search.walk, {}), {id(fact): n for n, fact in enumerate(search.facts)}
    facts = [
        [
            function_document(fact.function),
            fact.mask,
            sorted(map(list, fact.given)),
            sorted(fact.open_atoms),
            [numbers[id(other)] for other in fact.facts],
            trees.root(fact.part),
        ]
        for fact in search.facts
    ]
    sums = []
    for value, terms in search.sums:
        written = [[function_document(factor), numbers[id(fact)]] for factor, fact in terms]
        sums.append([function_document(value), written])
    atoms = [list(map(function_document, definition)) for definition in search.pair.definitions]
    return {
        **trees.document(),
        "variables": search.pair.shape.names(),
        "atoms": atoms,
        "facts": facts,
        "sums": sums,
    }


class _Trees:
    """The trees of a walk as lists.

    Args:
        walk: with the lemmas.
        points: by the id of an open part, of its branch.
    """

    def __init__(self, walk: Walk, points: Mapping[int, Sequence[Point]]) -> None:
        self.walk, self.points = walk, points
        self.polynomials: dict[Factor, int] = {}
        self.lemmas: dict[int, int] = {}
        self.nodes: list[list[Any]] = []

    def number(self, factor: Factor) -> int:
        """The place of a factor among the polynomials."""
        return self.polynomials.setdefault(factor, len(self.polynomials))

    def root(self, part: Part) -> Any:
        """The target of the root of a tree, all of whose nodes are written."""
        waiting: list[tuple[Node, list[Any], int]] = []
        head = [0]
        head[0] = self._target(part, waiting, head, 0)
        while waiting:
            node, row, place = waiting.pop()
            row[place] = len(self.nodes)
            entry: list[Any] = [self.number(node.factor)]
            self.nodes.append(entry)
            for one in node.parts:
                entry += [one.mask, None]
                entry[-1] = self._target(one, waiting, entry, len(entry) - 1)
        return head[0]

    def _target(
        self, part: Part, waiting: list[tuple[Node, list[Any], int]], row: list[Any], place: int
    ) -> Any:
        if part.lemma is not None:
            tree = self.walk.emptiness.lemmas[part.lemma].tree
            if tree is not None:
                waiting.append((tree, row, place))
                return 0
            return -2 - self.lemmas.setdefault(part.lemma, len(self.lemmas))
        if isinstance(part.target, Node):
            waiting.append((part.target, row, place))
            return 0
        if part.target == LEAF:
            return -1
        return [str(value) for point in self.points[id(part)] for value in point.values]

    def document(self) -> dict[str, Any]:
        """What the trees refer to."""
        written = []
        for number in self.lemmas:
            lemma = self.walk.emptiness.lemmas[number]
            terms = None if lemma.terms is None else list(map(_term, _combined(lemma.terms)))
            written.append(
                {"conditions": [[self.number(f), mask] for f, mask in lemma.constraints], "terms": terms}
            )
        return {
            "variables": list(self.walk.field.names),
            "polynomials": [_terms(factor.terms) for factor in self.polynomials],
            "lemmas": written,
            "nodes": self.nodes,
        }


def function_document(function: RationalFunction) -> list[Any]:
    """The numerator and the denominator."""
    return [_terms(part.to_dict()) for part in (function.numerator, function.denominator)]


def _combined(terms: tuple[Term, ...]) -> list[tuple[Any, tuple[int, ...], dict[Any, Any] | None]]:
    """Products as they are, and one multiplier per condition that is 0."""
    found: list[tuple[Any, tuple[int, ...], dict[Any, Any] | None]] = []
    multipliers: dict[tuple[int, ...], dict[Any, Any]] = {}
    for term in terms:
        if term.multiplier is None:
            found.append((term.coefficient, term.indices, None))
        else:
            multipliers.setdefault(term.indices, {})[term.multiplier] = term.coefficient
    return found + [(1, indices, multiplier) for indices, multiplier in multipliers.items()]


def _term(term: tuple[Any, tuple[int, ...], dict[Any, Any] | None]) -> list[Any]:
    coefficient, indices, multiplier = term
    written = [str(coefficient), list(indices)]
    return written if multiplier is None else [*written, _terms(multiplier)]


def _terms(terms: Mapping[tuple[int, ...], Any]) -> list[list[Any]]:
    return [
        [str(coefficient), *(int(entry) for pair in enumerate(exponents) if pair[1] for entry in pair)]
        for exponents, coefficient in terms.items()
    ]


def write(path: str | Path, document: Mapping[str, Any]) -> int:
    """Write a proof; returns its size in bytes.  The same proof makes the same file."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    data = gzip.compress(text, 9, mtime=0)
    replace_file(Path(path), data)
    return len(data)
