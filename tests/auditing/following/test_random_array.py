"""Random lanes of arrays: every operation of Triton's interpreter on them, against torch's and by hand."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from audit_support import law
from spectheory.auditing.following.names import begin
from spectheory.auditing.following.random_array import RandomArray, lanes_of, random_array, settled
from spectheory.auditing.following.random_tensor import RandomTensor, entries
from spectheory.auditing.tape.atoms import uniform_number
from spectheory.auditing.tape.decisions import NotEnumerableError, Tape, all_runs
from spectheory.auditing.tape.races import ArgmaxWinner, Exponential, ExponentialDraw, Race


def lanes(memory: np.ndarray, drawn: torch.Tensor) -> Any:
    """The numbers of a tensor in the first lanes of an array."""
    assert isinstance(drawn, RandomTensor)
    numbers = entries(drawn)
    return random_array(memory, np.arange(memory.size) < len(numbers), numbers.__getitem__)


def uniform(number: int = 1) -> RandomArray:
    """Numbers of ``torch.rand`` in the first lanes of four."""
    found: RandomArray = lanes(np.zeros(4, np.float32), torch.rand(number))
    return found


def noise(rates: tuple[float, ...]) -> RandomArray:
    """Weights times inverse exponential numbers, and a lane that is none."""
    clocks = lanes(np.zeros(len(rates) + 1, np.float32), torch.empty(len(rates)).exponential_().reciprocal())
    return np.float32([*rates, 0]) * clocks


def arithmetic() -> tuple[bool, ...]:
    first, second = uniform(1)[:1], uniform(1)[:1]
    return (
        bool(((np.float32(2) * first + np.float32(1)) / np.float32(4) <= np.float32(0.5))[0]),
        bool((np.log(second) < np.float32(-1))[0]),
    )


def in_torch() -> tuple[bool, ...]:
    first, second = torch.rand(1), torch.rand(1)
    return bool((2 * first + 1) / 4 <= 0.5), bool(second.log() < -1)


def inversion() -> int:
    """The first of four sums above a coin that was spread over all lanes."""
    coin = np.broadcast_to(uniform(1)[:1], (4,))
    return int((np.float32([0.5, 0.75, 1, 1]) > coin).argmax())


def race() -> int:
    lane = np.nanargmax(noise((1, 3)))
    assert bool(np.greater(np.nanmax(noise((1, 3))), np.float32(-np.inf)))
    return int(np.minimum(lane + np.int32(5), np.int32(7)))


def gumbel_race(logits: tuple[float, ...] = (0.0, -np.inf, np.log(3))) -> tuple[int, bool]:
    """Logits plus Gumbel numbers, and a lane beyond the row."""
    clocks = lanes(np.zeros(4, np.float32), torch.empty(3).exponential_())
    gumbel = -np.log(np.negative(-clocks))
    scores = np.where(np.arange(4) < 3, gumbel + np.float32([*logits, 0]), np.float32(-np.inf))
    lane, best = np.nanargmax(scores), np.nanmax(scores)
    alone = best.reshape(1) if isinstance(best, RandomArray) else best
    assert not np.any(np.not_equal(alone, alone))
    assert int(np.nanargmax(alone)) == 0
    return int(lane), bool(np.nanmax(alone) > np.float32(-np.inf))


def choice() -> bool:
    """A random lane and an ordinary one, chosen by a mask."""
    chosen = np.where(np.array([True, False]), uniform(2)[:2], np.float32([0.125, 0.125]))
    return bool((chosen < np.float32(0.25))[0]) and bool((chosen < np.float32(0.25))[1])


def equality() -> bool:
    return bool(np.equal(uniform(1)[:1], np.float32(0))[0])


def with_nan() -> tuple[bool, ...]:
    coin = np.broadcast_to(uniform(1)[:1], (2,))
    compared = (np.less(coin, np.float32([np.nan, 2])), np.not_equal(coin, np.float32([np.nan, 2])))
    return tuple(bool(truth) for truths in compared for truth in truths)


def first_of_three(ordinary: float) -> int:
    """Rates 1 and 3, and a number that never comes first, or that ``nanargmin`` leaves out."""
    with np.errstate(divide="ignore"):
        times = np.float32(1) / noise((1, 3))
    return int(settled(np.nanargmin(np.where([True, True, False], times, np.float32(ordinary)))))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (arithmetic, None),
        (inversion, {0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)}),
        (race, {5: Fraction(1, 4), 6: Fraction(3, 4)}),
        (lambda: gumbel_race((0.0, -np.inf, 0.0)), {(0, True): Fraction(1, 2), (2, True): Fraction(1, 2)}),
        (lambda: gumbel_race((-np.inf,) * 3), {(0, False): Fraction(1)}),
        (lambda: first_of_three(np.inf), {0: Fraction(1, 4), 1: Fraction(3, 4)}),
        (lambda: first_of_three(np.nan), {0: Fraction(1, 4), 1: Fraction(3, 4)}),
        (choice, {True: Fraction(1, 4), False: Fraction(3, 4)}),
        (with_nan, {(False, True, True, True): Fraction(1)}),
        (equality, {True: Fraction(1, 2**24), False: 1 - Fraction(1, 2**24)}),
    ],
)
def test_laws(function: Callable[[], Any], expected: dict[Any, Fraction] | None) -> None:
    """By hand, or torch's with the same operations."""
    assert law(function) == (law(in_torch) if expected is None else expected)


