"""Proofs as documents: JSON, compressed, in which polynomials, lemmas and nodes are lists.

Signs are masks: 1 for negative, 2 for zero, 4 for positive.  A monomial is a list of its coefficient, a
variable, its exponent, and so on.  A node is its polynomial followed by pairs of a mask and a target.  A
target is the number of a node, -1 for a leaf, or -2 - i for the lemma i.  In a search that was stopped the
target of an open part is the list of the coordinates of a point of it, an empty one where none is known.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from spectheory.exact.proof.certificates import Step, Term
from spectheory.exact.proof.rational_functions import Factor
from spectheory.exact.proof.regions import LEAF, Branch, Node, Part, Walk

FORMAT, SEARCH_FORMAT = "spectheory-proof/1", "spectheory-search/1"


def tree_document(walk: Walk, left: Sequence[Branch] = ()) -> dict[str, Any]:
    """The polynomials, lemmas and nodes of a walk; lemmas that close nothing are left out.

    Args:
        walk: through all but the branches that are left.
        left: the branches that are open.
    """
    points = {id(branch.part): branch.points[:1] for branch in left}
    polynomials: dict[Factor, int] = {}
    lemmas: dict[int, int] = {}
    nodes: list[list[Any]] = []

    def polynomial(factor: Factor) -> int:
        return polynomials.setdefault(factor, len(polynomials))

    def target(part: Part, waiting: list[tuple[Node, list[Any], int]], row: list[Any], place: int) -> Any:
        if part.lemma is not None:
            steps = walk.emptiness.lemmas[part.lemma].steps
            if steps:
                waiting.append((_nodes(steps), row, place))
                return 0
            return -2 - lemmas.setdefault(part.lemma, len(lemmas))
        if isinstance(part.target, Node):
            waiting.append((part.target, row, place))
            return 0
        if part.target == LEAF:
            return -1
        return [str(value) for point in points[id(part)] for value in point.values]

    roots = []
    for face, part in walk.roots:
        waiting: list[tuple[Node, list[Any], int]] = []
        root = [[[list(context), list(support)] for context, support in face.items()], 0]
        root[1] = target(part, waiting, root, 1)
        while waiting:
            node, row, place = waiting.pop()
            row[place] = len(nodes)
            entry: list[Any] = [polynomial(node.factor)]
            nodes.append(entry)
            for one in node.parts:
                entry += [one.mask, None]
                entry[-1] = target(one, waiting, entry, len(entry) - 1)
        roots.append(root)
    written = []
    for number in lemmas:
        lemma = walk.emptiness.lemmas[number]
        terms = None if lemma.terms is None else list(map(_term, _combined(lemma.terms)))
        written.append(
            {"conditions": [[polynomial(f), mask] for f, mask in lemma.constraints], "terms": terms}
        )
    return {
        "variables": list(walk.field.names),
        "polynomials": [_terms(factor.terms) for factor in polynomials],
        "lemmas": written,
        "nodes": nodes,
        "roots": roots,
    }


def _nodes(steps: Sequence[Step]) -> Node:
    """A node for every step, each in the part that the one before leaves."""
    first, *rest = steps
    parts = [Part(sign, lemma=number) for sign, number in first.closed]
    return Node(first.factor, [*parts, Part(first.mask, _nodes(rest))] if rest else parts)


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
        [str(coefficient), *(entry for pair in enumerate(exponents) if pair[1] for entry in pair)]
        for exponents, coefficient in terms.items()
    ]


def write(path: str | Path, document: Mapping[str, Any]) -> int:
    """Write a proof; returns its size in bytes.  The same proof makes the same file."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    data = gzip.compress(text, 9, mtime=0)
    Path(path).write_bytes(data)
    return len(data)
