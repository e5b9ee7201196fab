"""The program of a node of pooled selection."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from spectheory.foundation.errors import SolverError
from spectheory.optima.pooling import pooling_program
from spectheory.optima.solving.float_solver import solve

RNG = np.random.default_rng(7)
PROBS = np.array([0.5, 0.2, 0.3])
MASSES = RNG.dirichlet(np.ones(3), size=3) * np.array([[0.9], [0.5], [0.2]])
SETS = np.array(list(product((False, True), repeat=3)))
HIT = (SETS * np.array([0.2, 0.3, 0.5])).sum(axis=1)
LIMITS = np.stack([[1 - (1 - HIT) ** n for n in (1, 2, 3)], [HIT / n for n in (1, 2, 3)]])


def served(masses: np.ndarray, limits: np.ndarray) -> Any:
    """A minimum cut for every event."""
    return (PROBS * (limits + (masses[:, None] * ~SETS).sum(axis=-1)).min(axis=-1)).sum()


def chosen(floor: float) -> tuple[float, np.ndarray]:
    solution = solve(pooling_program(PROBS, MASSES, SETS, LIMITS, floor))
    point = np.array(list(solution.primal.values())[: MASSES.size]).reshape(MASSES.shape)
    return solution.value, point / PROBS[:, None]


def test_the_value_is_the_mean_of_minimum_cuts() -> None:
    """At the point chosen, which keeps the sums over tokens and over events, and serves more."""
    value, masses = chosen(0)
    np.testing.assert_allclose(masses.sum(axis=1), MASSES.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(PROBS @ masses, PROBS @ MASSES, atol=1e-9)
    assert value == pytest.approx(np.mean([served(masses, limits) for limits in LIMITS]), abs=1e-9)
    assert value > np.mean([served(MASSES, limits) for limits in LIMITS]) + 1e-4


def test_partner_a_floor_that_cannot_be_served_is_refused() -> None:
    """What is served in scenario 0 is feasible as a floor; all mass is not."""
    value, masses = chosen(0)
    assert chosen(served(masses, LIMITS[0]) - 1e-9)[0] == pytest.approx(value, abs=1e-7)
    with pytest.raises(SolverError, match="infeasible"):
        chosen(1)
