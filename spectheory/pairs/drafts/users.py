"""A draft process that a user wrote, as the package uses it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import SUM_TOLERANCE, float_tolerance, is_exact, to_flint
from spectheory.foundation.validation import check_num_drafts
from spectheory.pairs.contexts import count_nodes
from spectheory.pairs.drafts.process import (
    ALL_PROCESSES,
    COUNTED_AT_ONCE,
    DraftProcess,
    DraftTuples,
    OwnProcess,
)
from spectheory.pairs.pair import ModelPair

PACKAGE = __name__.rpartition(".")[0]


class UserProcess(OwnProcess):
    """The law that a user's process lists: listed once for a pair, checked, and kept.

    Args:
        process: the user's object.

    Raises:
        InvalidInputError: it has no printable name or no number of paths, or the name of a process of the
            package.
    """

    def __init__(self, process: DraftProcess) -> None:
        self.user_object = process
        self.name = type(process).__name__  # type: ignore[misc]
        name = self._asked("name", lambda: getattr(process, "name", self.name))
        if not isinstance(name, str) or not name.isprintable():
            raise InvalidInputError(f"name of {self.name} must be a printable text, got {name!r}")
        self.name = name  # type: ignore[misc]
        if self.name in ALL_PROCESSES:
            raise InvalidInputError(
                f"{type(process).__name__} has the name of the process {self.name!r} of this package, "
                "and verifiers are lossless for that one; give it another name"
            )
        self.num_drafts = check_num_drafts(self._asked("num_drafts", lambda: process.num_drafts))
        self._pair: ModelPair | None = None
        self._listed = DraftTuples(np.zeros((0, 0)), np.zeros(0))

    def check(self, pair: ModelPair) -> None:
        self._of(pair)

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> int:
        return len(self._of(pair).probs)

    def enumerate(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        leaves, probs = self._of(pair)
        for start in range(0, len(probs), size):
            yield DraftTuples(leaves[start : start + size], probs[start : start + size])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserProcess) and other.user_object is self.user_object

    __hash__ = DraftProcess.__hash__

    def _of(self, pair: ModelPair) -> DraftTuples:
        if self._pair is not pair:
            self._listed, self._pair = self._checked(pair), pair
        return self._listed

    def _checked(self, pair: ModelPair) -> DraftTuples:
        def listed() -> DraftTuples:
            self.user_object.check(pair)
            chunks = [
                (np.array(leaves), np.array(probs))
                for leaves, probs in self.user_object.tuples(pair, COUNTED_AT_ONCE)
            ]
            leaves, probs = map(np.concatenate, zip(*chunks, strict=True))
            exact = is_exact(probs) and probs.ndim == 1
            return DraftTuples(leaves, to_flint(probs) if exact else probs)

        leaves, probs = self._asked("tuples", listed)
        nodes, most = count_nodes(pair.vocab_size, pair.draft_length), pair.vocab_size**pair.draft_length
        shape = len(probs), self.num_drafts
        if probs.ndim != 1:
            raise self._refused(f"probabilities {list(probs.shape)}", "one per tuple")
        if leaves.shape != shape or leaves.dtype.kind != "i":
            raise self._refused(f"paths {leaves.dtype} {list(leaves.shape)}", f"whole numbers {list(shape)}")
        if not ((leaves >= -nodes) & (leaves < most)).all():
            found = f"paths {leaves.min()} to {leaves.max()}"
            raise self._refused(found, f"paths from -{nodes} to {most - 1}")
        if is_exact(probs) != pair.is_exact or probs.dtype.kind not in "Of":
            raise self._refused(f"probabilities {probs.dtype}", f"{pair.arithmetic} ones, as in the pair")
        if not (probs >= 0).all():
            raise self._refused(f"the probability {probs.min()}", "none below 0")
        if abs(probs.sum() - 1) > float_tolerance(pair, SUM_TOLERANCE):
            raise self._refused(f"probabilities with sum {probs.sum()}", "sum 1, every tuple once")
        return DraftTuples(leaves, probs)

    def drafter(self, pair: ModelPair, path_index: int) -> ModelPair:
        found = self._asked("drafter", lambda: self.user_object.drafter(pair, path_index))
        same = isinstance(found, ModelPair) and (found.vocab_size, found.draft_length, found.is_exact) == (
            pair.vocab_size, pair.draft_length, pair.is_exact,
        )  # fmt: skip
        if not same:
            raise self._refused(f"the drafter {found!r}", f"a pair of the shape and arithmetic of {pair!r}")
        return found

    def _asked(self, method: str, ask: Callable[[], Any]) -> Any:
        try:
            with redirect_stdout(sys.stderr):
                return ask()
        except InvalidInputError:
            raise
        except (Exception, SystemExit) as error:  # an exit would pass for a verdict
            raise InvalidInputError(
                f"{method} of draft process {self.name!r} failed: {type(error).__name__}: {error}"
            ) from error

    def _refused(self, found: str, expected: str) -> InvalidInputError:
        return InvalidInputError(f"draft process {self.name!r} lists {found}; expected {expected}")


def is_of_the_package(process: DraftProcess) -> bool:
    """Whether a process is of a class of the package."""
    return type(process).__module__.startswith(PACKAGE)
