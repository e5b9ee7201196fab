"""The memory of random tensors: older names of it, other owners, and what stays allowed."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from audit_support import law
from spectheory.auditing.tape.decisions import NotEnumerableError

KEPT = torch.zeros(2)
KEPT_NUMBERS = KEPT.numpy()


def older_view() -> bool:
    buffer = torch.zeros(2)
    view = buffer[:1]
    buffer.uniform_()
    return bool(view < 0.5)


def older_view_of_an_item() -> bool:
    buffer = torch.zeros(2)
    view = buffer.view(-1)
    buffer[0] = torch.rand(())
    return bool(view[0] < 0.5)


def older_view_of_a_product() -> bool:
    buffer = torch.ones(1)
    view = buffer.detach()
    buffer *= torch.rand(1)
    return bool(view < 0.5)


def view_of_what_was_deleted() -> bool:
    buffer = torch.empty(2)
    view = buffer[1]
    buffer.exponential_()
    del buffer
    return bool(view < 0.5)


def numpys_view() -> bool:
    buffer = torch.zeros(1)
    numbers = buffer.numpy()
    buffer.uniform_()
    return bool(numbers[0] < 0.5)


def view_as_an_array() -> bool:
    buffer = torch.zeros(1)
    numbers = np.asarray(buffer)
    buffer.uniform_()
    return bool(numbers[0] < 0.5)


def memory_of_numpy() -> bool:
    numbers = np.zeros(1, dtype=np.float32)
    torch.from_numpy(numbers).uniform_()
    return bool(numbers[0] < 0.5)


def memory_from_before() -> bool:
    KEPT.uniform_()
    return bool(KEPT_NUMBERS[0] < 0.5)


def by_out() -> bool:
    buffer = torch.empty(1)
    torch.rand(1, out=buffer)
    return bool(buffer < 0.5)


def by_data() -> bool:
    buffer = torch.zeros(1)
    buffer.data = torch.rand(1)
    return bool(buffer < 0.5)


def as_another_class() -> bool:
    return bool(torch.rand(1).as_subclass(torch.Tensor) < 0.5)


class RandomTensor(torch.Tensor):
    """A sampler's class under the name of ours."""


def under_our_name() -> bool:
    buffer = torch.zeros(2)
    view = buffer[:1].as_subclass(RandomTensor)
    buffer.uniform_()
    return bool(view.sum() < 0.5)


def tensor(kept: Any) -> torch.Tensor:
    """A sampler's function under the name of torch's: the memory is numpy's."""
    return torch.from_numpy(kept)


def function_under_torchs_name() -> bool:
    numbers = np.zeros(1, dtype=np.float32)
    made = torch.overrides.handle_torch_function(tensor, (torch.zeros(1),), numbers)
    made.uniform_()
    return bool(numbers[0] < 0.5)


def bits() -> bool:
    return bool(torch.rand(1).view(torch.int32) % 2 == 0)


REFUSED = {
    "older name of their memory": (
        older_view, older_view_of_an_item, older_view_of_a_product, view_of_what_was_deleted,
        as_another_class, under_our_name,
    ),
    "numpy can read": (
        numpys_view, view_as_an_array, memory_of_numpy, memory_from_before, function_under_torchs_name,
    ),
    "by out; take its result": (by_out,),
    "into the memory of another tensor": (by_data,),
    "takes the bits of random numbers": (bits,),
}  # fmt: skip


def test_known_numbers_may_be_put_into_a_tensor() -> None:
    """The partner of ``by_data``: no number is random."""

    def puts() -> bool:
        buffer = torch.zeros(1)
        buffer.data = torch.full((1,), 0.25)
        buffer.requires_grad = False
        return bool(torch.rand(1) < buffer)

    assert law(puts) == {True: 0.25, False: 0.75}


