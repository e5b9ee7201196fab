"""Measuring candidates on language models: their texts behind some prompts, and seconds of their calls."""

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
"""The fewest different prompts: half of them choose, and an interval over texts needs a few."""
ShapeSeconds = tuple[int, int, np.ndarray]
"""The target rows and L of a shape, and its seconds, [rounds, 3]."""


class CallSeconds(NamedTuple):
    """Measured seconds of calls that score so many drafted tokens: medians, and the middle 90 % of rounds.

    Attributes:
        target_rows: the drafted tokens; 0 is a call of plain decoding.
        target, target_range: of one call of the target.
        draft, draft_range: of one drafted token of a path, of L; None without drafts.
    """

    target_rows: int
    target: float
    target_range: Interval
    draft: float | None = None
    draft_range: Interval | None = None

    def __bool__(self) -> bool:
        raise no_verdict(self, ".target")


class Units:
    """The measurements of a plan one after another, those from the file first."""

    def __init__(self, kept: FinishedLines, total: int, progress: Progress | None) -> None:
        self._kept, self._total, self._progress, self._done = kept, total, progress, 0

    @property
    def left_in_file(self) -> int:
        return max(len(self._kept.lines) - self._done, 0)

    def take(self, measure: Callable[[], Any]) -> Any:
        """The next measurement, as JSON holds it."""
        if not self.left_in_file:
            self._kept.add(measure())
        found = self._kept.lines[self._done]
        self._done += 1
        if self._progress:
            self._progress(self._done, self._total)
        return found


@dataclass
class Measured:
    """Candidates measured on language models.

    Attributes:
        units: what was measured before, and where it is kept.
        threads: of the CPU.
        costs: of a drafted token and of a row, in plain calls; None: they are measured.
    """

    pair: LanguageModelPair
    units: Units
    settings: SimulationSettings
    threads: int | None
    costs: tuple[float, float] | None

    def trials(
        self, candidates: Sequence[Candidate], prompts: Sequence[list[int]], seed: int
    ) -> tuple[list[Trial], list[ShapeSeconds]]:
        """What each candidate earns and costs behind some prompts, and the seconds by shape."""
        relative, seconds = self._costs(candidates, prompts)
        settings = replace(
            self.settings, seed=seed, checkpoint=None, max_prompt_tokens=None, progress=None, jobs=None
        )
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
        """The costs of a call by round, for each candidate; in one round the same for the same drafts."""
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
    """The texts of every candidate behind some prompts; a task is a candidate."""

    pair: LanguageModelPair
    candidates: Sequence[Candidate]
    prompts: Sequence[list[int]]
    settings: SimulationSettings
    threads: int | None

    def draws(self, task: Task) -> int:
        return len(self.prompts)

    def do(self, task: Task, step: Callable[[int], None]) -> dict[str, Tally]:
        """The calls of the texts of one candidate, by prompt."""
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
    """Plain decoding of a text behind every prompt: a call per token."""
    tally, one = Tally.zeros(prompts, 0), np.ones((tokens, prompts))
    tally.add(one, np.zeros((tokens, prompts), dtype=np.int64), one[..., None])
    return tally


def halves(encoded: Sequence[list[int]], seed: int) -> tuple[list[list[int]], list[list[int]]]:
    """Two random halves of the prompts, as token ids; equal prompts are in one half.

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
    """Seconds by number of rows, over all shapes that have so many."""
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
    """The median and the middle 90 %."""
    low, median, high = map(float, np.quantile(np.concatenate(parts), (0.05, 0.5, 0.95)))
    return median, (low, high)
