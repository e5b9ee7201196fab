"""simulate(): the block efficiency of verifiers on drafted paths, counted and Rao-Blackwellised.

All verifiers judge the same drafted paths with the same random numbers.  Given the paths the law
of (tau, Y) is known in closed form, so each verifier gets two estimates of E[tau + 1]:

- *Rao-Blackwell*: the mean of E[tau + 1 | drafts], no verifier randomness left;
- *counted*: the mean of a sampled tau + 1, which checks the sampling itself.

Prompts are strata: the estimand is the mean over the given prompts, and the interval covers the
randomness of drafting and verifying, not the choice of prompts.

With ``max_new_tokens`` whole texts are decoded, each verifier its own.  The estimand is tokens per call
over all calls, the papers' block efficiency, and the interval covers the choice of prompts too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.drafts import Iid
from spectheory.errors import InsufficientMemoryError, InvalidInputError
from spectheory.extras import installed
from spectheory.montecarlo.checkpoint import Checkpoint, check_place, open_checkpoint, refuse_other_run
from spectheory.montecarlo.estimates import (
    Estimate,
    Tally,
    estimate,
    estimate_over_texts,
    estimate_text,
)
from spectheory.montecarlo.identity import (
    identity_before_loading,
    identity_of_weights,
    refuse_unknown_sources,
)
from spectheory.montecarlo.judging import Judge, check_users_own
from spectheory.montecarlo.sources import DraftSource, EnumeratedSource, LanguageModelSource
from spectheory.montecarlo.texts import TextSource
from spectheory.pair import ModelPair
from spectheory.resolve import find_verifier
from spectheory.results import Result
from spectheory.validate import (
    check_confidence,
    check_count,
    check_num_drafts,
    check_positive,
    check_tolerance,
)
from spectheory.verifier import UsersOwn, Verifier

if TYPE_CHECKING:
    import pandas

    from spectheory.models import LanguageModelPair, Restriction, SamplingOptions, UnloadedPair

Progress = Callable[[int, int], None]
"""Called with (draws done, draws in all); one draw is K paths after one prompt."""
SMALL_MODELS = 100_000_000
"""Parameters of both models below which one CPU thread is faster than several that wait for each other."""
MAX_THREADS = 1_024
MAX_SAMPLES = 10**9
"""The most draws per prompt; their error is far below that of float32 models."""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """The estimates of one run and its settings.

    Attributes:
        estimates: one per verifier, in the order asked for.
        settings: what was asked for.
        interrupted: stopped by Ctrl-C; the estimates cover the prompts that were finished.
    """

    estimates: list[Estimate]
    settings: dict[str, Any]
    interrupted: bool = False

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory simulate --json``."""
        return {
            **self.settings,
            "interrupted": self.interrupted,
            "estimates": [entry.to_document() for entry in self.estimates],
        }

    def headline(self) -> str:
        drafts = f"{self.settings['num_drafts']} x {self.settings['draft_length']} drafted tokens"
        return f"block efficiency of {', '.join(entry.verifier for entry in self.estimates)}, {drafts}"

    def facts(self) -> list[tuple[str, str]]:
        return [
            (entry.verifier, estimate_text(entry.block_efficiency, entry.interval))
            for entry in self.estimates
        ]

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per verifier, as in a data frame or a CSV file."""
        return [
            {
                "verifier": entry.verifier,
                "lossless": entry.lossless,
                "num_drafts": self.settings["num_drafts"],
                "draft_length": self.settings["draft_length"],
                "block_efficiency": entry.block_efficiency,
                "low": entry.interval[0],
                "high": entry.interval[1],
                "standard_error": entry.standard_error,
                "counted": entry.counted,
                "counted_low": entry.counted_interval[0],
                "counted_high": entry.counted_interval[1],
                "counted_standard_error": entry.counted_standard_error,
                "samples": entry.samples,
                "interrupted": self.interrupted,
            }
            for entry in self.estimates
        ]

    def to_frame(self) -> pandas.DataFrame:
        """A data frame with one row per verifier.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        with installed():
            import pandas

        return pandas.DataFrame(self.rows())


