"""Acceptance over the draft temperature: the slope against differences, and the best of a list."""

import numpy as np
import pytest

from coupled_drafts import acceptance_at_temperature


def test_the_slope_is_that_of_the_value() -> None:
    random, step = np.random.default_rng(0), 1e-6
    rows = random.dirichlet(np.full(5, 0.5), (2, 40))
    for drafts in (1, 2, 4):
        for temperature in (0.4, 1.0, 1.7):
            at = [acceptance_at_temperature(*rows, drafts, temperature + d)[0] for d in (-step, step)]
            slope = acceptance_at_temperature(*rows, drafts, temperature)[1]
            assert np.allclose(slope, (at[1] - at[0]) / (2 * step), atol=1e-6)
            # The partner: the slope of another number of drafts is another one.
            assert not np.allclose(slope, acceptance_at_temperature(*rows, drafts + 1, temperature)[1])


def test_a_draft_that_is_too_sharp_is_heated() -> None:
    """q in proportion to p^2 is p at temperature 2, where every draft is accepted."""
    target = np.random.default_rng(2).dirichlet(np.ones(6), 5)
    sharp = target**2 / (target**2).sum(axis=1, keepdims=True)
    (colder, rises), (best, _), (_, falls) = (
        acceptance_at_temperature(target, sharp, 1, at) for at in (1.0, 2.0, 4.0)
    )
    assert best == pytest.approx(1)
    assert (colder < 0.99).all()
    assert (rises > 0).all()
    assert (falls < 0).all()
