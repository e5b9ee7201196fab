"""The laws of the numbers that are handed out, and comparisons that count atoms."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch

from audit_support import assert_drawn_from, law
from spectheory.auditing.tape.atoms import GRIDS, Number, uniform_number
from spectheory.auditing.tape.decisions import HiddenRandomnessError, NotEnumerableError, Tape, all_runs
from spectheory.auditing.tape.logarithms import clocks_of_row
from spectheory.auditing.tape.races import (
    ArgmaxWinner,
    Exponential,
    ExponentialDraw,
    Race,
    UndefinedDrawError,
)


@pytest.mark.parametrize("dtype", GRIDS, ids=str)
def test_a_grid_holds_what_torch_draws(dtype: torch.dtype) -> None:
    """Every number drawn is the value of an atom, zero is as likely as its atoms, one is never drawn."""
    grid = GRIDS[dtype]
    numbers = torch.rand(100_000, dtype=dtype, generator=torch.Generator().manual_seed(3)).double()
    assert numbers.min() >= 0
    assert numbers.max() < 1
    if not grid.wrapped:
        assert bool((numbers * grid.atoms % 1 == 0).all())
        return
    atoms = (numbers * grid.atoms).long() + grid.wrapped
    values = [grid.value(int(atom)) for atom in atoms[:500]]
    assert values == numbers[:500].tolist()
    zeros = int((numbers == 0).sum())
    expected = 100_000 * (grid.wrapped + 1) / grid.atoms
    assert abs(zeros - expected) < 5 * expected**0.5


@pytest.mark.parametrize("dtype", GRIDS, ids=str)
def test_values_never_fall(dtype: torch.dtype) -> None:
    """Between neighbours at both ends and around where numbers that were rounded to 1 are put."""
    grid = GRIDS[dtype]
    atoms = [0, 1, 2, grid.wrapped, grid.wrapped + 1, grid.atoms // 3, grid.atoms - 2, grid.atoms - 1]
    values = [grid.value(atom) for atom in sorted(atoms)]
    assert values == sorted(values)
    assert values[-1] < 1


@pytest.mark.parametrize(
    ("dtype", "threshold", "at_most", "below"),
    [
        (torch.float32, 0.25, 2**22 + 1, 2**22),
        (torch.float32, 0.0, 1, 0),
        (torch.float64, 0.5, 2**52 + 1, 2**52),
        (torch.bfloat16, 0.0, 2**15 + 1, 0),
    ],
)
def test_a_comparison_counts_atoms(dtype: torch.dtype, threshold: float, at_most: int, below: int) -> None:
    """P(u <= t) and P(u < t), exactly; they differ by the atom at t."""
    atoms = GRIDS[dtype].atoms
    assert law(lambda: bool(torch.rand((), dtype=dtype) <= threshold))[True] == Fraction(at_most, atoms)
    assert law(lambda: bool(torch.rand((), dtype=dtype) < threshold)).get(True, 0) == Fraction(below, atoms)


def test_torchs_own_rounding_moves_the_threshold() -> None:
    """u * q < p is not u < p / q: the number of atoms is that of the rounded products."""
    p, q = torch.tensor(0.3), torch.tensor(0.7)
    found = law(lambda: bool(torch.rand(()) * q < p))[True]
    atoms = torch.arange(2**24, dtype=torch.float32) / 2**24
    assert found == Fraction(int((atoms * q < p).sum()), 2**24)


def test_products_are_enclosed() -> None:
    """P(u v < 1/2) = (1 + log 2) / 2; boxes that are undecided bound the error of what is found."""
    approximate = Fraction(0)
    total = Fraction(0)
    for probability, (truth, unsure) in all_runs(_product_below_half):
        total += probability * truth
        approximate += probability * unsure
    exact = Fraction(0.5 + 0.5 * 0.6931471805599453)
    assert abs(total - exact) <= approximate < Fraction(1, 2 ** (Tape.box_bits // 2 - 2))
    assert approximate > 0


def _product_below_half(tape: Tape) -> tuple[bool, bool]:
    u, v = (uniform_number(tape, torch.float64).sources[0] for _ in range(2))
    truth = Number((u, v), lambda x, y: x * y < 0.5).decide()
    return truth, tape.is_approximate


def test_the_first_of_exponential_numbers() -> None:
    """Proportional to the rates; each runs two races, and the last of them is not asked for."""
    rates = [Fraction(1, 2), Fraction(0), Fraction(3, 2)]
    tape = Tape([])
    clocks = [ExponentialDraw(Exponential(tape), rate, inverse=True) for rate in rates]
    race = Race(clocks, largest=True)
    assert (ArgmaxWinner(race, lambda lane: lane + 7).decide(), race.winner()) == (7, 0)
    assert [branch.shares for branch in tape.made] == [(Fraction(1, 4), 0, Fraction(3, 4))]
    assert Race(clocks, largest=True).winner() == 0
    assert tape.made[-1].shares == (1, 0, 0)
    with pytest.raises(NotEnumerableError, match="three races"):
        Race(clocks, largest=True).winner()
    with pytest.raises(NotEnumerableError, match="the last of"):
        Race(clocks, largest=False).winner()
    with pytest.raises(UndefinedDrawError, match="with a negative weight"):
        Race([ExponentialDraw(Exponential(tape), Fraction(-1))], largest=False).winner()


def test_ordinary_numbers_in_a_race_cannot_win() -> None:
    """Below 0 beside values that are 0 one might come first by its place: that is refused."""
    tape = Tape([])
    running, standing = (ExponentialDraw(Exponential(tape), Fraction(rate), inverse=True) for rate in (2, 0))
    clocks = clocks_of_row([-1.0, running, 0.0], largest=True)
    assert [clock.rate for clock in clocks] == [0, 2, 0]
    assert Race(clocks, largest=True).candidates == [1]
    assert [clock.rate for clock in clocks_of_row([0.0, standing], largest=True)] == [0, 0]
    assert clocks_of_row([running, float("inf")], largest=False)[1].rate == 0
    for row, largest in (([-1.0, standing], True), ([0.5, running], True), ([running, 9.0], False)):
        with pytest.raises(NotEnumerableError, match="with other numbers"):
            clocks_of_row(row, largest)
    with pytest.raises(NotEnumerableError, match="only a race is followed"):
        clocks_of_row([uniform_number(tape, torch.float32), 0.0], largest=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((6, 1, 3, 10), (1, 6, 1, 0)),
        ((3, 1, 0, 2), (1, 1, 5, 4)),
        ((2, 3, 0, 0), (0, 0, 1, 2)),
        ((1, 2, 3, 4), (4, 3, 2, 1)),
    ],
)
def test_two_races_with_the_same_numbers(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    """The joint law of both winners is that of drawn numbers; the partner, that of independent races, is not.

    Standardised by the law, each of the 16 frequencies of 200 000 draws lies within 4.5.
    """

    def both(tape: Tape) -> tuple[int, ...]:
        sources = [Exponential(tape) for _ in first]
        races = [
            [ExponentialDraw(s, Fraction(r)) for s, r in zip(sources, rates, strict=True)]
            for rates in (first, second)
        ]
        return tuple(Race(clocks, largest=False).winner() for clocks in races)

    law = np.zeros((4, 4))
    for probability, winners in all_runs(both):
        law[winners] += float(probability)
    assert abs(law.sum() - 1) < 1e-12
    draws = 200_000
    noise = np.random.default_rng(1).exponential(size=(draws, 4))
    winners = [(np.array(rates) / noise).argmax(1) for rates in (first, second)]
    found = np.bincount(4 * winners[0] + winners[1], minlength=16).reshape(4, 4)

    def is_close(law: np.ndarray) -> bool:
        spread = np.sqrt(draws * law * (1 - law)) + 1e-9
        return bool((abs(found - draws * law) <= 4.5 * spread).all())

    assert is_close(law)
    independent = np.outer(law.sum(1), np.array(second) / sum(second))
    assert is_close(independent) is (not set(np.flatnonzero(first)) & set(np.flatnonzero(second)))


def test_a_race_after_a_second_race_is_refused() -> None:
    """Also where it has no number of the second one: that has told something of the first one's numbers."""

    def winner(*sources: Exponential) -> int:
        return Race([ExponentialDraw(source) for source in sources], largest=False).winner()

    tape = Tape([])
    one, two, three, four = (Exponential(tape) for _ in range(4))
    winner(one, two)
    winner(two, three)
    for others in ((one, four), (three, four), (one, two)):
        with pytest.raises(NotEnumerableError, match="three races"):
            winner(*others)
    apart, beside, both = ((Exponential(tape), Exponential(tape)) for _ in range(3))
    winner(*apart)
    winner(*beside)
    with pytest.raises(NotEnumerableError, match="three races"):
        winner(apart[0], beside[0])
    assert winner(*both) == 0


