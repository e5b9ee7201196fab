"""A second race of the same exponential numbers: its law given the winner of the first one."""

from fractions import Fraction

import numpy as np
import pytest

from spectheory.auditing.tape.races import second_race

RNG = np.random.default_rng(5)
RATES = [
    tuple([Fraction(int(rate)) for rate in RNG.integers(0, 5, size)] for _ in range(2))
    for size in (2, 3, 3, 4, 4, 4, 5, 5)
]


@pytest.mark.parametrize(("before", "rates"), RATES)
def test_over_the_winners_of_the_first_the_second_is_a_race(
    before: list[Fraction], rates: list[Fraction]
) -> None:
    """Σ_d w_d / W P(j | d) = r_j / Σ r, exactly; numbers that were not in the first race are among them."""
    if not sum(before) or not sum(rates):
        pytest.skip("no race")
    total = sum(before)
    mean = [Fraction(0)] * len(rates)
    for winner, weight in enumerate(before):
        if weight:
            law = second_race(
                before, [place == winner for place in range(len(rates))], Fraction(total), rates
            )
            assert sum(law) == 1
            assert min(law) >= 0
            mean = [mass + weight / total * part for mass, part in zip(mean, law, strict=True)]
    assert mean == [rate / sum(rates) for rate in rates]


def test_against_draws() -> None:
    """The law given each winner, by 10^5 draws; the partner, a race of new numbers, is far from it."""
    before, rates = np.array([3.0, 0.5, 1.5, 5.0]), np.array([0.5, 3.0, 0.5, 1.0])
    numbers = np.random.default_rng(1).exponential(size=(100_000, 4))
    first, second = (numbers / before).argmin(1), (numbers / rates).argmin(1)
    for winner in range(4):
        counts = np.bincount(second[first == winner], minlength=4)
        exact = [
            float(prob)
            for prob in second_race(
                [Fraction(rate) for rate in before],
                [place == winner for place in range(4)],
                Fraction(10),
                [Fraction(rate) for rate in rates],
            )
        ]
        assert abs(counts / counts.sum() - exact).max() < 4 / np.sqrt(counts.sum())
        assert abs(rates / rates.sum() - exact).max() > 0.1
