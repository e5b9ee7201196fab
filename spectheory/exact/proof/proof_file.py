"""Stored proofs: JSON, compressed.

===============  ===========================================================================
``polynomials``  each a list of terms: a coefficient, a variable, its exponent, and so on
``lemmas``       each its conditions, pairs of a polynomial and a mask (1 for negative, 2 for zero, 4 for
                 positive), and its terms: a coefficient, the conditions, and a monomial or nothing
``points``       rationals, beside the points that are drawn from a seed
``log``          the answers of the search in the order of the questions (``emptiness``)
===============  ===========================================================================
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flint import fmpq

from spectheory.exact.proof.certificates import SIGNED, Lemma, Lemmas, Term
from spectheory.exact.proof.domain import Domain, Points
from spectheory.exact.proof.emptiness import DERIVED, EMPTY, GUIDE, SPLIT, Search
from spectheory.exact.proof.numbers import ANY, NEGATIVE, POSITIVE, Factor
from spectheory.exact.proof.recorded import Recorded, RejectedProofError, is_list_of_whole_numbers
from spectheory.foundation.documents import replace_file
from spectheory.foundation.errors import InvalidInputError

FORMAT = "spectheory-proof/2"


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


def log_document(search: Search) -> dict[str, Any]:
    """The log of a search, with the lemmas, polynomials and points that occur in it."""
    lemmas: dict[int, int] = {}
    points: dict[int, int] = {}

    def lemma(number: int) -> int:
        return lemmas.setdefault(number - 1, len(lemmas)) + 1 if number > 0 else number

    def point(number: int) -> int:
        drawn = search.points.num_drawn
        return number if number <= drawn else drawn + 1 + points.setdefault(number - 1, len(points))

    log = []
    for kind, *rest in search.log:
        if kind == SPLIT:
            rest = [rest[0], *map(lemma, rest[1:])]
        elif kind == DERIVED:
            rest = [lemma(entry) if place % 2 else entry for place, entry in enumerate(rest)]
        elif kind == EMPTY:
            rest = [lemma(rest[0])]
        elif kind == GUIDE:
            rest = [point(rest[0])]
        log.append([kind, *rest])
    written = [_lemma_document(search, search.lemmas.lemmas[number]) for number in lemmas]
    return {
        "polynomials": [_polynomial_document(factor) for factor in search.polynomials],
        "lemmas": written,
        "points": [[str(value) for value in search.points.points[number]] for number in points],
        "log": log,
    }


def _polynomial_document(factor: Factor) -> list[list[int]]:
    return [
        [coefficient, *(number for power in powers for number in power)]
        for coefficient, powers in factor.sparse_terms
    ]


def _lemma_document(search: Search, lemma: Lemma) -> list[Any]:
    conditions = [[search.number_of(factor), mask] for factor, mask in lemma.constraints]
    terms = []
    for term in lemma.terms:
        powers = None
        if term.multiplier is not None:
            powers = [
                number
                for place, exponent in enumerate(term.multiplier)
                if exponent
                for number in (place, exponent)
            ]
        terms.append([str(term.coefficient), list(term.indices), powers])
    return [conditions, terms]


def recorded(document: Mapping[str, Any], domain: Domain) -> Recorded:
    """The oracle of a stored proof, its lemmas checked.

    Raises:
        RejectedProofError: a lemma is not an identity, or the document is malformed.
    """
    field = domain.field
    try:
        polynomials = [_factor(terms, domain) for terms in document["polynomials"]]
        lemmas = Lemmas(field)
        for conditions, terms in document["lemmas"]:
            lemma = _lemma(conditions, terms, polynomials, domain)
            if lemmas.add(lemma) is None:
                raise RejectedProofError("a lemma does not expand to 0")
        points = Points(domain)
        for values in document["points"]:
            point = [_rational(value) for value in values]
            if len(point) != len(field.names):
                raise RejectedProofError("a point has another number of values")
            points.add([point])
        log = document["log"]
        if not isinstance(log, list) or not all(map(is_list_of_whole_numbers, log)):
            raise RejectedProofError("its log is not one of integers")
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, ArithmeticError) as error:
        if isinstance(error, RejectedProofError):
            raise
        raise RejectedProofError(f"it is malformed: {error}") from error
    return Recorded(domain, log, lemmas, polynomials, points)


def _rational(text: str) -> fmpq:
    numerator, _, denominator = text.partition("/")
    return fmpq(int(numerator), int(denominator or 1))


def _monomial(powers: list[int], size: int) -> tuple[int, ...]:
    exponents = [0] * size
    for place, exponent in zip(powers[::2], powers[1::2], strict=True):
        if not (type(place) is type(exponent) is int and 0 <= place < size and 0 < exponent < 128):
            raise RejectedProofError("a monomial has another variable")
        exponents[place] += exponent
    return tuple(exponents)


def _factor(terms: list[list[int]], domain: Domain) -> Factor:
    """The factor of a polynomial, which must be irreducible."""
    field = domain.field
    written = {_monomial(powers, len(field.names)): coefficient for coefficient, *powers in terms}
    constant, parts = field.factored(field.context.from_dict(written))
    if constant != 1 or [exponent for _, exponent in parts] != [1]:
        raise RejectedProofError("a polynomial is not an irreducible one")
    return parts[0][0]


def _lemma(
    conditions: list[list[int]], terms: list[list[Any]], polynomials: list[Factor], domain: Domain
) -> Lemma:
    constraints = []
    for number, mask in conditions:
        if mask not in (*SIGNED, NEGATIVE | POSITIVE, ANY) or not 0 <= number < len(polynomials):
            raise RejectedProofError("a lemma has no such condition")
        constraints.append((polynomials[number], mask))
    made = []
    for text, indices, powers in terms:
        if not is_list_of_whole_numbers(indices) or any(not 0 <= i < len(constraints) for i in indices):
            raise RejectedProofError("a term names a condition that is not there")
        multiplier = None if powers is None else _monomial(powers, len(domain.field.names))
        made.append(Term(_rational(text), tuple(indices), multiplier))
    return Lemma(tuple(constraints), tuple(made))
