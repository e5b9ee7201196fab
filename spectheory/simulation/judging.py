"""Drafted paths, the sources that they come from, and verifiers' answers to them, summed and checked.

An answer that is not a law is refused.  Sums and errors stay on the device until the batch is done, so that
the check waits for nothing.
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
"""Tuples of drafted paths on which a user's verifier is checked to be a function."""


class DraftedPaths(NamedTuple):
    """K drafted paths for each of B strata, or for each of several draws, as a verifier takes them.

    Attributes:
        counted: of single draws, [B], whether they count: not behind the end of a text.  None: they do.
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
    """A verifier on K drafts, which gets an estimate.

    Attributes:
        given: the verifier as it was looked up.
        verifier: bound to the process.
        process: how the K paths are drafted.
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
        """The streams of every verifier and K, by the verifier's name, with K where there are several.

        Args:
            on_one_path: the one process of a verifier that looks at one path only.
            pair: the enumerated pair that is drafted from, if one is.
        """
        found = {}
        for given in verifiers:
            # A user's verifier that declares that it looks at one path is given no other.
            one = on_one_path.first_path() if isinstance(given, UserVerifier) else on_one_path
            for process in [one] if given.single_path else processes:
                several = len(processes) > 1 and not given.single_path
                name = f"{given.name} K={process.num_drafts}" if several else given.name
                if name in found:
                    raise InvalidInputError(f"two verifiers have estimates called {name!r}; rename one")
                found[name] = Stream(given, given.bind(process, pair), process)
        return found


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


class Source(ABC):
    """Strata in batches, each batch drawn from again and again.

    Attributes:
        settings: of the run, without its progress, which cannot go to another process.
        draft_length: L.
        strata_per_batch: how many strata every batch has.
        draws_at_once: the most draws that one call of a ``Draw`` makes.
        shares_draws: whether all verifiers judge the same draws; otherwise each writes texts of its own.
    """

    settings: DrawSettings
    draft_length: int
    strata_per_batch: Sequence[int]
    draws_at_once = 1
    shares_draws = True

    @property
    def draws_per_sample(self) -> int:
        """How many draws of a stratum one sample is."""
        return 1

    @abstractmethod
    def prompt_numbers(self, batch: int) -> list[int]:
        """Which prompts the strata of a batch are of; equal prompts have the number of the first."""

    @abstractmethod
    def place(self, batch: int, stratum: int) -> str:
        """Where a stratum is, for errors."""

    @abstractmethod
    def generator(self, seed: int) -> Any:
        """A random generator on the device of the drafts."""

    @abstractmethod
    def open_batch(self, batch: int) -> Draw:
        """Drafted paths of a batch."""

    def tally(
        self, streams: Mapping[str, Stream], batch: int, step: Callable[[int], None]
    ) -> dict[str, Tally]:
        """The sums of every stream over the draws of a batch, with the same random numbers.

        Args:
            step: called with the draws that were made, as soon as they are.
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
        """Refuse a user's verifier that is not a function of its inputs, on a few tuples of a batch."""
        # Two rounds, so that there are two tuples to be reordered even where a batch has one prompt.
        draw, draws, seed = self.open_batch(0), min(self.draws_at_once, VETTED_DRAWS // 2), self.settings.seed
        rounds = [draw(self.generator(seed + number), draws).first(num_drafts) for number in range(2)]
        arrays_of = zip(*(drawn[:3] for drawn in rounds), strict=True)
        drafted = [namespace(arrays[0]).concat(arrays)[-VETTED_DRAWS:] for arrays in arrays_of]
        if runs_a_sampler(verifier):
            check_runs(verifier, drafted, lambda: self.generator(seed))
        else:
            check_answers(verifier, drafted, tolerance_of(drafted[1], self.settings.tolerance))
