"""ModelPair: a target and a draft model, enumerated on every context of the V-ary tree.

Notation (theory.md §1): p is the target, q the draft, V the vocabulary size, L the draft length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.foundation.arrays import normalise
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError, InvalidPairError
from spectheory.foundation.validation import check_count
from spectheory.pairs.contexts import Context, context_text, numbered_context
from spectheory.pairs.levels import (
    PairNumbers,
    check_levels,
    check_size,
    check_width,
    levels_of_contexts,
    locked,
    locked_numbers,
    of_depth,
)
from spectheory.pairs.pair_file import FORMAT, parse_document, read_document, write_document, written_rows
from spectheory.pairs.rows import Row, parse_rows

SIDES = ("target", "draft")
MAX_NUMBERED = 2**59
"""The most probabilities at one depth of a context-free pair: numpy addresses at most 2^63 bytes."""
ROUNDING_OF_A_ROW = 1e-12
"""The largest |sum of a float row - 1| that rounding alone causes."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelPair:
    """Target and draft conditionals on all contexts of a small vocabulary.

    Either all entries are exact (``fractions.Fraction``) or all are float64.
    A context of depth i is numbered in base V: ``(a_1, .., a_i)`` is row
    ``a_1 V^(i-1) + .. + a_i`` of depth i.

    Attributes:
        target: ``target[i]`` holds the rows p(. | a_{1:i}), shape [V^i, V], for i = 0..L.
        draft: ``draft[i]`` holds the rows q(. | a_{1:i}), shape [V^i, V], for i = 0..L-1.
        vocab: the V token names.
        context_free: True if every context has the same two rows; then files store only these.

    Raises:
        InvalidPairError: levels have wrong shapes or dtypes, or a row is not a law.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> pair.vocab_size, pair.draft_length, pair.arithmetic
        (2, 2, 'exact')
        >>> print(pair.draft_path_probs(2)[0])
        4/9
    """

    target: tuple[np.ndarray, ...]
    draft: tuple[np.ndarray, ...]
    vocab: tuple[str, ...]
    context_free: bool = False

    def __post_init__(self) -> None:
        check_levels(self.target, self.draft, self.vocab, self.context_free)
        # Read-only copies, so that a verifier cannot change the pair on which it is tested.
        for side in SIDES:
            object.__setattr__(self, side, self._levels_of(side, locked))

    def __repr__(self) -> str:
        shape = f"{self.vocab_size} tokens, draft length {self.draft_length}, {self.arithmetic}"
        return f"<ModelPair: {shape}{', context-free' if self.context_free else ''}>"

    def __eq__(self, other: object) -> bool:
        """True if the rows are equal in value and dtype, and the token names are equal."""
        if not isinstance(other, ModelPair) or self.vocab != other.vocab:
            return False
        if self.context_free and other.context_free:
            mine, others = self._different_levels, other._different_levels
        else:
            mine, others = (*self.target, *self.draft), (*other.target, *other.draft)
        return len(self.draft) == len(other.draft) and all(
            one.dtype == level.dtype and np.array_equal(one, level)
            for one, level in zip(mine, others, strict=True)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the fields: a copy is read-only, shares no memory and has no cached results."""
        if self.context_free:
            rows = self.target[0][0].copy(), self.draft[0][0].copy()
            return _context_free, (*rows, self.draft_length, self.vocab)
        return ModelPair, tuple(getattr(self, field.name) for field in fields(self))

    def _levels_of(self, side: str, function: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, ...]:
        """Apply a function to the rows of one model at each depth; only once if the pair is context-free."""
        levels = getattr(self, side)
        if not self.context_free:
            return tuple(map(function, levels))
        row = locked(function(levels[0]))[0]
        return tuple(np.broadcast_to(row, (len(level), len(row))) for level in levels)

    def __hash__(self) -> int:
        """Hash the shape and the token names only, so that no row is read.  Equal pairs have equal hashes."""
        return hash((self.vocab, self.draft_length, self.is_exact))

    @property
    def vocab_size(self) -> int:
        """The vocabulary size V."""
        return len(self.vocab)

    @property
    def draft_length(self) -> int:
        """The draft length L."""
        return len(self.draft)

    @property
    def is_exact(self) -> bool:
        """True if the entries are exact rationals."""
        return self.target[0].dtype == object

    @property
    def arithmetic(self) -> str:
        """``"exact"`` or ``"float64"``."""
        return "exact" if self.is_exact else "float64"

    def target_path_probs(self, depth: int) -> np.ndarray:
        """Compute p(a_{1:depth}) of every path of this depth (0..L+1), shape [V^depth].

        Raises:
            InvalidPairError: the target has no paths of this depth.
        """
        return of_depth("target", self._as_given.target_path_probs, depth)

    def draft_path_probs(self, depth: int) -> np.ndarray:
        """Compute q(a_{1:depth}) of every path of this depth (0..L), shape [V^depth].

        Raises:
            InvalidPairError: the draft has no paths of this depth.
        """
        return of_depth("draft", self._as_given.draft_path_probs, depth)

    @cached_property
    def _as_given(self) -> PairNumbers:
        return PairNumbers(self.target, self.draft)

    @cached_property
    def numbers(self) -> PairNumbers:
        """The rows in the arithmetic used to compute: python-flint rationals if exact, otherwise float64."""
        return PairNumbers(*(self._levels_of(side, locked_numbers) for side in SIDES))

    def context(self, depth: int, index: int) -> Context:
        """Return the token ids of the context with this index at this depth.

        Example:
            >>> ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 3).context(3, 5)
            (1, 0, 1)
        """
        return numbered_context(index, depth, self.vocab_size)

    @staticmethod
    def context_free_pair(
        target_probs: Row,
        draft_probs: Row,
        draft_length: int,
        vocab: Sequence[str] | None = None,
        *,
        normalise: bool = False,
    ) -> ModelPair:
        """Make the pair in which every context has the same two rows.

        Args:
            target_probs, draft_probs: one row each, [V]; ``rows.parse_probs`` says which entries are exact.
            draft_length: L.
            vocab: token names; by default the ids.
            normalise: True to divide every row by its sum.  Rows in float32 need this.

        Raises:
            InvalidPairError: rows are not laws, or differ in length or arithmetic.
            EnumerationTooLargeError: there are too many contexts to number.

        Example:
            >>> ModelPair.context_free_pair([0.5, 0.5], [0.25, 0.75], draft_length=1).arithmetic
            'float64'
        """
        target_row, draft_row = parse_rows({"target": target_probs, "draft": draft_probs}, normalise).values()
        size = len(target_row)
        check_width("the draft row", draft_row, size)
        draft_length = check_count("draft_length", draft_length, error=InvalidPairError)
        # 2^60 already exceeds the limit, so we stop at exponent 60: larger powers would be huge integers.
        if max(size, 2) ** min(draft_length + 1, 60) > MAX_NUMBERED:
            raise EnumerationTooLargeError(
                f"{size} tokens and draft length {draft_length} have contexts whose numbers are beyond "
                f"{MAX_NUMBERED}; use a shorter draft length or fewer tokens"
            )
        names = _names(vocab, size)
        if len(names) != size:
            raise InvalidPairError(
                f"vocab has {len(names)} names, and the rows {size} tokens; name each token"
            )
        return _context_free(target_row, draft_row, draft_length, names)

    @staticmethod
    def from_contexts(
        target: Mapping[Context, Row],
        draft: Mapping[Context, Row],
        draft_length: int,
        vocab: Sequence[str] | None = None,
        *,
        normalise: bool = False,
    ) -> ModelPair:
        """Make a pair from mappings context -> row.

        Args:
            target: a row [V] at every context of depth 0..L; ``rows.parse_probs`` says which are exact.
            draft: a row [V] at every context of depth 0..L-1.
            draft_length, vocab, normalise: as in ``context_free_pair``.

        Raises:
            InvalidPairError: a row is missing, a row has a key that is not a context of the pair, or as in
                ``context_free_pair``.
            EnumerationTooLargeError: the tree has too many probabilities to store.

        Example:
            >>> pair = ModelPair.from_contexts(
            ...     {(): ["1/3", "2/3"], (0,): [0, 1], (1,): ["1/2", "1/2"]},
            ...     {(): ["2/3", "1/3"]},
            ...     draft_length=1,
            ... )
            >>> print(pair.target_path_probs(2))
            [Fraction(0, 1) Fraction(1, 3) Fraction(1, 3) Fraction(1, 3)]
        """
        given = {"target": target, "draft": draft}
        every = {(side, key): row for side, rows in given.items() for key, row in rows.items()}
        parsed = parse_rows(every, normalise)
        if ("target", ()) not in parsed:
            raise InvalidPairError("the target has no row at the root context ''; add one")
        size = len(parsed["target", ()])
        for (side, context), row in parsed.items():
            check_width(f"the {side} row at context '{context_text(context)}'", row, size)
        draft_length = check_size(size, draft_length)
        levels = {
            side: levels_of_contexts({key: parsed[side, key] for key in given[side]}, side, depths, size)
            for side, depths in (("target", draft_length + 1), ("draft", draft_length))
        }
        return ModelPair(levels["target"], levels["draft"], _names(vocab, size))

    def to_float(self) -> ModelPair:
        """Convert the pair to float64.  A float64 pair is returned unchanged."""
        if not self.is_exact:
            return self
        target, draft = (self._levels_of(side, lambda level: level.astype(float)) for side in SIDES)
        return replace(self, target=target, draft=draft)

    @cached_property
    def row_defect(self) -> float:
        """The largest |sum of a row - 1|.  It is 0 for an exact pair."""
        if self.is_exact:
            return 0.0
        return max(float(abs(level.sum(axis=1) - 1).max()) for level in self._different_levels)

    @property
    def _different_levels(self) -> tuple[np.ndarray, ...]:
        """All levels of target and draft.  If the pair is context-free, only the root level of each."""
        if self.context_free:
            return self.target[0], self.draft[0]
        return *self.target, *self.draft

    def normalised(self) -> ModelPair:
        """Divide every row by its sum.  If all sums are 1 up to rounding, return the pair unchanged.

        Float rows may differ from sum 1 by ``SUM_TOLERANCE``.  Every verifier's output law would have the
        same error, so we compute laws on normalised rows.

        Raises:
            InvalidPairError: a row sums to 0.
        """
        if self.row_defect <= ROUNDING_OF_A_ROW:
            return self
        if not all(level.sum(axis=1).all() for level in self._different_levels):
            raise InvalidPairError("a row sums to 0, so that no division makes it a law")
        target, draft = (self._levels_of(side, normalise) for side in SIDES)
        return replace(self, target=target, draft=draft)

    def truncate(self, draft_length: int) -> ModelPair:
        """Return the same models with a shorter draft length.

        Raises:
            InvalidPairError: ``draft_length`` is not an integer from 1 to L.
        """
        draft_length = check_count("draft_length", draft_length, error=InvalidPairError)
        if draft_length > self.draft_length:
            raise InvalidPairError(
                f"cannot truncate to draft length {draft_length}; "
                f"expected 1..{self.draft_length}, the length of this pair"
            )
        return replace(self, target=self.target[: draft_length + 1], draft=self.draft[:draft_length])

    @staticmethod
    def load(path: str | Path) -> ModelPair:
        """Read a pair file (JSON, format ``spectheory-pair/1``).

        Raises:
            InvalidPairError: the file cannot be read or does not hold a pair; the message names the file.
        """
        document = read_document(path)
        try:
            return ModelPair.from_document(document)
        except InvalidPairError as error:
            raise InvalidPairError(f"{path}: {error}") from error

    @staticmethod
    def from_document(document: Any) -> ModelPair:
        """Make a pair from the parsed JSON of a pair file.

        Raises:
            InvalidPairError: the JSON does not describe a pair.

        Example:
            >>> ModelPair.from_document({
            ...     "format": "spectheory-pair/1", "vocab": ["A", "B"], "draft_length": 2,
            ...     "context_free": True, "target": ["1/3", "2/3"], "draft": ["2/3", "1/3"],
            ... }).vocab
            ('A', 'B')
        """
        fields = parse_document(document)
        build: Any = ModelPair.context_free_pair if fields.context_free else ModelPair.from_contexts
        return build(*fields[:4])

    def to_document(self) -> dict[str, Any]:
        """Return the JSON document for a pair file."""
        names = {"format": FORMAT, "vocab": list(self.vocab), "draft_length": self.draft_length}
        document = names | ({"context_free": True} if self.context_free else {})
        return document | {side: written_rows(getattr(self, side), self.context_free) for side in SIDES}

    def save(self, path: str | Path) -> None:
        """Write a pair file.  ``ModelPair.load`` reads back the same numbers."""
        write_document(path, self.to_document())


def _names(vocab: Sequence[str] | None, size: int) -> tuple[str, ...]:
    return tuple(str(i) for i in range(size)) if vocab is None else tuple(vocab)


def _context_free(
    target_row: np.ndarray, draft_row: np.ndarray, length: int, vocab: tuple[str, ...]
) -> ModelPair:
    size = len(vocab)
    return ModelPair(
        target=tuple(np.broadcast_to(target_row, (size**i, size)) for i in range(length + 1)),
        draft=tuple(np.broadcast_to(draft_row, (size**i, size)) for i in range(length)),
        vocab=vocab,
        context_free=True,
    )


def check_pair(pair: Any) -> ModelPair:
    """Return ``pair``, or raise ``InvalidInputError`` if it is not a ``ModelPair``."""
    if not isinstance(pair, ModelPair):
        raise InvalidInputError(
            f"pair must be a ModelPair, got {type(pair).__name__}; ModelPair.load reads a file"
        )
    return pair
