"""Sum the outcomes of a verifier over tuples of drafted paths."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from spectheory.foundation.exact_numbers import to_fraction
from spectheory.pairs.drafts import DraftProcess, DraftTuples, Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.evaluator import Evaluator, check_correction_rows
from spectheory.verification.resolve import Problem
from spectheory.verification.user import UserVerifier
from spectheory.verification.user_checks import ROUNDING

FLOAT64 = 2.0**-52
"""Distance from 1 to the next float64."""


def tuples_to_enumerate(problem: Problem) -> tuple[DraftProcess, bool]:
    """Find the process to enumerate, and whether to enumerate multisets of paths.

    For a single-path verifier of the package we enumerate the first path, and for an exchangeable one
    multisets.  For a user's verifier we enumerate all tuples.
    """
    verifier, _, process = problem
    if isinstance(verifier, UserVerifier):
        return process, False
    enumerated = process.first_path() if verifier.single_path else process
    return enumerated, verifier.exchangeable and enumerated.num_drafts > 1 and isinstance(enumerated, Iid)


def sum_outcomes(
    evaluator: Evaluator,
    pair: ModelPair,
    chunks: Iterable[DraftTuples],
    tolerance: float,
    epsilon: float = FLOAT64,
    forbidden_above: float | None = None,
) -> tuple[tuple[np.ndarray, ...], Any]:
    """Sum the outcomes into the output law R.  Return R and the probability of undefined outputs.

    If ``forbidden_above`` is given, R keeps only outputs of target probability 0.  Of these it keeps the
    outputs whose probability given the drafts exceeds ``forbidden_above``.
    """
    size, length = pair.vocab_size, pair.draft_length
    undefined = evaluator.zero
    masses = [
        np.full((size**depth, size), undefined, dtype=pair.target[0].dtype) for depth in range(length + 1)
    ]
    for leaves, probs in chunks:
        # Given drafts of probability P, an error e changes the output law by e P, which may be rounding.
        with np.errstate(divide="ignore"):  # underflowing drafts change nothing
            slack = np.maximum(tolerance, ROUNDING * epsilon / probs.astype(float))
        outcome, tuples = evaluator.evaluate(leaves, slack)
        for depth in range(length + 1):
            for path_index, stop in _stops_at(outcome.stop_probs[:, :, depth]):
                rows = outcome.correction(path_index, np.full(len(leaves), depth))
                made = np.flatnonzero(stop != 0)
                rows, stop = rows[made], stop[made]
                check_correction_rows(evaluator.verifier, rows, stop, size, slack[made])
                mass = probs[made] * stop
                empty = (rows == 0).all(axis=1)
                if empty.any():
                    undefined = undefined + mass[empty].sum()
                prefixes = tuples.prefixes[made, path_index[made], depth]
                if forbidden_above is not None:
                    forbidden = pair.numbers.target_path_probs[depth + 1].reshape(-1, size)[prefixes] == 0
                    rows = np.where(forbidden & (stop[:, None] * rows > forbidden_above), rows, 0)
                np.add.at(masses[depth], prefixes, mass[:, None] * rows)
    flat = tuple(mass.ravel() for mass in masses)
    if not pair.is_exact:
        return flat, float(undefined)
    return flat, to_fraction(undefined)


def _stops_at(stop_probs: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Split the non-zero stop probabilities [N, K] into the fewest rounds with one path per tuple.

    Yields (path_index [N], probs [N]) per round.  Round r takes the r-th path with non-zero probability of
    every tuple.  A verifier that stops on one path therefore computes one correction row per tuple and depth.
    """
    nonzero = stop_probs != 0
    order = np.argsort(~nonzero, axis=1, kind="stable")
    for rank in range(int(nonzero.sum(axis=1).max())):
        path_index = order[:, rank]
        probs = np.take_along_axis(stop_probs, path_index[:, None], axis=1)[:, 0]
        yield path_index, probs