def test_clocks_of_one_number_come_in_the_order_of_their_rates() -> None:
    """Noise that all tokens share decides nothing: the largest weight wins, the first of equal ones."""
    tape = Tape([])
    source, other = Exponential(tape), Exponential(tape)
    assert Race([ExponentialDraw(source, Fraction(r)) for r in (1, 3, 3)], largest=False).winner() == 1
    assert [branch.shares for branch in tape.made] == [(0, 1, 0)]
    Race(
        [
            ExponentialDraw(other),
            ExponentialDraw(Exponential(tape), Fraction(2)),
            ExponentialDraw(other, Fraction(4)),
        ],
        largest=False,
    ).winner()
    assert tape.made[-1].shares == (0, Fraction(1, 3), Fraction(2, 3))


def test_a_race_of_zeros_is_won_by_the_first() -> None:
    """As ``argmax`` of equal values says; no number is drawn."""
    tape = Tape([])
    clocks = [ExponentialDraw(Exponential(tape), Fraction(0), inverse=True) for _ in range(3)]
    assert Race(clocks, largest=True).winner() == int((torch.zeros(3) / torch.rand(3)).argmax()) == 0
    assert tape.made == []


def test_scaling_a_clock_scales_its_rate() -> None:
    """E / w and w / E have the rate w, E w and E^-1 / w the rate 1 / w; nothing is divided by zero."""
    clock, three = ExponentialDraw(Exponential(Tape([]))), Fraction(3)
    assert [clock.over(three).rate, clock.inverted().times(three).rate] == [3, 3]
    assert [clock.times(three).rate, clock.inverted().over(three).rate] == [1 / three, 1 / three]
    with pytest.raises(NotEnumerableError, match="scales an exponential random number by 0"):
        clock.times(Fraction(0))


