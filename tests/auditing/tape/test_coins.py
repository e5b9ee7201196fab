"""Coins: what they equal, and the probabilities that numpy's and Python's generators take."""

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from audit_support import law
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.errors import InvalidInputError

THIRDS = np.array([1, 1, 1], np.float32) / np.float32(3)
ROUNDED = np.array([0.3001, 0.3, 0.4], np.float32)


def coin() -> Any:
    return np.random.default_rng().random()


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a: a == a * 1, True),
        (lambda a: a != (a + 1) * 2 / 2 - 1, False),
        (lambda a: a == 2 * a, False),
        (lambda a: a == 1 - a, False),
        (lambda a: a == coin(), False),
        (lambda a: a == 0.5, False),
        (lambda a: a * 1.0 in {a: 0}, True),
        (lambda a: a / 2 in {a: 0}, False),
        (lambda a: a <= a * 1, True),
        (lambda a: a >= a * 1, True),
        (lambda a: a < a * 1, False),
        (lambda a: a > a * 1, False),
    ],
)
def test_a_coin_equals_itself_alone(function: Callable[[Any], bool], expected: bool) -> None:
    assert law(lambda: function(coin())) == {expected: 1}


def test_choice_takes_the_sums_that_numpy_takes() -> None:
    """Rows of float32 sum to 1 as closely as float32 can."""
    assert law(lambda: int(np.random.default_rng().choice(3, p=THIRDS))) == dict.fromkeys(
        range(3), Fraction(1, 3)
    )
    assert law(lambda: int(np.random.default_rng().choice(3, p=ROUNDED))).keys() == {0, 1, 2}
    np.random.default_rng(0).choice(3, p=ROUNDED)
    with pytest.raises(InvalidInputError, match=r"sum differs from 1 by 0\.0001; numpy takes a difference"):
        law(lambda: np.random.default_rng().choice(3, p=ROUNDED.astype(float)))
    with pytest.raises(ValueError, match="do not sum to 1"):
        np.random.default_rng(0).choice(3, p=ROUNDED.astype(float))


def test_python_takes_cumulative_weights_and_names() -> None:
    """The partner of ``random.choices`` with weights, and of ``random.uniform`` without names."""
    assert law(lambda: random.choices("ab", cum_weights=[0.25, 1])[0]) == {
        "a": Fraction(1, 4),
        "b": Fraction(3, 4),
    }
    assert law(lambda: bool(random.uniform(a=0, b=2) < 0.5))[True] == Fraction(1, 4)
    with pytest.raises(NotEnumerableError, match="cumulative weights that fall"):
        law(lambda: random.choices("ab", cum_weights=[2, 1]))
    with pytest.raises(TypeError, match="both weights and cumulative"):
        law(lambda: random.choices("ab", [1, 1], cum_weights=[1, 2]))
    with pytest.raises(ValueError, match="does not match the population"):
        law(lambda: random.choices("ab", [1, 1, 1]))


def test_arguments_of_numpy_that_change_nothing() -> None:
    """Of one draw the order and the axis are, and the type of a whole number is its type."""
    table = np.array([[1, 2], [3, 4]])
    for draw in (
        lambda rng: int(rng.choice(2, p=[0.25, 0.75], shuffle=False)),
        lambda rng: int(rng.choice(2, None, True, [0.25, 0.75], 0)),
        lambda rng: int(rng.choice(table, p=[0.25, 0.75], axis=1)[1]) // 4,
        lambda rng: int(rng.choice(table, p=[0.25, 0.75], axis=-1)[1]) // 4,
        lambda rng: int(rng.multinomial(1, [0.25, 0.75], size=None)[1]),
    ):
        assert law(lambda draw=draw: draw(np.random.default_rng())) == {0: Fraction(1, 4), 1: Fraction(3, 4)}
    for kind in (int, np.uint8, "int32"):
        found = law(lambda kind=kind: np.random.default_rng().integers(2, dtype=kind))
        assert found == {0: Fraction(1, 2), 1: Fraction(1, 2)}
        assert {type(number) for number in found} == {np.dtype(kind).type}
    with pytest.raises(NotEnumerableError, match="n = 1 and one draw, got 1 and size = 2"):
        law(lambda: np.random.default_rng().multinomial(1, [0.5, 0.5], 2))
