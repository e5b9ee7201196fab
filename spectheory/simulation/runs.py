"""simulate(): estimate the block efficiency of verifiers on drafted paths, counted and Rao-Blackwellised.

All verifiers run on the same drafted paths with the same random numbers.  Given the paths, the law of (tau,
Y) has a closed form.  We therefore compute two estimates of E[tau + 1] per verifier:

- *Rao-Blackwell*: the mean of E[tau + 1 | drafts], without randomness of the verifier;
- *counted*: the mean of a sampled tau + 1, which checks the sampling itself.

Prompts are strata: the estimand is the mean over the given prompts.  The interval covers the randomness of
drafting and verifying, but not the choice of prompts.  ``intervals.py`` states its guarantee.

With ``max_new_tokens`` each verifier decodes whole texts.  The estimand is then tokens per call over all
calls, the block efficiency of the papers.  The interval also covers the choice of prompts.  With
``common_texts`` the target writes the texts, and all verifiers run on the same drafts at every token
(``texts.py``).

With several verifiers, the table also has their gains over one of them, paired by prompt (``paired_gain``).

If several K are requested, they share their paths: the first K' of K paths serve every K' <= K.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.extras import installed
from spectheory.foundation.settings import shows_settings
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.drafts.process import SAMPLED_PROCESSES
from spectheory.pairs.pair import ModelPair
from spectheory.simulation.estimates import (
    Estimate,
    Tally,
    are_narrow,
    estimate,
    estimate_over_texts,
    paired_gain,
)
from spectheory.simulation.finished_lines import FinishedLines, open_lines
from spectheory.simulation.first_line import first_line
from spectheory.simulation.judging import Stream
from spectheory.simulation.parallel import Work, on_cluster, results
from spectheory.simulation.settings import DrawSettings, SimulationSettings
from spectheory.simulation.simulation import Simulation
from spectheory.simulation.sources import EnumeratedSource, LanguageModelSource
from spectheory.verification.length_rules import WithLengthRule
from spectheory.verification.resolve import find_verifier
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

_log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair

VERIFIERS = ("token", "block")
"""Verifiers compared by default: the first published one, and the best single-path one."""
SMALL_MODELS = 100_000_000
"""Number of parameters of all models below which one CPU thread is faster than several."""
RESTRICTED = 3, 3
"""Numbers of likeliest tokens and of drafts after the first prompt, on which draft defects are computed."""
FEWEST_PROMPTS = 16
"""Smallest number of prompts after which a run may stop at the requested width.

