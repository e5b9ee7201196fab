"""simulate(): the block efficiency of verifiers on drafted paths, counted and Rao-Blackwellised.

All verifiers judge the same drafted paths with the same random numbers.  Given the paths the law
of (tau, Y) is known in closed form, so each verifier gets two estimates of E[tau + 1]:

- *Rao-Blackwell*: the mean of E[tau + 1 | drafts], no verifier randomness left;
- *counted*: the mean of a sampled tau + 1, which checks the sampling itself.

Prompts are strata: the estimand is the mean over the given prompts, and the interval covers the
randomness of drafting and verifying, not the choice of prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spectheory.arrays import Array
from spectheory.drafts import DraftProcess, Iid
from spectheory.errors import InvalidInputError
from spectheory.montecarlo.checkpoint import Checkpoint
from spectheory.montecarlo.estimates import Estimate, Tally, estimate
from spectheory.montecarlo.sources import DraftSource, EnumeratedSource, LanguageModelSource
from spectheory.pair import ModelPair
from spectheory.resolve import find_verifier
from spectheory.validate import check_confidence, check_count, check_num_drafts
from spectheory.verifier import Verifier

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair, Restriction, SamplingOptions

Progress = Callable[[int, int], None]
"""Called with (draws done, draws in all); one draw is K paths after one prompt."""


@dataclass(frozen=True)
class Simulation:
    """The estimates of one run and its settings.

    Attributes:
        estimates: one per verifier, in the order asked for.
        settings: everything that determines the numbers.
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
            "estimates": [asdict(entry) for entry in self.estimates],
        }


