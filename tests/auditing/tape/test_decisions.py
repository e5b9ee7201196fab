"""Every run of a function of coins: probabilities that add up, and refusals of what has no finite cases."""

import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from later import Later
from spectheory.auditing.tape import decisions
from spectheory.auditing.tape.coins import CoinGenerator
from spectheory.auditing.tape.decisions import NotEnumerableError, all_runs
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError

stats = Later("scipy.stats")


def law(function: Callable[[CoinGenerator], Any]) -> dict[Any, Fraction]:
    found: dict[Any, Fraction] = {}
    for probability, result in all_runs(lambda tape: function(CoinGenerator(tape))):
        found[result] = found.get(result, Fraction(0)) + probability
    return found


def stairs(generator: Any) -> int:
    """One coin compared again and again, from both sides and in other units."""
    u = generator.random()
    if u < 0.5:
        return 0 if 4 * u < 1 else 1
    if 1 - u <= 0.125:
        return 2
    return 3 if u / 2 - 0.25 > 0.125 else 4


def two_coins(generator: Any) -> int:
    """Two coins, the second only in one case, and a whole number."""
    if generator.random() >= Fraction(2, 3):
        return generator.integers(3)
    return 10 + int(generator.uniform(-1, 1) > 0.5)


def inversion(generator: Any) -> int:
    """A draw by inverting a distribution function with numpy."""
    return int(np.searchsorted(np.array([0.25, 0.5, 1.0], dtype=object), generator.random(), side="right"))


def categorical(generator: Any) -> tuple[int, int]:
    return generator.choice(3, p=[0.5, 0, 0.5]), int(generator.multinomial(1, [0.25, 0.75]).argmax())


def remainder(generator: Any) -> int:
    """The last value has what the others leave, whatever its own probability is."""
    return int(generator.multinomial(1, [0.25, 0.25, 0.125]).argmax())


def compared_with_arrays(generator: Any) -> tuple[int, int, int]:
    """Inversion as people write it, from both sides, and a whole number with its end."""
    steps = np.array([0.25, 0.75, 1.0])
    first, second = generator.random(), abs(generator.random())
    return (
        int(np.argmax(steps > first)),
        int((second >= steps).sum()),
        generator.integers(1, 2, endpoint=True),
    )


