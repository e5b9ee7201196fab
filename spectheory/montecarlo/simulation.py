"""simulate(): the block efficiency of verifiers on drafted paths, counted and Rao-Blackwellised.

All verifiers judge the same drafted paths with the same random numbers.  Given the paths the law
of (tau, Y) is known in closed form, so each verifier gets two estimates of E[tau + 1]:

- *Rao-Blackwell*: the mean of E[tau + 1 | drafts], no verifier randomness left;
- *counted*: the mean of a sampled tau + 1, which checks the sampling itself.

Prompts are strata: the estimand is the mean over the given prompts, and the interval covers the
randomness of drafting and verifying, not the choice of prompts.  What it guarantees is in ``intervals.py``.

With ``max_new_tokens`` whole texts are decoded, each verifier its own.  The estimand is tokens per call
over all calls, the papers' block efficiency, and the interval covers the choice of prompts too.

Several numbers of drafts share theirs: the first K' of K paths serve every K' <= K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spectheory.documents import count_text
from spectheory.drafts import DraftProcess, Iid
from spectheory.errors import InvalidInputError
from spectheory.montecarlo.checkpoint import Checkpoint, check_place, open_checkpoint, refuse_other_run
from spectheory.montecarlo.cost import predicted_speed_up
from spectheory.montecarlo.estimates import (
    Estimate,
    are_narrow,
    estimate,
    estimate_over_texts,
)
from spectheory.montecarlo.identity import (
    identity_before_loading,
    identity_of_weights,
    refuse_unknown_sources,
)
from spectheory.montecarlo.manifest import check_folder, write_results
from spectheory.montecarlo.sources import DraftSource, EnumeratedSource, LanguageModelSource
from spectheory.montecarlo.spread import Jobs, processes, results
from spectheory.montecarlo.texts import TextSource
from spectheory.montecarlo.work import Stream, Work
from spectheory.pair import ModelPair
from spectheory.resolve import find_verifier
from spectheory.results import Result, Row, Table
from spectheory.validate import (
    check_confidence,
    check_count,
    check_num_drafts,
    check_positive,
    check_tolerance,
)
from spectheory.verifier import UsersOwn, Verifier

if TYPE_CHECKING:
    from spectheory.decoding import Speed
    from spectheory.models import LanguageModelPair, Restriction, SamplingOptions, UnloadedPair

Progress = Callable[[int, int], None]
"""Called with (draws done, draws in all); one draw is K paths after one prompt, or a text behind it."""
SMALL_MODELS = 100_000_000
"""Parameters of both models below which one CPU thread is faster than several that wait for each other."""
MAX_THREADS = 1_024
MAX_SAMPLES = 10**9
"""The most draws per prompt; their error is far below that of float32 models."""
FEWEST_PROMPTS = 16
"""No run stops at the width asked for before so many prompts: over fewer a small variance is found by chance.