def test_sums_of_logits_and_gumbel_numbers() -> None:
    """Weights are exponentials of the logits: 1 and 3, but for the rounding of log 3."""
    found = law(gumbel_race)
    assert found.keys() == {(0, True), (2, True)}
    assert abs(found[0, True] - Fraction(1, 4)) < Fraction(1, 10**7)
    drawn: Any = torch.empty(2).exponential_().log()
    assert not isinstance(drawn, RandomTensor), "torch's own outside of a run"


def test_a_winner_is_settled_only_where_it_matters() -> None:
    """A comparison that holds for all lanes asks nobody."""
    tape = Tape([])
    pick = ArgmaxWinner(
        Race([ExponentialDraw(Exponential(tape), inverse=True) for _ in range(2)], largest=True)
    )
    lane = random_array(np.zeros((), np.int32), True, lambda _: pick)
    assert not bool(lane > np.int32(1))
    assert tape.made == []
    assert bool(lane < np.int32(1))
    assert len(tape.made) == 1
    assert int(settled(lane)) == 0


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda array: np.add.reduce(array), "applies add.reduce"),
        (lambda array: np.cumsum(array), "applies cumsum"),
        (lambda array: np.sin(array), "applies sin"),
        (lambda array: array * array, "combines a random number with itself"),
        (lambda array: np.nanmax(array), "the winner of a race was expected"),
        (lambda array: float(array[0]), "where a number is needed at once"),
        (lambda array: np.where(array, array, array), "as a condition"),
        (lambda array: noise((1, 2)) < np.float32(1), "only a race is followed"),
        (lambda array: np.exp(noise((1, 2))), "applies exp"),
        (lambda array: noise((1, 2)).astype(np.float16), "applies a conversion to float16"),
        (lambda array: np.nanargmin(noise((1, 2))), "a race of random numbers with other numbers"),
        (
            lambda array: np.nanargmax(np.where([True, True, False], np.log(noise((1, 2))), np.float32(-9))),
            "a race of random numbers with other numbers",
        ),
        (lambda array: noise((1, 2))[:2] + np.float32(1), "adds a number to an exponential"),
        (lambda array: noise((1, 2)) - noise((1, 2)), "two exponential random numbers"),
        (lambda array: np.nanmax(np.log(noise((1, 2))[:2])) < np.float32(-1), "compares an exponential"),
    ],
)
def test_what_is_not_followed_is_refused(function: Callable[[Any], Any], says: str) -> None:
    """Where its entries are read; an entry that is masked is never made."""
    with pytest.raises(NotEnumerableError, match=says):
        law(lambda: lanes_of(function(uniform(1))))


@pytest.mark.parametrize(("first", "is_followed"), [(False, True), (True, False)])
def test_a_race_without_weights_is_won_by_its_first_lane(first: bool, is_followed: bool) -> None:
    """Lanes that are masked with -inf may stand behind the others, which are equal."""

    def run() -> int:
        weights = noise((0, 0))
        masked = np.where([first, False, True], np.float32(-np.inf), weights)
        return int(settled(np.nanargmax(masked)))

    if is_followed:
        assert law(run) == {0: 1}
    else:
        with pytest.raises(NotEnumerableError, match="a race of random numbers with other numbers"):
            law(run)


def test_masked_lanes_are_never_made() -> None:
    asked: list[int] = []

    def run(tape: Tape) -> bool:
        def made(lane: int) -> Any:
            asked.append(lane)
            return uniform_number(tape, torch.float32)

        begin()
        doubled = random_array(np.zeros(4, np.float32), True, made) * np.float32(2)
        kept = np.where(np.array([False, False, True, False]), doubled, np.float32(9))[::-1]
        return bool((kept < np.float32(1))[1])

    assert {answer: probability for probability, answer in all_runs(run)} == {
        True: Fraction(1, 2), False: Fraction(1, 2)
    }  # fmt: skip
    assert set(asked) == {2}


def test_precision_is_the_arrays() -> None:
    """A float32 number in float64 arithmetic keeps its grid; the partner rounds."""

    def run(tape: Tape) -> tuple[bool, bool]:
        number = uniform_number(tape, torch.float64)
        begin()
        array = random_array(np.zeros(1, np.float64), True, lambda _: number)
        third = np.float32(1 / 3)
        return bool((array < np.float64(third))[0]), bool((array.astype(np.float32) < third)[0])

    found = {result for _, result in all_runs(run)}
    assert (True, False) in found, "a number just below is rounded up to it"
