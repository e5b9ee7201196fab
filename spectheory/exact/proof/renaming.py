"""Renamings of the tokens: they turn pairs into pairs, and lemmas into lemmas.

A renaming moves every row to the renamed context, and its entries to the renamed tokens.  For polynomials it
is a substitution, so it turns an identity into an identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

from flint import fmpq

from spectheory.exact.proof.certificates import Lemma, Term
from spectheory.exact.proof.domain import Domain, Support
from spectheory.exact.proof.numbers import Factor, opposite
from spectheory.pairs.contexts import Context

MOST_TOKENS = 4
"""With more, the renamings of what is found cost more than they save."""
Order = tuple[int, ...]
"""The new name of every token."""


class Renamings:
    """All renamings of the tokens of a domain but the one that changes nothing."""

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        few = range(domain.vocab_size if domain.vocab_size <= MOST_TOKENS else 1)
        self._orders = list(permutations(few))[1:]
        self._entries: dict[Any, Any] = {}
        self._factors: dict[Any, tuple[int, Factor]] = {}

    def points(self, point: list[fmpq]) -> list[list[fmpq]]:
        """The renamed points."""
        return [self._point(point, order) for order in self._orders]

    def _point(self, point: list[fmpq], order: Order) -> list[fmpq]:
        domain, found = self._domain, list(point)
        for context in domain.contexts:
            image = tuple(order[token] for token in context)
            for places, row in zip((domain.p, domain.q), domain.rows_at(point, context), strict=True):
                for token, value in enumerate(row):
                    if (image, order[token]) in places:
                        found[places[image, order[token]]] = value
        return found

    def lemmas(self, lemma: Lemma, supports: Mapping[Context, Support]) -> Iterator[Lemma]:
        """The renamed lemmas of one that was found where the draft rows have these supports."""
        given = tuple(sorted(supports.items()))
        for order in self._orders:
            images = [self._factor(factor, order, given) for factor, _ in lemma.constraints]
            constraints = [
                (image, mask if sign > 0 else opposite(mask))
                for (sign, image), (_, mask) in zip(images, lemma.constraints, strict=True)
            ]
            terms: list[Term] = []
            for term in lemma.terms:
                if term.multiplier is None:
                    terms.append(term)
                    continue
                monomial = self._domain.field.context.from_dict({term.multiplier: images[term.indices[0]][0]})
                renamed = self._renamed(monomial, order, given).to_dict()
                terms += [
                    Term(term.coefficient * int(coefficient), term.indices, tuple(map(int, powers)))
                    for powers, coefficient in renamed.items()
                ]
            yield Lemma(tuple(constraints), tuple(terms))

    def _factor(self, factor: Factor, order: Order, supports: Any) -> tuple[int, Factor]:
        """The renamed factor, up to a sign."""
        near = tuple(one for one in supports if one[0] in factor.rows)
        key = factor.number, order, near
        if key not in self._factors:
            sign, [(image, _)] = self._domain.field.factored(
                self._renamed(factor.polynomial, order, supports)
            )
            self._factors[key] = sign, image
        return self._factors[key]

    def _renamed(self, polynomial: Any, order: Order, supports: Any) -> Any:
        key = order, supports
        if key not in self._entries:
            self._entries[key] = self._images(order, dict(supports))
        return polynomial.compose(*self._entries[key], ctx=self._domain.field.context)

    def _images(self, order: Order, supports: Mapping[Context, Support]) -> list[Any]:
        """What every variable is renamed to, in a row that may have another last token."""
        domain = self._domain
        found = list(domain.field.context.gens())
        for letter, places in (("p", domain.p), ("q", domain.q)):
            for (context, token), place in places.items():
                support = supports.get(context, ()) if letter == "q" else tuple(range(domain.vocab_size))
                if token in support[:-1]:
                    renamed = tuple(sorted(order[one] for one in support))
                    image = tuple(order[one] for one in context)
                    found[place] = domain.row(letter, image, renamed)[order[token]].numerator
        return found
