"""The memory of random tensors under other names: a run is made again with ordinary numbers, which see it."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from audit_support import law
from deep import first_is_quick
from spectheory import audit, instances
from spectheory.auditing.tape.decisions import NotEnumerableError

PAIRS = {"residual": instances.two_residual_tokens(1)}
KEPT = torch.zeros(2)
KEPT_NUMBERS, KEPT_VIEW = KEPT.numpy(), KEPT[1:]


def older_view() -> Any:
    buffer = torch.zeros(2)
    view = buffer[:1]
    buffer.uniform_()
    return view[0]


def older_view_of_an_item() -> Any:
    buffer = torch.zeros(2)
    view = buffer.view(-1)
    buffer[0] = torch.rand(())
    return view[0]


def older_view_of_a_product() -> Any:
    buffer = torch.ones(1)
    view = buffer.detach()
    buffer *= torch.rand(1)
    return view[0]


def numpys_view() -> Any:
    buffer = torch.zeros(1)
    numbers = buffer.numpy()
    buffer.uniform_()
    return numbers[0]


def memory_of_numpy() -> Any:
    numbers = np.zeros(1, dtype=np.float32)
    torch.from_numpy(numbers).uniform_()
    return numbers[0]


def memory_from_before() -> Any:
    KEPT.uniform_()
    return KEPT_NUMBERS[0]


def by_data() -> Any:
    buffer = torch.zeros(1)
    buffer.data = torch.rand(1)
    return buffer[0]


def as_another_class() -> Any:
    return torch.rand(1).as_subclass(torch.Tensor)[0]


def coin_of(number: Callable[[], Any], factor: float = 1) -> Callable[..., list[int]]:
    """Token verification of one draft, whose coin is this number times the factor."""

    def verify(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
        token, p, q = int(paths[0, 0]), target[0, 0], draft[0, 0]
        if number() * factor < p[token] / q[token]:
            return [token, int(torch.multinomial(target[0, 1], 1))]
        return [int(torch.multinomial((p - q).clamp(min=0), 1))]

    return verify


@first_is_quick(
    "number",
    [
        numpys_view, older_view, older_view_of_an_item, older_view_of_a_product, memory_of_numpy,
        memory_from_before, by_data, as_another_class,
    ],
    quick=2,
)  # fmt: skip
def test_what_following_does_not_see_is_probed(number: Callable[[], Any]) -> None:
    """Followed, each coin would be a constant."""
    right = audit(coin_of(number), PAIRS, drafts=1, within=0.02)
    assert (right.verdict, right.basis) == ("lossless", "probed")
    assert audit(coin_of(number, 2), PAIRS, drafts=1, within=0.02).is_defective


def kept_buffer() -> Any:
    KEPT.uniform_()
    return KEPT[1]


def kept_view() -> Any:
    KEPT_VIEW.uniform_()
    return KEPT_VIEW[0]


@pytest.mark.parametrize("number", [kept_buffer, kept_view])
def test_buffers_that_a_sampler_keeps_are_followed(number: Callable[[], Any]) -> None:
    """After every run they are ordinary tensors of their own memory."""
    for factor, verdict in ((1, "lossless"), (2, "not lossless")):
        found = audit(coin_of(number, factor), PAIRS, drafts=1)
        assert (found.verdict, found.basis) == (verdict, "followed")
    KEPT.fill_(0.5)
    assert (type(KEPT), type(KEPT_VIEW), KEPT_VIEW.tolist()) == (torch.Tensor, torch.Tensor, [0.5])


def bits() -> bool:
    return bool(torch.rand(1).view(torch.int32) % 2 == 0)


def test_what_reads_bits_is_refused() -> None:
    with pytest.raises(NotEnumerableError, match="takes the bits of random numbers"):
        law(bits)


def rand(like: torch.Tensor) -> torch.Tensor:
    """A sampler's function under the name of torch's: no number is drawn."""
    return like * 0


def constant_under_torchs_name() -> bool:
    one = torch.ones(1)
    return bool(torch.overrides.handle_torch_function(rand, (one,), one) < 0.25)


def filled_in_the_call() -> bool:
    return bool(torch.empty(2).uniform_()[1] < 0.25)


def by_out() -> bool:
    buffer = torch.empty(1)
    torch.rand(1, out=buffer)
    return bool(buffer < 0.25)


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
    by_out: QUARTER,
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
