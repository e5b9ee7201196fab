"""Judging drafted paths: one verifier's answers to the draws of a batch, summed, and checked to be laws.

Sums and errors stay on the device until the batch is done, so that the check waits for nothing.
"""

from collections.abc import Callable
from typing import Any

from spectheory.foundation.arrays import Array, namespace
from spectheory.simulation.estimates import Tally
from spectheory.simulation.settings import DrawSettings
from spectheory.simulation.sources import DraftedPaths, DraftSource
from spectheory.verification.law_errors import FAULTS, law_errors, refuse_errors, tolerance_of
from spectheory.verification.sampler_runs import check_runs, outcome_or_run, runs_a_sampler
from spectheory.verification.user_checks import check_answers
from spectheory.verification.verifier import Verifier

VETTED_DRAWS = 8
"""Tuples of drafted paths on which a user's verifier is checked to be a function."""


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
        errors = law_errors(outcome, stop, drafted.paths).reshape(len(FAULTS), -1, self.strata)
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
        """The sums over all draws, once they are found to rest on laws."""
        assert self._tally is not None
        assert self._tolerance is not None
        refuse_errors(self.verifier, self._errors, self._tolerance, place)
        return self._tally.to_numpy()


def check_users_own(verifier: Verifier, source: DraftSource, num_drafts: int, settings: DrawSettings) -> None:
    """Refuse a user's verifier that is not a function of its inputs, on a few tuples of the first batch."""
    # Two rounds, so that there are two tuples to be reordered even where a batch has one prompt.
    draw, draws = source.open_batch(0), min(source.draws_at_once, VETTED_DRAWS // 2)
    rounds = [draw(source.generator(settings.seed + number), draws).first(num_drafts) for number in range(2)]
    arrays_of = zip(*(drawn[:3] for drawn in rounds), strict=True)
    drafted = [namespace(arrays[0]).concat(arrays)[-VETTED_DRAWS:] for arrays in arrays_of]
    if runs_a_sampler(verifier):
        check_runs(verifier, drafted, lambda: source.generator(settings.seed))
    else:
        check_answers(verifier, drafted, tolerance_of(drafted[1], settings.tolerance))
