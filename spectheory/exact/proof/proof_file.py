"""Stored proofs: JSON, compressed.

===============  ===========================================================================
``polynomials``  of the lemmas, each a list of terms: a coefficient, a variable, its exponent, and so on
``lemmas``       each its conditions, pairs of a polynomial and a mask (1 for negative, 2 for zero, 4 for
                 positive), and its terms: an integer, and the conditions that are multiplied
``points``       rationals at which the verifier is asked; the points that are drawn from a seed are asked
                 too, and are not stored
===============  ===========================================================================
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flint import fmpq

from spectheory.exact.proof.certificates import Lemma, Lemmas
from spectheory.exact.proof.domain import Domain, Points
from spectheory.exact.proof.numbers import Factor
from spectheory.exact.proof.oracle import Oracle
from spectheory.exact.proof.search_oracle import SearchOracle
from spectheory.foundation.documents import replace_file
from spectheory.foundation.errors import InvalidInputError

FORMAT = "spectheory-proof/5"


class RejectedProofError(InvalidInputError):
    """A stored proof does not hold for the code as it is."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the proof is rejected: {why}")


def read(path: str | Path) -> dict[str, Any]:
    """The document of a stored proof.

    Raises:
        InvalidInputError: the file is not a proof.
    """
    try:
        document = json.loads(lzma.decompress(Path(path).read_bytes()))
    except (lzma.LZMAError, EOFError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{path} is not a proof: {error}; expected what `prove --out` wrote"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidInputError(f"{path} is not a proof of the format {FORMAT}")
    return document


def write(path: str | Path, document: Mapping[str, Any]) -> int:
    """Write a document, the same bytes for the same document; returns their number."""
    text = json.dumps(document, separators=(",", ":"))
    data = lzma.compress(text.encode())
    replace_file(Path(path), data)
    return len(data)


def log_document(oracle: SearchOracle) -> dict[str, Any]:
    """The lemmas that closed a part in a search, and the points at which it asked the verifier."""
    polynomials: dict[Factor, int] = {}
    lemmas = []
    for one in (oracle.lemmas.lemmas[number - 1] for number in oracle.used):
        conditions = [[polynomials.setdefault(f, len(polynomials)), mask] for f, mask in one.constraints]
        lemmas.append([conditions, one.terms])
    points = [oracle.points.points[n] for n in oracle.used_points if n >= oracle.points.num_drawn]
    return {
        "polynomials": [
            [[coefficient, *sum(powers, ())] for coefficient, powers in factor.sparse_terms]
            for factor in polynomials
        ],
        "lemmas": lemmas,
        "points": [[str(value) for value in point] for point in points],
    }


def recorded(document: Mapping[str, Any], domain: Domain) -> Oracle:
    """The lemmas and points of a stored proof, the lemmas checked.

    Raises:
        RejectedProofError: a lemma is not an identity.
        LookupError, TypeError, ValueError, ArithmeticError: the document is malformed.
    """
    lemmas, points = Lemmas(domain.field), Points(domain)
    polynomials = [_factor(terms, domain) for terms in document["polynomials"]]
    for conditions, terms in document["lemmas"]:
        constraints = tuple((polynomials[number], mask) for number, mask in conditions)
        if not lemmas.add(Lemma(constraints, tuple(terms))):
            raise RejectedProofError("a lemma does not expand to 0")
    for values in document["points"]:
        points.add([fmpq(*map(int, value.split("/"))) for value in values])
    return Oracle(domain, lemmas, points)


def _factor(terms: list[list[int]], domain: Domain) -> Factor:
    """The factor of a polynomial, which must be irreducible."""
    field = domain.field
    written: dict[tuple[int, ...], int] = {}
    for coefficient, *powers in terms:
        exponents = [0] * len(field.names)
        for place, exponent in zip(powers[::2], powers[1::2], strict=True):
            if min(place, exponent) < 0:  # python-flint would take the exponent without its sign
                raise RejectedProofError("a place or an exponent is negative")
            exponents[place] += exponent
        written[tuple(exponents)] = coefficient
    constant, parts = field.factored(field.context.from_dict(written))
    if constant != 1 or [exponent for _, exponent in parts] != [1]:
        raise RejectedProofError("a polynomial is not an irreducible one")
    return parts[0][0]
