"""The work of a run, in tasks that do not depend on one another: some verifiers over a batch of strata."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spectheory.foundation.errors import InsufficientMemoryError, InvalidInputError
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.simulation.estimates import Tally
from spectheory.simulation.judging import Judge, check_users_own
from spectheory.simulation.settings import DrawSettings
from spectheory.simulation.sources import DraftSource
from spectheory.simulation.text_source import TextSource
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier


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
            # What a user's verifier declares is not believed: it is given one path.
            one = on_one_path.first_path() if isinstance(given, UserVerifier) else on_one_path
            for process in [one] if given.single_path else processes:
                several = len(processes) > 1 and not given.single_path
                name = f"{given.name} K={process.num_drafts}" if several else given.name
                if name in found:
                    raise InvalidInputError(f"two verifiers have estimates called {name!r}; rename one")
                found[name] = Stream(given, given.bind(process, pair), process)
        return found


class Task(NamedTuple):
    """Some streams over one batch."""

    batch: int
    streams: tuple[str, ...]


@dataclass(eq=False)
class Work:
    """All that a task needs; a task's numbers depend on (seed, batch, stream) alone.

    Attributes:
        settings: of the run, without its progress, which cannot go to another process.
        threads: of the CPU, in every process; None leaves them as they are.
    """

    source: DraftSource
    streams: dict[str, Stream]
    settings: DrawSettings
    threads: int | None = None

    def tasks(self, batches: Sequence[int]) -> list[Task]:
        """Batch by batch.  Verifiers that judge the same drafts are one task, texts are one per stream."""
        names = tuple(self.streams)
        apart = [(name,) for name in names] if isinstance(self.source, TextSource) else [names]
        return [Task(batch, streams) for batch in batches for streams in apart]

    def draws(self, task: Task) -> int:
        """How many draws a task makes: K paths after one prompt, or a text behind it."""
        texts = len(task.streams) if isinstance(self.source, TextSource) else 1
        return self._draws_per_stratum * self.source.strata_per_batch[task.batch] * texts

    @property
    def _draws_per_stratum(self) -> int:
        return self.settings.samples_per_prompt * self.source.draws_per_sample

    def check_users_own(self) -> None:
        """Refuse a user's verifier that is not a function of its inputs, on the first batch."""
        for stream in self.streams.values():
            if isinstance(stream.verifier, UserVerifier):
                with _memory(self.source.strata_per_batch[0]):
                    check_users_own(stream.verifier, self.source, stream.num_drafts, self.settings)

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]:
        """The sums of every stream of a task.

        Args:
            step: called with the draws that were made, as soon as they are.
        """
        strata = self.source.strata_per_batch[task.batch]
        with _memory(strata):
            if isinstance(self.source, TextSource):
                found = {}
                for name in task.streams:
                    stream = self.streams[name]
                    found[name] = self.source.tally(stream.verifier, stream.process, task.batch)
                    step(self.draws(Task(task.batch, (name,))))
                return found
            return self._of_drafts(task, strata, step)

    def _of_drafts(self, task: Task, strata: int, step: Callable[[int], None]) -> dict[str, Tally]:
        source, batch, settings = self.source, task.batch, self.settings
        streams = [self.streams[name] for name in task.streams]
        judges = [
            Judge(stream.verifier, strata, source.draft_length, settings.tolerance) for stream in streams
        ]
        draw = source.open_batch(batch)
        for number, first in enumerate(range(0, self._draws_per_stratum, source.draws_at_once)):
            draws = min(source.draws_at_once, self._draws_per_stratum - first)
            state = np.random.SeedSequence([settings.seed, batch, number]).generate_state(2, dtype=np.uint32)
            draft_seed, verify_seed = map(int, state)
            drafted = draw(source.generator(draft_seed), draws)
            for stream, judge in zip(streams, judges, strict=True):
                # The same generator state for every verifier: common random numbers.
                judge.judge(drafted.first(stream.num_drafts), source.generator(verify_seed))
            step(draws * strata)
        found = zip(task.streams, judges, strict=True)
        return {name: judge.tally(lambda stratum: source.place(batch, stratum)) for name, judge in found}


@contextmanager
def _memory(strata: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        out_of_memory = isinstance(error, MemoryError)
        if "torch" in sys.modules:
            from spectheory.models import is_out_of_memory

            out_of_memory = is_out_of_memory(error)
        if not out_of_memory:
            raise
        advice = (
            f"try batch_size {strata // 2} (--batch-size {strata // 2})"
            if strata > 1
            else "use fewer drafts, a shorter draft, or fewer prompt tokens (--max-prompt-tokens)"
        )
        raise InsufficientMemoryError(
            f"memory ran out while drafting for {strata} prompts at a time; {advice}"
        ) from error
