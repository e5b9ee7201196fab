"""Optimal acceptance as a function of the draft model's temperature, with its slope."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import normalise
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_positive
from spectheory.optima.one_position.min_cut import check_rows, optimal_acceptance


class TemperedAcceptance(NamedTuple):
    """Optimal acceptance with drafts from a tempered row.

    Attributes:
        value: α_K, [...].
        slope: dα_K/dT, [...]; at a temperature where the minimum cut changes, that of the cut found.
    """

    value: np.ndarray
    slope: np.ndarray

    def __bool__(self) -> bool:
        raise no_verdict(self, ".value")


def acceptance_at_temperature(
    target_probs: Sequence[Any] | np.ndarray,
    draft_probs: Sequence[Any] | np.ndarray,
    num_drafts: int,
    temperature: float,
) -> TemperedAcceptance:
    """The optimal acceptance of K i.i.d. drafts from the row q_T in proportion to q^(1/T), and its slope.

    Source: theory.md Statement 3.14.  With the minimum cut H of ``optimal_acceptance`` at q_T,

        dα_K/dT = K q_T(H)^(K-1) / T² · Σ_{x∈H} q_T(x) (log q(x) - Σ_y q_T(y) log q(y)).

    Args:
        target_probs, draft_probs: float rows [..., V].
        num_drafts: K.
        temperature: T, of the draft model alone; the target's row stays as it is.

    Raises:
        InvalidInputError: rows that are not probabilities over one vocabulary, or a number out of range.

    Example:
        >>> found = acceptance_at_temperature([0.5, 0.3, 0.2], [0.8, 0.15, 0.05], 2, 1.0)
        >>> f"{found.value:.6f} {found.slope:.6f}"
        '0.860000 0.498849'
    """
    temperature = check_positive("temperature", temperature)
    target, draft = (rows.astype(float) for rows in check_rows(target_probs, draft_probs))
    possible = draft > 0
    logs = np.log(np.where(possible, draft, 1.0))
    scaled = np.where(possible, logs / temperature, -np.inf)
    tempered = normalise(np.exp(scaled - scaled.max(axis=-1, keepdims=True)))
    value, tokens = optimal_acceptance(target, tempered, num_drafts)
    mean = (tempered * logs).sum(axis=-1, keepdims=True)
    rise = (np.where(tokens, tempered, 0.0) * (logs - mean)).sum(axis=-1)
    rise = rise / temperature / temperature  # T² may be 0 in float64
    inside = np.where(tokens, tempered, 0.0).sum(axis=-1)
    return TemperedAcceptance(np.asarray(value), num_drafts * inside ** (num_drafts - 1) * rise)
