"""Judging drafted paths: one verifier's answers to the draws of a batch, summed, and checked to be laws.

Sums and errors stay on the device until the batch is done, so that the check waits for nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from spectheory.foundation.arrays import Array, namespace
from spectheory.simulation.estimates import Tally
from spectheory.simulation.protocol import DraftedPaths, Source, Stream
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


def tally_of_draws(
    source: Source, streams: Mapping[str, Stream], batch: int, step: Callable[[int], None]
) -> dict[str, Tally]:
    """The sums of several verifiers over the same draws of a batch, with the same random numbers.

    Args:
        step: called with the draws that were made, as soon as they are.
    """
    settings, strata = source.settings, source.strata_per_batch[batch]
    judges = {
        name: Judge(stream.verifier, strata, source.draft_length, settings.tolerance)
        for name, stream in streams.items()
    }
    draw, total = source.open_batch(batch), settings.samples_per_prompt * source.draws_per_sample
    for number, first in enumerate(range(0, total, source.draws_at_once)):
        draws = min(source.draws_at_once, total - first)
        state = np.random.SeedSequence([settings.seed, batch, number]).generate_state(2, dtype=np.uint32)
        draft_seed, verify_seed = map(int, state)
        drafted = draw(source.generator(draft_seed), draws)
        for name, stream in streams.items():
            # The same generator state for every verifier: common random numbers.
            judges[name].judge(drafted.first(stream.num_drafts), source.generator(verify_seed))
        step(draws * strata)
    return {name: judge.tally(lambda stratum: source.place(batch, stratum)) for name, judge in judges.items()}


def check_users_own(verifier: Verifier, source: Source, num_drafts: int) -> None:
    """Refuse a user's verifier that is not a function of its inputs, on a few tuples of the first batch."""
    # Two rounds, so that there are two tuples to be reordered even where a batch has one prompt.
    settings = source.settings
    draw, draws = source.open_batch(0), min(source.draws_at_once, VETTED_DRAWS // 2)
    rounds = [draw(source.generator(settings.seed + number), draws).first(num_drafts) for number in range(2)]
    arrays_of = zip(*(drawn[:3] for drawn in rounds), strict=True)
    drafted = [namespace(arrays[0]).concat(arrays)[-VETTED_DRAWS:] for arrays in arrays_of]
    if runs_a_sampler(verifier):
        check_runs(verifier, drafted, lambda: source.generator(settings.seed))
    else:
        check_answers(verifier, drafted, tolerance_of(drafted[1], settings.tolerance))
