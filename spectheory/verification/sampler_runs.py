"""Run a user's sampler where drafts come from models: one run takes the place of the law of all its runs.

A certificate follows every case of a sampler's random numbers.  On language models there are too many cases.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import Array, like_rows, namespace, normalise, ones_like
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.verification.captured_rounds import captured_outcome
from spectheory.verification.outcome import Outcome, Sample, Stop, uniform_numbers
from spectheory.verification.user import users_code
from spectheory.verification.verifier import Verifier


class SamplerRun(NamedTuple):
    """The output of one run: a path, how many of its tokens were accepted, and the token behind them."""

    path_index: int
    length: int
    token: int


class RunsOnTuples(ABC):
    """A sampler that can be run on one tuple of drafts, and whose ``outcome`` is the law of these runs."""

    @abstractmethod
    def run_on_tuple(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray, generator: Any
    ) -> SamplerRun:
        """One run on paths [K, L], target_rows [K, L+1, V] and draft_rows [K, L, V]."""


class SamplerGenerator(np.random.Generator):
    """The generator that a sampler draws from: numpy's, with ``choices`` of Python's ``random`` too."""

    choices = random.Random.choices


@dataclass(frozen=True)
class RunOutcome(Outcome):
    """The output of one run per batch element, as a law with all mass there; sampling it draws nothing.

    Its mean over runs is the law of the sampler, so every estimate from it is unbiased.

    Attributes:
        drawn: the runs.
    """

    drawn: Sample = field(kw_only=True)

    def sample(self, generator: Any) -> Sample:
        return self.drawn

    def sample_stop(self, generator: Any) -> Stop:
        one = ones_like(self.stop_probs[..., 0, 0])
        return Stop(self.drawn.path_index, self.drawn.length, one, one)


def outcome_or_run(
    verifier: Verifier, paths: Array, target_rows: Array, draft_rows: Array, generator: Any
) -> Outcome:
    """The outcome of a verifier; of a user's sampler one run per batch element.

    Args:
        paths, target_rows, draft_rows: as ``Verifier.outcome`` takes them, with one leading axis.
        generator: as ``Outcome.sample`` takes it; a run depends on one uniform number of it and its drafts.

    Raises:
        InvalidOutcomeError: the sampler fails, or returns something other than drafted tokens and one more.
    """
    if not runs_a_sampler(verifier):
        return captured_outcome(verifier, paths, target_rows, draft_rows)
    sampler = verifier.user_object  # type: ignore[attr-defined]
    seeds = (uniform_numbers(generator, target_rows[:, 0, 0])[:, 0] * 2.0**53).tolist()
    runs = []
    for seed, *drafted in zip(seeds, *map(numpy_copy, (paths, target_rows, draft_rows)), strict=True):
        with users_code(f"sampler {verifier.name!r}", getattr(sampler, "sampler", None), may_refuse=True):
            runs.append(sampler.run_on_tuple(*drafted, SamplerGenerator(np.random.PCG64(int(seed)))))
    table = np.zeros(tuple(target_rows.shape[:-1]))
    tokens = np.zeros((len(runs), target_rows.shape[-1]))
    for number, one in enumerate(runs):
        table[number, one.path_index, one.length] = tokens[number, one.token] = 1
    xp = namespace(paths)
    drawn = Sample(*(xp.asarray(part, device=paths.device) for part in np.array(runs).T))
    row = like_rows(tokens, target_rows)
    return RunOutcome(like_rows(table, target_rows), lambda path_index, length: row, drawn=drawn)


def runs_a_sampler(verifier: Verifier) -> bool:
    """True if the verifier is a user's sampler, which ``from_sampler`` made a verifier."""
    return isinstance(getattr(verifier, "user_object", None), RunsOnTuples)


def check_runs(verifier: Verifier, drafted: Sequence[Array], generator: Callable[[], Any]) -> None:
    """Refuse a sampler whose output is not a function of the drafts and of its generator.

    Args:
        drafted: paths, target_rows, draft_rows.
        generator: gives a generator in the same state at every call.
    """
    paths, target, draft = drafted
    runs = (outcome_or_run(verifier, paths, target, draft, generator()).sample(None) for _ in range(2))
    fields = zip(*((run.path_index, run.length, run.token) for run in runs), strict=True)
    if any(bool((first != again).any()) for first, again in fields):
        raise InvalidOutcomeError(
            f"sampler {verifier.name!r} returned other tokens with the same drafts and random numbers; draw "
            "all random numbers from the generator that it is given, and keep nothing between calls"
        )


def numpy_copy(array: Array) -> np.ndarray:
    """A copy for a user's code that computes with numpy; probabilities in float64, normalised there."""
    if isinstance(array, np.ndarray):
        copy = array.astype(np.float64) if array.dtype.kind == "f" else array.copy()
    else:
        copy = (array.double() if array.is_floating_point() else array).detach().cpu().numpy().copy()
    return copy if copy.dtype.kind != "f" or copy.itemsize == array.itemsize else normalise(copy)