STEPS = (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
LAWS = {
    stairs: {0: "1/4", 1: "1/4", 2: "1/8", 3: "1/8", 4: "1/4"},
    two_coins: {0: "1/9", 1: "1/9", 2: "1/9", 10: "1/2", 11: "1/6"},
    inversion: {0: "1/4", 1: "1/4", 2: "1/2"},
    categorical: {(0, 0): "1/8", (0, 1): "3/8", (2, 0): "1/8", (2, 1): "3/8"},
    remainder: {0: "1/4", 1: "1/4", 2: "1/2"},
    compared_with_arrays: {
        (one, two, whole): str(STEPS[one] * STEPS[two] / 2)
        for one in range(3) for two in range(3) for whole in (1, 2)
    },
}  # fmt: skip


@pytest.mark.parametrize("function", LAWS, ids=lambda f: f.__name__)
def test_laws_by_hand(function: Callable[[Any], Any]) -> None:
    assert law(function) == {result: Fraction(text) for result, text in LAWS[function].items()}


@first_is_quick("function", LAWS, ids=lambda f: f.__name__, quick=2)
def test_a_real_generator_draws_from_that_law(function: Callable[[Any], Any]) -> None:
    """The same functions with numpy's numbers, 40 000 draws."""
    rng = np.random.default_rng(11)
    counts = Counter(function(rng) for _ in range(40_000))
    expected = {result: float(Fraction(text)) * 40_000 for result, text in LAWS[function].items()}
    assert counts.keys() == expected.keys()
    assert stats.chisquare([counts[key] for key in expected], list(expected.values())).pvalue > 1e-4


def test_pythons_random_module() -> None:
    """``random.choices`` and ``random.random`` have the same names."""
    function = lambda generator: (generator.choices("ab", [1, 3])[0], generator.random() < 0.5)  # noqa: E731
    assert law(function)["a", True] == Fraction(1, 8)
    assert law(lambda g: tuple(g.choices("ab", [1, 3], k=2)))["a", "b"] == Fraction(3, 16)
    assert isinstance(function(random.Random(0))[1], bool)


def test_equality_has_probability_zero() -> None:
    """``<=`` is ``<``, ``==`` is never the case."""
    assert law(lambda g: g.random() <= Fraction(1, 4)) == law(lambda g: g.random() < Fraction(1, 4))
    assert law(lambda g: g.random() == 0.5) == {False: Fraction(1)}
    assert law(lambda g: g.random() < float("inf")) == {True: Fraction(1)}
    assert law(lambda g: 0 * g.random() + 1) == {1: Fraction(1)}


STATE: list[Any] = []


def keeps_state(generator: Any) -> bool:
    STATE.append(0)
    return generator.random() < Fraction(1, 2 + len(STATE))


def keeps_a_coin(generator: Any) -> bool:
    STATE.append(generator.random())
    return STATE[0] < Fraction(1, 2 + len(STATE))


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda g: float(g.random()), "turned into a float before it is compared"),
        (lambda g: g.random() * g.random() < 0.5, "multiplied by another one"),
        (lambda g: g.random() < g.random(), "compared with another one"),
        (lambda g: g.normal(), r"draws from generator\.normal, which is not enumerated"),
        (lambda g: g.choice(3, size=2), "choice.. with a size"),
        (lambda g: g.random(dtype=np.float32) < 0.5, "random.. with dtype is not enumerated"),
        (lambda g: g.integers(3, size=2), "integers.. with a size"),
        (lambda g: 1 / g.random() < 2, "a number is divided by a random one"),
        (lambda g: abs(g.random() - 0.5) < 0.25, "the absolute value of a random number"),
        (keeps_state, "it keeps state, or draws numbers elsewhere"),
        (keeps_a_coin, "keeps random numbers, or a generator, from one run to the next"),
    ],
)
def test_what_has_no_finite_cases_is_refused(function: Callable[[Any], Any], says: str) -> None:
    STATE.clear()
    with pytest.raises(NotEnumerableError, match=says):
        law(function)


def test_limits_and_bad_weights() -> None:
    """Too many runs, and weights that are no law."""
    with pytest.raises(EnumerationTooLargeError, match="more than 100 runs"):
        list(all_runs(lambda tape: [CoinGenerator(tape).integers(10) for _ in range(3)], max_runs=100))
    with pytest.raises(InvalidInputError, match="sum differs from 1 by -1; numpy takes a difference"):
        law(lambda g: g.choice(2, p=[0, 0]))
    with pytest.raises(InvalidInputError, match="it draws with the weights"):
        law(lambda g: g.choices("ab", weights=[0, 0]))


def test_coins_apart_scaled_and_shifted() -> None:
    """Two coins of an array are two; a shift is scaled with its coin; whole numbers start where they say."""
    half = {True: Fraction(1, 2), False: Fraction(1, 2)}
    assert law(lambda g: (g.random() + 1) * 2 < 3) == half
    assert law(lambda g: all(coin < 0.5 for coin in g.random(2)))[True] == Fraction(1, 4)
    assert law(lambda g: g.integers(2, 4)) == {2: Fraction(1, 2), 3: Fraction(1, 2)}
    with pytest.raises(InvalidInputError, match="it draws with the weights"):
        law(lambda g: g.choices("ab", weights=[2, -1]))


def test_a_loop_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rejection sampling until something is accepted has infinitely many runs."""
    monkeypatch.setattr(decisions, "MAX_DECISIONS", 100)

    def until_accepted(generator: Any) -> int:
        while generator.random() >= 0.5:
            pass
        return 0

    with pytest.raises(NotEnumerableError, match="more than 100 random decisions"):
        law(until_accepted)