A run that stops where its intervals are narrow stops a little too often where they are too narrow.  From so
many prompts on, its 90 % intervals cover 87 % to 93 % of the time in the tests; from 2 on, less than 86 %.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result):
    """The estimates of one run and its settings.

    Attributes:
        estimates: one per verifier, in the order asked for.
        settings: what was asked for.
        interrupted: stopped by Ctrl-C; the estimates cover the prompts that were finished.
        speeds: how fast each was on the first batch of prompts, one per estimate; none if not asked for.
        cost_ratio: the time of a call of the draft over that of a call of the target; it predicts speed-ups.
    """

    estimates: list[Estimate]
    settings: dict[str, Any]
    interrupted: bool = False
    speeds: Sequence[Speed] = ()
    cost_ratio: float | None = None

    def to_document(self) -> dict[str, Any]:
        """The JSON object of ``spectheory simulate --json``."""
        estimates = [entry.to_document() for entry in self.estimates]
        for entry, speed in zip(estimates, self.speeds, strict=False):
            entry["speed"] = speed.to_document()
        document = {**self.settings, "interrupted": self.interrupted, "estimates": estimates}
        if self.cost_ratio is None:
            return document
        for entry, (value, low, high) in zip(estimates, self.speed_ups(self.cost_ratio), strict=True):
            entry |= {"speed_up": value, "speed_up_interval": [low, high]}
        return document | {"cost_ratio": self.cost_ratio}

    def speed_ups(self, cost_ratio: float) -> list[tuple[float, float, float]]:
        """The speed-up that every estimate predicts, and the ends of its interval (``predicted_speed_up``).

        Args:
            cost_ratio: the time of a call of the draft over that of a call of the target.
        """
        factor = predicted_speed_up(1.0, self.settings["draft_length"], cost_ratio)
        return [
            (factor * entry.block_efficiency, factor * entry.interval[0], factor * entry.interval[1])
            for entry in self.estimates
        ]

    def headline(self) -> str:
        names = ", ".join(dict.fromkeys(entry.verifier for entry in self.estimates))
        return f"block efficiency of {names}, {self._drafted()}"

    def rows(self) -> list[dict[str, Any]]:
        """One flat row per verifier and K."""
        rows: list[dict[str, Any]] = [
            {
                "verifier": entry.verifier,
                "lossless": entry.lossless,
                "num_drafts": entry.num_drafts,
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
        if "with_ceilings" in self.settings:
            for row, entry in zip(rows, self.estimates, strict=True):
                low, high = entry.ceiling_interval or (None, None)
                row |= {"ceiling": entry.ceiling, "ceiling_low": low, "ceiling_high": high}
        for row, speed in zip(rows, self.speeds, strict=False):
            row |= {"tokens_per_second": speed.tokens_per_second, "measured_speed_up": speed.speed_up}
            row |= {f"{part}_share": share for part, share in speed.shares.items()}
        if self.cost_ratio is not None:
            for row, (value, low, high) in zip(rows, self.speed_ups(self.cost_ratio), strict=True):
                row |= {"speed_up": value, "speed_up_low": low, "speed_up_high": high}
        return rows

    def tables(self) -> list[Table]:
        """The estimates; ceilings, predicted speed-ups and times where they are known."""
        settings, rows = self.settings, self.rows()
        level = f"{100 * settings['confidence']:g}%"
        for row in rows:
            row["name"] = row["verifier"] + (" *" if row["lossless"] is False else "")
        tables = [self._estimates(rows, level)]
        limited = [row for row in rows if row.get("ceiling") is not None]
        if limited:
            text = "{ceiling:.3f} ({ceiling_low:.3f} to {ceiling_high:.3f})"
            title = "the most that any rule could earn at the positions met"
            tables.append(self._by_drafts(title, limited, text, level))
        if self.cost_ratio is not None:
            text = "{speed_up:.3f} ({speed_up_low:.3f} to {speed_up_high:.3f})"
            title = "predicted speed-up over plain decoding, a draft call at "
            title += f"{self.cost_ratio:g} of a target call"
            tables.append(self._by_drafts(title, rows, text, level))
        if self.speeds:
            columns = {
                "verifier": "{name}",
                "K": "{num_drafts}",
                "tokens per second": "{tokens_per_second:.0f}",
                "times plain": "{measured_speed_up:.2f}",
                **{part: f"{{{part}_share:.0%}}" for part in self.speeds[0].seconds},
            }
            plain = self.speeds[0].plain_tokens / self.speeds[0].plain_seconds
            title = f"time on {settings['device']}, plain decoding {plain:.0f} tokens per second"
            tables.append(Table(title, rows, columns))
        return tables

    def _estimates(self, rows: list[dict[str, Any]], level: str) -> Table:
        """Block efficiency, of one K with the counted estimate; the title has the size of the run."""
        settings, tokens = self.settings, self.settings.get("max_new_tokens")
        if "prompts" in settings:
            prompts = settings.get("prompts_used", settings["prompts"])
            each = count_text(settings["samples_per_prompt"], "text" if tokens else "draw")
            size = f"{prompts} prompts, {each}{f' of {tokens} tokens' if tokens else ''} each"
        else:
            size = count_text(settings["samples"], "draw")
        title = f"block efficiency in tokens per target call\n{self._drafted()}, {size}"
        note = "* not lossless on its own: its output differs from the target's"
        note = note if any(row["lossless"] is False for row in rows) else ""
        if isinstance(settings["num_drafts"], list):
            text = "{block_efficiency:.3f} ({low:.3f} to {high:.3f})"
            return self._by_drafts(title, rows, text, level, note)
        columns = {
            "verifier": "{name}",
            "estimate": "{block_efficiency:.4f}",
            f"{level} interval": "{low:.4f} to {high:.4f}",
            "counted": "{counted:.4f}",
            f"its {level} interval": "{counted_low:.4f} to {counted_high:.4f}",
            "calls" if tokens else "draws": "{samples}",
        }
        return Table(title, rows, columns, note)

    def _by_drafts(self, title: str, rows: Sequence[Row], text: str, level: str, note: str = "") -> Table:
        """A row per verifier, a column per K; a verifier of one path has one value, in the first column."""
        asked = self.settings["num_drafts"]
        labels = [f"K = {number}" for number in (asked if isinstance(asked, list) else [asked])]
        by_name: dict[str, dict[str, Any]] = {}
        for row in rows:
            cells = by_name.setdefault(row["name"], {"verifier": row["name"]})
            cells[labels[len(cells) - 1]] = text.format_map(row)
        note = f"with {level} intervals; one value: of one path, for every K\n{note}".rstrip()
        return Table(title, list(by_name.values()), note=note)

    def _drafted(self) -> str:
        return f"{drafts_text(self.settings['num_drafts'])} x {self.settings['draft_length']} drafted tokens"


def drafts_text(num_drafts: int | Sequence[int]) -> str:
    """The numbers K of a run, for people.

    Example:
        >>> drafts_text(2), drafts_text([1, 2, 4])
        ('2', '1, 2 or 4')
    """
    if isinstance(num_drafts, int):
        return str(num_drafts)
    return f"{', '.join(map(str, num_drafts[:-1]))} or {num_drafts[-1]}"


def simulate(
    pair: LanguageModelPair | UnloadedPair,
    prompts: Sequence[str | Sequence[int]],
    verifiers: Sequence[str | Any],
    *,
    num_drafts: int | Sequence[int] = 1,
    draft_length: int = 8,
    samples: int | None = None,
    max_new_tokens: int | None = None,
    width: float | None = None,
    with_ceilings: bool = False,
    with_time: bool = False,
    seed: int = 0,
    options: SamplingOptions | None = None,
    restriction: Restriction | None = None,
    confidence: float = 0.95,
    batch_size: int = 8,
    max_prompt_tokens: int | None = None,
    threads: int | None = None,
    tolerance: float | None = None,
    checkpoint: str | Path | None = None,
    jobs: Jobs = None,
    shard: tuple[int, int] | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Estimate the block efficiency of verifiers on language models.

    Args:
        pair: the models; of an ``UnloadedPair`` the weights are loaded once all else is found to be in order.
        prompts: texts or token ids; the strata.
        verifiers: names, ``"package.module:attribute"``, or objects with ``outcome``.
        num_drafts: K i.i.d. paths per draw; or several numbers, each with estimates of its own.  A verifier
            that looks at one path gets one estimate for all of them.  Of several draft models the first K
            draft a path each.
        draft_length: L.
        samples: draws per prompt, at least 2 (an interval needs a variance), 16 by default; where
            ``max_new_tokens`` is given, texts per prompt, 1 by default.
        max_new_tokens: decode whole texts of so many tokens behind every prompt, and estimate the tokens per
            call over all calls together; None: look at one call after each prompt.  The interval is then one
            over prompts: it covers which of them were chosen.
        width: of whole texts: stop as soon as every interval is that narrow, from lower to upper end, after
            a whole batch and at least ``FEWEST_PROMPTS`` prompts.
        with_ceilings: of whole texts: estimate for verifiers that decide position by position the most that
            any rule could earn at the positions met (``ceilings.py``).
        with_time: of whole texts: decode the first batch of prompts once more in this process, with every
            verifier and plainly, and take the time.
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
        jobs: how many processes; ``"auto"``: on a CPU as many as there are cores for their threads.  None:
            one, or what a surrounding ``joblib.parallel_config`` says, as of a cluster of machines.  The
            numbers are the same, whoever computes them.
        shard: (i, n): of the batches of prompts take every n-th alone, from the i-th on.  What the n runs
            keep in checkpoints of their own, ``merge_checkpoints`` puts together to that of the whole run.
        out: a folder for the results, a row per estimate, and a manifest of all they came from
            (``manifest.py``).
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
    asked = _drafts_asked(num_drafts)
    process, whole_texts = pair.draft_process(asked[-1]), max_new_tokens is not None
    if samples is None:
        samples = 1 if whole_texts else 16
    run = _Run(
        verifiers, asked, samples, seed, confidence, tolerance, process=pair.draft_process,
        whole_texts=whole_texts, width=width,
    )  # fmt: skip
    threads = None if threads is None else check_count("threads", threads)
    processes(jobs, None)  # refuses what is no number
    shard = _checked_shard(shard, checkpoint)
    if threads is not None and threads > MAX_THREADS:
        raise InvalidInputError(f"threads must be at most {MAX_THREADS}, got {threads}")
    given = (pair, prompts, process, draft_length, options, restriction, batch_size, max_prompt_tokens)
    for what, wanted in (("ceilings", with_ceilings), ("time", with_time)):
        if wanted and not whole_texts:
            raise InvalidInputError(
                f"{what} of whole texts: ask for them with max_new_tokens (--tokens), or leave the {what} out"
            )
    source = (
        LanguageModelSource(*given)
        if max_new_tokens is None
        else TextSource(*given, max_new_tokens, with_ceilings)
    )
    settings = {
        "verifiers": [verifier.name for verifier in run.given],
        "num_drafts": asked[0] if len(asked) == 1 else asked,
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
        settings |= {"max_new_tokens": source.max_new_tokens, "width": run.width}
        settings |= {"with_ceilings": True} if with_ceilings else {}
    identity: dict[str, Any] = {}
    if checkpoint is not None or out is not None:
        identity = settings | identity_before_loading(pair, source.token_ids, run.given)
    folder = None if out is None else check_folder(out)
    if checkpoint is not None:
        refuse_unknown_sources(identity)
        check_place(checkpoint)
        refuse_other_run(checkpoint, identity)
    with _threads(source.pair, threads) as settings["threads"]:
        if identity:
            identity |= {"threads": settings["threads"], **identity_of_weights(source.pair)}
        with open_checkpoint(
            checkpoint, identity, list(run.streams), source.strata_per_batch, source.draft_length
        ) as kept:
            if shard is not None:
                settings["shard"] = f"{shard[0]}/{shard[1]}"
            count = processes(jobs, settings["threads"])
            found = run.simulation(source, settings, kept, progress, settings["threads"], count, shard)
            if with_time and isinstance(source, TextSource):
                timed = [(stream.given, stream.num_drafts) for stream in run.streams.values()]
                found = replace(found, speeds=source.speeds(timed, run.seed))
        if folder is not None:
            write_results(folder, found, identity)
        return found


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
    run = _Run(verifiers, [process.num_drafts], samples, seed, confidence, tolerance, pair=pair.to_float())
    settings = {
        "verifiers": list(run.streams),
        "num_drafts": process.num_drafts,
        "draft_length": pair.draft_length,
        "samples": run.samples,
        "seed": run.seed,
        "confidence": run.confidence,
        "device": device,
    }
    return run.simulation(EnumeratedSource(pair, process, device), settings, Checkpoint(), progress)


class _Run:
    """The verifiers bound to their drafts, and how often to draw.

    Attributes:
        given: the verifiers as they were looked up.
        streams: what gets an estimate of its own, by name.
    """

    def __init__(
        self,
        verifiers: Sequence[str | Any],
        num_drafts: Sequence[int],
        samples: int,
        seed: int,
        confidence: float,
        tolerance: float | None,
        *,
        process: Callable[[int], DraftProcess] = Iid,
        pair: ModelPair | None = None,
        whole_texts: bool = False,
        width: float | None = None,
    ) -> None:
        self.given = _looked_up(verifiers)
        # A text is written with as many drafts as its verifier looks at; a draw is there already.
        on_one_path = 1 if whole_texts else num_drafts[0]
        self.streams = Stream.of(self.given, num_drafts, on_one_path, process, pair)
        advice = "" if whole_texts else "an interval needs a variance"
        self.samples = check_count("samples", samples, at_least=1 if whole_texts else 2, advice=advice)
        if self.samples > MAX_SAMPLES:
            raise InvalidInputError(f"samples must be at most {MAX_SAMPLES}, got {self.samples}")
        self.seed = check_count("seed", seed, at_least=0)
        self.confidence = check_confidence(confidence)
        self.tolerance = None if tolerance is None else check_positive("tolerance", tolerance)
        if self.tolerance is not None:
            check_tolerance("tolerance", self.tolerance)
        self.width = None if width is None else check_positive("width", width)
        if self.width is not None and not whole_texts:
            raise InvalidInputError(
                "a width was given, and without whole texts the estimate is the mean over all prompts; "
                "ask for whole texts with max_new_tokens (--tokens), or leave the width out"
            )

    def simulation(
        self,
        source: DraftSource,
        settings: dict[str, Any],
        kept: Checkpoint,
        progress: Progress | None,
        threads: int | None = None,
        jobs: int | None = 1,
        shard: tuple[int, int] | None = None,
    ) -> Simulation:
        """Draw batch after batch, but for those that are kept already, as far as the width asks.

        A shard draws all of its batches: where the run may stop is seen once all shards are merged.
        """
        work = Work(source, self.streams, self.samples, self.seed, self.tolerance, threads)
        batches = _batches_of(shard, len(source.strata_per_batch))
        done, total = 0, sum(map(work.draws, work.tasks(batches)))

        def step(draws: int) -> None:
            nonlocal done
            done += draws
            if progress:
                progress(done, total)

        used: list[int] = []
        missing = work.tasks([batch for batch in batches if batch not in kept.tallies])
        try:
            if not kept.tallies:
                work.check_users_own()
            with closing(results(work, missing, jobs, step)) as found:
                for batch in batches:
                    tasks = work.tasks([batch])
                    if batch in kept.tallies:
                        step(sum(map(work.draws, tasks)))
                    else:
                        kept.add(batch, {name: sums for _ in tasks for name, sums in next(found).items()})
                    used.append(batch)
                    if shard is None and self.width is not None and self._is_narrow(source, kept, used):
                        break
            interrupted = False
        except KeyboardInterrupt:
            if not kept.tallies:
                raise
            interrupted, used = True, sorted(kept.tallies)
        except Exception as error:
            if kept.is_on_disk and kept.tallies:
                error.add_note(
                    f"{len(kept.tallies)} of {len(batches)} batches are finished and kept in the checkpoint"
                )
            raise
        if isinstance(source, TextSource):
            settings = settings | {"prompts_used": sum(source.strata_per_batch[batch] for batch in used)}
        return Simulation(self._estimates(source, kept, used), settings, interrupted)

    def _is_narrow(self, source: DraftSource, kept: Checkpoint, used: Sequence[int]) -> bool:
        """Whether the batches so far, all of them whole, give every interval the width that is asked for."""
        assert self.width is not None
        if sum(source.strata_per_batch[batch] for batch in used) < FEWEST_PROMPTS:
            return False
        return are_narrow(self._estimates(source, kept, used), self.width)

    def _estimates(self, source: DraftSource, kept: Checkpoint, used: Sequence[int]) -> list[Estimate]:
        estimates = []
        for name, stream in self.streams.items():
            sums = [kept.tallies[batch][name] for batch in used]
            subject = (stream.given.name, _said_to_be_lossless(stream.given), stream.num_drafts)
            if isinstance(source, TextSource):
                estimates.append(estimate_over_texts(subject, sums, self.confidence))
            else:
                estimates.append(estimate(subject, sums, self.samples, self.confidence))
        return estimates


def _batches_of(shard: tuple[int, int] | None, count: int) -> range:
    """The batches of one shard of several, or all."""
    number, shards = (1, 1) if shard is None else shard
    batches = range(number - 1, count, shards)
    if not batches:
        raise InvalidInputError(
            f"shard {number}/{shards} is empty, for there are {count} batches of prompts; ask for at most "
            f"{count} shards, or for smaller batches with batch_size (--batch-size)"
        )
    return batches


def _checked_shard(shard: tuple[int, int] | None, checkpoint: Any) -> tuple[int, int] | None:
    """Which shard of how many, from 1."""
    if shard is None:
        return None
    number, shards = (check_count("shard", part) for part in shard)
    if number > shards:
        raise InvalidInputError(f"shard must be from 1/{shards} to {shards}/{shards}, got {number}/{shards}")
    if checkpoint is None:
        raise InvalidInputError(
            "a shard was asked for, and no checkpoint to keep it in; give one with checkpoint (--checkpoint)"
        )
    return number, shards


def _drafts_asked(num_drafts: Any) -> list[int]:
    """The numbers K, ascending; one number is a list of one."""
    if isinstance(num_drafts, str) or not isinstance(num_drafts, Sequence):
        return [check_num_drafts(num_drafts)]
    found = sorted({check_num_drafts(entry) for entry in num_drafts})
    if not found or len(found) < len(num_drafts):
        raise InvalidInputError(f"num_drafts must be one number or several different ones, got {num_drafts}")
    return found


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
