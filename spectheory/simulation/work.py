"""The work of a run, in tasks that do not depend on one another: some verifiers over a batch of strata."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from spectheory.foundation.errors import InsufficientMemoryError
from spectheory.simulation.estimates import Tally
from spectheory.simulation.judging import check_users_own
from spectheory.simulation.protocol import Source, Stream
from spectheory.verification.user import UserVerifier


class Task(NamedTuple):
    """Some streams over one batch."""

    batch: int
    streams: tuple[str, ...]


@dataclass(eq=False)
class Work:
    """All that a task needs; a task's numbers depend on (seed, batch, stream) alone.

    Attributes:
        threads: of the CPU, in every process; None leaves them as they are.
    """

    source: Source
    streams: dict[str, Stream]
    threads: int | None = None

    def tasks(self, batches: Sequence[int]) -> list[Task]:
        """Batch by batch.  Verifiers that judge the same drafts are one task, texts are one per stream."""
        names = tuple(self.streams)
        groups = [names] if self.source.shares_draws else [(name,) for name in names]
        return [Task(batch, streams) for batch in batches for streams in groups]

    def draws(self, task: Task) -> int:
        """How many draws a task makes: K paths after one prompt, or a text behind it."""
        source = self.source
        of_a_stratum = source.settings.samples_per_prompt * source.draws_per_sample
        return of_a_stratum * source.strata_per_batch[task.batch]

    def check_users_own(self) -> None:
        """Refuse a user's verifier that is not a function of its inputs, on the first batch."""
        for stream in self.streams.values():
            if isinstance(stream.verifier, UserVerifier):
                with _memory(self.source.strata_per_batch[0]):
                    check_users_own(stream.verifier, self.source, stream.num_drafts)

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]:
        """The sums of every stream of a task.

        Args:
            step: called with the draws that were made, as soon as they are.
        """
        streams = {name: self.streams[name] for name in task.streams}
        with _memory(self.source.strata_per_batch[task.batch]):
            return self.source.tally(streams, task.batch, step)


@contextmanager
def _memory(strata: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        out_of_memory = isinstance(error, MemoryError)
        if "torch" in sys.modules:
            from spectheory.models.device import is_out_of_memory

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
