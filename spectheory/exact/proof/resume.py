"""A search that was stopped, read from its file, so that another one goes on from there."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flint import fmpq

from spectheory.exact.proof.certificates import Node, Part, Term
from spectheory.exact.proof.points import Point
from spectheory.exact.proof.proof_file import SEARCH_FORMAT
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
    except (gzip.BadGzipFile, EOFError, ValueError) as error:
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


def restore(walk: Walk, tree: Mapping[str, Any]) -> None:
    """Make the lemmas and the parts of a stopped search those of a walk; open parts wait."""
    field = walk.field

    def exponents(powers: list[int]) -> tuple[int, ...]:
        found = [0] * len(field.names)
        for variable, exponent in zip(powers[::2], powers[1::2], strict=True):
            found[variable] = exponent
        return tuple(found)

    def terms(written: list[list[Any]]) -> list[tuple[str, tuple[int, ...]]]:
        return [(coefficient, exponents(powers)) for coefficient, *powers in written]

    factors = [
        field.factor(field.context.from_dict({powers: int(c) for c, powers in terms(written)}))
        for written in tree["polynomials"]
    ]
    for lemma in tree["lemmas"]:
        found: list[Term] | None = None if lemma["terms"] is None else []
        for coefficient, indices, *multiplier in lemma["terms"] or ():
            monomials = terms(multiplier[0]) if multiplier else [(coefficient, None)]
            found += [Term(fmpq(c), tuple(indices), powers) for c, powers in monomials]  # type: ignore[operator]
        conditions = [(factors[number], mask) for number, mask in lemma["conditions"]]
        walk.emptiness.add(conditions, None if found is None else tuple(found))
    for number, (face, root) in enumerate(tree["roots"]):
        walk.enter({tuple(context): tuple(support) for context, support in face}, number)
        waiting = [(root, walk.waiting.pop())]
        while waiting:
            target, branch = waiting.pop()
            if isinstance(target, list):
                stored = [Point(list(map(fmpq, target)))] if target else []
                walk.waiting.append(Branch(branch.pair, branch.known, stored + branch.points, branch.part))
            elif target == -1:
                branch.part.target = LEAF
                walk.num_regions += 1
            elif target < -1:
                branch.part.lemma = -2 - target
            else:
                place, *parts = tree["nodes"][target]
                factor = factors[place]
                node = Node(factor, [Part(mask) for mask in parts[::2]])
                branch.part.target = node
                for part, below in zip(node.parts, parts[1::2], strict=True):
                    mask = branch.known.get(factor, ANY_SIGN) & part.mask
                    points = [point for point in branch.points if point.sign(factor) & mask]
                    known = {**branch.known, factor: mask}
                    waiting.append((below, Branch(branch.pair, known, points, part)))
