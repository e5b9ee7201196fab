"""Compute estimates from draws: sums by stratum, means over strata, and intervals."""

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
    """Monte Carlo estimates of one verifier.

    Attributes:
        verifier: name of the verifier.
        lossless: for a verifier of the package, whether it is lossless.  For a user's verifier, False if it
            declares this and otherwise None, because an estimate cannot decide it.
        num_drafts: K, the number of drafted paths.  A single-path verifier has one estimate for every K.
        block_efficiency: Rao-Blackwell estimate of E[tau + 1], tokens per target call.
        interval: confidence interval of ``block_efficiency``.
        standard_error: standard error of ``block_efficiency``.
        counted, counted_interval, counted_standard_error: the same three, from counted sampled tokens.
        length_probs: Rao-Blackwell estimate of P(tau = i), i = 0..L.
        counted_length_probs: the same, from counted samples.
        samples: number of drafted K-tuples.
        gain, gain_interval: block efficiency minus the base verifier's, paired by prompt
            (``paired_gain``).  None for the base verifier, or without several prompts to pair.
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

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"<{self.verifier}: {self.block_efficiency:.4f} ({low:.4f} to {high:.4f}) tokens per target call>"
        )


@dataclass
class Tally:
    """Sums over the draws of some strata for one verifier, in float64, in numpy or on a device.

    Attributes:
        expected, expected_squared, expected_cubed: [strata], sums of E[tau + 1 | drafts] and of its powers.
        counted, counted_squared: [strata], sums of the sampled tau + 1 and of its square.
        length_probs: [strata, L+1], sums of P(tau = i | drafts).
        counted_lengths: [strata, L+1], number of draws with tau = i.
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
        """Make a tally without draws, in the array library and on the device of ``like``."""
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

        If ``counted``, [draws, strata], is given, only the draws where it is True are added.
        """
        for name, values in self._values(expected, lengths, length_probs):
            sums = getattr(self, name)
            if counted is not None:
                values = values * (counted[..., None] if values.ndim > counted.ndim else counted)
            sums += values.sum(0)

    def add_calls(self, stratum: Array, expected: Array, lengths: Array, length_probs: Array) -> None:
        """Add n draws with their strata, as numpy arrays.  All are [n], except P(tau), which is [n, L+1]."""
        for name, values in self._values(expected, lengths, length_probs):
            np.add.at(getattr(self, name), stratum, values)

    @staticmethod
    def _values(expected: Array, lengths: Array, length_probs: Array) -> Iterator[tuple[str, Array]]:
        """Yield the name of each sum and the terms that the draws add to it."""
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
        """Number of draws of each stratum, [strata]; for numpy tallies."""
        return self.counted_lengths.sum(axis=-1)

    def to_document(self) -> dict[str, Any]:
        """Convert the sums to JSON values, without rounding.  Requires numpy arrays."""
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
        """Add the sums of strata with equal labels; for numpy.  If all labels differ, return this tally."""
        _, first, places = np.unique(labels, return_index=True, return_inverse=True)
        if len(first) == len(labels):
            return self
        found = Tally.zeros(len(first), self.length_probs.shape[-1] - 1)
        for entry in fields(Tally):
            np.add.at(getattr(found, entry.name), places, getattr(self, entry.name))
        return found


Subject = tuple[str, bool | None, int]
"""The fields ``verifier``, ``lossless`` and ``num_drafts`` of an ``Estimate``."""


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
    """Estimate tokens per call of the target for one verifier, over all calls of whole texts.

    Texts that ended before the first counted call are left out.
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
    """Keep the strata that have draws in all tallies."""
    drawn = np.all([tally.draws > 0 for tally in tallies], axis=0)
    return [Tally(*(getattr(tally, entry.name)[drawn] for entry in fields(Tally))) for tally in tallies]


def _token_range(total: Tally) -> tuple[float, float]:
    return 1.0, float(total.length_probs.shape[-1])


def paired_gain(
    tallies: Sequence[Tally], others: Sequence[Tally], confidence: float, factor: float = 1.0
) -> Mean:
    """Estimate the difference in tokens per call of two verifiers, Rao-Blackwellised and paired by prompt.

    The difference is f R - R', with R and R' the means over all calls.  The residual of prompt s is

        r_s = f (S_s - R n_s) / sum n - (S'_s - R' n'_s) / sum n',

    as in ``clustered``.  In it shared randomness (of prompts, texts and drafts) cancels.  A draw of the
    difference lies in [f - L' - 1, f (L + 1) - 1].  We compute the interval of ``intervals.py`` with the
    variance n / (n - 1) sum_s r_s^2 over n prompts, Student's t, and one call as the added event.  Its
    coverage tends to the confidence as the number of prompts grows.  It makes no allowance for kinds of
    prompts that are not among them.

    Args:
        tallies, others: tallies of the two verifiers, by prompt.
        confidence: level of the interval.
        factor: f, number of calls of the other verifier that cost as much as one call of the first.

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
    """Whether all intervals are at most ``width`` wide, and all intervals of gains at most ``gain_width``.

    None sets no limit.
    """
    asked = [(width, ends) for entry in estimates for ends in (entry.interval, entry.counted_interval)]
    asked += [(gain_width, entry.gain_interval) for entry in estimates if entry.gain_interval is not None]
    return all(most is None or high - low <= most for most, (low, high) in asked)


def _estimate(subject: Subject, total: Tally, draws: np.ndarray, expected: Mean, counted: Mean) -> Estimate:
    """Build an estimate from the Rao-Blackwell mean and the counted mean.

    P(tau) is a mean over all draws.  It equals the mean over strata if all have equally many draws.
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
    """Compute the mean of all draws, and its standard error if draws within a cluster are dependent.

    R = sum_s S_s / sum_s n_s over n clusters; Var = n / (n - 1) sum_s (S_s - R n_s)^2 / (sum_s n_s)^2, the
    linearised variance of a ratio, with n - 1 degrees of freedom.  For one cluster the error is infinite.

    Args:
        sums: [clusters], sums of the draws.
        draws: [clusters], numbers of draws.

    Example:
        >>> mean, error = clustered(np.array([4.0, 6.0, 2.0]), np.array([2.0, 2.0, 2.0]))  # means 2, 3, 1
        >>> mean, round(error, 6)
        (2.0, 0.57735)
    """
    mean, residuals = _residuals(sums, draws)
    return mean, _clustered_error(residuals)


def _residuals(sums: np.ndarray, draws: np.ndarray) -> tuple[float, np.ndarray]:
    """Compute the mean R of ``clustered``, and each cluster's residual (S_s - R n_s) / Σ n, [clusters]."""
    mean = sums.sum() / draws.sum()
    return float(mean), (sums - mean * draws) / draws.sum()


def _clustered_error(residuals: np.ndarray) -> float:
    count = len(residuals)
    return math.sqrt(count / (count - 1) * (residuals**2).sum()) if count > 1 else math.inf


def stratified(sums: np.ndarray, squares: np.ndarray, draws: int | np.ndarray) -> tuple[float, float]:
    """Compute the mean over strata of the stratum means, and its standard error.

    Var = sum_s (sample variance of stratum s / its draws) / strata^2.

    Args:
        sums, squares: [strata], sums of the draws and of their squares.
        draws: number of draws per stratum, at least 2; one number or [strata].

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
    """Unbiased estimate of T of ``intervals.py``: the sum over draws of (weight x deviation from the mean)^3.

    Args:
        sums, squares, cubes: [strata], sums of the draws and of their powers.
        draws: [strata], numbers of draws.
        weights: [strata], weight of a single draw in the mean over strata.

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
