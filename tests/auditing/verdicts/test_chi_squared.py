"""The samples that χ² tests need."""

from fractions import Fraction

import numpy as np

from spectheory.auditing.verdicts.chi_squared import noncentrality, samples_needed


def test_no_test_needs_fewer_samples_than_the_distance_allows() -> None:
    """The power of n samples is at most the level plus 1 - (1 - d)^n; the χ² formula alone promises more."""
    found = np.array([0.5 - 1e-7, 0.5, 1e-7])
    wanted = np.array([0.5 - 2e-12, 0.5, 2e-12])
    needed = samples_needed(found, wanted, Fraction(0))
    assert needed is not None
    assert 0.01 + 1 - (1 - 1e-7) ** needed >= 0.99
    assert noncentrality(2, 0.01, 0.99) / ((found - wanted) ** 2 / wanted).sum() < needed / 100
