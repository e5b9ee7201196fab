"""Wrapper for draft processes that users write."""

from __future__ import annotations

import sys
from collections.abc import Callable
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
    ListedProcess,
)
from spectheory.pairs.pair import ModelPair

PACKAGE = __name__.rpartition(".")[0]


class UserProcess(ListedProcess):
    """Wrap a user's draft process.  For each pair we list its law once, check it, and keep it.

    Args:
        process: the user's object.
        in_floats: whether its probabilities are converted to float64, for a pair in float64.

    Raises:
        InvalidInputError: ``num_drafts`` is invalid, or the name belongs to a process of the package.
    """

    def __init__(self, process: DraftProcess, in_floats: bool = False) -> None:
        self.user_object, self.in_floats = process, in_floats
        self.name = getattr(process, "name", type(process).__name__)  # type: ignore[misc]
        if self.name in ALL_PROCESSES:
            raise InvalidInputError(
                f"{type(process).__name__} has the name of the process {self.name!r} of this package, "
                "and verifiers are lossless for that one; give it another name"
            )
        self.num_drafts = check_num_drafts(process.num_drafts)
        self._listed: tuple[ModelPair, DraftTuples] | None = None

    def check(self, pair: ModelPair) -> None:
        self.listed(pair)

    def to_float(self) -> UserProcess:
        return UserProcess(self.user_object, in_floats=True)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserProcess) and other.user_object is self.user_object

    __hash__ = DraftProcess.__hash__

    def listed(self, pair: ModelPair) -> DraftTuples:
        if self._listed is None or self._listed[0] is not pair:
            self._listed = pair, self._checked(pair, *self._asked("tuples", lambda: self._list(pair)))
        return self._listed[1]

    def _list(self, pair: ModelPair) -> tuple[np.ndarray, np.ndarray]:
        self.user_object.check(pair)
        chunks = [tuple(map(np.array, chunk)) for chunk in self.user_object.tuples(pair, COUNTED_AT_ONCE)]
        leaves, probs = map(np.concatenate, zip(*chunks, strict=True))
        if self.in_floats:
            return leaves, probs.astype(float)
        return leaves, to_flint(probs) if is_exact(probs) else probs

    def _checked(self, pair: ModelPair, leaves: np.ndarray, probs: np.ndarray) -> DraftTuples:
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
        found: ModelPair = self._asked("drafter", lambda: self.user_object.drafter(pair, path_index))
        return found

    def _asked(self, method: str, ask: Callable[[], Any]) -> Any:
        try:
            with redirect_stdout(sys.stderr):
                return ask()
        except InvalidInputError:
            raise
        except (Exception, SystemExit) as error:  # an exit code would look like a verdict
            raise InvalidInputError(
                f"{method} of draft process {self.name!r} failed: {type(error).__name__}: {error}"
            ) from error

    def _refused(self, found: str, expected: str) -> InvalidInputError:
        return InvalidInputError(f"draft process {self.name!r} lists {found}; expected {expected}")


def is_of_the_package(process: DraftProcess) -> bool:
    """True if the class of the process belongs to the package."""
    return type(process).__module__.startswith(PACKAGE)
