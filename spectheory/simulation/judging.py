"""Judging drafted paths: one verifier's answers to the draws of a batch, summed, and checked to be laws.

Sums and errors stay on the device until the batch is done, so that the check waits for nothing.
"""

from collections.abc import Callable
from typing import Any

from spectheory.foundation.arrays import Array, namespace, zero_where
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.simulation.estimates import Tally
from spectheory.simulation.settings import DrawSettings
from spectheory.simulation.sources import DraftedPaths, DraftSource
from spectheory.verification.outcome import (
    Outcome,
    Sample,
    Stop,
    correction_deviation,
    stop_deviation,
)
from spectheory.verification.sampler_runs import check_runs, outcome_or_run, runs_a_sampler
from spectheory.verification.user_checks import check_answers
from spectheory.verification.verifier import Verifier

LAW_TOLERANCE = {"float64": 1e-9, "float32": 1e-5}
"""By the type of the probabilities: how far an answer may be from a law, in probability."""
VETTED_DRAWS = 8
"""Tuples of drafted paths on which a user's verifier is checked to be a function."""
FAULTS = (
    "stop probabilities that are not a law",
    "correction rows that are not laws",
    "a row of zeros as the correction at a stop that was drawn",
)


class Judge:
    """One verifier on the draws of one batch of strata.

    Args:
        verifier: bound to the draft process.
        tolerance: how far an answer may be from a law, in probability; None: ``LAW_TOLERANCE``.
    """

    def __init__(self, verifier: Verifier, strata: int, draft_length: int, tolerance: float | None) -> None:
        self.verifier, self._tolerance = verifier, tolerance
        self.strata, self.draft_length = strata, draft_length
        self._tally: Tally | None = None
        self._errors: Array = None

    def judge(self, drafted: DraftedPaths, generator: Any) -> None:
        """Ask about drafted paths with leading axis draws * strata; sample where the verifier stops."""
        like = drafted.target_rows
        outcome = outcome_or_run(self.verifier, *drafted[:3], generator)
        stop = outcome.sample_stop(generator)
        errors = law_errors(outcome, stop).reshape(len(FAULTS), -1, self.strata)
        largest = namespace(errors).max(errors, axis=1)
        if self._tally is None:
            self._tally, self._errors = Tally.zeros(self.strata, self.draft_length, like), largest
            self._tolerance = tolerance_of(like, self._tolerance)
        self._errors = namespace(errors).maximum(self._errors, largest)
        self._tally.add(
            outcome.expected_tokens().reshape(-1, self.strata),
            stop.length.reshape(-1, self.strata),
            outcome.length_probs().reshape(-1, self.strata, self.draft_length + 1),
            None if drafted.counted is None else drafted.counted.reshape(-1, self.strata),
        )

    def tally(self, place: Callable[[int], str]) -> Tally:
        """The sums over all draws, once they are found to rest on laws.

        Raises:
            InvalidOutcomeError: an answer is not a law; the text names verifier, fault and stratum.
        """
        assert self._tally is not None
        assert self._tolerance is not None
        refuse_errors(self.verifier, self._errors, self._tolerance, place)
        return self._tally.to_numpy()


def refuse_errors(verifier: Verifier, errors: Array, tolerance: float, place: Callable[[int], str]) -> None:
    """Raise the error that ``Judge.tally`` documents, from the largest of ``law_errors``, [3, strata]."""
    # Written so that NaN, which fails every comparison, counts as wrong.
    wrong = ~(errors <= tolerance)
    if bool(wrong.any()):
        fault, stratum = (int(numbers[0]) for numbers in namespace(wrong).nonzero(wrong))
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned {FAULTS[fault]}, {place(stratum)}: off by "
            f"{float(errors[fault, stratum]):.3g}, more than the tolerance {tolerance:g}"
        )


def law_errors(outcome: Outcome, stop: Stop, drawn: Sample | None = None) -> Array:
    """How far answers are from laws, one line per entry of ``FAULTS``, in probability.  [..] -> [3, ..]

    Args:
        outcome: of N tuples of drafted paths.
        stop: sampled from it; the error of the correction row there is weighted with its probability, as in
            a certificate.
        drawn: what ``outcome.sample`` drew at this stop, so that no row is computed again.
    """
    rows = outcome.checkable_rows(stop, drawn)
    corrections, empty = correction_deviation(rows, stop.prob, are_weights=outcome.rows_are_weights)
    stops = stop_deviation(outcome.stop_probs)
    return namespace(rows).stack([stops.error, corrections.error, zero_where(~empty, stop.prob)])


def check_users_own(verifier: Verifier, source: DraftSource, num_drafts: int, settings: DrawSettings) -> None:
    """Refuse a user's verifier that is not a function of its inputs, on a few tuples of the first batch.

    Raises:
        InvalidOutcomeError: the text names the fault.
    """
    # Two rounds, so that there are two tuples to be reordered even where a batch has one prompt.
    draw, draws = source.open_batch(0), min(source.draws_at_once, VETTED_DRAWS // 2)
    rounds = [draw(source.generator(settings.seed + number), draws).first(num_drafts) for number in range(2)]
    arrays_of = zip(*(drawn[:3] for drawn in rounds), strict=True)
    drafted = [namespace(arrays[0]).concat(arrays)[-VETTED_DRAWS:] for arrays in arrays_of]
    if runs_a_sampler(verifier):
        check_runs(verifier, drafted, lambda: source.generator(settings.seed))
    else:
        check_answers(verifier, drafted, tolerance_of(drafted[1], settings.tolerance))


def tolerance_of(rows: Array, tolerance: float | None) -> float:
    """The tolerance asked for, or that of the number type of the rows that verifiers are given."""
    return LAW_TOLERANCE[str(rows.dtype).removeprefix("torch.")] if tolerance is None else tolerance
