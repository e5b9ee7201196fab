"""Everything random answers from the tape or refuses; two reads of one number are found."""

import random
import re
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from random import random as imported_random
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import default_rng as imported_default_rng

from audit_support import assert_drawn_from, law
from deep import first_is_quick
from spectheory import ModelPair, audit
from spectheory.auditing.following.intercept import Journal
from spectheory.auditing.tape.decisions import HiddenRandomnessError, NotEnumerableError
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.foundation.errors import InvalidInputError

KEPT = random.Random(0)
KEPT_OF_NUMPY = np.random.default_rng(0)
PAIRS = {"pair": ModelPair.context_free_pair(["1/2", "1/2"], ["1/4", "3/4"], 1)}


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


@first_is_quick("function", [primitives, without_replacement, pythons_and_numpys], ids=lambda f: f.__name__)
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
        (lambda: torch.empty(2).cauchy_(), r"aten\.cauchy_"),
        (lambda: torch.randperm(3), r"aten\.randperm"),
        (lambda: random.gauss(0, 1), r"draws from random\.gauss"),
        (lambda: np.random.rand(), r"draws from numpy\.random\.rand"),  # noqa: NPY002
        (lambda: imported_random(), "by a name that was imported on its own"),
    ],
)
def test_unknown_randomness_is_refused(function: Callable[[], Any], says: str) -> None:
    with pytest.raises(NotEnumerableError, match=says):
        law(function)


def in_a_thread() -> float:
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(float(torch.rand(1))))
    thread.start()
    thread.join()
    return found[0]


@first_is_quick(
    "number",
    [
        KEPT.random,
        KEPT_OF_NUMPY.random,
        secrets.SystemRandom().random,
        imported_default_rng().random,
        in_a_thread,
    ],
    quick=2,
)
def test_hidden_randomness_is_not_followed(number: Callable[[], float]) -> None:
    """A run that is made again has other numbers; the partner draws where we follow it."""

    def verify(number: Any) -> Callable[..., list[int]]:
        return lambda paths, target, draft, generator: [int(number() >= target[0, 0, 0])]

    found = audit(verify(number), PAIRS, drafts=1, within=0.05)
    assert (found.verdict, found.basis) == ("undecided", "drawn")
    assert re.search("randomness that is not replaced|where we do not see it", found.ways[0])
    assert audit(verify(lambda: random.random()), PAIRS, drafts=1).basis == "followed"


def test_a_state_that_is_restored_is_no_hidden_draw() -> None:
    """Also where the fork has another seed.  The partner draws in a thread afterwards."""

    def forks(after: Callable[[], Any] = lambda: None) -> tuple[bool, bool]:
        first = bool(torch.rand(()) < 0.5)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            torch.rand(())
        after()
        return first, bool(torch.rand(()) < 0.25)

    journal = Journal()
    assert law(forks, journal)[True, True] == Fraction(1, 8)
    assert journal.findings == set()
    with pytest.raises(HiddenRandomnessError, match="where we do not see it"):
        law(lambda: forks(in_a_thread))


def swallows() -> int:
    with suppress(Exception):
        return int(torch.randn(1) < 0)
    return 0


def test_a_refusal_that_the_sampler_catches_is_one() -> None:
    """A draw from nothing may be caught: torch raises there too."""
    with pytest.raises(NotEnumerableError, match=r"draws from aten\.randn"):
        law(swallows)

    def redraws() -> int:
        with suppress(RuntimeError):
            return int(torch.multinomial(torch.zeros(2), 1))
        return int(torch.multinomial(torch.ones(2), 1))

    assert law(redraws) == {0: Fraction(1, 2), 1: Fraction(1, 2)}


def test_a_generator_that_is_handed_over_and_one_of_torch_are_none_of_its_own() -> None:
    """Their numbers are answered, whatever seed they have; numpy's classes still know their instances."""
    rng = np.random.default_rng(0)

    def draws() -> tuple[bool, bool]:
        assert isinstance(rng, np.random.Generator)
        return bool(torch.rand((), generator=torch.Generator()) < 0.5), bool(random.random() < 0.5)

    assert len(law(draws)) == 4


def test_a_seed_of_numpy_that_is_given_twice() -> None:
    journal = Journal()
    with pytest.raises(NotEnumerableError, match="a seed for the second time"):
        law(lambda: [np.random.default_rng(3).random() < 0.5 for _ in range(2)], journal)
    assert {kind for kind, _ in journal.findings} == {"randomness"}
    assert len(law(lambda: tuple(np.random.default_rng(seed).random() < 0.5 for seed in (3, 4)))) == 4


