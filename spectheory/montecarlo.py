"""Monte Carlo: the block efficiency of verifiers on drafted paths, counted and Rao-Blackwellised.

All verifiers judge the same drafted paths with the same random numbers.  Given the paths the law
of (tau, Y) is known in closed form, so each verifier gets two estimates of E[tau + 1]:

- *Rao-Blackwell*: the mean of E[tau + 1 | drafts], no verifier randomness left;
- *counted*: the mean of a sampled tau + 1, which checks the sampling itself.

Prompts are strata: the estimand is the mean over the given prompts, and the interval covers the
randomness of drafting and verifying, not the choice of prompts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from spectheory.arrays import Array
from spectheory.drafts import Iid
from spectheory.errors import InvalidInputError
from spectheory.outcome import sample_rows
from spectheory.pair import ModelPair
from spectheory.resolve import find_verifier
from spectheory.validate import check_num_drafts
from spectheory.verifier import Verifier

if TYPE_CHECKING:
    from spectheory.models import LanguageModelPair, Restriction, SamplingOptions

ProgressCallback = Callable[[int, int], None]


class Drafts(NamedTuple):
    """One drafted K-tuple of paths for each of B strata, as a verifier takes them."""

    paths: Array
    target_rows: Array
    draft_rows: Array


class DraftSource(Protocol):
    """Where drafted paths come from: strata in batches, each batch drawn from again and again."""

    draft_length: int
    draws_at_once: int

    @property
    def strata_per_batch(self) -> Sequence[int]:
        """How many strata each batch has."""

    def open_batch(self, batch: int) -> Callable[[Any], Drafts]:
        """A function (generator) -> Drafts with leading axis strata (times ``draws_at_once``)."""

    def generator(self, seed: int) -> Any:
        """A random generator of the kind and device that the drafts are drawn with."""


@dataclass(frozen=True)
class Estimate:
    """What Monte Carlo says of one verifier.

    Attributes:
        verifier: its name.
        block_efficiency: Rao-Blackwell estimate of E[tau + 1], tokens per target call.
        interval: confidence interval of it.
        standard_error: of it.
        counted, counted_interval, counted_standard_error: the same by counting sampled tokens.
        length_probs: Rao-Blackwell estimate of P(tau = i), i = 0..L.
        counted_length_probs: the same by counting.
        samples: drafted K-tuples the estimate rests on.
    """

    verifier: str
    block_efficiency: float
    interval: tuple[float, float]
    standard_error: float
    counted: float
    counted_interval: tuple[float, float]
    counted_standard_error: float
    length_probs: list[float]
    counted_length_probs: list[float]
    samples: int


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
            "estimates": [asdict(estimate) for estimate in self.estimates],
        }


@dataclass
class _Tally:
    """Sums of one verifier over the draws of the strata of one batch."""

    expected: np.ndarray  # sum of E[tau + 1 | drafts], [strata]
    expected_squared: np.ndarray
    counted: np.ndarray
    counted_squared: np.ndarray
    length_probs: np.ndarray  # [strata, L+1]
    counted_lengths: np.ndarray

    @staticmethod
    def zeros(strata: int, draft_length: int) -> _Tally:
        flat, wide = np.zeros(strata), np.zeros((strata, draft_length + 1))
        return _Tally(flat, flat.copy(), flat.copy(), flat.copy(), wide, wide.copy())

    def add(self, expected: np.ndarray, lengths: np.ndarray, length_probs: np.ndarray) -> None:
        """Add draws: expected [draws, strata], sampled tau [draws, strata], P(tau) [.., L+1]."""
        self.expected += expected.sum(axis=0)
        self.expected_squared += (expected**2).sum(axis=0)
        self.counted += (lengths + 1).sum(axis=0)
        self.counted_squared += ((lengths + 1) ** 2).sum(axis=0)
        self.length_probs += length_probs.sum(axis=0)
        self.counted_lengths += (lengths[..., None] == np.arange(length_probs.shape[-1])).sum(axis=0)

    @staticmethod
    def join(tallies: Sequence[_Tally]) -> _Tally:
        return _Tally(
            *(np.concatenate([getattr(t, name) for t in tallies]) for name in _Tally.__annotations__)
        )


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
    progress: ProgressCallback | None = None,
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

    chosen = options or SamplingOptions()
    source = _LanguageModelSource(pair, prompts, num_drafts, draft_length, chosen, restriction, batch_size)
    settings = {
        "num_drafts": num_drafts,
        "draft_length": draft_length,
        "prompts": len(prompts),
        "samples_per_prompt": samples,
        "seed": seed,
        "confidence": confidence,
        "batch_size": batch_size,
        **asdict(chosen),
        "restriction": None if restriction is None else asdict(restriction),
        "device": str(pair.device),
    }
    return _run(source, verifiers, samples, seed, confidence, settings, checkpoint, progress)


def simulate_enumerated(
    pair: ModelPair,
    verifiers: Sequence[str | Any],
    *,
    num_drafts: int = 1,
    samples: int = 10_000,
    seed: int = 0,
    device: str = "cpu",
    confidence: float = 0.95,
    progress: ProgressCallback | None = None,
) -> Simulation:
    """Estimate the block efficiency of verifiers on an enumerated pair, in float64.

    Args:
        pair: the models; drafts are sampled from its tables.
        verifiers, num_drafts, seed, confidence, progress: as in ``simulate``.
        samples: drafted K-tuples.
        device: ``"cpu"`` runs on numpy, ``"cuda"`` on torch.

    Example:
        >>> from spectheory import instances
        >>> estimate = simulate_enumerated(instances.two_token(2), ["block"]).estimates[0]
        >>> estimate.interval[0] < 20 / 9 < estimate.interval[1]
        True
    """
    check_num_drafts(num_drafts)
    source = _EnumeratedSource(pair, num_drafts, device, draws_at_once=min(2_000, samples))
    rounds, rest = divmod(samples, source.draws_at_once)
    if rest:
        raise InvalidInputError(f"samples must be at most 2000 or a multiple of 2000, got {samples}")
    settings = {
        "num_drafts": num_drafts,
        "draft_length": pair.draft_length,
        "samples": samples,
        "seed": seed,
        "confidence": confidence,
        "device": device,
    }
    return _run(source, verifiers, rounds, seed, confidence, settings, None, progress)


class _LanguageModelSource:
    """Prompts in batches; both models read a batch once and draft from it ``samples`` times."""

    draws_at_once = 1

    def __init__(
        self,
        pair: LanguageModelPair,
        prompts: Sequence[str | Sequence[int]],
        num_drafts: int,
        draft_length: int,
        options: SamplingOptions,
        restriction: Restriction | None,
        batch_size: int,
    ) -> None:
        if not prompts:
            raise InvalidInputError("no prompts to draft from; give at least one")
        if batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1, got {batch_size}")
        self.pair, self.num_drafts, self.draft_length = pair, num_drafts, draft_length
        self.options, self.restriction = options, restriction
        self.batches = [prompts[i : i + batch_size] for i in range(0, len(prompts), batch_size)]

    @property
    def strata_per_batch(self) -> list[int]:
        return [len(batch) for batch in self.batches]

    def open_batch(self, batch: int) -> Callable[[Any], Drafts]:
        from spectheory.models import draft_and_score, prefill

        prefilled = prefill(self.pair, self.batches[batch])
        restriction = self._restriction_of(batch)

        def draw(generator: Any) -> Drafts:
            drafted = draft_and_score(
                prefilled, self.num_drafts, self.draft_length, generator, self.options, restriction
            )
            return Drafts(drafted.paths, drafted.target_rows, drafted.draft_rows)

        return draw

    def _restriction_of(self, batch: int) -> Restriction | None:
        """The restriction of this batch: its own prompts' token sets where there is one per prompt."""
        restriction = self.restriction
        if restriction is None or restriction.token_sets is None or len(restriction.token_sets) == 1:
            return restriction
        from spectheory.models import Restriction

        start = sum(self.strata_per_batch[:batch])
        return Restriction.fixed(*restriction.token_sets[start : start + self.strata_per_batch[batch]])

    def generator(self, seed: int) -> Any:
        return self.pair.generator(seed)


