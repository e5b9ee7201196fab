"""Run a user's sampler on drafts from language models: one run replaces the law over all runs.

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
    """The output of one run: a path, the number of its accepted tokens, and the token after them."""

    path_index: int
    length: int
    token: int


class RunsOnTuples(ABC):
    """A sampler that can be run on one tuple of drafts.  Its ``outcome`` is the law of these runs."""

    @abstractmethod
    def run_on_tuple(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray, generator: Any
    ) -> SamplerRun:
        """Run once on paths [K, L], target_rows [K, L+1, V] and draft_rows [K, L, V]."""


class SamplerGenerator(np.random.Generator):
    """The generator given to a sampler: numpy's, with the method ``choices`` of Python's ``random`` added."""

    choices = random.Random.choices


@dataclass(frozen=True)
class RunOutcome(Outcome):
    """An outcome that puts all probability on one completed run per batch element.

    ``sample`` returns that run and draws nothing.  Averaged over runs, the outcome is the sampler's law, so
    every estimate from it is unbiased.

    Attributes:
        drawn: the outputs of the runs.
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
    """Compute the outcome of a verifier.  For a user's sampler, run it once per batch element instead.

    Args:
        paths, target_rows, draft_rows: as for ``Verifier.outcome``, with one leading axis.
        generator: as for ``Outcome.sample``.  A run depends on its drafts and on one uniform number.

    Raises:
        InvalidOutcomeError: the sampler fails, or does not return drafted tokens and one more token.
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
    """True if ``from_sampler`` made the verifier from a user's sampler."""
    return isinstance(getattr(verifier, "user_object", None), RunsOnTuples)


def check_runs(verifier: Verifier, drafted: Sequence[Array], generator: Callable[[], Any]) -> None:
    """Raise ``InvalidOutcomeError`` if two runs with equal drafts and generators have different outputs.

    Args:
        drafted: paths, target_rows, draft_rows.
        generator: returns a generator in the same state at every call.
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
    """Copy an array into numpy for user code.  Floats become float64, and converted rows are normalised."""
    if isinstance(array, np.ndarray):
        copy = array.astype(np.float64) if array.dtype.kind == "f" else array.copy()
    else:
        copy = (array.double() if array.is_floating_point() else array).detach().cpu().numpy().copy()
    return copy if copy.dtype.kind != "f" or copy.itemsize == array.itemsize else normalise(copy)
