"""The work of a run, in tasks that do not depend on one another: some verifiers over a batch of strata."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spectheory.drafts import DraftProcess, Iid
from spectheory.errors import InsufficientMemoryError
from spectheory.montecarlo.estimates import Tally
from spectheory.montecarlo.judging import Judge, check_users_own
from spectheory.montecarlo.sources import DraftSource
from spectheory.montecarlo.texts import TextSource
from spectheory.pair import ModelPair
from spectheory.verifier import UserVerifier, Verifier


@dataclass(frozen=True, eq=False)
class Stream:
    """A verifier on K drafts: what gets an estimate of its own.

    Attributes:
        name: the verifier's; with K where there are several.
        given: the verifier as it was looked up.
        verifier: bound to K drafted paths.
        num_drafts: K.
    """

    name: str
    given: Verifier
    verifier: Verifier
    num_drafts: int

    @staticmethod
    def of(
        verifiers: Sequence[Verifier],
        num_drafts: Sequence[int],
        on_one_path: int,
        process: Callable[[int], DraftProcess] = Iid,
        pair: ModelPair | None = None,
    ) -> dict[str, Stream]:
        """Name -> stream, for every verifier and K.

        Args:
            verifiers: as they were looked up.
            num_drafts: the numbers K, ascending.
            on_one_path: the one K of a verifier that looks at one path only.
            process: how K paths are drafted.
            pair: the enumerated pair that is drafted from, if one is.
        """
        found = {}
        for given in verifiers:
            for drafts in [on_one_path] if given.single_path else num_drafts:
                several = len(num_drafts) > 1 and not given.single_path
                name = f"{given.name} K={drafts}" if several else given.name
                found[name] = Stream(name, given, given.bind(process(drafts), pair), drafts)
        return found


class Task(NamedTuple):
    """Some streams over one batch."""

    batch: int
    streams: tuple[str, ...]


@dataclass(eq=False)
class Work:
    """All that a task needs; a task's numbers depend on (seed, batch, stream) alone.

    Attributes:
        source: of the drafted paths.
        streams: by name.
        samples: draws per stratum.
        seed: of the run.
        tolerance: as in ``Judge``.
        threads: of the CPU; None leaves them as they are.
    """

    source: DraftSource
    streams: dict[str, Stream]
    samples: int
    seed: int
    tolerance: float | None
    threads: int | None = None

    def tasks(self, batches: Sequence[int]) -> list[Task]:
        """Batch by batch.  Verifiers that judge the same drafts are one task, texts are one per stream."""
        names = tuple(self.streams)
        apart = [(name,) for name in names] if isinstance(self.source, TextSource) else [names]
        return [Task(batch, streams) for batch in batches for streams in apart]

    def draws(self, task: Task) -> int:
        """How many draws a task makes: K paths after one prompt, or a text behind it."""
        texts = len(task.streams) if isinstance(self.source, TextSource) else 1
        return self.samples * self.source.strata_per_batch[task.batch] * texts

    def check_users_own(self) -> None:
        """Refuse a user's verifier that is no function of its inputs, on the first batch."""
        users_own = [entry for entry in self.streams.values() if isinstance(entry.verifier, UserVerifier)]
        for stream in users_own:
            draw = self.source.open_batch(0)

            def first(
                generator: Any, draws: int, draw: Any = draw, num_drafts: int = stream.num_drafts
            ) -> Any:
                return draw(generator, draws).first(num_drafts)

            with _memory(self.source.strata_per_batch[0]):
                check_users_own(stream.verifier, self.source, first, self.seed, self.tolerance)

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]:
        """The sums of every stream of a task.

        Args:
            task: one of ``tasks``.
            step: called with the draws that were made, as soon as they are.

        Raises:
            InvalidOutcomeError: an answer was no law.
            InsufficientMemoryError: there is no room for the batch.
        """
        strata = self.source.strata_per_batch[task.batch]
        with _memory(strata), nullcontext() if self.threads is None else _cpu_threads(self.threads):
            if isinstance(self.source, TextSource):
                return {name: self._of_texts(self.source, self.streams[name], task, step)
                        for name in task.streams}  # fmt: skip
            return self._of_drafts(task, strata, step)

    def _of_texts(self, source: TextSource, stream: Stream, task: Task, step: Callable[[int], None]) -> Tally:
        found = source.tally(
            stream.verifier, stream.num_drafts, task.batch, self.samples, self.seed, self.tolerance
        )
        step(self.draws(Task(task.batch, (stream.name,))))
        return found

    def _of_drafts(self, task: Task, strata: int, step: Callable[[int], None]) -> dict[str, Tally]:
        source, batch = self.source, task.batch
        streams = [self.streams[name] for name in task.streams]
        judges = [Judge(stream.verifier, strata, source.draft_length, self.tolerance) for stream in streams]
        draw = source.open_batch(batch)
        for number, first in enumerate(range(0, self.samples, source.draws_at_once)):
            draws = min(source.draws_at_once, self.samples - first)
            draft_seed, verify_seed = _seeds(self.seed, batch, number)
            drafted = draw(source.generator(draft_seed), draws)
            for stream, judge in zip(streams, judges, strict=True):
                # The same generator state for every verifier: common random numbers.
                judge.judge(drafted.first(stream.num_drafts), source.generator(verify_seed))
            step(draws * strata)
        found = zip(task.streams, judges, strict=True)
        return {name: judge.tally(lambda stratum: source.place(batch, stratum)) for name, judge in found}


def _seeds(seed: int, batch: int, number: int) -> Iterator[int]:
    state = np.random.SeedSequence([seed, batch, number]).generate_state(2, dtype=np.uint32)
    return iter(int(value) for value in state)


def _cpu_threads(count: int) -> Any:
    from spectheory.models import cpu_threads

    return cpu_threads(count)


@contextmanager
def _memory(strata: int) -> Iterator[None]:
    """Say what to do where memory runs out."""
    try:
        yield
    except Exception as error:
        if not _is_out_of_memory(error):
            raise
        advice = (
            f"try batch_size {strata // 2} (--batch-size {strata // 2})"
            if strata > 1
            else "use fewer drafts, a shorter draft, or fewer prompt tokens (--max-prompt-tokens)"
        )
        raise InsufficientMemoryError(
            f"memory ran out while drafting for {strata} prompts at a time; {advice}"
        ) from error


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError):
        return True
    if "torch" not in sys.modules:
        return False
    from spectheory.models import is_out_of_memory

    return is_out_of_memory(error)