def simulate(
    pair: LanguageModelPair | UnloadedPair,
    prompts: Sequence[str | Sequence[int]],
    verifiers: Sequence[str | Any],
    *,
    num_drafts: int = 1,
    draft_length: int = 8,
    samples: int | None = None,
    max_new_tokens: int | None = None,
    seed: int = 0,
    options: SamplingOptions | None = None,
    restriction: Restriction | None = None,
    confidence: float = 0.95,
    batch_size: int = 8,
    max_prompt_tokens: int | None = None,
    threads: int | None = None,
    tolerance: float | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Estimate the block efficiency of verifiers on language models.

    Args:
        pair: the models; of an ``UnloadedPair`` the weights are loaded once all else is found to be in order.
        prompts: texts or token ids; the strata.
        verifiers: names, ``"package.module:attribute"``, or objects with ``outcome``.
        num_drafts: K i.i.d. paths per draw.
        draft_length: L.
        samples: draws per prompt, at least 2 (an interval needs a variance), 16 by default; where
            ``max_new_tokens`` is given, texts per prompt, 1 by default.
        max_new_tokens: decode whole texts of so many tokens behind every prompt, and estimate the tokens per
            call over all calls together; None: look at one call after each prompt.  The interval is then one
            over prompts: it covers which of them were chosen.
        seed: the same seed gives the same numbers on one device with one number of threads.
        options: temperature, top-k, top-p, applied to both models.
        restriction: keep m tokens per context, so that the pair can also be enumerated.
        confidence: level of the intervals.
        batch_size: prompts drafted for at a time.
        max_prompt_tokens: keep at most so many tokens of a prompt, its last ones; None keeps all.
        threads: of the CPU; None: one for models of fewer than ``SMALL_MODELS`` parameters, otherwise as
            torch is set.
        tolerance: how far an answer of a verifier may be from a law, in probability; None: by the number type
            of the probabilities, see ``judging.LAW_TOLERANCE``.
        checkpoint: a file that keeps what is finished; the same run, started again, goes on from it, so that
            neither Ctrl-C nor a kill loses a finished batch of prompts.  The file of a run with other models,
            prompts, verifiers or settings is refused, by their content.
        progress: called with (draws done, draws in all).

    Raises:
        InvalidInputError: a setting is out of range, a prompt cannot be read on from, or the checkpoint
            belongs to another run.
        InvalidOutcomeError: a verifier answered with something that is no law, or a user's own one is no
            function of its inputs.
        InsufficientMemoryError: the batches are too large for the device.
    """
    from spectheory.models import SamplingOptions

    options = options or SamplingOptions()
    process = Iid(check_num_drafts(num_drafts))
    if samples is None:
        samples = 16 if max_new_tokens is None else 1
    fewest = 2 if max_new_tokens is None else 1
    run = _Run(verifiers, process, samples, seed, confidence, tolerance, fewest_samples=fewest)
    threads = None if threads is None else check_count("threads", threads)
    if threads is not None and threads > MAX_THREADS:
        raise InvalidInputError(f"threads must be at most {MAX_THREADS}, got {threads}")
    asked = (pair, prompts, process, draft_length, options, restriction, batch_size, max_prompt_tokens)
    source = LanguageModelSource(*asked) if max_new_tokens is None else TextSource(*asked, max_new_tokens)
    settings = {
        "verifiers": list(run.verifiers),
        "num_drafts": process.num_drafts,
        "draft_length": source.draft_length,
        "prompts": len(prompts),
        "samples_per_prompt": run.samples,
        "seed": run.seed,
        "confidence": run.confidence,
        "tolerance": run.tolerance,
        "batch_size": source.batch_size,
        **asdict(options),
        "restriction": None if restriction is None else asdict(restriction),
        "max_prompt_tokens": None if max_prompt_tokens is None else int(max_prompt_tokens),
        "device": str(pair.device),
    }
    if isinstance(source, TextSource):
        settings["max_new_tokens"] = source.max_new_tokens
    identity: dict[str, Any] = {}
    if checkpoint is not None:
        identity = settings | identity_before_loading(pair, source.token_ids, run.given)
        refuse_unknown_sources(identity)
        check_place(checkpoint)
        refuse_other_run(checkpoint, identity)
    with _threads(source.pair, threads) as settings["threads"]:
        if checkpoint is not None:
            identity |= {"threads": settings["threads"], **identity_of_weights(source.pair)}
        with open_checkpoint(
            checkpoint, identity, list(run.verifiers), source.strata_per_batch, source.draft_length
        ) as kept:
            return run.simulation(source, settings, kept, progress)


def simulate_enumerated(
    pair: ModelPair,
    verifiers: Sequence[str | Any],
    *,
    num_drafts: int = 1,
    samples: int = 10_000,
    seed: int = 0,
    device: str = "cpu",
    confidence: float = 0.95,
    tolerance: float | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Estimate the block efficiency of verifiers on an enumerated pair, in float64.

    Args:
        pair: the models; drafts are sampled from its tables.
        verifiers, num_drafts, seed, confidence, tolerance, progress: as in ``simulate``.
        samples: drafted K-tuples, at least 2.
        device: ``"cpu"`` runs on numpy, ``"cuda"`` on torch.

    Raises:
        InvalidInputError: a setting is out of range.
        InvalidOutcomeError: as in ``simulate``.

    Example:
        >>> from spectheory import instances
        >>> estimate = simulate_enumerated(instances.two_token(2), ["block"]).estimates[0]
        >>> estimate.interval[0] < 20 / 9 < estimate.interval[1]
        True
    """
    process = Iid(check_num_drafts(num_drafts))
    run = _Run(verifiers, process, samples, seed, confidence, tolerance, pair.to_float())
    settings = {
        "verifiers": list(run.verifiers),
        "num_drafts": process.num_drafts,
        "draft_length": pair.draft_length,
        "samples": run.samples,
        "seed": run.seed,
        "confidence": run.confidence,
        "device": device,
    }
    return run.simulation(EnumeratedSource(pair, process, device), settings, Checkpoint(), progress)


class _Run:
    """The verifiers bound to a draft process, and how often to draw.

    Attributes:
        given: the verifiers as they were looked up, by their order.
        verifiers: name -> the verifier bound to the process.
    """

    def __init__(
        self,
        verifiers: Sequence[str | Any],
        process: Iid,
        samples: int,
        seed: int,
        confidence: float,
        tolerance: float | None,
        pair: ModelPair | None = None,
        fewest_samples: int = 2,
    ) -> None:
        self.given = _looked_up(verifiers)
        self.verifiers = {verifier.name: verifier.bind(process, pair) for verifier in self.given}
        advice = "an interval needs a variance" if fewest_samples > 1 else ""
        self.samples = check_count("samples", samples, at_least=fewest_samples, advice=advice)
        if self.samples > MAX_SAMPLES:
            raise InvalidInputError(f"samples must be at most {MAX_SAMPLES}, got {self.samples}")
        self.seed = check_count("seed", seed, at_least=0)
        self.confidence = check_confidence(confidence)
        self.tolerance = None if tolerance is None else check_positive("tolerance", tolerance)
        if self.tolerance is not None:
            check_tolerance("tolerance", self.tolerance)

    def simulation(
        self, source: DraftSource, settings: dict[str, Any], kept: Checkpoint, progress: Progress | None
    ) -> Simulation:
        """Draw batch after batch, but for those that are kept already."""
        interrupted, done = False, 0
        total = self.samples * sum(source.strata_per_batch)

        def step(draws: int) -> None:
            nonlocal done
            done += draws
            if progress:
                progress(done, total)

        try:
            for batch, strata in enumerate(source.strata_per_batch):
                if batch in kept.tallies:
                    step(self.samples * strata)
                else:
                    kept.add(batch, self._tallies(source, batch, strata, step))
        except KeyboardInterrupt:
            if not kept.tallies:
                raise
            interrupted = True
        except Exception as error:
            if kept.is_on_disk and kept.tallies:
                count, total = len(kept.tallies), len(source.strata_per_batch)
                error.add_note(f"{count} of {total} batches are finished and kept in the checkpoint")
            raise
        tallies = [kept.tallies[batch] for batch in sorted(kept.tallies)]
        estimates = []
        for verifier in self.given:
            sums = [batch[verifier.name] for batch in tallies]
            said = (verifier.name, _said_to_be_lossless(verifier), sums)
            if isinstance(source, TextSource):
                estimates.append(estimate_over_texts(*said, self.confidence))
            else:
                estimates.append(estimate(*said, self.samples, self.confidence))
        return Simulation(estimates, settings, interrupted)

    def _tallies(
        self, source: DraftSource, batch: int, strata: int, step: Callable[[int], None]
    ) -> dict[str, Tally]:
        """All draws of one batch of strata, where there is memory for them."""
        try:
            return self._drawn(source, batch, strata, step)
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

    def _drawn(
        self, source: DraftSource, batch: int, strata: int, step: Callable[[int], None]
    ) -> dict[str, Tally]:
        """All draws of one batch of strata.  Seeds depend on (seed, batch, round) alone."""
        users_own = [verifier for verifier in self.verifiers.values() if isinstance(verifier, UsersOwn)]
        if batch == 0:  # no other is finished before
            for verifier in users_own:
                check_users_own(verifier, source, source.open_batch(batch), self.seed, self.tolerance)
        if isinstance(source, TextSource):
            seed = next(_seeds(self.seed, batch, 0))
            found = source.tallies(self.verifiers, batch, self.samples, seed, self.tolerance)
            step(self.samples * strata)
            return found
        judges = [
            Judge(verifier, strata, source.draft_length, self.tolerance)
            for verifier in self.verifiers.values()
        ]
        draw = source.open_batch(batch)
        for number, first in enumerate(range(0, self.samples, source.draws_at_once)):
            draws = min(source.draws_at_once, self.samples - first)
            draft_seed, verify_seed = _seeds(self.seed, batch, number)
            drafted = draw(source.generator(draft_seed), draws)
            for judge in judges:
                # The same generator state for every verifier: common random numbers.
                judge.judge(drafted, source.generator(verify_seed))
            step(draws * strata)
        names = dict(zip(self.verifiers, judges, strict=True))
        return {
            name: judge.tally(lambda stratum: source.place(batch, stratum)) for name, judge in names.items()
        }


def _looked_up(verifiers: Sequence[str | Any]) -> list[Verifier]:
    """The verifiers, each looked up once."""
    if isinstance(verifiers, str) or not verifiers:
        raise InvalidInputError(f"verifiers must be a list of at least one verifier, got {verifiers!r}")
    found = [find_verifier(entry) for entry in verifiers]
    names = [verifier.name for verifier in found]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInputError(f"verifier {name!r} is listed twice; list each once")
    return found


def _said_to_be_lossless(verifier: Verifier) -> bool | None:
    """What the package says of its own verifiers; of a user's own one only a denial is believed."""
    return None if isinstance(verifier, UsersOwn) and verifier.lossless else verifier.lossless


@contextmanager
def _threads(pair: LanguageModelPair, threads: int | None) -> Iterator[int | None]:
    """Run on so many CPU threads, and say how many; None on another device."""
    import torch

    from spectheory.models import cpu_threads

    if pair.device.type != "cpu":
        yield None
        return
    small = pair.num_parameters < SMALL_MODELS
    count = threads or (1 if small else torch.get_num_threads())
    with cpu_threads(count):
        yield count


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError):
        return True
    if "torch" not in sys.modules:
        return False
    from spectheory.models import is_out_of_memory

    return is_out_of_memory(error)


def _seeds(seed: int, batch: int, number: int) -> Iterator[int]:
    state = np.random.SeedSequence([seed, batch, number]).generate_state(2, dtype=np.uint32)
    return iter(int(value) for value in state)