class _EnumeratedSource:
    """One stratum, an enumerated pair; many draws at a time."""

    strata_per_batch: Sequence[int] = (1,)

    def __init__(self, pair: ModelPair, num_drafts: int, device: str, draws_at_once: int) -> None:
        if device not in ("cpu", "cuda"):
            raise InvalidInputError(f"device must be 'cpu' or 'cuda', got {device!r}")
        self.pair, self.num_drafts = pair.to_float(), num_drafts
        self.draft_length, self.device, self.draws_at_once = pair.draft_length, device, draws_at_once

    def open_batch(self, batch: int) -> Callable[[Any], Drafts]:
        target = [self._to_device(level) for level in self.pair.target]
        draft = [self._to_device(level) for level in self.pair.draft]

        def draw(generator: Any) -> Drafts:
            shape = (self.draws_at_once, self.num_drafts)
            context = self._to_device(np.zeros(shape, dtype=np.int64))
            tokens, target_rows, draft_rows = [], [target[0][context]], []
            for depth in range(self.draft_length):
                draft_rows.append(draft[depth][context])
                tokens.append(sample_rows(draft_rows[-1], generator))
                context = context * self.pair.vocab_size + tokens[-1]
                target_rows.append(target[depth + 1][context])
            stack = _stack_function(context)
            return Drafts(stack(tokens, -1), stack(target_rows, -2), stack(draft_rows, -2))

        return draw

    def _to_device(self, array: np.ndarray) -> Array:
        if self.device == "cpu":
            return array
        import torch

        return torch.as_tensor(array, device=self.device)

    def generator(self, seed: int) -> Any:
        if self.device == "cpu":
            return np.random.default_rng(seed)
        import torch

        return torch.Generator(device=self.device).manual_seed(seed)


