"""Mistakes of engines: token verification with wrong rows, and verifiers that change with the length."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.arrays import Array
from spectheory.foundation.exact_numbers import flint_if_exact
from spectheory.pairs.contexts import Context
from spectheory.pairs.rows import parse_rows
from spectheory.verification.algorithms import verifiers
from spectheory.verification.kept_lengths import AtKeptLengths
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier

RowsOf = Callable[[Context, int], Sequence[Any]]
"""(drafted path, depth) -> the target row [V] that the engine uses at this depth."""


class OtherTargetRows(Verifier):
    """Token verification that uses other target rows than the request's, in all places or in one.

    Plausible: processors of the target are applied with a wrong text, to some rows only, or not at all.

    Args:
        accepting: the rows of the acceptance tests.
        correcting: the rows of the token after the accepted prefix; by default the same.
    """

    name: ClassVar[str] = "other_target_rows"
    source: ClassVar[str] = "known-wrong"
    single_path: ClassVar[bool] = True
    lossless: ClassVar[bool] = False

    def __init__(self, accepting: RowsOf, correcting: RowsOf | None = None):
        self.accepting, self.correcting = accepting, correcting or accepting

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        accepted, corrected = (
            verifiers["token"].outcome(paths, self._rows(paths, rows_of), draft_rows)
            for rows_of in (self.accepting, self.correcting)
        )
        return Outcome(accepted.stop_probs, corrected.correction)

    def _rows(self, paths: Array, rows_of: RowsOf) -> np.ndarray:
        depths = range(paths.shape[-1] + 1)
        rows = [rows_of(tuple(text), depth) for text in paths[:, 0].tolist() for depth in depths]
        parsed = np.stack(list(parse_rows(dict(enumerate(rows))).values()))
        return flint_if_exact(parsed).reshape(len(paths), 1, len(depths), -1)


def changes_with_length(from_length: Mapping[int, str]) -> Verifier:
    """Make another verifier for longer drafts.  Plausible, because each is lossless at its lengths.

    Args:
        from_length: number of tokens -> name of the verifier from this length on.
    """

    def of_length(length: int) -> Verifier:
        return verifiers[from_length[max(known for known in from_length if known <= length)]]

    found = AtKeptLengths(of_length(min(from_length)), of_length)
    found.name, found.source = "changes_with_length", "known-wrong"  # type: ignore[misc]
    found.lossless = False  # type: ignore[misc]
    return found
