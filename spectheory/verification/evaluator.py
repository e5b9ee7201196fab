"""Evaluate a verifier on tuples of drafted paths of an enumerated pair, and check that it returns laws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import Array, first_true
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.exact_numbers import float_tolerance
from spectheory.pairs.contexts import paths_to, rows_along
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.outcome import Outcome, correction_deviation, stop_deviation
from spectheory.verification.resolve import Problem
from spectheory.verification.verifier import Verifier


class Tuples(NamedTuple):
    """N tuples of drafted paths, as a verifier sees them.

    Attributes:
        prefixes: [N, K, L+1], the index of each prefix among all contexts of its depth.
        tokens: [N, K, L], -1 after the end of a path.
        target_rows: [N, K, L+1, V].
        draft_rows: [N, K, L, V].
    """

    prefixes: np.ndarray
    tokens: np.ndarray
    target_rows: np.ndarray
    draft_rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Evaluator:
    """A verifier with the rows of a pair, in python-flint rationals or float64.

    Attributes:
        verifier: the verifier, bound to the pair and the process.
        target: target rows for each depth 0..L, [V^depth, V].
        draft: draft rows, for each path and each depth 0..L-1, [V^depth, V].
    """

    verifier: Verifier
    target: tuple[np.ndarray, ...]
    draft: list[tuple[np.ndarray, ...]]

    @staticmethod
    def of(problem: Problem, process: DraftProcess) -> Evaluator:
        """Make the evaluator of a problem for paths drafted by ``process``."""
        verifier, pair, _ = problem
        drafters = [process.drafter(pair, k).numbers for k in range(process.num_drafts)]
        return Evaluator(verifier, pair.numbers.target, [model.draft for model in drafters])

    @property
    def zero(self) -> Any:
        return self.target[0][0, 0] - self.target[0][0, 0]

    def tuples(self, leaves: np.ndarray) -> Tuples:
        """Look up the tokens and rows along drafted paths, given by path numbers (``paths_to``), [N, K]."""
        size, length = self.target[0].shape[-1], len(self.target) - 1
        prefixes, lengths = paths_to(leaves, length, size)
        of_paths = [rows_along(levels, prefixes[:, k]) for k, levels in enumerate(self.draft)]
        target_rows, draft_rows = rows_along(self.target, prefixes), np.stack(of_paths, axis=1)
        tokens = prefixes[..., 1:] % size
        if (lengths < length).any():
            is_token = np.arange(length) < lengths[..., None]
            tokens = np.where(is_token, tokens, -1)
            draft_rows[~is_token] = target_rows[..., 1:, :][~is_token] = self._row_of_no_model()
        return Tuples(prefixes, tokens, target_rows, draft_rows)

    def _row_of_no_model(self) -> np.ndarray:
        """Return the row used after the end of a path, [V]: 1/2 on the first and 1/2 on the last token.

        It differs from the model's rows on purpose.  A verifier that reads the token -1 as the first or the
        last token then stops after the end or uses a wrong row, and the checks find this.
        """
        row = np.full(self.target[0].shape[-1], self.zero)
        row[0], row[-1] = row[0] + (self.zero + 1) / 2, row[-1] + (self.zero + 1) / 2
        return row

    def evaluate(self, leaves: np.ndarray, tolerance: Any) -> tuple[Outcome, Tuples]:
        """Compute the outcome on these tuples and check its stop probabilities (``check_stop_probs``)."""
        tuples = self.tuples(leaves)
        outcome = self.verifier.outcome(*tuples[1:])
        check_stop_probs(self.verifier, outcome, tuples.tokens, tolerance)
        return outcome, tuples


def check_stop_probs(verifier: Verifier, outcome: Outcome, tokens: Array, tolerance: Any) -> None:
    """Check that the stop probabilities are a law for each tuple of the drafts ``tokens`` [N, K, L].

    Raises:
        InvalidOutcomeError: they are not, their shape is wrong, or a stop lies after the end of a path.
    """
    stop_probs = outcome.stop_probs
    num_tuples, num_drafts, length = tokens.shape
    expected = (num_tuples, num_drafts, length + 1)
    if tuple(stop_probs.shape) != expected:
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned stop_probs of shape {tuple(stop_probs.shape)}; "
            f"expected [..., K, L+1] = {expected}"
        )
    wrong = ~stop_deviation(stop_probs).within(float_tolerance(stop_probs, tolerance))
    if wrong.any():
        number = int(first_true(wrong))
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned stop probabilities that are not a law for the drafts "
            f"{tokens[number].tolist()}: they sum to {stop_probs[number].sum()}, "
            f"the smallest is {stop_probs[number].min()}"
        )
    behind = (tokens < 0) & (stop_probs[..., 1:] != 0)
    if behind.any():
        number, path, place = np.argwhere(np.array(behind.tolist()))[0].tolist()
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} stops {place + 1} tokens along path {path} of the drafts "
            f"{tokens[number].tolist()}, which ends before; a token of -1 is behind the end of a path"
        )


def check_correction_rows(
    verifier: Verifier, rows: Array, probs: Array, vocab_size: int, tolerance: Any
) -> None:
    """Raise ``InvalidOutcomeError`` if correction rows [N, V] are not laws, at stops of ``probs`` [N]."""
    if tuple(rows.shape) != (len(probs), vocab_size):
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned correction rows of shape {tuple(rows.shape)}; "
            f"expected [..., V] = {(len(probs), vocab_size)}"
        )
    found, _ = correction_deviation(rows, probs)
    if not found.within(float_tolerance(rows, tolerance)).all():
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned correction rows that are not laws: "
            f"smallest mass {found.lowest.min()}, sum off by {found.sum_error.max()} at a stop it makes"
        )
