"""What every source of drafts has: strata in batches, and the sums of verifiers over a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.simulation.estimates import Tally
from spectheory.simulation.settings import DrawSettings
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier


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


class Source(Protocol):
    """Strata in batches, each batch drawn from again and again.

    Attributes:
        draft_length: L.
        draws_at_once: the most draws that one call of a ``Draw`` makes.
        shares_draws: whether all verifiers judge the same draws; otherwise each writes texts of its own.
    """

    draft_length: int
    draws_at_once: int
    shares_draws: bool

    @property
    def settings(self) -> DrawSettings:
        """The settings of the run, without its progress, which cannot go to another process."""

    @property
    def strata_per_batch(self) -> Sequence[int]:
        """How many strata every batch has."""

    @property
    def draws_per_sample(self) -> int:
        """How many draws of a stratum one sample is."""

    def prompt_numbers(self, batch: int) -> list[int]:
        """Which prompts the strata of a batch are of; equal prompts have the number of the first."""

    def place(self, batch: int, stratum: int) -> str:
        """Where a stratum is, for errors."""

    def generator(self, seed: int) -> Any:
        """A random generator on the device of the drafts."""

    def open_batch(self, batch: int) -> Draw:
        """Drafted paths of a batch."""

    def tally(
        self, streams: Mapping[str, Stream], batch: int, step: Callable[[int], None]
    ) -> dict[str, Tally]:
        """The sums of every stream over a batch.

        Args:
            step: called with the draws that were made, as soon as they are.
        """
