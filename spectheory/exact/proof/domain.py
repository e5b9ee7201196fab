"""All pairs of a shape as formal rows, one face of the simplices of the draft at a time.

A face says which entries of every draft row are positive; the others are 0.  Rows that no drafted path
reaches occur only where a statement speaks of them.  On a face the last positive entry of a draft row is 1
minus the others.  So is the last entry of a target row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from flint import fmpq

from spectheory.exact.proof.formal_numbers import FormalRun
from spectheory.exact.proof.rational_functions import (
    POSITIVE,
    ZERO,
    Factor,
    RationalFunction,
    RationalFunctions,
    opposite,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context, all_contexts, context_number
from spectheory.pairs.pair import ModelPair, PairNumbers

MAX_FACES, MAX_NUMBERS = 100_000, 128
Support = tuple[int, ...]
Face = Mapping[Context, Support]
"""The tokens that the draft may draw at every context that drafted paths reach."""


@dataclass(frozen=True)
class Shape:
    """The pairs that are spoken of.

    Attributes:
        vocab_size, draft_length: V and L.
        positive: only pairs whose rows have no zero.
        beyond: the rows at contexts that cannot be drafted occur, too, at depths below L.
    """

    vocab_size: int
    draft_length: int
    positive: bool
    beyond: bool = False

    @property
    def domain(self) -> str:
        """Which rows occur."""
        return "positive rows" if self.positive else "all rows"

    def faces(self) -> Iterator[Face]:
        """Every face, the one without zeros first."""
        yield from self._below(())

    def _below(self, context: Context) -> Iterator[dict[Context, Support]]:
        if len(context) == self.draft_length:
            yield {}
            return
        size = self.vocab_size
        for count in range(size, size - 1 if self.positive else 0, -1):
            for support in combinations(range(size), count):
                children = [list(self._below((*context, token))) for token in support]
                for parts in product(*children):
                    face = {context: support}
                    for part in parts:
                        face.update(part)
                    yield face

    def check_size(self) -> None:
        """Refuse a shape of more faces, or of more variables, than any search gets through.

        With F faces below every child, a context has (1 + F)^V - 1.
        """
        faces, numbers = 1, 0
        for _ in range(min(self.draft_length, MAX_NUMBERS)):  # every depth has two numbers and more
            below = 1 if self.positive else (1 + faces) ** min(self.vocab_size, 64) - 1
            faces = min(below, MAX_FACES + 1)
            numbers = min(self.vocab_size * (numbers + 2), MAX_NUMBERS + 1)
        if faces > MAX_FACES or numbers > MAX_NUMBERS:
            what = (
                f"{MAX_FACES} faces of pairs with zeros"
                if faces > MAX_FACES
                else f"{MAX_NUMBERS} formal numbers"
            )
            raise InvalidInputError(
                f"a proof for {self.vocab_size} tokens and draft length {self.draft_length} has more than "
                f"{what}; take fewer tokens or a shorter draft"
                + ("" if self.positive or numbers > MAX_NUMBERS else ", or positive rows only")
            )

    def names(self) -> list[str]:
        """The variables: p and q with the context and the token."""
        tokens, contexts = range(self.vocab_size - 1), all_contexts(self.vocab_size, self.draft_length)
        target = [variable("p", context, x) for context in contexts for x in tokens]
        inner = (context for context in contexts if len(context) < self.draft_length)
        return target + [variable("q", context, x) for context in inner for x in range(self.vocab_size)]


def variable(letter: str, context: Context, token: int) -> str:
    """The name of the probability of a token behind a context, p of the target and q of the draft."""
    return "_".join(map(str, (letter, *context, token)))


class FormalPair:
    """The formal rows of a face.

    Attributes:
        face: the supports of the draft rows.
        draft_sign: of the draft entries on the face.
        reached: the contexts that drafted paths reach.
        supports: of the draft row at every context that has one.
        contexts: those with rows.
        value_of: at a point, of the variables that are not entries of rows, if there are any.
        signs: what is known of the signs of the functions that are probabilities.
        target, draft: by depth [V^depth, V], functions; ``None`` at the other contexts.
    """

    value_of: Callable[[Any, int], fmpq] | None = None

    def __init__(
        self, shape: Shape, field: RationalFunctions, face: Face, draft_sign: int = POSITIVE
    ) -> None:
        self.shape, self.field, self.face, self.draft_sign = shape, field, face, draft_sign
        size, length = shape.vocab_size, shape.draft_length
        self.vocab_size, self.draft_length = size, length
        variables = dict(zip(field.names, field.variables, strict=True))
        self.signs: list[tuple[RationalFunction, int]] = []
        self.target = [np.full((size**depth, size), None, dtype=object) for depth in range(length + 1)]
        self.draft = [np.full((size**depth, size), None, dtype=object) for depth in range(length)]
        behind = [(*context, token) for context, support in face.items() for token in support]
        self.reached: list[Context] = [(), *behind]
        others = all_contexts(size, length - 1) if shape.beyond else ()
        beyond = [context for context in others if context not in face]
        self.contexts = self.reached + beyond
        self.supports = {**face, **dict.fromkeys(beyond, tuple(range(size)))}
        sign = POSITIVE if shape.positive else ZERO | POSITIVE
        for context in self.contexts:
            rows = [(self.target, "p", tuple(range(size)), sign)]
            if context in self.supports:
                sign_of_draft = draft_sign if context in face else ZERO | POSITIVE
                rows.append((self.draft, "q", self.supports[context], sign_of_draft))
            for levels, letter, support, sign_of_entry in rows:
                row = [field.constant(0)] * size
                for token in support[:-1]:
                    row[token] = variables[variable(letter, context, token)]
                row[support[-1]] = field.constant(1)
                for token in support[:-1]:
                    row[support[-1]] = row[support[-1]] - row[token]
                levels[len(context)][context_number(context, size)] = row
                self.signs += [(row[token], sign_of_entry) for token in support]

    @cached_property
    def known(self) -> dict[Factor, int]:
        """The signs that the factors of probabilities have on the whole face."""
        found = {}
        for function, mask in self.signs:
            constant, odd, _ = function.signs
            if odd:
                [factor] = odd
                found[factor] = mask if constant > 0 else opposite(mask)
        return found

    def draft_entry(self, prefix: Context) -> RationalFunction:
        """The draft's probability of the last token of a prefix behind the others."""
        return self.draft[len(prefix) - 1][context_number(prefix[:-1], self.vocab_size)][prefix[-1]]

    def variables_of(self, contexts: Iterable[Context]) -> set[int]:
        """The numbers of the variables of the rows at these contexts."""
        wanted = {*contexts}
        return {i for i, some in self.contexts_of.items() if some & wanted}

    @cached_property
    def contexts_of(self) -> dict[int, frozenset[Context]]:
        """The contexts of the rows that a variable belongs to."""
        number = {name: i for i, name in enumerate(self.field.names)}
        return {
            number[name]: frozenset([context])
            for context in self.contexts
            for token in range(self.vocab_size)
            for name in (variable("p", context, token), variable("q", context, token))
            if name in number
        }

    def rows_in(self, run: FormalRun) -> FormalPair:
        """The rows as numbers of a run, for a draft process and a verifier; the other rows are zeros."""
        view = object.__new__(FormalPair)
        view.__dict__.update(self.__dict__)
        zero = self.field.constant(0)
        for side in ("target", "draft"):
            levels = []
            for level in getattr(self, side):
                numbers = np.empty_like(level)
                numbers.ravel()[:] = [run.number(zero if f is None else f) for f in level.ravel()]
                levels.append(numbers)
            setattr(view, side, levels)
        return view

    @property
    def numbers(self) -> PairNumbers:
        """What a draft process reads of the rows of ``rows_in``."""
        return PairNumbers(tuple(self.target), tuple(self.draft))

    def draft_path_probs(self, depth: int) -> np.ndarray:
        """q(a) of every path of a depth, as ``ModelPair``'s, of the rows of ``rows_in``."""
        return _path_probs(self.draft, depth)

    def target_path_probs(self, depth: int) -> np.ndarray:
        """p(a), in the same way."""
        return _path_probs(self.target, depth)

    def point_of(
        self, target: Mapping[Context, Sequence[Any]], draft: Mapping[Context, Sequence[Any]]
    ) -> list[fmpq]:
        """The values of all variables at given rows of the reached contexts."""
        names = {name: number for number, name in enumerate(self.shape.names())}
        point = [fmpq(0)] * len(names)
        for letter, rows in (("p", target), ("q", draft)):
            for context, row in rows.items():
                for token, value in enumerate(row):
                    number = names.get(variable(letter, context, token))
                    if number is not None:
                        point[number] = value
        return point

    def pair_at(self, point: Sequence[fmpq]) -> ModelPair:
        """The pair at a point; rows that do not occur are uniform."""
        size = self.vocab_size

        def numbers(level: np.ndarray) -> np.ndarray:
            rows = np.empty(level.shape, dtype=object)
            for place, function in np.ndenumerate(level):
                value = fmpq(1, size) if function is None else function.at(point)
                rows[place] = Fraction(int(value.p), int(value.q))
            return rows

        vocab = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:size])
        return ModelPair(tuple(map(numbers, self.target)), tuple(map(numbers, self.draft)), vocab)


def _path_probs(levels: Sequence[np.ndarray], depth: int) -> np.ndarray:
    probs = levels[0][:1, 0] * 0 + 1
    for level in levels[:depth]:
        probs = (probs[:, None] * level).ravel()
    return probs
