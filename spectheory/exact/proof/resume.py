"""A search that was stopped, read from its file, so that another one goes on from there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from flint import fmpq

from spectheory.exact.proof.certificates import Node, Part, Term
from spectheory.exact.proof.points import Point
from spectheory.exact.proof.postponed import Fact, Postponement
from spectheory.exact.proof.proof_file import SEARCH_FORMAT, function_document
from spectheory.exact.proof.rational_functions import ANY_SIGN
from spectheory.exact.proof.regions import LEAF, Branch, Walk
from spectheory.foundation.errors import InvalidInputError


def read_search(path: str | Path, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a stopped search.

    Args:
        path: of the file.
        wanted: fields that it must have, so that it is a search for the same statement about the same code.

    Raises:
        InvalidInputError: the file is not one, or is of another search.
    """
    try:
        document = json.loads(gzip.decompress(Path(path).read_bytes()))
    except (gzip.BadGzipFile, EOFError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{path} is not a search: {error}; expected what `prove --out` wrote"
        ) from error
    if not isinstance(document, dict) or document.get("format") != SEARCH_FORMAT:
        raise InvalidInputError(f"{path} is not a search that was stopped, of the format {SEARCH_FORMAT}")
    for key, value in wanted.items():
        if document.get(key) != value:
            raise InvalidInputError(
                f"{path} is a search with the {key} {document.get(key)!r}, expected {value!r}; start anew"
            )
    return document


def restore(walk: Walk, tree: Mapping[str, Any]) -> list[Branch]:
    """Make the lemmas and the parts of a stopped search those of a walk; open parts wait.

    Returns:
        A branch for every root.
    """
    trees, roots = _Trees(walk, tree), []
    for number, (face, root, *known) in enumerate(tree["roots"]):
        walk.enter({tuple(context): tuple(support) for context, support in face}, number)
        branch = walk.waiting.pop()
        for place, mask in chain(*known):
            branch.known[trees.factors[place]] = mask
        branch.points = [point for point in branch.points if point.is_in(branch.known.items())]
        trees.hang(root, branch)
        roots.append(branch)
    return roots


def graft(walk: Walk, tree: Mapping[str, Any], branches: Sequence[Branch]) -> list[Branch]:
    """Hang the trees of a document at branches; returns the branches of which a tree decides nothing."""
    trees = _Trees(walk, tree)
    undecided = []
    for (_, root, *_), branch in zip(tree["roots"], branches, strict=True):
        if isinstance(root, list):
            undecided.append(branch)
        else:
            trees.hang(root, branch)
    return undecided


def restore_facts(facts: Postponement, stored: Mapping[str, Any]) -> None:
    """Give a search that postpones decisions the facts of a stopped one, if its atoms are the same."""
    if stored["atoms"] != [list(map(function_document, atom)) for atom in facts.pair.definitions]:
        return
    trees, field = _Trees(facts.walk, stored), facts.pair.field
    for function, mask, given, open_atoms, used, root in stored["facts"]:
        parts = (field.context.from_dict(_integers(trees.terms(part))) for part in function)
        branch = Branch(facts.pair, {}, [], Part(ANY_SIGN))
        trees.hang(root, branch)
        earlier = tuple(facts.facts[number] for number in used)
        prefixes = frozenset(map(tuple, given))
        facts.keep(Fact(field.of(*parts), mask, prefixes, frozenset(open_atoms), earlier, branch.part))


def _integers(terms: Sequence[tuple[str, tuple[int, ...]]]) -> dict[tuple[int, ...], int]:
    return {powers: int(coefficient) for coefficient, powers in terms}


class _Trees:
    """The trees of a document.

    Attributes:
        factors: the polynomials.
    """

    def __init__(self, walk: Walk, tree: Mapping[str, Any]) -> None:
        field, self.walk, self.tree = walk.field, walk, tree
        self.factors = [
            field.factor(field.context.from_dict(_integers(self.terms(written))))
            for written in tree["polynomials"]
        ]
        self._lemmas = list(map(self._lemma, tree["lemmas"]))

    def terms(self, written: list[list[Any]]) -> list[tuple[str, tuple[int, ...]]]:
        """(coefficient, exponents) of the monomials of a polynomial."""
        found = []
        for coefficient, *powers in written:
            exponents = [0] * len(self.walk.field.names)
            for variable, exponent in zip(powers[::2], powers[1::2], strict=True):
                exponents[variable] = exponent
            found.append((coefficient, tuple(exponents)))
        return found

    def _lemma(self, lemma: Mapping[str, Any]) -> int:
        found: list[Term] | None = None if lemma["terms"] is None else []
        for coefficient, indices, *multiplier in lemma["terms"] or ():
            monomials = self.terms(multiplier[0]) if multiplier else [(coefficient, None)]
            found += [Term(fmpq(c), tuple(indices), powers) for c, powers in monomials]  # type: ignore[operator]
        conditions = [(self.factors[number], mask) for number, mask in lemma["conditions"]]
        return self.walk.emptiness.add(conditions, None if found is None else tuple(found))

    def hang(self, root: Any, at: Branch) -> None:
        """Make a target of the document that of a branch; open parts wait."""
        walk, waiting = self.walk, [(root, at)]
        while waiting:
            target, branch = waiting.pop()
            if isinstance(target, list):
                stored = [Point(list(map(fmpq, target)), branch.pair.value_of)] if target else []
                walk.waiting.append(Branch(branch.pair, branch.known, stored + branch.points, branch.part))
            elif target == -1:
                branch.part.target = LEAF
                walk.num_regions += 1
            elif target < -1:
                branch.part.lemma = self._lemmas[-2 - target]
            else:
                place, *parts = self.tree["nodes"][target]
                factor = self.factors[place]
                node = Node(factor, [Part(mask) for mask in parts[::2]])
                branch.part.target = node
                for part, below in zip(node.parts, parts[1::2], strict=True):
                    mask = branch.known.get(factor, ANY_SIGN) & part.mask
                    points = [point for point in branch.points if point.sign(factor) & mask]
                    known = {**branch.known, factor: mask}
                    waiting.append((below, Branch(branch.pair, known, points, part)))
