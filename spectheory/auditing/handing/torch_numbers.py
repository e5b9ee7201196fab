"""Hand numbers to torch's random operators.

A mode of torch holds in one thread only, so we do not hand numbers to draws in another thread.
"""

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from itertools import count
from typing import Any

import torch

from spectheory.auditing.following.torch_draws import TorchDraws, choose_cases, name_of
from spectheory.auditing.handing.numbers import (
    FINE,
    NOW,
    ONE,
    NotHandedError,
    Use,
    case_of,
    cuts_of,
    exponential,
    normal,
)

_STEPS = {torch.float64: 1, torch.float32: 1 << 29, torch.float16: 1 << 42, torch.bfloat16: 1 << 45}
"""The grid of ``torch.rand``: 2^-53, 2^-24, 2^-11 and 2^-8."""


class HandedTorch(TorchDraws):
    """Inside this mode, torch's random operators return the numbers of ``NOW``."""

    def answer(self, func: Any, state: Hashable, drawn: torch.Tensor, given: dict[str, Any]) -> None:
        name = name_of(func)
        if NOW.point is None:
            return
        if name not in _DRAWN:
            raise NotHandedError(f"the sampler draws by torch's {name}, which takes no numbers from us")
        stream = NOW.stream(state, (name, drawn.dtype), "a generator of torch")
        values = _DRAWN[name](stream, drawn, given)
        drawn.copy_(torch.tensor(values, dtype=torch.float64).reshape(drawn.shape))


def _taken(stream: int, drawn: torch.Tensor, kind: str, step: int = FINE) -> list[int]:
    width = drawn.shape[-1] if drawn.ndim else 1
    return NOW.take(stream, [Use(kind, step, place // width) for place in range(drawn.numel())])


def _uniform(stream: int, drawn: torch.Tensor, given: dict[str, Any]) -> list[float]:
    """Uniform numbers.  ``from`` and ``to`` are the arguments of ``uniform_``."""
    step, low, high = _STEPS[drawn.dtype], given.get("from", 0.0), given.get("to", 1.0)
    values = _taken(stream, drawn, "uniform", step)
    return [low + (high - low) * (value // step * step / ONE) for value in values]


def _exponential(stream: int, drawn: torch.Tensor, given: dict[str, Any]) -> list[float]:
    return [
        exponential(value) / given.get("lambd", 1.0) for value in _taken(stream, drawn, "exponential", step=1)
    ]


def _normal(stream: int, drawn: torch.Tensor, given: dict[str, Any]) -> list[float]:
    mean, deviation = given.get("mean", 0.0), given.get("std", 1.0)
    if isinstance(mean, torch.Tensor) or isinstance(deviation, torch.Tensor):
        raise NotHandedError("the sampler draws by torch.normal with tensors, which takes no numbers from us")
    return [mean + deviation * normal(value) for value in _taken(stream, drawn, "uniform")]


def _cases(stream: int, drawn: torch.Tensor, given: dict[str, Any]) -> list[float]:
    places = count()

    def choose(weights: Sequence[Fraction]) -> int:
        cuts = cuts_of(list(map(float, weights)))
        return case_of(NOW.number((stream, next(places)), Use("choice", FINE, 0, cuts)), cuts)

    choose_cases(drawn, given, choose, NotHandedError)
    return drawn.reshape(-1).tolist()


def _whole_numbers(stream: int, drawn: torch.Tensor, given: dict[str, Any]) -> list[float]:
    low, high = given.get("low", 0), given["high"]
    return [low + value * (high - low) // ONE for value in _taken(stream, drawn, "uniform")]


_DRAWN: dict[str, Callable[[int, torch.Tensor, dict[str, Any]], list[float]]] = {
    **dict.fromkeys(("rand", "rand_like", "uniform_"), _uniform),
    **dict.fromkeys(("randn", "randn_like", "normal_"), _normal),
    **dict.fromkeys(("bernoulli", "bernoulli_", "multinomial"), _cases),
    **dict.fromkeys(("randint", "randint_like"), _whole_numbers),
    "exponential_": _exponential,
}