def test_a_dtype_without_a_law_is_refused() -> None:
    with pytest.raises(NotEnumerableError, match=r"torch\.complex64 is not known"):
        uniform_number(Tape([]), torch.complex64)


def test_partner_a_wrong_grid_is_seen() -> None:
    """Coins of bfloat16 are not drawn from the law of coins of float32."""
    draw = lambda: float(torch.rand((), dtype=torch.bfloat16) <= 2**-7)  # noqa: E731
    assert_drawn_from(draw, law(draw), draws=20_000)
    with pytest.raises(AssertionError):
        assert_drawn_from(draw, law(lambda: float(torch.rand(()) <= 2**-7)), draws=20_000)


@pytest.mark.parametrize("is_true", [lambda v: 0.3 < v < 0.5, lambda v: v < 0.2 or 0.6 < v < 0.9])
def test_a_comparison_that_is_not_monotone_is_refused(is_true: Callable[[float], bool]) -> None:
    def run(tape: Tape) -> bool:
        (source,) = uniform_number(tape, torch.float64).sources
        return Number((source,), lambda value: torch.tensor(is_true(value))).decide()

    with pytest.raises(NotEnumerableError, match="that is not monotone"):
        list(all_runs(run))


def comparisons(tape: Tape, threshold: float) -> int:
    """How often a number is compared to find out whether it is below the threshold."""
    made = []

    def is_below(value: float) -> bool:
        made.append(value)
        return value < threshold

    Number(uniform_number(tape, torch.float32).sources, is_below).decide()
    return len(made)


def test_a_decision_that_is_made_again_is_found_where_it_was() -> None:
    """Two steps and probes instead of one per bit; the partner: where it is another one all bits are asked,
    and the tape sees it.
    """
    first = Tape([])
    assert comparisons(first, 0.3) > 24
    assert comparisons(Tape(first.made), 0.3) < 12
    assert first.made[0].shares[0] == Fraction(5_033_165, 2**24)
    with pytest.raises(HiddenRandomnessError, match="randomness other than the given generator"):
        comparisons(Tape(first.made), 0.6)