def simulate(
    pair: LanguageModelPair,
    prompts: Sequence[str | Sequence[int]],
    verifiers: Sequence[str | Any],
    *,
    num_drafts: int = 1,
    draft_length: int = 8,
    samples: int = 16,
    seed: int = 0,
    options: SamplingOptions | None = None,
    restriction: Restriction | None = None,
    confidence: float = 0.95,
    batch_size: int = 8,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Estimate the block efficiency of verifiers on language models.

    Args:
        pair: the loaded models.
        prompts: texts or token ids; the strata.
        verifiers: names, ``"package.module:attribute"``, or objects with ``outcome``.
        num_drafts: K i.i.d. paths per draw.
        draft_length: L.
        samples: draws per prompt, at least 2 (an interval needs a variance).
        seed: the same seed gives the same numbers on one device.
        options: temperature, top-k, top-p, applied to both models.
        restriction: keep m tokens per context, so that the pair can also be enumerated.
        confidence: level of the intervals.
        batch_size: prompts drafted for at a time.
        checkpoint: a file that keeps what is finished; a later run with the same settings goes on
            from it, so that neither Ctrl-C nor a kill loses a finished batch of prompts.
        progress: called with (draws done, draws in all).

    Raises:
        InvalidInputError: a setting is out of range, or the checkpoint belongs to other settings.
    """
    from spectheory.models import SamplingOptions

    options = options or SamplingOptions()
    source = LanguageModelSource(
        pair, prompts, Iid(check_num_drafts(num_drafts)), draft_length, options, restriction, batch_size
    )
    run = _Run(source, verifiers, samples, seed, confidence)
    settings = {
        "num_drafts": source.process.num_drafts,
        "draft_length": source.draft_length,
        "prompts": len(prompts),
        "samples_per_prompt": run.samples,
        "seed": run.seed,
        "confidence": run.confidence,
        "batch_size": int(batch_size),
        **asdict(options),
        "restriction": None if restriction is None else asdict(restriction),
        "device": str(pair.device),
    }
    return run.simulation(settings, checkpoint, progress)


def simulate_enumerated(
    pair: ModelPair,
    verifiers: Sequence[str | Any],
    *,
    num_drafts: int = 1,
    samples: int = 10_000,
    seed: int = 0,
    device: str = "cpu",
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Simulation:
    """Estimate the block efficiency of verifiers on an enumerated pair, in float64.

    Args:
        pair: the models; drafts are sampled from its tables.
        verifiers, num_drafts, seed, confidence, progress: as in ``simulate``.
        samples: drafted K-tuples, at least 2.
        device: ``"cpu"`` runs on numpy, ``"cuda"`` on torch.

    Raises:
        InvalidInputError: a setting is out of range.

    Example:
        >>> from spectheory import instances
        >>> estimate = simulate_enumerated(instances.two_token(2), ["block"]).estimates[0]
        >>> estimate.interval[0] < 20 / 9 < estimate.interval[1]
        True
    """
    source = EnumeratedSource(pair, Iid(check_num_drafts(num_drafts)), device)
    run = _Run(source, verifiers, samples, seed, confidence)
    settings = {
        "num_drafts": source.process.num_drafts,
        "draft_length": pair.draft_length,
        "samples": run.samples,
        "seed": run.seed,
        "confidence": run.confidence,
        "device": device,
    }
    return run.simulation(settings, None, progress)


class _Run:
    """One source, the verifiers bound to its process, and how often to draw."""

    def __init__(
        self,
        source: DraftSource,
        verifiers: Sequence[str | Any],
        samples: int,
        seed: int,
        confidence: float,
    ) -> None:
        self.source = source
        self.judges = _bound(verifiers, source.process)
        self.samples = check_count("samples", samples, at_least=2, advice="an interval needs a variance")
        self.seed = check_count("seed", seed, at_least=0)
        self.confidence = check_confidence(confidence)

    def simulation(
        self, settings: dict[str, Any], path: str | Path | None, progress: Progress | None
    ) -> Simulation:
        """Draw batch after batch, going on from the checkpoint at ``path``."""
        settings = {"verifiers": list(self.judges), **settings}
        finished, interrupted, done = Checkpoint(path, settings), False, 0
        total = self.samples * sum(self.source.strata_per_batch)

        def step(draws: int) -> None:
            nonlocal done
            done += draws
            if progress:
                progress(done, total)

        try:
            for batch, strata in enumerate(self.source.strata_per_batch):
                if batch in finished.tallies:
                    step(self.samples * strata)
                else:
                    finished.add(batch, self._tallies(batch, strata, step))
        except KeyboardInterrupt:
            if not finished.tallies:
                raise
            interrupted = True
        estimates = [
            estimate(name, [sums[name] for sums in finished.tallies.values()], self.samples, self.confidence)
            for name in self.judges
        ]
        return Simulation(estimates, settings, interrupted)

    def _tallies(self, batch: int, strata: int, step: Callable[[int], None]) -> dict[str, Tally]:
        """All draws of one batch of strata.  Seeds depend on (seed, batch, round) alone."""
        source = self.source
        tallies = {name: Tally.zeros(strata, source.draft_length) for name in self.judges}
        draw = source.open_batch(batch)
        for number, first in enumerate(range(0, self.samples, source.draws_at_once)):
            draws = min(source.draws_at_once, self.samples - first)
            draft_seed, verify_seed = _seeds(self.seed, batch, number)
            drafted = draw(source.generator(draft_seed), draws)
            for name, verifier in self.judges.items():
                outcome = verifier.outcome(*drafted)
                # The same generator state for every verifier: common random numbers.
                sample = outcome.sample(source.generator(verify_seed))
                tallies[name].add(
                    _to_numpy(outcome.expected_tokens()).reshape(draws, strata),
                    _to_numpy(sample.length).reshape(draws, strata),
                    _to_numpy(outcome.length_probs()).reshape(draws, strata, source.draft_length + 1),
                )
            step(draws * strata)
        return tallies


def _bound(verifiers: Sequence[str | Any], process: DraftProcess) -> Mapping[str, Verifier]:
    """The verifiers by name, each looked up once and bound to the process."""
    if isinstance(verifiers, str) or not verifiers:
        raise InvalidInputError(f"verifiers must be a list of at least one verifier, got {verifiers!r}")
    judges: dict[str, Verifier] = {}
    for entry in verifiers:
        verifier = find_verifier(entry)
        if verifier.name in judges:
            raise InvalidInputError(f"verifier {verifier.name!r} is listed twice; list each once")
        judges[verifier.name] = verifier.bind(process)
    return judges


def _seeds(seed: int, batch: int, number: int) -> Iterator[int]:
    state = np.random.SeedSequence([seed, batch, number]).generate_state(2, dtype=np.uint32)
    return iter(int(value) for value in state)


def _to_numpy(array: Array) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()
