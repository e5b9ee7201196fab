"""Assertions and quantities that several tests of output laws share."""

from __future__ import annotations

import numpy as np

from spectheory.exact.law import OutputLaw


def budget_masses(law: OutputLaw) -> list[np.ndarray]:
    """D(a) p(a) for depths 0..L."""
    depths = range(law.pair.draft_length + 1)
    return [law.node_budgets[depth] * law.pair.target_path_probs(depth) for depth in depths]


def assert_same_law(one: OutputLaw, other: OutputLaw, tolerance: float = 0.0) -> None:
    assert len(one.masses) == len(other.masses)
    for mass, expected in zip(one.masses, other.masses, strict=True):
        assert mass.shape == expected.shape
        assert np.abs(mass - expected).max() <= tolerance
