"""Every primitive takes its numbers from the point, by its law; afterwards it draws real numbers again."""

# ruff: noqa: NPY002

import random
from collections import Counter
from collections.abc import Callable
from random import random as imported_coin
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import rand as imported_row

from spectheory.auditing.handing.handing import handing
from spectheory.auditing.handing.numbers import NotHandedError, Point, Run, run_at

WEIGHTS = [0.125, 0.625, 0.25]


def law_of(draw: Callable[[int], Any], points: int = 1_000) -> dict[Any, float]:
    with handing():
        counts = Counter(run_at(draw, Point(seed)).label for seed in range(points))
    return {value: count / points for value, count in counts.items()}


def runs(draw: Callable[[int], Any], *seeds: int) -> list[Run[Any]]:
    with handing():
        return [run_at(draw, Point(seed)) for seed in seeds]


MADE = np.random.default_rng(0)
"""A generator that was made before the call."""
CHOICES: dict[str, tuple[Callable[[int], Any], list[float]]] = {
    "torch.multinomial": (lambda _: int(torch.multinomial(torch.tensor(WEIGHTS), 1)), WEIGHTS),
    "torch, a race": (
        lambda _: int((torch.tensor(WEIGHTS) / torch.empty(3).exponential_()).argmax()),
        WEIGHTS,
    ),
    "torch.bernoulli": (lambda _: int(torch.bernoulli(torch.tensor(0.75))), [0.25, 0.75]),
    "torch, bernoulli_ of one half": (lambda _: int(torch.zeros(2).bernoulli_(0.5)[1]), [0.5, 0.5]),
    "torch.randint": (lambda _: int(torch.randint(1, 4, (1,))) - 1, [1 / 3] * 3),
    "torch.uniform_": (lambda _: int(torch.empty(1).uniform_(2, 4) > 2.5), [0.25, 0.75]),
    "torch.randn": (lambda _: int(torch.randn(()) > 0), [0.5, 0.5]),
    "random.choices": (lambda _: random.choices(range(3), WEIGHTS)[0], WEIGHTS),
    "random.randrange": (lambda _: random.randrange(3), [1 / 3] * 3),
    "numpy.random.choice": (lambda _: int(np.random.choice(3, p=WEIGHTS)), WEIGHTS),
    "numpy.random.randint": (lambda _: int(np.random.randint(3)), [1 / 3] * 3),
    "numpy.random.multinomial": (lambda _: int(np.random.multinomial(1, WEIGHTS).argmax()), WEIGHTS),
    "numpy, a race": (lambda _: int(np.argmin(np.random.exponential(size=3) / WEIGHTS)), WEIGHTS),
    "numpy.random.uniform of rows": (
        lambda _: int(np.subtract(*np.random.uniform(0, np.array([1.0, 1.0]))) > 0),
        [0.5, 0.5],
    ),
    "default_rng().normal": (lambda _: int(np.random.default_rng().normal(1.0) > 1.0), [0.5, 0.5]),
    "default_rng(), out": (lambda _: int(filled("standard_normal", 0.0) > 0), [0.5, 0.5]),
    "default_rng().random, out": (lambda _: int(filled("random", -1.0) > 0.75), [0.75, 0.25]),
    "default_rng().choice": (lambda _: int(np.random.default_rng().choice(3, p=WEIGHTS)), WEIGHTS),
    "default_rng().integers": (lambda _: int(np.random.default_rng().integers(3)), [1 / 3] * 3),
}


def filled(name: str, before: float) -> float:
    """A number of a generator that writes it into an array."""
    row = np.full(1, before)
    getattr(np.random.default_rng(), name)(out=row)
    return float(row[0])


