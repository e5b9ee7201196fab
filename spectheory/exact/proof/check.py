"""A checker of stored proofs; of the search it shares the calls of flint and the modules of verifiers.

It looks for no point and asks no solver.  A proof holds if

1. its lemmas are identities: their terms expand to 0, none is negative, and one is positive;
2. its faces are all faces of the domain;
3. the parts of every node leave out no sign, and a part that goes no further satisfies the conditions of a
   lemma;
4. at every leaf the signs on the way there answer each comparison of the verifier, run again, and what it
   returns satisfies every condition of the statement by these signs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

from flint import Ordering, fmpq, fmpq_mpoly_ctx

from spectheory.exact.proof.check_leaf import FaceRows
from spectheory.exact.proof.check_numbers import (
    ANY,
    NEGATIVE,
    POSITIVE,
    ZERO,
    Answers,
    Escape,
    RejectedProofError,
    Ring,
    reject,
)
from spectheory.exact.proof.check_postponed import note, read_postponed
from spectheory.exact.proof.check_statements import ClaimedStatement
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import WithoutReplacement
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

FORMAT = "spectheory-proof/1"


def check_proof(path: str | Path, verifier: str | Any | None = None) -> dict[str, Any]:
    """Check a stored proof.

    Args:
        path: of the file.
        verifier: of which it speaks: a name, or an object; by default that of the package with the name in
            the file.

    Returns:
        The statement that is proved: the fields ``STATED``, and the number of regions.

    Raises:
        RejectedProofError: the proof does not hold for the verifier as it is.
        InvalidInputError: the file is not a proof.
        UnknownNameError: no verifier of the package has the name in the file.
    """
    document = read(path)
    name = str(document.get("verifier"))
    found = find_verifier(verifier or defects.get(name) or verifiers[name])
    if verifier is not None and found.name != name:
        reject(f"it is of {name}, not of {found.name}")
    leaves = check_document(document, found)
    return {key: document[key] for key in STATED} | {"regions": leaves}


STATED = (
    "format", "verifier", "statement", "vocab_size", "draft_length", "drafts", "domain",
)  # fmt: skip
"""The fields of a proof that say what is proved, and which are checked."""


def read(path: str | Path) -> dict[str, Any]:
    """The document of a stored proof.

    Raises:
        InvalidInputError: the file is not a proof.
    """
    try:
        document = json.loads(gzip.decompress(Path(path).read_bytes()))
    except (gzip.BadGzipFile, EOFError, ValueError, RecursionError) as error:
        raise InvalidInputError(
            f"{path} is not a proof: {error}; expected what `prove --out` wrote"
        ) from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidInputError(f"{path} is not a proof of the format {FORMAT}")
    return document


def proved_shapes(verifier: Verifier) -> list[str]:
    """The shapes for every pair of which a stored proof of the package says that this code is lossless.

    The proofs are not checked again; they are of the classes of the verifier as they are now.  A user's
    object has no stored proofs.

    Example:
        >>> from spectheory import verifiers
        >>> proved_shapes(verifiers["mixed_multipath"])
        ['V=2 L=1 K=2', 'V=2 L=1 K=3', 'V=3 L=1 K=2']
    """
    if isinstance(verifier, UserVerifier):
        return []
    stored = sorted((Path(__file__).parent / "stored").glob("*.proof"))
    paths = [path for path in stored if path.name.startswith(f"{verifier.name}_V")]
    found = []
    for document in map(read, paths):
        if is_of_this_code(document, verifier) and document["statement"] == "lossless":
            widths = document["drafts"].get("widths", ())
            drafts = (
                f"tree {'-'.join(map(str, widths))}"
                if len(widths) > 1
                else f"K={document['drafts']['num_drafts']}"
            )
            shape = f"V={document['vocab_size']} L={document['draft_length']} {drafts}"
            is_all = document["domain"] == "all rows"
            found.append(shape if is_all else f"{shape} ({document['domain']})")
    return found


def is_of_this_code(document: Mapping[str, Any], verifier: Verifier) -> bool:
    """Whether a stored proof names the digest of the code as it is."""
    return bool(document["verifier_code"] == ClaimedStatement.of(document, verifier).digest)


def check_document(document: Mapping[str, Any], verifier: Verifier) -> int:
    """Check a proof.

    Args:
        document: what the file holds.
        verifier: the one of which it speaks.

    Returns:
        The number of leaves.

    Raises:
        RejectedProofError: the proof does not hold for the verifier as it is.
    """
    try:
        return _Check(document, verifier).leaves()
    except RejectedProofError:
        raise
    except (Exception, Escape) as error:  # whatever a verifier that is not the right one raises
        raise RejectedProofError(
            f"the proof cannot be read or followed: {type(error).__name__}: {error}"
        ) from error


class _Check:
    def __init__(self, document: Mapping[str, Any], verifier: Verifier) -> None:
        if document["domain"] not in ("all rows", "positive rows"):
            reject("it states something else")
        self.size, self.length = document["vocab_size"], document["draft_length"]
        if not type(self.size) is type(self.length) is int:
            reject("its shape is not one of whole numbers")
        self.positive = document["domain"] == "positive rows"
        self.document, self.claim = document, ClaimedStatement.of(document, verifier)
        self.process = self.claim.subjects[0][1]
        named = len(document["variables"])
        if not 2 <= self.size <= named or not 1 <= self.length <= named:  # a file may speak of any size
            reject("its variables are not those of the shape")
        count = sum(
            tokens * self.size**depth
            for depths, tokens in ((self.length + 1, self.size - 1), (self.length, self.size))
            for depth in range(depths)
        )
        if count != named:
            reject("its variables are not those of the shape")
        self.names = [
            f"{letter}{''.join(f'_{token}' for token in context)}_{token}"
            for letter, depths, tokens in (
                ("p", self.length + 1, self.size - 1),
                ("q", self.length, self.size),
            )
            for depth in range(depths)
            for context in product(range(self.size), repeat=depth)
            for token in range(tokens)
        ]
        if document["variables"] != self.names:
            reject("its variables are not those of the shape")
        self.names += [f"m{number}" for number in range(len(document.get("atoms", ())))]
        self.ring = Ring(self.names)
        self.rational_ring = fmpq_mpoly_ctx.get(self.names, Ordering.degrevlex)
        self.visited: set[int] = set()
        read = (self._polynomial(terms, self.ring.polynomials, int) for terms in document["polynomials"])
        self.keys = [str(polynomial) for polynomial in read]
        self.lemmas = [self._lemma(lemma) for lemma in document["lemmas"]]

    def _polynomial(self, terms: Any, ring: Any, number: Any) -> Any:
        found: dict[tuple[int, ...], Any] = {}
        for coefficient, *powers in terms:
            exponents = [0] * len(self.names)
            for variable, exponent in zip(powers[::2], powers[1::2], strict=True):
                if not (isinstance(exponent, int) and exponent > 0):
                    reject("an exponent is not a positive whole number")
                exponents[variable] += exponent
            found[tuple(exponents)] = found.get(tuple(exponents), 0) + number(coefficient)
        return ring.from_dict(found)

    def _lemma(self, lemma: Mapping[str, Any]) -> list[tuple[str, int]]:
        if lemma["terms"] is None:
            reject("a lemma has no certificate; it trusts a solver")
        conditions = [(int(number), int(mask)) for number, mask in lemma["conditions"]]
        rational = [
            self._polynomial(self.document["polynomials"][n], self.rational_ring, fmpq) for n, _ in conditions
        ]
        total, is_strict = self.rational_ring.from_dict({}), False
        for coefficient, indices, *multiplier in lemma["terms"]:
            if min(indices, default=0) < 0:
                reject("a lemma counts from the end")
            if multiplier:
                [index] = indices
                if conditions[index][1] != ZERO:
                    reject("a lemma multiplies by any polynomial where a condition is not an equality")
                total += self._polynomial(multiplier[0], self.rational_ring, fmpq) * rational[index]
                continue
            number = fmpq(coefficient)
            if number <= 0:
                reject("a lemma has a term that is not positive")
            term, strict = self.rational_ring.constant(number), True
            for index in indices:
                mask = conditions[index][1]
                if mask == NEGATIVE | POSITIVE:
                    if indices.count(index) % 2:
                        reject("a lemma multiplies by a polynomial of unknown sign")
                elif mask in (ZERO, ANY) or (mask & NEGATIVE and mask & POSITIVE):
                    reject("a lemma multiplies by a polynomial of unknown sign")
                term *= -rational[index] if mask & NEGATIVE and not mask & POSITIVE else rational[index]
                strict = strict and not mask & ZERO
            total, is_strict = total + term, is_strict or strict
        if not is_strict or not total.is_zero():
            reject("a lemma is not an identity with a positive term")
        return [(self.keys[number], mask) for number, mask in conditions]

    # -------------------------------------------------------------------------------- faces

    def _faces(
        self, context: tuple[int, ...] = ()
    ) -> Iterator[list[tuple[tuple[int, ...], tuple[int, ...]]]]:
        if len(context) == self.length:
            yield []
            return
        tokens = range(self.size)
        supports = (
            [tuple(tokens)]
            if self.positive
            else chain(*(combinations(tokens, k) for k in range(1, self.size + 1)))
        )
        for support in supports:
            below = (list(self._faces((*context, token))) for token in support)
            for parts in product(*below):
                yield [(context, support), *chain(*parts)]

    def leaves(self) -> int:
        """The number of leaves, once all is checked."""
        if "atoms" in self.document and not self.claim.has_rows_beyond:
            return self._postponed()
        wanted = {frozenset(face) for face in self._faces() if self._can_be_drafted(face)}
        found = 0
        for written, target in self.document["roots"]:
            face = [(tuple(context), tuple(support)) for context, support in written]
            if frozenset(face) not in wanted:
                reject("a face is not one of the domain, or comes twice")
            wanted.remove(frozenset(face))
            found += self._face(dict(face), target)
        if wanted:
            reject("a face of the domain is left out")
        return found

    def _postponed(self) -> int:
        tokens = tuple(range(self.size))
        contexts = chain(*(product(tokens, repeat=depth) for depth in range(self.length)))
        rows = FaceRows(self.ring.polynomials, self.size, self.length, dict.fromkeys(contexts, tokens))
        if any(isinstance(process, WithoutReplacement) for _, process in self.claim.subjects):
            reject("the probabilities of these drafts are quotients")
        answers, found = read_postponed(self.document, rows, self.ring, self._polynomial, self._tree)
        self.claim.check(rows, answers)
        return found

    def _can_be_drafted(self, face: Any) -> bool:
        widths = self.process.widths if isinstance(self.process, WithoutReplacement) else ()
        return not widths or all(len(support) >= widths[len(context)] for context, support in face)

    def _face(self, supports: dict[Any, Any], root: int) -> int:
        rows = FaceRows(self.ring.polynomials, self.size, self.length, supports, self.claim.has_rows_beyond)
        known: dict[str, int] = {}
        for letter, entry in rows.probabilities:
            note(self.ring, known, entry, POSITIVE if self.positive or letter == "q" else ZERO | POSITIVE)
        return self._tree(root, known, lambda signs: self.claim.check(rows, Answers(self.ring, signs)))

    def _tree(self, root: int, known: dict[str, int], at_leaf: Callable[[dict[str, int]], None]) -> int:
        """Check a tree of splits, and what must hold at its leaves; returns their number."""
        waiting, found = [(root, known)], 0
        while waiting:
            target, known = waiting.pop()
            if target == -1:
                at_leaf(known)
                found += 1
            elif target < -1:
                lemma = self.lemmas[-2 - target]
                if any(known.get(key, ANY) & ~mask for key, mask in lemma):
                    reject("a part that is left out does not satisfy the conditions of its lemma")
            else:
                if target in self.visited:
                    reject("a node is entered twice")
                self.visited.add(target)
                number, *parts = self.document["nodes"][target]
                key, masks = self.keys[number], parts[::2]
                before, covered = known.get(key, ANY), 0
                for mask, child in zip(masks, parts[1::2], strict=True):
                    covered |= mask
                    waiting.append((child, {**known, key: before & mask}))
                if before & ~covered:
                    reject("a node leaves out a sign")
        return found
