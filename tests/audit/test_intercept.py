"""Everything random answers from the tape or refuses; two reads of one number are found."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from fractions import Fraction
from random import random as imported_random
from typing import Any

import numpy as np
import pytest
import torch

from audit_support import assert_drawn_from, law
from spectheory.audit.derandomise import UndefinedDrawError
from spectheory.audit.intercept import Journal
from spectheory.audit.replay import NotEnumerableError


def primitives() -> tuple[Any, ...]:
    weights = torch.tensor([0.25, 0.75])
    return (
        bool(torch.rand_like(weights)[0] < 0.25),
        bool(torch.empty(1).uniform_(-1, 1)[0] < 0.5),
        int(torch.bernoulli(weights)[1]),
        int(torch.empty(()).bernoulli_(0.25)),
        int(torch.randint(1, 3, (1,))),
        int(weights.multinomial(1)),
    )


def without_replacement() -> tuple[int, ...]:
    return tuple(torch.multinomial(torch.tensor([0.5, 0.25, 0.25]), 2).tolist())


def pythons_and_numpys() -> tuple[bool, bool, str, bool]:
    return (
        bool(random.random() < 0.25),
        bool(random.uniform(1, 3) < 1.5),
        random.choices("ab", [1, 3])[0],
        bool(np.random.default_rng(None).random() < 0.5),
    )


@pytest.mark.parametrize(
    "function", [primitives, without_replacement, pythons_and_numpys], ids=lambda f: f.__name__
)
def test_what_is_drawn_has_that_law(function: Callable[[], Any]) -> None:
    assert_drawn_from(function, law(function))


def test_laws_by_hand() -> None:
    assert law(without_replacement)[0, 1] == Fraction(1, 4)
    assert law(pythons_and_numpys)[True, True, "a", True] == Fraction(1, 4) ** 3 / 2


def test_the_journal_names_what_was_answered() -> None:
    journal = Journal()
    law(primitives, journal)
    assert {text.partition(":")[0] for text in journal.primitives} == {
        "rand_like",
        "uniform_",
        "bernoulli",
        "bernoulli_",
        "randint",
        "multinomial",
    }
    assert "rand_like: multiples of 2^-24" in journal.primitives
    assert journal.findings == set()


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda: torch.randn(2), r"draws from aten\.randn"),
        (lambda: torch.nn.functional.dropout(torch.ones(2)), r"aten\.bernoulli_"),
        (lambda: torch.empty(2).cauchy_(), r"aten\.cauchy_"),
        (lambda: torch.randperm(3), r"aten\.randperm"),
        (lambda: random.gauss(0, 1), r"draws from random\.gauss"),
        (lambda: np.random.rand(), r"draws from numpy\.random\.rand"),  # noqa: NPY002
        (lambda: imported_random(), "by a name that was imported on its own"),
        (lambda: socket.create_connection(("127.0.0.1", 9)), "opens a network connection"),
    ],
)
def test_unknown_randomness_and_networks_are_refused(function: Callable[[], Any], says: str) -> None:
    with pytest.raises(NotEnumerableError, match=says):
        law(function)


def test_everything_is_put_back() -> None:
    """After a run, and after one that failed."""
    before = random.random, torch.get_rng_state().tolist(), socket.socket.connect
    law(pythons_and_numpys)
    with pytest.raises(NotEnumerableError):
        law(lambda: torch.randn(2))
    assert before == (random.random, torch.get_rng_state().tolist(), socket.socket.connect)
    assert type(torch.rand(1)) is torch.Tensor


def seeded_twice() -> tuple[bool, bool]:
    generator = torch.Generator()
    first = torch.rand(1, generator=generator.manual_seed(4))
    second = torch.rand(1, generator=generator.manual_seed(4))
    return bool(first < 0.5), bool(second < 0.5)


def seeded_apart() -> tuple[bool, bool]:
    generator = torch.Generator().manual_seed(4)
    return tuple(bool(torch.rand(1, generator=generator) < 0.5) for _ in range(2))  # type: ignore[return-value]


def test_a_number_that_is_read_twice_is_one_number() -> None:
    """The law is that of one coin, and the journal says so; two draws in turn are two coins."""
    journal = Journal()
    assert law(seeded_twice, journal) == {(True, True): Fraction(1, 2), (False, False): Fraction(1, 2)}
    assert journal.findings == {("randomness", "rand reads random numbers that rand has read before")}
    journal = Journal()
    assert len(law(seeded_apart, journal)) == 4
    assert journal.findings == set()


def test_numbers_read_again_in_another_form() -> None:
    """The finding stays, the law is not known."""

    def read() -> bool:
        torch.manual_seed(1)
        first = torch.rand(2)
        torch.manual_seed(1)
        return bool(torch.rand(1) < first[0])

    journal = Journal()
    with pytest.raises(NotEnumerableError, match="again in another form"):
        law(read, journal)
    assert len(journal.findings) == 1


@pytest.mark.parametrize("weights", [[0.0, 0.0], [float("nan"), 1.0], [-1.0, 2.0]])
def test_torchs_own_errors_are_undefined_draws(weights: list[float]) -> None:
    with pytest.raises(UndefinedDrawError, match=r"torch\.multinomial: "):
        law(lambda: torch.multinomial(torch.tensor(weights), 1))
