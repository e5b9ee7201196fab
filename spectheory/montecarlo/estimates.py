"""From draws to estimates: sums by stratum, means over strata, and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist

import numpy as np


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


@dataclass
class Tally:
    """Sums of one verifier over the draws of some strata.

    Attributes:
        expected, expected_squared: of E[tau + 1 | drafts], [strata].
        counted, counted_squared: of the sampled tau + 1, [strata].
        length_probs: of P(tau = i | drafts), [strata, L+1].
        counted_lengths: how often tau = i was sampled, [strata, L+1].
    """

    expected: np.ndarray
    expected_squared: np.ndarray
    counted: np.ndarray
    counted_squared: np.ndarray
    length_probs: np.ndarray
    counted_lengths: np.ndarray

    @staticmethod
    def zeros(strata: int, draft_length: int) -> Tally:
        """Nothing drawn yet."""
        flat, wide = np.zeros(strata), np.zeros((strata, draft_length + 1))
        return Tally(flat, flat.copy(), flat.copy(), flat.copy(), wide, wide.copy())

    def add(self, expected: np.ndarray, lengths: np.ndarray, length_probs: np.ndarray) -> None:
        """Add draws: expected [draws, strata], sampled tau [draws, strata], P(tau) [.., L+1]."""
        self.expected += expected.sum(axis=0)
        self.expected_squared += (expected**2).sum(axis=0)
        self.counted += (lengths + 1).sum(axis=0)
        self.counted_squared += ((lengths + 1) ** 2).sum(axis=0)
        self.length_probs += length_probs.sum(axis=0)
        self.counted_lengths += (lengths[..., None] == np.arange(length_probs.shape[-1])).sum(axis=0)

    @staticmethod
    def join(tallies: Sequence[Tally]) -> Tally:
        """The strata of all tallies side by side."""
        return Tally(*(np.concatenate([getattr(t, name.name) for t in tallies]) for name in fields(Tally)))


def estimate(verifier: str, tallies: Sequence[Tally], draws: int, confidence: float) -> Estimate:
    """The estimates of one verifier.

    Args:
        verifier: its name.
        tallies: of all strata.
        draws: per stratum, at least 2.
        confidence: level of the intervals, which are normal approximations.
    """
    total = Tally.join(tallies)
    mean, error = stratified(total.expected, total.expected_squared, draws)
    counted, counted_error = stratified(total.counted, total.counted_squared, draws)
    width = NormalDist().inv_cdf((1 + confidence) / 2)
    return Estimate(
        verifier=verifier,
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


def stratified(sums: np.ndarray, squares: np.ndarray, draws: int) -> tuple[float, float]:
    """Mean over strata of the stratum means, and its standard error.

    Var = sum_s (sample variance of stratum s / draws) / strata^2.

    Args:
        sums, squares: of the draws and of their squares, [strata].
        draws: per stratum.

    Example:
        >>> mean, error = stratified(np.array([3.0, 5.0]), np.array([5.0, 13.0]), 2)  # draws 1, 2 and 2, 3
        >>> mean, round(error, 6)
        (2.0, 0.353553)
    """
    means = sums / draws
    # Rounding may leave a variance of zero slightly negative.
    variances = np.maximum(squares - draws * means**2, 0) / (draws - 1)
    return float(means.mean()), float(np.sqrt((variances / draws).sum()) / len(sums))