def test_everything_is_put_back() -> None:
    """After a run, and after one that failed."""
    before = vars(random.Random).copy(), random.random, torch.get_rng_state().tolist()
    law(pythons_and_numpys)
    with pytest.raises(NotEnumerableError):
        law(lambda: torch.randn(2))
    assert before == (vars(random.Random), random.random, torch.get_rng_state().tolist())
    assert type(torch.rand(1)) is torch.Tensor


def seeded_twice() -> tuple[bool, bool]:
    generator = torch.Generator()
    first = torch.rand(1, generator=generator.manual_seed(4))
    second = torch.rand(1, generator=generator.manual_seed(4))
    return bool(first < 0.5), bool(second < 0.5)


def seeded_apart() -> tuple[bool, bool]:
    generator = torch.Generator().manual_seed(4)
    return tuple(bool(torch.rand(1, generator=generator) < 0.5) for _ in range(2))  # type: ignore[return-value]


def test_one_thread_at_a_time() -> None:
    """Two audits at once would replace each other's functions; the partner comes after the first."""
    begun, goes_on = threading.Event(), threading.Event()

    def waits() -> bool:
        begun.set()
        assert goes_on.wait(60)
        return bool(torch.rand(()) < 0.5)

    found: list[Any] = []
    other = threading.Thread(target=lambda: found.append(law(waits)))
    other.start()
    assert begun.wait(60)
    try:
        with pytest.raises(InvalidInputError, match="another thread of this process audits a sampler"):
            law(lambda: bool(torch.rand(()) < 0.5))
    finally:
        goes_on.set()
        other.join()
    assert found == [law(lambda: bool(torch.rand(()) < 0.5))]


def test_a_number_that_is_read_twice_is_one_number() -> None:
    """The law is that of one coin, and the journal says so; two draws in turn are two coins."""
    journal = Journal()
    assert law(seeded_twice, journal) == {(True, True): Fraction(1, 2), (False, False): Fraction(1, 2)}
    assert journal.findings == {("randomness", "rand reads random numbers that rand has read before")}
    journal = Journal()
    assert len(law(seeded_apart, journal)) == 4
    assert journal.findings == set()


def first_number(change: Callable[[torch.Generator], Any]) -> bool:
    """Whether the first number of another generator is below one half."""
    generator = torch.Generator().manual_seed(7)
    change(generator)
    return bool(torch.rand((), generator=generator) < 0.5)


def other_state(generator: torch.Generator) -> None:
    """A part of the state that no draw depends on."""
    state = generator.get_state()
    state[4] ^= 1
    generator.set_state(state)


@pytest.mark.parametrize(
    ("change", "is_the_same"),
    [
        (lambda generator: generator.manual_seed(7 + 2**32), True),
        (other_state, True),
        (lambda generator: generator.manual_seed(8), False),
        (lambda generator: generator.manual_seed(7 + 2**31), False),
    ],
)
def test_a_number_is_what_a_generator_draws(
    change: Callable[[torch.Generator], Any], is_the_same: bool
) -> None:
    """torch's generator uses the lower half of a seed."""
    journal = Journal()
    found = law(lambda: first_number(lambda _: None) is first_number(change), journal)
    assert (found.get(True) == 1) is is_the_same
    assert bool(journal.findings) is is_the_same


@pytest.mark.parametrize("draw", [torch.bernoulli, lambda weights: torch.multinomial(weights, 1)])
def test_random_probabilities_are_refused(draw: Callable[[torch.Tensor], Any]) -> None:
    with pytest.raises(NotEnumerableError, match=r"applies (bernoulli|multinomial) to random numbers"):
        law(lambda: draw(torch.rand(3)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_exponential_numbers_of_few_values_are_refused(dtype: torch.dtype) -> None:
    def race(kind: torch.dtype) -> int:
        return int(torch.empty(2, dtype=kind).exponential_().argmin())

    with pytest.raises(NotEnumerableError, match=r"exponential random numbers of torch\.b?float16"):
        law(lambda: race(dtype))
    assert law(lambda: race(torch.float64)) == {0: Fraction(1, 2), 1: Fraction(1, 2)}


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


def test_entries_without_weight_are_not_drawn_in_an_order_that_torch_does_not_state() -> None:
    row = torch.tensor([0.5, 0.0, 0.5])
    assert law(lambda: tuple(torch.multinomial(row, 2).tolist())) == {(0, 2): 0.5, (2, 0): 0.5}
    with pytest.raises(NotEnumerableError, match="3 entries without replacement where 2 have weight"):
        law(lambda: tuple(torch.multinomial(row, 3).tolist()))


@pytest.mark.parametrize("weights", [[0.0, 0.0], [float("nan"), 1.0], [-1.0, 2.0]])
def test_torchs_own_errors_are_undefined_draws(weights: list[float]) -> None:
    with pytest.raises(UndefinedDrawError, match=r"torch\.multinomial: "):
        law(lambda: torch.multinomial(torch.tensor(weights), 1))
