"""ModelPair: a target and a draft model, enumerated on every context of the V-ary tree.

Notation (theory.md §1): p is the target, q the draft, V the vocabulary size, L the draft length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from spectheory.foundation.arrays import normalise
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError, InvalidPairError
from spectheory.foundation.exact_numbers import flint_if_exact
from spectheory.foundation.validation import check_count, is_number
from spectheory.pairs.contexts import Context, context_text, numbered_context
from spectheory.pairs.pair_file import (
    FORMAT,
    ROW_SUM_TOLERANCE,
    parse_document,
    read_document,
    write_document,
    written_row,
)
from spectheory.pairs.rows import Row, parse_rows

MAX_ENTRIES = 50_000_000
"""The largest number of probabilities a pair may hold; a tree of depth L grows as V^(L+1)."""
MAX_NUMBERED = 2**59
"""The most probabilities at one depth of a context-free pair: numpy addresses at most 2^63 bytes."""
SIDES = ("target", "draft")


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
        row_sum_tolerance: how far the sum of a float row may be from 1; kept by every method and by files.

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
    row_sum_tolerance: float = ROW_SUM_TOLERANCE

    def __post_init__(self) -> None:
        _validate(self)
        # Read-only copies, so that a verifier cannot change the pair on which it is tested.
        for side in SIDES:
            object.__setattr__(self, side, self._levels_of(side, _locked))

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
            return _context_free, (*rows, self.draft_length, self.vocab, self.row_sum_tolerance)
        return ModelPair, tuple(getattr(self, field.name) for field in fields(self))

    def _levels_of(self, side: str, function: Callable[[np.ndarray], np.ndarray]) -> tuple[np.ndarray, ...]:
        """Apply a function to the rows of one model at each depth; only once if the pair is context-free."""
        levels = getattr(self, side)
        if not self.context_free:
            return tuple(map(function, levels))
        row = _locked(function(levels[0]))[0]
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
        return _of_depth("target", self._as_given.target_path_probs, depth)

    def draft_path_probs(self, depth: int) -> np.ndarray:
        """Compute q(a_{1:depth}) of every path of this depth (0..L), shape [V^depth].

        Raises:
            InvalidPairError: the draft has no paths of this depth.
        """
        return _of_depth("draft", self._as_given.draft_path_probs, depth)

    @cached_property
    def _as_given(self) -> PairNumbers:
        return PairNumbers(self.target, self.draft)

    @cached_property
    def numbers(self) -> PairNumbers:
        """The rows in the arithmetic used to compute: python-flint rationals if exact, otherwise float64."""
        return PairNumbers(*(self._levels_of(side, _locked_numbers) for side in SIDES))

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
        row_sum_tolerance: float = ROW_SUM_TOLERANCE,
        normalise: bool = False,
    ) -> ModelPair:
        """Make the pair in which every context has the same two rows.

        Args:
            target_probs, draft_probs: one row each, [V]; ``rows.parse_probs`` says which entries are exact.
            draft_length: L.
            vocab: token names; by default the ids.
            row_sum_tolerance: how far the sum of a float row may be from 1.
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
        _check_width("the draft row", draft_row, size)
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
        return _context_free(target_row, draft_row, draft_length, names, row_sum_tolerance)

    @staticmethod
    def from_contexts(
        target: Mapping[Context, Row],
        draft: Mapping[Context, Row],
        draft_length: int,
        vocab: Sequence[str] | None = None,
        *,
        row_sum_tolerance: float = ROW_SUM_TOLERANCE,
        normalise: bool = False,
    ) -> ModelPair:
        """Make a pair from mappings context -> row.

        Args:
            target: a row [V] at every context of depth 0..L; ``rows.parse_probs`` says which are exact.
            draft: a row [V] at every context of depth 0..L-1.
            draft_length, vocab, row_sum_tolerance, normalise: as in ``context_free_pair``.

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
            _check_width(f"the {side} row at context '{context_text(context)}'", row, size)
        draft_length = check_size(size, draft_length)
        levels = {
            side: _levels({key: parsed[side, key] for key in given[side]}, side, depths, size)
            for side, depths in (("target", draft_length + 1), ("draft", draft_length))
        }
        return ModelPair(
            levels["target"], levels["draft"], _names(vocab, size), row_sum_tolerance=row_sum_tolerance
        )

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

        Float rows may differ from sum 1 by ``row_sum_tolerance``.  Every verifier's output law would have the
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

    def restrict(self, tokens: Sequence[int]) -> ModelPair:
        """Condition both models, at every context, on the next token being one of ``tokens``.

        Raises:
            InvalidPairError: a token is unknown or repeated, or a row has no mass on ``tokens``.
        """
        kept = list(tokens)
        if not kept or len(set(kept)) != len(kept) or any(not 0 <= t < self.vocab_size for t in kept):
            raise InvalidPairError(
                f"cannot restrict to tokens {kept}; expected distinct ids in 0..{self.vocab_size - 1}"
            )

        def keep(levels: tuple[np.ndarray, ...], side: str) -> tuple[np.ndarray, ...]:
            contexts = np.zeros(1, dtype=np.int64)
            result: list[np.ndarray] = []
            for depth, level in enumerate(levels):
                if self.context_free and result:
                    result.append(np.broadcast_to(result[0], (len(kept) ** depth, len(kept))))
                    continue
                rows = level[contexts][:, kept]
                mass = rows.sum(axis=1)
                for number in np.flatnonzero(mass == 0):
                    context = context_text(self.context(depth, int(contexts[number])))
                    place = "" if self.context_free else f" at context '{context}'"
                    raise InvalidPairError(
                        f"the {side} gives tokens {kept} no mass{place}; restrict to tokens that have some"
                    )
                result.append(normalise(rows))
                contexts = (contexts[:, None] * self.vocab_size + np.asarray(kept)).ravel()
            return tuple(result)

        return replace(
            self,
            target=keep(self.target, "target"),
            draft=keep(self.draft, "draft"),
            vocab=tuple(self.vocab[t] for t in kept),
        )

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
        return build(*fields[:4], row_sum_tolerance=fields.row_sum_tolerance)

    def to_document(self) -> dict[str, Any]:
        """Return the JSON document for a pair file."""
        names = {"format": FORMAT, "vocab": list(self.vocab), "draft_length": self.draft_length}
        document = names | ({"context_free": True} if self.context_free else {})
        if self.row_sum_tolerance != ROW_SUM_TOLERANCE:
            document["row_sum_tolerance"] = float(self.row_sum_tolerance)

        def rows(levels: tuple[np.ndarray, ...]) -> Any:
            if self.context_free:
                return written_row(levels[0][0])
            return {
                context_text(self.context(depth, number)): written_row(row)
                for depth, level in enumerate(levels)
                for number, row in enumerate(level)
            }

        return document | {"target": rows(self.target), "draft": rows(self.draft)}

    def save(self, path: str | Path) -> None:
        """Write a pair file.  ``ModelPair.load`` reads back the same numbers."""
        write_document(path, self.to_document())


def _names(vocab: Sequence[str] | None, size: int) -> tuple[str, ...]:
    return tuple(str(i) for i in range(size)) if vocab is None else tuple(vocab)


def _levels(rows: Mapping[Context, np.ndarray], side: str, depths: int, size: int) -> tuple[np.ndarray, ...]:
    levels = []
    for depth in range(depths):
        contexts = list(product(range(size), repeat=depth))
        for context in contexts:
            if context not in rows:
                raise InvalidPairError(
                    f"the {side} has no row at context '{context_text(context)}'; every context "
                    f"of depth 0..{depths - 1} over {size} tokens needs one"
                )
        levels.append(np.stack([rows[context] for context in contexts]))
    for context in rows:
        if len(context) >= depths or any(not 0 <= t < size for t in context):
            raise InvalidPairError(
                f"the {side} has a row at context '{context_text(context)}', which is not a "
                f"context of depth 0..{depths - 1} over tokens 0..{size - 1}; remove it"
            )
    return tuple(levels)


def _locked(level: np.ndarray) -> np.ndarray:
    if level.base is None and not level.flags.writeable:
        return level
    copy = level.copy()
    copy.flags.writeable = False
    return copy


def _locked_numbers(level: np.ndarray) -> np.ndarray:
    return _locked(flint_if_exact(level))


def _context_free(
    target_row: np.ndarray, draft_row: np.ndarray, length: int, vocab: tuple[str, ...], tolerance: float
) -> ModelPair:
    size = len(vocab)
    return ModelPair(
        target=tuple(np.broadcast_to(target_row, (size**i, size)) for i in range(length + 1)),
        draft=tuple(np.broadcast_to(draft_row, (size**i, size)) for i in range(length)),
        vocab=vocab,
        context_free=True,
        row_sum_tolerance=tolerance,
    )


def _path_probs(levels: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    if levels[-1].size > MAX_ENTRIES:
        raise EnumerationTooLargeError(
            f"{levels[-1].size} paths of {len(levels)} tokens, the limit is {MAX_ENTRIES}; "
            "truncate the pair or restrict its tokens"
        )
    probs = [levels[0][0][:1] * 0 + 1]
    for level in levels:
        probs.append((probs[-1][:, None] * level).ravel())
    for kept in probs:
        kept.flags.writeable = False
    return tuple(probs)


@dataclass(frozen=True, eq=False)
class PairNumbers:
    """The rows of a pair, and path probabilities computed in their arithmetic."""

    target: tuple[np.ndarray, ...]
    draft: tuple[np.ndarray, ...]

    @cached_property
    def target_path_probs(self) -> tuple[np.ndarray, ...]:
        """p(a) of every path a, one array per depth 0..L+1."""
        return _path_probs(self.target)

    @cached_property
    def draft_path_probs(self) -> tuple[np.ndarray, ...]:
        """q(a) of every path a, one array per depth 0..L."""
        return _path_probs(self.draft)


def _of_depth(side: str, levels: tuple[np.ndarray, ...], depth: int) -> np.ndarray:
    depth = check_count("depth", depth, at_least=0, error=InvalidPairError)
    if depth >= len(levels):
        raise InvalidPairError(
            f"the {side} has no paths of depth {depth}; expected 0..{len(levels) - 1}, as the pair has"
        )
    return levels[depth]


def check_pair(pair: Any) -> ModelPair:
    """Return ``pair``, or raise ``InvalidInputError`` if it is not a ``ModelPair``."""
    if not isinstance(pair, ModelPair):
        raise InvalidInputError(
            f"pair must be a ModelPair, got {type(pair).__name__}; ModelPair.load reads a file"
        )
    return pair


def _check_width(what: str, row: np.ndarray, size: int) -> None:
    if size == 0:
        raise InvalidPairError("the first target row is empty; name at least one token")
    if len(row) != size:
        entries = "entry" if len(row) == 1 else "entries"
        raise InvalidPairError(
            f"{what} has {len(row)} {entries}; expected {size}, one per token as in the first target row"
        )


def check_size(vocab_size: int, draft_length: Any) -> int:
    """Return the draft length, or raise ``EnumerationTooLargeError`` before a too large tree is allocated."""
    draft_length = check_count("draft_length", draft_length, error=InvalidPairError)
    entries, depth = vocab_size, 0
    while depth < draft_length and entries <= MAX_ENTRIES and vocab_size > 1:
        entries, depth = entries * vocab_size, depth + 1
    if entries > MAX_ENTRIES:
        raise EnumerationTooLargeError(
            f"a pair of {vocab_size} tokens and draft length {draft_length} has a level of at least "
            f"{entries} probabilities ({8 * entries} bytes), the limit is {MAX_ENTRIES}; use a shorter "
            "draft length, fewer tokens, or a context-free pair"
        )
    return draft_length


def _validate(pair: ModelPair) -> None:
    size = pair.vocab_size
    if size < 1:
        raise InvalidPairError("the vocabulary is empty; name at least one token")
    if len(set(pair.vocab)) != size:
        raise InvalidPairError(f"vocab has repeated names: {list(pair.vocab)}")
    check_count("draft_length", pair.draft_length, error=InvalidPairError)
    if not is_number(pair.row_sum_tolerance) or pair.row_sum_tolerance < 0:
        raise InvalidPairError(
            f"row_sum_tolerance must be a number of at least 0, got {pair.row_sum_tolerance!r}"
        )
    if len(pair.target) != pair.draft_length + 1:
        raise InvalidPairError(
            f"the target has depths 0..{len(pair.target) - 1} and the draft 0..{pair.draft_length - 1}; "
            "the target needs exactly one depth more than the draft"
        )
    dtype = pair.target[0].dtype
    for side, levels in (("target", pair.target), ("draft", pair.draft)):
        for depth, level in enumerate(levels):
            if level.dtype != dtype:
                raise InvalidPairError("exact and float rows are mixed; use one kind for the whole pair")
            if level.shape != (size**depth, size):
                raise InvalidPairError(
                    f"the {side} rows at depth {depth} have shape {level.shape}; "
                    f"expected {(size**depth, size)} for {size} tokens"
                )
            if not (pair.context_free and _is_one_row(level) and depth):
                _validate_rows(pair, side, depth, level)
            different = level[:1] if _is_one_row(level) else level
            if pair.context_free and (different != levels[0][0]).any():
                raise InvalidPairError("context_free is set, but rows depend on the context; leave it out")


def _is_one_row(level: np.ndarray) -> bool:
    """True if all rows share the memory of one row."""
    return len(level) == 1 or level.strides[0] == 0


def _validate_rows(pair: ModelPair, side: str, depth: int, level: np.ndarray) -> None:
    if level.dtype != object and level.dtype != np.float64:
        raise InvalidPairError(f"rows must hold Fractions or float64, got {level.dtype}; convert them first")
    if pair.is_exact and not all(isinstance(value, Fraction) for value in level.flat):
        raise InvalidPairError("exact rows must hold fractions.Fraction only; build them with parse_probs")

    def where(index: Any) -> str:
        if pair.context_free:
            return f"the {side} row"
        return f"the {side} row at context '{context_text(pair.context(depth, int(index)))}'"

    if not pair.is_exact and not np.isfinite(level).all():
        index = np.flatnonzero(~np.isfinite(level).all(axis=1))[0]
        raise InvalidPairError(f"{where(index)} has an entry that is not finite: {level[index].tolist()}")
    negative = np.flatnonzero((level < 0).any(axis=1))
    if negative.size:
        entries = ", ".join(str(value) for value in level[negative[0]])
        raise InvalidPairError(f"{where(negative[0])} has a negative entry: [{entries}]")
    sums = level.sum(axis=1)
    wrong = sums != 1 if pair.is_exact else np.abs(sums - 1) > pair.row_sum_tolerance
    if wrong.any():
        index = np.flatnonzero(wrong)[0]
        advice = (
            ""
            if pair.is_exact
            else "; divide it by its sum in float64, as normalise=True of ModelPair.context_free_pair does, "
            "or give a pair a wider row_sum_tolerance"
        )
        raise InvalidPairError(f"{where(index)} sums to {sums[index]}, not 1{advice}")