With fewer prompts the variance estimate is unreliable.  A run that stops when its intervals are narrow then
stops too often when they are too narrow.  In the tests, 90 % intervals cover in 87 % to 93 % of the runs if
they may stop from 16 prompts on, and in less than 86 % if from 2 on.
"""


@shows_settings(SimulationSettings)
def simulate(
    pair: ModelPair | LanguageModelPair,
    prompts: Sequence[str | Sequence[int]] | None = None,
    verifiers: Sequence[str | Any] = VERIFIERS,
    **settings: Any,
) -> Simulation:
    """Estimate the block efficiency of verifiers on language models, or on an enumerated pair.

    ``verification.length_rules`` has verifiers that verify fewer tokens by a rule.  A rule that changes the
    law of the output is run, and its draft defect is printed first.  On language models this is the defect on
    the likeliest tokens after the first prompt, or on the tokens of a restriction.

    Args:
        pair: the models.  Drafts of a ``ModelPair`` are sampled from its tables, in float64.
        prompts: texts or token ids; they are the strata.  None for a ``ModelPair``.
        verifiers: names, ``"package.module:attribute"``, or objects with ``outcome``.
        settings: as ``SimulationSettings`` describes them.

    Raises:
        InvalidInputError: a setting is out of range or does not fit the pair, a prompt is invalid, or the
            checkpoint belongs to another run.
        InvalidOutcomeError: an answer of a verifier is not a law, or a user's verifier is not a function of
            its inputs.
        InsufficientMemoryError: the batches are too large for the device.

    Example:
        >>> from spectheory import instances
        >>> estimate = simulate(instances.two_token(2), verifiers=["block"]).estimates[0]
        >>> estimate.interval[0] < 20 / 9 < estimate.interval[1]
        True

        ``simulate(pair, prompts, ["token", "block"], drafts=2, draft_length=6, max_new_tokens=64)``
    """
    checked, given = SimulationSettings(**settings), looked_up(verifiers, allow_lossy=True)
    if not isinstance(pair, ModelPair):
        return _of_language_models(pair, prompts, given, checked)
    if prompts is not None:
        raise InvalidInputError(
            f"an enumerated pair has no prompts, got {prompts!r}; name verifiers as verifiers=[...]"
        )
    return _of_enumerated_pair(pair, given, checked.of_enumerated_pair())


def _of_enumerated_pair(pair: ModelPair, given: Sequence[Verifier], settings: DrawSettings) -> Simulation:
    pair = pair.to_float().normalised()
    asked = [draft_process(entry) for entry in settings.listed_drafts]
    source = EnumeratedSource(pair, asked[-1], settings)
    run = _Run(Work(source, Stream.of(given, asked, asked[0], pair)), FinishedLines())
    run.draw(progress=settings.progress)
    document = {"verifiers": [verifier.name for verifier in given], "draft_length": pair.draft_length}
    document |= settings.record() | {"device": "cpu"}
    return run.simulation(document | _draft_defects(given, asked, lambda: pair))


def _of_language_models(
    pair: LanguageModelPair,
    prompts: Any,
    given: Sequence[Verifier],
    settings: SimulationSettings,
) -> Simulation:
    with installed():
        from spectheory.models.language_model import check_models, draft_process_of_models
        from spectheory.models.restricting import restrict
        from spectheory.simulation.texts import CommonTextSource, TextSource

    check_models(pair)
    record = settings.record()
    asked = [draft_process_of_models(entry) for entry in settings.listed_drafts]
    streams = streams_of(given, settings, asked)
    kind = CommonTextSource if settings.common_texts else TextSource if settings.whole_texts else None
    source = (kind or LanguageModelSource)(pair, prompts, asked[-1], settings)
    against = base_of(given, settings)
    document = {
        "verifiers": [verifier.name for verifier in given],
        "prompts": len(prompts),
        "device": str(pair.device),
        **record,
    }
    arguments = record | {"threads": settings.threads}
    first = {} if settings.checkpoint is None else first_line(pair, source.token_ids, given, arguments, asked)
    # We refuse the checkpoint of another run before weights are read.
    with (
        open_lines(settings.checkpoint, first) as kept,
        on_cluster(settings.cluster),
        model_threads(source.pair, settings.threads) as threads,
    ):
        document["threads"] = threads
        run = _Run(Work(source, streams, threads), kept, settings.width, settings.gain_width, against)
        run.draw(None if settings.cluster else settings.jobs, settings.progress)
        if against is not None:
            document["against"] = against
        if settings.whole_texts:
            document["prompts_used"] = sum(source.strata_per_batch[: run.used])

        def after_first_prompt() -> ModelPair:
            tokens = settings.restriction or RESTRICTED[0]
            return restrict(pair, prompts[0], tokens, min(settings.draft_length, RESTRICTED[1]))

        return run.simulation(document | _draft_defects(given, asked, after_first_prompt))


def _draft_defects(
    verifiers: Sequence[Verifier], asked: Sequence[DraftProcess], enumerated: Callable[[], ModelPair]
) -> dict[str, Any]:
    """Compute the draft defect of every length rule, on one path or two.  {} without length rules."""
    rules = [verifier for verifier in verifiers if isinstance(verifier, WithLengthRule)]
    if not rules:
        return {}
    pair, paths = enumerated(), min(2, asked[0].num_drafts)
    found = {
        rule.name: float(rule.draft_defect(1 if rule.single_path else paths, pair).total_variation)
        for rule in rules
    }
    return {"draft_defects": found}


def streams_of(
    verifiers: Sequence[Verifier], settings: SimulationSettings, asked: Sequence[DraftProcess]
) -> dict[str, Stream]:
    """Build the streams of a run: one per verifier and draft process.

    Raises:
        InvalidInputError: a verifier does not accept the drafts.
    """
    for process in asked:
        process.draws(settings.draft_length)  # refuses a tree of another length
    for verifier in verifiers:
        verifier.check_draft_length(settings.draft_length)
    # A single-path verifier writes texts with one path.  On common drafts it uses the first of the K paths.
    writes = settings.whole_texts and not settings.common_texts
    on_one_path = Iid(1) if writes and asked[0].name in SAMPLED_PROCESSES else asked[0]
    return Stream.of(verifiers, asked, on_one_path)


def base_of(verifiers: Sequence[Verifier], settings: SimulationSettings) -> str | None:
    """Name of the verifier with which the others are compared; None if there is only one verifier."""
    names = [verifier.name for verifier in verifiers]
    if settings.against is not None and settings.against not in names:
        raise InvalidInputError(
            f"verifiers are to be compared with {settings.against!r}, which is not among them; take one of "
            f"{', '.join(names)}, or add it"
        )
    if len(names) > 1:
        return settings.against or ("block" if "block" in names else names[0])
    for name in ("against", "gain_width"):
        if getattr(settings, name) is not None:
            raise InvalidInputError(f"{name} was asked for with one verifier; name several, or leave it out")
    return None


class _Run:
    """Runs batches until all are finished or the intervals are narrow enough.

    Args:
        work: everything that the tasks need.
        kept: lines of the finished batches; new ones are added.
        width, gain_width: stop when all intervals, and all intervals of gains, are at most this wide.
        against: name of the verifier with which the others are compared.

    Attributes:
        tallies: for every finished batch, the tally of each stream by name.
        used: number of batches, counted from the first, that the estimates use.
        interrupted: whether Ctrl-C stopped the run.
    """

    def __init__(
        self,
        work: Work,
        kept: FinishedLines,
        width: float | None = None,
        gain_width: float | None = None,
        against: str | None = None,
    ) -> None:
        self.work, self.kept, self.against = work, kept, against
        self.width, self.gain_width = width, gain_width
        self.tallies = [
            {name: Tally.from_document(sums) for name, sums in line.items()} for line in kept.lines
        ]
        self.used = 0
        self.interrupted = False

    def draw(self, jobs: int | None = 1, progress: Callable[[int, int], None] | None = None) -> None:
        """Run the batches in order, and skip batches that are already finished."""
        work = self.work
        batches = range(len(work.source.strata_per_batch))
        done, total = 0, sum(map(work.draws, work.tasks(batches)))

        def step(draws: int) -> None:
            nonlocal done
            done += draws
            _log.info("simulate: %d of %d draws", done, total)
            if progress:
                progress(done, total)

        missing = work.tasks(batches[len(self.tallies) :])
        try:
            if not self.tallies:
                work.check_users_own()
            with closing(results(work, missing, jobs, step)) as found:
                for batch in batches:
                    tasks = work.tasks([batch])
                    if batch < len(self.tallies):
                        step(sum(map(work.draws, tasks)))
                    else:
                        self._keep({name: sums for _ in tasks for name, sums in next(found).items()})
                    self.used += 1
                    if self._is_narrow():
                        break
        except KeyboardInterrupt:
            if not self.tallies:
                raise
            self.interrupted, self.used = True, len(self.tallies)

    def _keep(self, tallies: dict[str, Tally]) -> None:
        self.kept.add({name: sums.to_document() for name, sums in tallies.items()})
        self.tallies.append(tallies)

    def simulation(self, document: dict[str, Any]) -> Simulation:
        """Build the result from the batches used."""
        return Simulation(self._estimates(), document, self.interrupted)

    def _is_narrow(self) -> bool:
        """Whether the finished batches give intervals of the requested widths."""
        prompts = len({*self._prompts()})
        if self.width is self.gain_width is None or prompts < FEWEST_PROMPTS:
            return False
        return are_narrow(self._estimates(), self.width, self.gain_width)

    def _estimates(self) -> list[Estimate]:
        estimates, settings = [], self.work.source.settings
        bases = {name: of for name, of in self.work.streams.items() if of.given.name == self.against}
        for name, stream in self.work.streams.items():
            sums = self._tallies(name)
            subject = (stream.given.name, said_to_be_lossless(stream.given), stream.num_drafts)
            if settings.whole_texts:
                found = estimate_over_texts(subject, self._by_prompt(sums), settings.confidence)
            else:
                found = estimate(subject, sums, settings.samples_per_prompt, settings.confidence)
            alike = [
                base for base, of in bases.items() if len(bases) == 1 or of.num_drafts == stream.num_drafts
            ]
            if alike and stream.given.name != self.against and len({*self._prompts()}) > 1:
                others = self._by_prompt(self._tallies(alike[0]))
                gain = paired_gain(self._by_prompt(sums), others, settings.confidence)
                found = replace(found, gain=gain.value, gain_interval=gain.interval)
            estimates.append(found)
        return estimates

    def _tallies(self, stream: str) -> list[Tally]:
        return [tallies[stream] for tallies in self.tallies[: self.used]]

    def _prompts(self) -> list[int]:
        """Index of the prompt of every stratum.  Equal prompts share an index."""
        source = self.work.source
        return [number for batch in range(self.used) for number in source.prompt_numbers(batch)]

    def _by_prompt(self, sums: Sequence[Tally]) -> list[Tally]:
        """Add up the tallies of equal prompts, because their texts are not independent observations."""
        return [Tally.join(sums).summed_by(self._prompts())]


def looked_up(verifiers: Sequence[str | Any], *, allow_lossy: bool = False) -> list[Verifier]:
    """Find verifiers of different names.  ``allow_lossy`` runs length rules that change the output's law."""
    if isinstance(verifiers, str) or not verifiers:
        raise InvalidInputError(f"verifiers must be a list of at least one verifier, got {verifiers!r}")
    found = [find_verifier(entry) for entry in verifiers]
    if allow_lossy:
        found = [each.allowing_lossy() if isinstance(each, WithLengthRule) else each for each in found]
    names = [verifier.name for verifier in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"verifier {name!r} is listed twice; list each once")
    return found


def said_to_be_lossless(verifier: Verifier) -> bool | None:
    """Return the declared ``lossless`` of a verifier.

    If a user's verifier declares True, return None: we do not rely on that claim.
    """
    return None if isinstance(verifier, UserVerifier) and verifier.lossless else verifier.lossless


@contextmanager
def model_threads(pair: LanguageModelPair, threads: int | None) -> Iterator[int | None]:
    """Set the number of CPU threads and yield it; on another device yield None."""
    import torch

    from spectheory.models.device import cpu_threads

    if pair.device.type != "cpu":
        yield None
        return
    small = pair.num_parameters < SMALL_MODELS
    count = threads or (1 if small else torch.get_num_threads())
    with cpu_threads(count):
        yield count