@pytest.mark.parametrize("name", CHOICES)
def test_a_primitive_has_its_law(name: str) -> None:
    """In 1 000 draws 0.08 is five standard deviations."""
    draw, wanted = CHOICES[name]
    found = law_of(draw)
    assert {case: found.get(case, 0.0) for case in range(len(wanted))} == pytest.approx(
        dict(enumerate(wanted)), abs=0.08
    )
    assert sum(found.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    "draw",
    [
        lambda _: imported_coin(),
        lambda _: random.Random().random(),
        lambda _: random.gauss(0, 1),
        lambda _: np.random.normal(),
        lambda _: imported_row(2).tolist(),
        lambda _: np.random.permutation(5).tolist(),
        lambda _: np.random.default_rng().standard_normal(),
        lambda _: torch.rand(2, dtype=torch.float64).numpy().tolist(),
        lambda seed: torch.rand(1, generator=torch.Generator().manual_seed(seed)).item(),
        *(draw for draw, _ in CHOICES.values()),
    ],
)
def test_one_point_gives_the_same_numbers_twice(draw: Callable[[int], Any]) -> None:
    first, second, *others = runs(draw, 1, 1, *range(2, 12))
    assert first == second
    assert any(other.label != first.label for other in others)
    assert first.uses


@pytest.mark.parametrize("draw", [lambda _: MADE.random(), lambda _: torch.Generator().seed()])
def test_numbers_that_are_not_handed_differ(draw: Callable[[int], Any]) -> None:
    """The partners: a generator that was made before, and the randomness of the system."""
    first, second = runs(draw, 1, 1)
    assert first.label != second.label


def test_real_numbers_are_back_afterwards() -> None:
    def draw(_: int = 0) -> tuple[float, ...]:
        return imported_coin(), float(np.random.rand()), float(torch.rand(()))

    with handing():
        inside = run_at(draw, Point(1)).label
    assert not set(inside) & set(draw())
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    before = draw()
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    assert draw() == before


@pytest.mark.parametrize(
    ("draw", "again"),
    [
        (lambda seed: (random.seed(3), random.random())[1], True),
        (lambda seed: (np.random.seed(3), np.random.rand())[1], True),
        (lambda seed: np.random.default_rng(3).random(), True),
        (lambda seed: torch.rand(1, generator=torch.Generator().manual_seed(3)).item(), True),
        (lambda seed: random.Random(seed).random(), False),
        (lambda seed: np.random.default_rng(seed).random(), False),
        (lambda seed: torch.rand(1, generator=torch.Generator().manual_seed(seed)).item(), False),
    ],
)
def test_numbers_that_are_the_same_in_every_call_are_refused(draw: Callable[[int], Any], again: bool) -> None:
    """The partners are seeded with another number in every call."""
    with handing():
        run_at(draw, Point(1))
        if again:
            with pytest.raises(NotHandedError, match=r"the same numbers from .* in every call"):
                run_at(draw, Point(1))
        else:
            assert run_at(draw, Point(2)).label != run_at(draw, Point(1)).label


def test_a_seed_that_is_given_again_names_the_same_numbers() -> None:
    def draw(seed: int) -> tuple[float, ...]:
        made = [torch.Generator().manual_seed(number) for number in (seed, seed, seed + 2**32, seed + 1)]
        return tuple(torch.rand(1, generator=each).item() for each in made)

    ((first, again, upper, other),) = (run.label for run in runs(draw, 1))
    assert first == again == upper != other


@pytest.mark.parametrize(
    "draw",
    [
        lambda _: torch.randperm(3),
        lambda _: torch.multinomial(torch.tensor([1.0, 0.0, 0.0]), 2),  # torch draws 0, 1 here
        lambda _: (lambda probs: torch.bernoulli(probs, out=probs))(torch.tensor([0.9])),
        lambda _: random.getstate(),
        lambda _: np.random.get_state(),
        lambda _: np.random.default_rng().bit_generator.state,
        lambda seed: [
            torch.manual_seed(seed),
            torch.rand(1),
            torch.manual_seed(seed),
            torch.randint(5, (1,)),
        ],
    ],
)
def test_what_cannot_be_handed_is_refused_even_if_the_code_catches_it(draw: Callable[[int], Any]) -> None:
    def catches(seed: int) -> None:
        try:
            draw(seed)
        except Exception:
            return

    with handing(), pytest.raises(NotHandedError, match=r"the sampler|without replacement|overwrites"):
        run_at(catches, Point(1))


@torch.jit.script
def scripted(row):  # type: ignore[no-untyped-def]
    return torch.rand(1) < row


def test_torchscript_takes_handed_numbers() -> None:
    first, second = runs(lambda _: bool(scripted(torch.tensor(0.5))), 1, 1)
    assert first == second
    assert len(first.uses) == 1
