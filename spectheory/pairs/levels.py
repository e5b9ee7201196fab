"""Levels of a pair: the rows of a model at all contexts of each depth.  Build, check and multiply them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from spectheory.foundation.errors import EnumerationTooLargeError, InvalidPairError
from spectheory.foundation.exact_numbers import SUM_TOLERANCE, flint_if_exact
from spectheory.foundation.validation import check_count
from spectheory.pairs.contexts import Context, context_text, numbered_context

MAX_ENTRIES = 50_000_000
"""The largest number of probabilities a pair may hold; a tree of depth L grows as V^(L+1)."""
Levels = tuple[np.ndarray, ...]
"""The rows of a model, one array [V^i, V] per depth i."""


@dataclass(frozen=True, eq=False)
class PairNumbers:
    """The rows of a pair, and path probabilities computed in their arithmetic."""

    target: Levels
    draft: Levels

    @cached_property
    def target_path_probs(self) -> Levels:
        """p(a) of every path a, one array per depth 0..L+1."""
        return _path_probs(self.target)

    @cached_property
    def draft_path_probs(self) -> Levels:
        """q(a) of every path a, one array per depth 0..L."""
        return _path_probs(self.draft)


def _path_probs(levels: Levels) -> Levels:
    if levels[-1].size > MAX_ENTRIES:
        raise EnumerationTooLargeError(
            f"{levels[-1].size} paths of {len(levels)} tokens, the limit is {MAX_ENTRIES}; "
            "truncate the pair, or take fewer tokens"
        )
    probs = [levels[0][0][:1] * 0 + 1]
    for level in levels:
        probs.append((probs[-1][:, None] * level).ravel())
    for kept in probs:
        kept.flags.writeable = False
    return tuple(probs)


def locked(level: np.ndarray) -> np.ndarray:
    """Return a read-only array with memory of its own, copied unless it is one already."""
    if level.base is None and not level.flags.writeable:
        return level
    copy = level.copy()
    copy.flags.writeable = False
    return copy


def locked_numbers(level: np.ndarray) -> np.ndarray:
    """Convert rationals to python-flint, and lock the array."""
    return locked(flint_if_exact(level))


def levels_of_contexts(rows: Mapping[Context, np.ndarray], side: str, depths: int, size: int) -> Levels:
    """Stack the rows by context of one model.  Refuse a missing row, or one at another context."""
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


def of_depth(side: str, levels: Levels, depth: int) -> np.ndarray:
    """Take the path probabilities of one depth, or refuse a depth that the pair does not have."""
    depth = check_count("depth", depth, at_least=0, error=InvalidPairError)
    if depth >= len(levels):
        raise InvalidPairError(
            f"the {side} has no paths of depth {depth}; expected 0..{len(levels) - 1}, as the pair has"
        )
    return levels[depth]


def check_width(what: str, row: np.ndarray, size: int) -> None:
    """Refuse a row that has not one entry per token."""
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


def check_levels(target: Levels, draft: Levels, vocab: Sequence[str], context_free: bool) -> None:
    """Check shapes, dtypes and names of a pair, and that all its rows are laws."""
    size = len(vocab)
    if size < 1:
        raise InvalidPairError("the vocabulary is empty; name at least one token")
    if len(set(vocab)) != size:
        raise InvalidPairError(f"vocab has repeated names: {list(vocab)}")
    check_count("draft_length", len(draft), error=InvalidPairError)
    if len(target) != len(draft) + 1:
        raise InvalidPairError(
            f"the target has depths 0..{len(target) - 1} and the draft 0..{len(draft) - 1}; "
            "the target needs exactly one depth more than the draft"
        )
    dtype = target[0].dtype
    for side, levels in (("target", target), ("draft", draft)):
        for depth, level in enumerate(levels):
            if level.dtype != dtype:
                raise InvalidPairError("exact and float rows are mixed; use one kind for the whole pair")
            if level.shape != (size**depth, size):
                raise InvalidPairError(
                    f"the {side} rows at depth {depth} have shape {level.shape}; "
                    f"expected {(size**depth, size)} for {size} tokens"
                )
            if not (context_free and _is_one_row(level) and depth):
                place = f"the {side} row"
                _check_rows(level, place, None if context_free else depth)
            different = level[:1] if _is_one_row(level) else level
            if context_free and (different != levels[0][0]).any():
                raise InvalidPairError("context_free is set, but rows depend on the context; leave it out")


def _is_one_row(level: np.ndarray) -> bool:
    """True if all rows share the memory of one row."""
    return len(level) == 1 or level.strides[0] == 0


def _check_rows(level: np.ndarray, place: str, depth: int | None) -> None:
    """Check that the rows of one depth are laws.  ``depth`` is None if all contexts have the same row."""
    if level.dtype != object and level.dtype != np.float64:
        raise InvalidPairError(f"rows must hold Fractions or float64, got {level.dtype}; convert them first")
    exact = level.dtype == object
    if exact and not all(isinstance(value, Fraction) for value in level.flat):
        raise InvalidPairError("exact rows must hold fractions.Fraction only; build them with parse_probs")

    def where(index: Any) -> str:
        if depth is None:
            return place
        return f"{place} at context '{context_text(numbered_context(int(index), depth, level.shape[1]))}'"

    if not exact and not np.isfinite(level).all():
        index = np.flatnonzero(~np.isfinite(level).all(axis=1))[0]
        raise InvalidPairError(f"{where(index)} has an entry that is not finite: {level[index].tolist()}")
    negative = np.flatnonzero((level < 0).any(axis=1))
    if negative.size:
        entries = ", ".join(str(value) for value in level[negative[0]])
        raise InvalidPairError(f"{where(negative[0])} has a negative entry: [{entries}]")
    sums = level.sum(axis=1)
    wrong = sums != 1 if exact else np.abs(sums - 1) > SUM_TOLERANCE
    if wrong.any():
        index = np.flatnonzero(wrong)[0]
        advice = "; divide it by its sum in float64, as normalise=True of ModelPair.context_free_pair does"
        raise InvalidPairError(f"{where(index)} sums to {sums[index]}, not 1{'' if exact else advice}")
