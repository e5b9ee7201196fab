"""Stored proofs: JSON, compressed.

===============  ===========================================================================
``polynomials``  of the lemmas, each a list of terms: a coefficient, a variable, its exponent, and so on
``lemmas``       each its conditions, pairs of a polynomial and a mask (1 for negative, 2 for zero, 4 for
                 positive), and its terms: a coefficient, the conditions, and a monomial or nothing
``points``       rationals, beside the points that are drawn from a seed
``log``          for every kind of question the answers of the search (``oracle``)
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
from spectheory.exact.proof.numbers import ANY, NEGATIVE, POSITIVE, Factor
from spectheory.exact.proof.oracle import DERIVED, EMPTY, GUIDE, KINDS, SPLIT, Oracle, RejectedProofError
from spectheory.foundation.documents import replace_file
from spectheory.foundation.errors import InvalidInputError

FORMAT = "spectheory-proof/3"


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


def log_document(oracle: Oracle) -> dict[str, Any]:
    """The log of a search, with the lemmas and points that occur in it, numbered anew."""
    drawn, lemmas, points = oracle.points.num_drawn, {0: 0}, dict[int, int]()

    def lemma(number: int) -> int:
        return lemmas.setdefault(number, len(lemmas)) if number > 0 else number

    def point(number: int) -> int:
        return number if number <= drawn else points.setdefault(number, drawn + 1 + len(points))

    log = [list(answers) for answers in oracle.log]
    for kind in (SPLIT, EMPTY):
        log[kind] = [[*map(lemma, answer)] for answer in log[kind]]
    log[DERIVED] = [[*answer[:1], *map(lemma, answer[1:])] for answer in log[DERIVED]]
    log[GUIDE] = [[*map(point, answer)] for answer in log[GUIDE]]
    polynomials: dict[Factor, int] = {}
    written = [_lemma_document(oracle.lemmas.lemmas[number - 1], polynomials) for number in lemmas if number]
    return {
        "polynomials": [
            [
                [coefficient, *(number for power in powers for number in power)]
                for coefficient, powers in factor.sparse_terms
            ]
            for factor in polynomials
        ],
        "lemmas": written,
        "points": [[str(value) for value in oracle.points.points[number - 1]] for number in points],
        "log": log,
    }


def _lemma_document(lemma: Lemma, polynomials: dict[Factor, int]) -> list[Any]:
    conditions = [
        [polynomials.setdefault(factor, len(polynomials)), mask] for factor, mask in lemma.constraints
    ]
    return [conditions, [[str(term.coefficient), list(term.indices), _powers(term)] for term in lemma.terms]]


def _powers(term: Term) -> list[int] | None:
    """The variables of a monomial, each with its exponent."""
    if term.multiplier is None:
        return None
    return [number for power in enumerate(term.multiplier) if power[1] for number in power]


def recorded(document: Mapping[str, Any], domain: Domain) -> Oracle:
    """The oracle of a stored proof, its lemmas checked.

    Raises:
        RejectedProofError: a lemma is not an identity, or the document is malformed.
    """
    lemmas, points = Lemmas(domain.field), Points(domain)
    try:
        polynomials = [_factor(terms, domain) for terms in document["polynomials"]]
        for conditions, terms in document["lemmas"]:
            if lemmas.add(_lemma(conditions, terms, polynomials, domain)) != len(lemmas.lemmas):
                raise RejectedProofError("a lemma does not expand to 0, or occurs twice")
        for values in document["points"]:
            point = [_rational(value) for value in values]
            if len(point) != len(domain.field.names):
                raise RejectedProofError("a point has another number of values")
            points.add([point])
        log = document["log"]
        if len(log) != len(KINDS) or not all(_is_list_of_integers(one) for answers in log for one in answers):
            raise RejectedProofError("its log is not one of integers")
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, ArithmeticError) as error:
        if isinstance(error, RejectedProofError):
            raise
        raise RejectedProofError(f"it is malformed: {error}") from error
    return Oracle(domain, points, lemmas, log)


def _is_list_of_integers(value: Any) -> bool:
    """Whether a value from a file is a list of integers, and of no booleans."""
    return isinstance(value, list) and all(type(entry) is int for entry in value)


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
        if not _is_list_of_integers(indices) or any(not 0 <= i < len(constraints) for i in indices):
            raise RejectedProofError("a term names a condition that is not there")
        multiplier = None if powers is None else _monomial(powers, len(domain.field.names))
        made.append(Term(_rational(text), tuple(indices), multiplier))
    return Lemma(tuple(constraints), tuple(made))
