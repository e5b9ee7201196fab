"""Run verifiers on drafted paths; check and sum their answers.  ``Source`` is the interface of drafts.

We refuse answers that are not laws.  Sums and errors stay on the device until the batch is done, so that we
do not wait for the device at every draw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import Array, namespace
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.simulation.estimates import Tally
from spectheory.simulation.settings import DrawSettings
from spectheory.verification.law_errors import FAULTS, law_errors, refuse_errors, tolerance_of
from spectheory.verification.sampler_runs import check_runs, outcome_or_run, runs_a_sampler
from spectheory.verification.user import UserVerifier
from spectheory.verification.user_checks import check_answers
from spectheory.verification.verifier import Verifier

VETTED_DRAWS = 8
"""Number of tuples of drafted paths on which we check that a user's verifier is a function."""


class DraftedPaths(NamedTuple):
    """Arguments of a verifier: K drafted paths and their rows, with leading axis draws * strata.

    Attributes:
        counted: [B], False for draws after the end of a text, which do not count.  None if all draws count.
    """

    paths: Array
    target_rows: Array
    draft_rows: Array
    counted: Array | None = None

    def first(self, num_drafts: int) -> DraftedPaths:
        return DraftedPaths(
            self.paths[..., :num_drafts, :],
            self.target_rows[..., :num_drafts, :, :],
            self.draft_rows[..., :num_drafts, :, :],
            self.counted,
        )


Draw = Callable[[Any, int], DraftedPaths]
"""(generator, number of draws) -> drafted paths with leading axes draws * strata."""


@dataclass(frozen=True, eq=False)
class Stream:
    """A verifier with a number K of drafts.  Each stream gets its own estimate.

    Attributes:
        given: the verifier before it is bound.
        verifier: the verifier bound to ``process``.
        process: draft process of the K paths.
    """

    given: Verifier
    verifier: Verifier
    process: DraftProcess

    @property
    def num_drafts(self) -> int:
        return self.process.num_drafts

    @staticmethod
    def of(
        verifiers: Sequence[Verifier],
        processes: Sequence[DraftProcess],
        on_one_path: DraftProcess,
        pair: ModelPair | None = None,
    ) -> dict[str, Stream]:
        """Build the streams of all verifiers and K.  Keys are names of verifiers, and K if there are several.

        Args:
            on_one_path: process for single-path verifiers.
            pair: the enumerated pair from which paths are drafted, or None for language models.
        """
        found = {}
        for given in verifiers:
            # A user's verifier that declares single_path gets only one path.
            one = on_one_path.first_path() if isinstance(given, UserVerifier) else on_one_path
            for process in [one] if given.single_path else processes:
                several = len(processes) > 1 and not given.single_path
                name = f"{given.name} K={process.num_drafts}" if several else given.name
                if name in found:
                    raise InvalidInputError(f"two verifiers have estimates called {name!r}; rename one")
                found[name] = Stream(given, given.bind(process, pair), process)
        return found


class Judge:
    """Runs one verifier on the draws of one batch of strata.

    Args:
        verifier: the verifier, bound to the draft process.
        tolerance: largest error, in probability, at which an answer counts as a law.  None for
            ``LAW_TOLERANCE``.
    """

    def __init__(self, verifier: Verifier, strata: int, draft_length: int, tolerance: float | None) -> None:
        self.verifier, self._tolerance = verifier, tolerance
        self.strata, self.draft_length = strata, draft_length
        self._tally: Tally | None = None
        self._errors: Array = None

    def judge(self, drafted: DraftedPaths, generator: Any) -> None:
        """Run the verifier on drafted paths, sample its stops, and add the results to the tally.

        The leading axis of the paths has draws * strata entries.
        """
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
        """Check that all answers were laws, and return the sums over all draws.

        Args:
            place: function from the index of a stratum to its description in an error.
        """
        assert self._tally is not None
        assert self._tolerance is not None
        refuse_errors(self.verifier, self._errors, self._tolerance, place)
        return self._tally.to_numpy()


class Source(ABC):
    """A source of drafted paths: strata in batches, with many draws of each batch.

    Attributes:
        settings: settings of the run, without ``progress``, which cannot be sent to another process.
        draft_length: L.
        strata_per_batch: number of strata of each batch.
        draws_at_once: largest number of draws made by one call of a ``Draw``.
        shares_draws: whether all verifiers run on the same draws.  If False, each verifier writes its own
            texts.
    """

    settings: DrawSettings
    draft_length: int
    strata_per_batch: Sequence[int]
    draws_at_once = 1
    shares_draws = True

    @property
    def draws_per_sample(self) -> int:
        """Number of draws of a stratum per sample."""
        return 1

    @abstractmethod
    def prompt_numbers(self, batch: int) -> list[int]:
        """Index of the prompt of each stratum of a batch.  Equal prompts have the index of the first."""

    @abstractmethod
    def place(self, batch: int, stratum: int) -> str:
        """Describe a stratum in words, for an error message."""

    @abstractmethod
    def generator(self, seed: int) -> Any:
        """Make a random generator on the device of the drafts."""

    @abstractmethod
    def open_batch(self, batch: int) -> Draw:
        """Open a batch, and return the function that drafts paths for it."""

    def tally(
        self, streams: Mapping[str, Stream], batch: int, step: Callable[[int], None]
    ) -> dict[str, Tally]:
        """Compute the sums of every stream over the draws of a batch, with common random numbers.

        Args:
            step: called with the number of draws after each call of a ``Draw``.
        """
        settings, strata = self.settings, self.strata_per_batch[batch]
        judges = {
            name: Judge(stream.verifier, strata, self.draft_length, settings.tolerance)
            for name, stream in streams.items()
        }
        draw, total = self.open_batch(batch), settings.samples_per_prompt * self.draws_per_sample
        for number, first in enumerate(range(0, total, self.draws_at_once)):
            draws = min(self.draws_at_once, total - first)
            state = np.random.SeedSequence([settings.seed, batch, number]).generate_state(2, dtype=np.uint32)
            draft_seed, verify_seed = map(int, state)
            drafted = draw(self.generator(draft_seed), draws)
            for name, stream in streams.items():
                # The same generator state for every verifier: common random numbers.
                judges[name].judge(drafted.first(stream.num_drafts), self.generator(verify_seed))
            step(draws * strata)
        return {
            name: judge.tally(lambda stratum: self.place(batch, stratum)) for name, judge in judges.items()
        }

    def check_users_own(self, verifier: Verifier, num_drafts: int) -> None:
        """Check on a few tuples of the first batch that a user's verifier is a function of its inputs."""
        # Two rounds, so that there are two tuples to reorder even if the batch has one prompt.
        draw, draws, seed = self.open_batch(0), min(self.draws_at_once, VETTED_DRAWS // 2), self.settings.seed
        rounds = [draw(self.generator(seed + number), draws).first(num_drafts) for number in range(2)]
        arrays_of = zip(*(drawn[:3] for drawn in rounds), strict=True)
        drafted = [namespace(arrays[0]).concat(arrays)[-VETTED_DRAWS:] for arrays in arrays_of]
        if runs_a_sampler(verifier):
            check_runs(verifier, drafted, lambda: self.generator(seed))
        else:
            check_answers(verifier, drafted, tolerance_of(drafted[1], self.settings.tolerance))
