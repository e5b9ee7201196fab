"""From draws to estimates: sums by stratum, means over strata, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import Array, namespace
from spectheory.foundation.results import no_verdict
from spectheory.simulation.intervals import bounded_mean_interval

_NUMPY = np.zeros(0)


@dataclass(frozen=True)
class Estimate:
    """The Monte Carlo estimates of one verifier.

    Attributes:
        verifier: its name.
        lossless: whether this package says so; of a user's verifier False if it says so, otherwise None,
            because no estimate can tell.
        num_drafts: K, the number of drafted paths; one value serves every K for a verifier of one path.
        block_efficiency: Rao-Blackwell estimate of E[tau + 1], tokens per target call.
        interval: confidence interval of it.
        standard_error: of it.
        counted, counted_interval, counted_standard_error: the same by counting sampled tokens.
        length_probs: Rao-Blackwell estimate of P(tau = i), i = 0..L.
        counted_length_probs: the same by counting.
        samples: drafted K-tuples the estimate rests on.
        gain, gain_interval: what the verifier earns more than the one it is compared with, by pairs
            (``paired_gain``); None for that one, or where there are no prompts to pair by.
    """

    verifier: str
    lossless: bool | None
    num_drafts: int
    block_efficiency: float
    interval: tuple[float, float]
    standard_error: float
    counted: float
    counted_interval: tuple[float, float]
    counted_standard_error: float
    length_probs: list[float]
    counted_length_probs: list[float]
    samples: int
    gain: float | None = None
    gain_interval: tuple[float, float] | None = None

    def __bool__(self) -> bool:
        raise no_verdict(self, ".block_efficiency")


@dataclass
class Tally:
    """Sums of one verifier over the draws of some strata, in float64, on numpy or on a device.

    Attributes:
        expected, expected_squared, expected_cubed: of E[tau + 1 | drafts] and its powers, [strata].
        counted, counted_squared: of the sampled tau + 1, [strata].
        length_probs: of P(tau = i | drafts), [strata, L+1].
        counted_lengths: how often tau = i was sampled, [strata, L+1].
    """

    expected: Array
    expected_squared: Array
    expected_cubed: Array
    counted: Array
    counted_squared: Array
    length_probs: Array
    counted_lengths: Array

    @staticmethod
    def zeros(strata: int, draft_length: int, like: Array = _NUMPY) -> Tally:
        """Nothing drawn yet, in arrays of the kind and on the device of ``like``."""
        xp = namespace(like)

        def zeros(*shape: int) -> Array:
            return xp.zeros(shape, dtype=xp.float64, device=like.device)

        wide = (strata, draft_length + 1)
        return Tally(
            zeros(strata), zeros(strata), zeros(strata), zeros(strata), zeros(strata), zeros(*wide),
            zeros(*wide),
        )  # fmt: skip

    def add(self, expected: Array, lengths: Array, length_probs: Array, counted: Array | None = None) -> None:
        """Add draws: expected [draws, strata], sampled tau [draws, strata], P(tau) [.., L+1].

        ``counted``, [draws, strata], says which of them count; None: all.
        """
        for name, values in self._values(expected, lengths, length_probs):
            sums = getattr(self, name)
            if counted is not None:
                values = values * (counted[..., None] if values.ndim > counted.ndim else counted)
            sums += values.sum(0)

    def add_calls(self, stratum: Array, expected: Array, lengths: Array, length_probs: Array) -> None:
        """Add single draws and their strata, as numpy arrays; all [n] but P(tau), which is [n, L+1]."""
        for name, values in self._values(expected, lengths, length_probs):
            np.add.at(getattr(self, name), stratum, values)

    @staticmethod
    def _values(expected: Array, lengths: Array, length_probs: Array) -> Iterator[tuple[str, Array]]:
        """The terms that draws add to every sum."""
        xp = namespace(expected)
        expected, counted = xp.astype(expected, xp.float64), lengths + 1
        yield "expected", expected
        yield "expected_squared", expected**2
        yield "expected_cubed", expected**3
        yield "counted", counted
        yield "counted_squared", counted**2
        yield "length_probs", length_probs
        numbers = xp.arange(length_probs.shape[-1], device=lengths.device)
        yield "counted_lengths", lengths[..., None] == numbers

    @property
    def draws(self) -> np.ndarray:
        """How many draws each stratum had, [strata]; numpy."""
        return self.counted_lengths.sum(axis=-1)

    def to_document(self) -> dict[str, Any]:
        """The sums as JSON holds them, without rounding; numpy."""
        return {name: sums.tolist() for name, sums in vars(self).items()}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Tally:
        return Tally(**{name: np.array(sums, dtype=float) for name, sums in document.items()})

    def to_numpy(self) -> Tally:
        return Tally(*(_to_numpy(getattr(self, entry.name)) for entry in fields(Tally)))

    @staticmethod
    def join(tallies: Sequence[Tally]) -> Tally:
        return Tally(*(np.concatenate([getattr(t, name.name) for t in tallies]) for name in fields(Tally)))

    def summed_by(self, labels: Sequence[int]) -> Tally:
        """The sums of all strata with equal labels, numpy; itself where all differ."""
        _, first, places = np.unique(labels, return_index=True, return_inverse=True)
        if len(first) == len(labels):
            return self
        found = Tally.zeros(len(first), self.length_probs.shape[-1] - 1)
        for entry in fields(Tally):
            np.add.at(getattr(found, entry.name), places, getattr(self, entry.name))
        return found


Subject = tuple[str, bool | None, int]
"""``verifier``, ``lossless`` and ``num_drafts`` of an ``Estimate``."""


class Mean(NamedTuple):
    """An estimated mean, its standard error and its interval."""

    value: float
    error: float
    interval: tuple[float, float]


def estimate(
    subject: Subject, tallies: Sequence[Tally], draws: int | np.ndarray, confidence: float
) -> Estimate:
    total = Tally.join(tallies)
    draws = np.broadcast_to(draws, total.expected.shape)
    weights = 1 / (len(draws) * draws)

    def mean(sums: np.ndarray, squares: np.ndarray, cubes: np.ndarray) -> Mean:
        value, error = stratified(sums, squares, draws)
        third = third_moment(sums, squares, cubes, draws, weights)
        ends = bounded_mean_interval(
            value, error, third, sums / draws, draws, weights, _token_range(total), confidence
        )
        return Mean(value, error, ends)

    cubes = np.arange(1, total.counted_lengths.shape[-1] + 1) ** 3
    return _estimate(
        subject,
        total,
        draws,
        mean(total.expected, total.expected_squared, total.expected_cubed),
        mean(total.counted, total.counted_squared, total.counted_lengths @ cubes),
    )


def estimate_over_texts(subject: Subject, tallies: Sequence[Tally], confidence: float) -> Estimate:
    """The estimates of one verifier over whole texts: tokens per call of the target, all calls together.

    A text without a call, because it ended before the first one that counts, is no cluster.
    """
    (total,) = _with_calls(Tally.join(tallies))
    calls = total.draws

    def mean(sums: np.ndarray) -> Mean:
        value, error = clustered(sums, calls)
        ends = bounded_mean_interval(
            value, error, None, sums / calls, calls, 1 / calls.sum(), _token_range(total), confidence,
            degrees_of_freedom=max(len(calls) - 1, 1),
        )  # fmt: skip
        return Mean(value, error, ends)

    return _estimate(subject, total, calls, mean(total.expected), mean(total.counted))


def _with_calls(*tallies: Tally) -> list[Tally]:
    """The sums of the strata of which all have draws."""
    drawn = np.all([tally.draws > 0 for tally in tallies], axis=0)
    return [Tally(*(getattr(tally, entry.name)[drawn] for entry in fields(Tally))) for tally in tallies]


def _token_range(total: Tally) -> tuple[float, float]:
    return 1.0, float(total.length_probs.shape[-1])


def paired_gain(
    tallies: Sequence[Tally], others: Sequence[Tally], confidence: float, factor: float = 1.0
) -> Mean:
    """How many more tokens per call one verifier earns than another, by Rao-Blackwell, paired by prompt.

    The difference f R - R' of two means over all calls.  Its residuals are those of ``clustered`` for both,

        r_s = f (S_s - R n_s) / sum n - (S'_s - R' n'_s) / sum n',

    so that randomness which both share, of prompts, texts and drafts, cancels.  A draw of the difference lies
    in [f - L' - 1, f (L + 1) - 1]; the interval is that of ``intervals.py`` with the variance
    n / (n - 1) sum_s r_s^2 over n prompts, with an event of one call, and Student's t.  As for texts, its
    coverage tends to the confidence as the number of prompts grows, and prompts of a kind that is not among
    them are not allowed for.

    Args:
        tallies, others: of the two, by prompt.
        confidence: level of the interval.
        factor: f, how many calls of the other verifier cost as much as one of the first.

    Example:
        >>> def calls(*tokens):  # two calls of each of two prompts
        ...     tally, number = Tally.zeros(2, 3), np.repeat([0, 1], 2)
        ...     tally.add_calls(number, np.array(tokens), np.zeros(4, dtype=int), np.ones((4, 4)) / 4)
        ...     return [tally]
        >>> gain = paired_gain(calls(2.0, 2.5, 3.0, 3.5), calls(1.5, 2.0, 2.5, 3.0), 0.95)
        >>> gain.value, gain.error  # always half a token more, whatever the prompt
        (0.5, 0.0)
    """
    total, other = _with_calls(Tally.join(tallies), Tally.join(others))
    calls, other_calls = total.draws, other.draws
    mean, residuals = _residuals(total.expected, calls)
    other_mean, other_residuals = _residuals(other.expected, other_calls)
    (_, most), (_, other_most) = _token_range(total), _token_range(other)
    gain, error = factor * mean - other_mean, _clustered_error(factor * residuals - other_residuals)
    ends = bounded_mean_interval(
        gain, error, None, factor * total.expected / calls - other.expected / other_calls, calls,
        1 / min(calls.sum(), other_calls.sum()), (factor - other_most, factor * most - 1),
        confidence, degrees_of_freedom=max(len(calls) - 1, 1),
    )  # fmt: skip
    return Mean(gain, error, ends)


def are_narrow(
    estimates: Sequence[Estimate], width: float | None = None, gain_width: float | None = None
) -> bool:
    """Whether every interval, by either way of counting, and of every gain, is at most so wide; None: any."""
    asked = [(width, ends) for entry in estimates for ends in (entry.interval, entry.counted_interval)]
    asked += [(gain_width, entry.gain_interval) for entry in estimates if entry.gain_interval is not None]
    return all(most is None or high - low <= most for most, (low, high) in asked)


def _estimate(subject: Subject, total: Tally, draws: np.ndarray, expected: Mean, counted: Mean) -> Estimate:
    """From the means by both ways of counting.

    P(tau) is over all draws, which is the mean over strata where each has as many.
    """
    name, lossless, num_drafts = subject
    return Estimate(
        verifier=name,
        lossless=lossless,
        num_drafts=num_drafts,
        block_efficiency=expected.value,
        interval=expected.interval,
        standard_error=expected.error,
        counted=counted.value,
        counted_interval=counted.interval,
        counted_standard_error=counted.error,
        length_probs=(total.length_probs.sum(axis=0) / draws.sum()).tolist(),
        counted_length_probs=(total.counted_lengths.sum(axis=0) / draws.sum()).tolist(),
        samples=int(draws.sum()),
    )


def clustered(sums: np.ndarray, draws: np.ndarray) -> tuple[float, float]:
    """Mean of all draws, and its standard error where the draws of one cluster depend on one another.

    R = sum_s S_s / sum_s n_s over n clusters; Var = n / (n - 1) sum_s (S_s - R n_s)^2 / (sum_s n_s)^2, the
    linearised variance of a ratio, with n - 1 degrees of freedom.  One cluster has none.

    Args:
        sums: of the draws, [clusters].
        draws: how many, [clusters].

    Example:
        >>> mean, error = clustered(np.array([4.0, 6.0, 2.0]), np.array([2.0, 2.0, 2.0]))  # means 2, 3, 1
        >>> mean, round(error, 6)
        (2.0, 0.57735)
    """
    mean, residuals = _residuals(sums, draws)
    return mean, _clustered_error(residuals)


def _residuals(sums: np.ndarray, draws: np.ndarray) -> tuple[float, np.ndarray]:
    """R of ``clustered``, and what every cluster moves it by."""
    mean = sums.sum() / draws.sum()
    return float(mean), (sums - mean * draws) / draws.sum()


def _clustered_error(residuals: np.ndarray) -> float:
    count = len(residuals)
    return math.sqrt(count / (count - 1) * (residuals**2).sum()) if count > 1 else math.inf


def stratified(sums: np.ndarray, squares: np.ndarray, draws: int | np.ndarray) -> tuple[float, float]:
    """Mean over strata of the stratum means, and its standard error.

    Var = sum_s (sample variance of stratum s / its draws) / strata^2.

    Args:
        sums, squares: of the draws and of their squares, [strata].
        draws: per stratum, at least 2; one number or [strata].

    Example:
        >>> mean, error = stratified(np.array([3.0, 5.0]), np.array([5.0, 13.0]), 2)  # draws 1, 2 and 2, 3
        >>> mean, round(error, 6)
        (2.0, 0.353553)
    """
    means = sums / draws
    # Rounding may leave a variance of zero slightly negative.
    variances = np.maximum(squares - draws * means**2, 0) / (draws - 1)
    return float(means.mean()), float(np.sqrt((variances / draws).sum()) / len(sums))


def third_moment(
    sums: np.ndarray, squares: np.ndarray, cubes: np.ndarray, draws: np.ndarray, weights: np.ndarray
) -> float | None:
    """T of ``intervals.py``, free of bias: the sum over all draws of (weight x deviation from the mean)^3.

    Args:
        sums, squares, cubes: of the draws and of their powers, [strata].
        draws: per stratum, [strata].
        weights: of a single draw in the mean over strata, [strata].

    Returns:
        T; None if a stratum has fewer than three draws.
    """
    if (draws < 3).any():
        return None
    means = sums / draws
    deviations = cubes - 3 * means * squares + 2 * draws * means**3
    return float((weights**3 * draws**2 / ((draws - 1) * (draws - 2)) * deviations).sum())


def _to_numpy(array: Array) -> np.ndarray:
    return array if isinstance(array, np.ndarray) else array.cpu().numpy()