def _stack_function(like: Array) -> Callable[[list[Array], int], Array]:
    from spectheory.arrays import namespace

    xp = namespace(like)
    return lambda arrays, axis: xp.stack(arrays, axis=axis)


def _run(
    source: DraftSource,
    verifiers: Sequence[str | Any],
    rounds: int,
    seed: int,
    confidence: float,
    settings: dict[str, Any],
    checkpoint: str | Path | None,
    progress: ProgressCallback | None,
) -> Simulation:
    judges = _judges(verifiers, Iid(check_num_drafts(settings["num_drafts"])))
    if rounds * source.draws_at_once < 2:
        raise InvalidInputError(f"samples must be at least 2 for an interval, got {rounds}")
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie between 0 and 1, got {confidence}")
    settings = {"verifiers": list(judges), **settings}
    finished = _Checkpoint(checkpoint, settings)
    interrupted = False
    try:
        for batch, strata in enumerate(source.strata_per_batch):
            if batch not in finished.tallies:
                done = batch * rounds
                step = _progress_of(progress, done, rounds * len(source.strata_per_batch))
                finished.add(batch, _tally_batch(source, batch, strata, judges, rounds, seed, step))
            elif progress:
                progress((batch + 1) * rounds, rounds * len(source.strata_per_batch))
    except KeyboardInterrupt:
        if not finished.tallies:
            raise
        interrupted = True
    estimates = [
        _estimate(
            name,
            [tallies[name] for tallies in finished.tallies.values()],
            rounds * source.draws_at_once,
            confidence,
        )
        for name in judges
    ]
    return Simulation(estimates, settings, interrupted)


def _judges(verifiers: Sequence[str | Any], drafts: Iid) -> dict[str, Verifier]:
    if isinstance(verifiers, str) or not verifiers:
        raise InvalidInputError(f"verifiers must be a list of at least one verifier, got {verifiers!r}")
    judges: dict[str, Verifier] = {}
    for entry in verifiers:
        verifier = find_verifier(entry)
        if verifier.name in judges:
            raise InvalidInputError(f"verifier {verifier.name!r} is listed twice; list each once")
        judges[verifier.name] = verifier.bind(drafts)
    return judges


def _progress_of(progress: ProgressCallback | None, done: int, total: int) -> Callable[[int], None]:
    return (lambda count: progress(done + count, total)) if progress else (lambda count: None)


