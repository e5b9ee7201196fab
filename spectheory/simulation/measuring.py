"""Measure candidates on language models: tokens per call of their texts, and seconds of their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.results import no_verdict
from spectheory.foundation.settings import Progress
from spectheory.simulation.candidates import PLAIN, Candidate
from spectheory.simulation.choosing import Interval, Trial
from spectheory.simulation.cost import relative_costs, rounds_for, time_calls
from spectheory.simulation.estimates import Tally
from spectheory.simulation.finished_lines import FinishedLines
from spectheory.simulation.judging import Stream
from spectheory.simulation.parallel import Task, Work, results
from spectheory.simulation.settings import SimulationSettings

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair

FEWEST_PLANNED = 8
"""Smallest number of different prompts: half of them choose, and an interval over texts needs several."""
ShapeSeconds = tuple[int, int, np.ndarray]
"""Target rows, L and seconds [rounds, 3] of a shape of drafts."""


class CallSeconds(NamedTuple):
    """Seconds of calls with a given number of target rows: medians, and ranges of the middle 90 % of rounds.

    Attributes:
        target_rows: number of drafted tokens that the call scores; 0 for plain decoding.
        target, target_range: seconds of one call of the target.
        draft, draft_range: seconds of drafting, divided by L; None without drafts.
    """

    target_rows: int
    target: float
    target_range: Interval
    draft: float | None = None
    draft_range: Interval | None = None

    def __bool__(self) -> bool:
        raise no_verdict(self, ".target")


class Units:
    """The measurements of a plan in order.  Measurements in the checkpoint are read, not repeated."""

    def __init__(self, kept: FinishedLines, total: int, progress: Progress | None) -> None:
        self._kept, self._total, self._progress, self._done = kept, total, progress, 0

    @property
    def left_in_file(self) -> int:
        return max(len(self._kept.lines) - self._done, 0)

    def take(self, measure: Callable[[], Any]) -> Any:
        """Return the next measurement as JSON values: from the checkpoint, or from ``measure``."""
        if not self.left_in_file:
            self._kept.add(measure())
        found = self._kept.lines[self._done]
        self._done += 1
        if self._progress:
            self._progress(self._done, self._total)
        return found


@dataclass
class Measured:
    """Measures candidates on language models.

    Attributes:
        units: reads and stores the measurements.
        threads: number of CPU threads.
        costs: given costs c and r of ``Candidate.cost``; None to measure costs.
    """

    pair: LanguageModelPair
    units: Units
    settings: SimulationSettings
    threads: int | None
    costs: tuple[float, float] | None

    def trials(
        self, candidates: Sequence[Candidate], prompts: Sequence[list[int]], seed: int
    ) -> tuple[list[Trial], list[ShapeSeconds]]:
        """Measure tokens per call and costs of each candidate on some prompts.

        Also return the measured seconds by shape of the drafts.
        """
        relative, seconds = self._costs(candidates, prompts)
        settings = replace(self.settings, seed=seed, checkpoint=None, progress=None, jobs=None)
        texts = Texts(self.pair, candidates, prompts, settings, self.threads)
        tasks = [Task(number, ()) for number in range(len(candidates))]
        missing, tallies = tasks[self.units.left_in_file :], []
        with closing(results(texts, missing, self.settings.jobs, lambda draws: None)) as found:
            for _ in tasks:
                line = self.units.take(lambda: next(found)[""].to_document())
                tallies.append(Tally.from_document(line))
        measured = zip(candidates, tallies, relative, strict=True)
        return [Trial(one.target_rows, tally, costs) for one, tally, costs in measured], seconds

    def _costs(
        self, candidates: Sequence[Candidate], prompts: Sequence[list[int]]
    ) -> tuple[list[np.ndarray], list[ShapeSeconds]]:
        """Measure the cost of a call for each candidate, [rounds], once for candidates with equal drafts."""
        if self.costs is not None:
            return [np.array([candidate.cost(*self.costs)]) for candidate in candidates], []
        rows: dict[Any, int] = {
            (one.process, one.draft_length): one.target_rows for one in candidates if one != PLAIN
        }
        fewest = rounds_for((1 - self.settings.confidence) / (2 * len(candidates)))

        def measure() -> Any:
            return time_calls(self.pair, prompts, list(rows), self.settings.sampling, fewest).tolist()

        seconds = np.array(self.units.take(measure))
        columns = dict(zip(rows, relative_costs(seconds).T, strict=True))
        relative = [columns.get((one.process, one.draft_length), np.ones(len(seconds))) for one in candidates]
        return relative, [(rows[shape], shape[1], seconds[:, n]) for n, shape in enumerate(rows)]


@dataclass(eq=False)
class Texts:
    """Decodes texts of every candidate after the given prompts; a task is a candidate."""

    pair: LanguageModelPair
    candidates: Sequence[Candidate]
    prompts: Sequence[list[int]]
    settings: SimulationSettings
    threads: int | None

    def draws(self, task: Task) -> int:
        return len(self.prompts)

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]:
        """Decode the texts of one candidate, and sum its calls by prompt."""
        from spectheory.simulation.texts import TextSource

        candidate = self.candidates[task.batch]
        numbers = {ids: number for number, ids in enumerate(dict.fromkeys(map(tuple, self.prompts)))}
        if candidate.verifier is None or candidate.process is None:
            return {"": _plain_tally(len(numbers), self.settings.max_new_tokens or 0)}
        process = candidate.process
        settings = replace(self.settings, drafts=process, draft_length=candidate.draft_length)
        source = TextSource(self.pair, self.prompts, process, settings)
        work = Work(source, Stream.of([candidate.verifier], [process], process), self.threads)
        work.check_users_own()
        tallies = [
            tally
            for one in work.tasks(range(len(source.strata_per_batch)))
            for tally in work.do(one, step).values()
        ]
        return {"": Tally.join(tallies).summed_by([numbers[tuple(ids)] for ids in self.prompts])}


def _plain_tally(prompts: int, tokens: int) -> Tally:
    """Build the tally of plain decoding: one call per token of each text."""
    tally, one = Tally.zeros(prompts, 0), np.ones((tokens, prompts))
    tally.add(one, np.zeros((tokens, prompts), dtype=np.int64), one[..., None])
    return tally


def halves(encoded: Sequence[list[int]], seed: int) -> tuple[list[list[int]], list[list[int]]]:
    """Split the prompts, as token ids, into two random halves.  Equal prompts are in the same half.

    Raises:
        InvalidInputError: there are too few different prompts.
    """
    different = list(dict.fromkeys(map(tuple, encoded)))
    if len(different) < FEWEST_PLANNED:
        raise InvalidInputError(
            f"a plan needs at least {FEWEST_PLANNED} different prompts, got {len(different)}"
        )
    order = np.random.default_rng(seed).permutation(len(different))
    first = {different[place] for place in order[::2]}
    return (
        [ids for ids in encoded if tuple(ids) in first],
        [ids for ids in encoded if tuple(ids) not in first],
    )


def call_seconds(measured: Sequence[ShapeSeconds]) -> list[CallSeconds]:
    """Summarise seconds by number of target rows, over all shapes with this number."""
    if not measured:
        return []
    found = [CallSeconds(0, *_middle([seconds[:, 0] for *_, seconds in measured]))]
    for rows in sorted({rows for rows, *_ in measured}):
        ours = [(length, seconds) for number, length, seconds in measured if number == rows]
        target = _middle([seconds[:, 2] for _, seconds in ours])
        draft = _middle([seconds[:, 1] / length for length, seconds in ours])
        found.append(CallSeconds(rows, *target, *draft))
    return found


def _middle(parts: Sequence[np.ndarray]) -> tuple[float, Interval]:
    """Compute the median of all values, and the range of their middle 90 %."""
    low, median, high = map(float, np.quantile(np.concatenate(parts), (0.05, 0.5, 0.95)))
    return median, (low, high)