@pytest.mark.parametrize(
    ("function", "says"),
    [(function, says) for says, functions in REFUSED.items() for function in functions],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_random_memory_has_one_name(function: Callable[[], Any], says: str) -> None:
    """Each read 1, or a number that was drawn already, and took it for a constant."""
    with pytest.raises(NotEnumerableError, match=says):
        law(function)


def rand(like: torch.Tensor) -> torch.Tensor:
    """A sampler's function under the name of torch's: no number is drawn."""
    return like * 0


def constant_under_torchs_name() -> bool:
    one = torch.ones(1)
    return bool(torch.overrides.handle_torch_function(rand, (one,), one) < 0.25)


def filled_in_the_call() -> bool:
    return bool(torch.empty(2).uniform_()[1] < 0.25)


def view_after_the_draw() -> bool:
    buffer = torch.zeros(3).uniform_()
    return bool(buffer[1:][0] < 0.25)


def one_after_another() -> tuple[bool, bool]:
    """Memory that is free again is that of other tensors."""
    first = bool(torch.empty(1).uniform_() < 0.25)
    return first, bool((torch.zeros(1) + 1 > 0) & (torch.empty(1).uniform_() < 0.5))


def winner_in_a_buffer() -> tuple[int, int]:
    """A race that was run leaves ordinary numbers, which all names read."""
    noise, buffer = torch.ones(2).exponential_(), torch.zeros(2, dtype=torch.int64)
    older = buffer.view(2, 1)
    buffer[0] = (torch.tensor([0.25, 0.75]) / noise).argmax()
    return int((buffer + 1)[0]) - 1, int(older[0])


def buffer_of_given_numbers() -> bool:
    buffer = torch.tensor([0.0, 1.0])
    buffer[0] = torch.rand(())
    return bool(buffer[0] < 0.25)


def numpy_beside() -> bool:
    own = torch.ones(2).numpy()
    return bool(torch.rand(1) < float(own[0]) / 4)


QUARTER = {True: Fraction(1, 4), False: Fraction(3, 4)}
ALLOWED: dict[Callable[[], Any], dict[Any, Fraction]] = {
    constant_under_torchs_name: {True: Fraction(1)},
    filled_in_the_call: QUARTER,
    view_after_the_draw: QUARTER,
    one_after_another: {
        (one, two): QUARTER[one] * Fraction(1, 2) for one in (True, False) for two in (True, False)
    },
    winner_in_a_buffer: {(0, 0): Fraction(1, 4), (1, 1): Fraction(3, 4)},
    buffer_of_given_numbers: QUARTER,
    numpy_beside: QUARTER,
}


@pytest.mark.parametrize("function", ALLOWED, ids=lambda function: function.__name__)
def test_partner_what_is_allowed_has_its_law(function: Callable[[], Any]) -> None:
    found, expected = law(function), ALLOWED[function]
    assert found.keys() == expected.keys()
    assert all(abs(found[key] - expected[key]) < Fraction(1, 2**20) for key in expected)


@pytest.mark.parametrize(
    "draw",
    [
        lambda ratio: torch.bernoulli(ratio, 0.25),
        lambda ratio: torch.bernoulli(ratio, p=0.25),
        lambda ratio: ratio.bernoulli(0.25),
        lambda ratio: ratio.clone().bernoulli_(0.25),
        lambda ratio: torch.bernoulli(torch.full((1,), 0.25)),
        lambda ratio: torch.bernoulli(input=torch.full((1,), 0.25)),
    ],
)
def test_a_given_probability_is_the_one(draw: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """The entries of the tensor are then only its shape."""
    assert law(lambda: bool(draw(torch.full((1,), 0.75)))) == QUARTER


@pytest.mark.parametrize("other", [np.int64(7), [7], np.array([7]), np.random.SeedSequence(7)])
def test_one_seed_in_two_ways(other: Any) -> None:
    """Two generators of one stream draw the same numbers; 8 is another stream."""
    kinds = np.random.default_rng(7).random(), np.random.default_rng(other).random()
    assert kinds[0] == kinds[1]
    with pytest.raises(NotEnumerableError, match="a seed for the second time"):
        law(lambda: [np.random.default_rng(seed).random() < 0.5 for seed in (7, other)])
    assert len(law(lambda: tuple(np.random.default_rng(seed).random() < 0.5 for seed in (7, 8)))) == 4