def _tally_batch(
    source: DraftSource,
    batch: int,
    strata: int,
    judges: dict[str, Verifier],
    rounds: int,
    seed: int,
    step: Callable[[int], None],
) -> dict[str, _Tally]:
    """All draws of one batch of strata.  Seeds depend on (seed, batch, round) alone."""
    tallies = {name: _Tally.zeros(strata, source.draft_length) for name in judges}
    draw = source.open_batch(batch)
    for number in range(rounds):
        draft_seed, verify_seed = _seeds(seed, batch, number)
        drafts = draw(source.generator(draft_seed))
        for name, verifier in judges.items():
            outcome = verifier.outcome(*drafts)
            # The same generator state for every verifier: common random numbers.
            sample = outcome.sample(source.generator(verify_seed))
            tallies[name].add(
                _to_numpy(outcome.expected_tokens()).reshape(-1, strata),
                _to_numpy(sample.length).reshape(-1, strata),
                _to_numpy(outcome.length_probs()).reshape(-1, strata, source.draft_length + 1),
            )
        step(number + 1)
    return tallies


def _seeds(seed: int, batch: int, number: int) -> Iterator[int]:
    state = np.random.SeedSequence([seed, batch, number]).generate_state(2, dtype=np.uint32)
    return iter(int(value) for value in state)


def _to_numpy(array: Array) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()


def _estimate(name: str, tallies: Sequence[_Tally], draws: int, confidence: float) -> Estimate:
    total = _Tally.join(tallies)
    mean, error = _stratified(total.expected, total.expected_squared, draws)
    counted, counted_error = _stratified(total.counted, total.counted_squared, draws)
    width = NormalDist().inv_cdf((1 + confidence) / 2)
    return Estimate(
        verifier=name,
        block_efficiency=mean,
        interval=(mean - width * error, mean + width * error),
        standard_error=error,
        counted=counted,
        counted_interval=(counted - width * counted_error, counted + width * counted_error),
        counted_standard_error=counted_error,
        length_probs=(total.length_probs.mean(axis=0) / draws).tolist(),
        counted_length_probs=(total.counted_lengths.mean(axis=0) / draws).tolist(),
        samples=draws * len(total.expected),
    )


def _stratified(sums: np.ndarray, squares: np.ndarray, draws: int) -> tuple[float, float]:
    """Mean over strata of the stratum means, and its standard error.

    Var = sum_s (sample variance of stratum s / draws) / strata^2.
    """
    means = sums / draws
    # Rounding may leave a variance of zero slightly negative.
    variances = np.maximum(squares - draws * means**2, 0) / (draws - 1)
    return float(means.mean()), float(np.sqrt((variances / draws).sum()) / len(sums))


@dataclass
class _Checkpoint:
    """Finished batches, and the file they are kept in."""

    path: str | Path | None
    settings: dict[str, Any]
    tallies: dict[int, dict[str, _Tally]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path is None:
            return
        if not Path(self.path).parent.is_dir():  # better now than after the first batch
            raise InvalidInputError(
                f"the checkpoint {self.path} lies in a folder that does not exist; make it"
            )
        if not Path(self.path).exists():
            return
        try:
            document = json.loads(Path(self.path).read_text(encoding="utf-8"))
            settings, batches = document["settings"], document["batches"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{self.path} is not a checkpoint of a simulation: {error!r}") from error
        if settings != json.loads(json.dumps(self.settings)):
            different = sorted(
                key
                for key in self.settings.keys() | settings.keys()
                if settings.get(key) != json.loads(json.dumps(self.settings.get(key)))
            )
            raise InvalidInputError(
                f"{self.path} belongs to a run with other settings ({', '.join(different)}); "
                "name another checkpoint file, or remove this one"
            )
        for batch, by_verifier in batches.items():
            self.tallies[int(batch)] = {
                name: _Tally(**{key: np.array(value) for key, value in sums.items()})
                for name, sums in by_verifier.items()
            }

    def add(self, batch: int, tallies: dict[str, _Tally]) -> None:
        """Keep a finished batch; the file is replaced in one step, so a kill leaves it whole."""
        self.tallies[batch] = tallies
        if self.path is None:
            return
        batches = {
            str(number): {
                name: {key: value.tolist() for key, value in vars(tally).items()}
                for name, tally in by_verifier.items()
            }
            for number, by_verifier in self.tallies.items()
        }
        part = Path(self.path).with_name(Path(self.path).name + ".part")
        part.write_text(json.dumps({"settings": self.settings, "batches": batches}), encoding="utf-8")
        part.replace(self.path)
