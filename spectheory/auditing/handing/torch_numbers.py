"""Hand numbers to torch's random operators, below Python.  A tag marks operators that read a generator.

We let the operator run, so that its generator advances, and then overwrite its result.  A mode of torch holds
in one thread only, so we do not hand numbers to draws in another thread.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from spectheory.auditing.handing.numbers import NOW, ONE, NotHandedError, Use, case_of, cuts_of, exponential

_STEPS = {torch.float64: 1, torch.float32: 1 << 29, torch.float16: 1 << 42, torch.bfloat16: 1 << 45}
"""The grid of ``torch.rand``: 2^-53, 2^-24, 2^-11 and 2^-8."""
_SEED_BYTES = 8
"""A state of a CPU generator begins with its seed, of which only the lower half is used."""
FINE = 1 << 13
"""2^-40, the precision to which ``learning`` finds cuts."""


class HandedTorch(TorchDispatchMode):
    """Inside this mode, torch's random operators return the numbers of ``NOW``."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Without this method torch imports its compiler to exclude this class, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if NOW.point is None or torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        name = func._schema.name.split("::")[1]
        known = _DRAWN.get(name)
        generator = kwargs.get("generator") or torch.default_generator
        state = hash(generator.get_state().numpy()[_SEED_BYTES:].tobytes())
        drawn = func(*args, **kwargs)
        if known is None:
            raise NotHandedError(f"the sampler draws by torch's {name}, which takes no numbers from us")
        if drawn.numel():
            stream = NOW.stream(state, (name, drawn.dtype), "a generator of torch")
            values = known(stream, drawn, {**_named(func, args), **kwargs})
            drawn.copy_(torch.tensor(values, dtype=torch.float64).reshape(drawn.shape))
        return drawn


def _named(func: Any, args: Sequence[Any]) -> dict[str, Any]:
    return {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)}


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
    from scipy.special import ndtri

    mean, deviation = given.get("mean", 0.0), given.get("std", 1.0)
    if isinstance(mean, torch.Tensor) or isinstance(deviation, torch.Tensor):
        raise NotHandedError("the sampler draws by torch.normal with tensors, which takes no numbers from us")
    values = _taken(stream, drawn, "uniform")
    return [mean + deviation * float(ndtri((value + 0.5) / ONE)) for value in values]


def _multinomial(stream: int, drawn: torch.Tensor, given: dict[str, Any]) -> list[float]:
    weights, count = given["self"], given["num_samples"]
    rows = weights.reshape(-1, weights.shape[-1]).double().tolist()
    cases: list[float] = []
    for number, row in enumerate(rows):
        for place in range(count):
            cuts = cuts_of(row)
            coordinate = (stream, number * count + place)
            NOW.uses.setdefault(coordinate, Use("choice", FINE, number, cuts))
            assert NOW.point is not None
            case = case_of(NOW.point.at(coordinate), cuts)
            cases.append(case)
            if not given.get("replacement", False):
                row[case] = 0.0
    return cases


def _bernoulli(stream: int, drawn: torch.Tensor, given: dict[str, Any]) -> list[float]:
    """Bernoulli numbers.  ``bernoulli_`` ignores its tensor's entries, and gets no ``p`` if p is one half."""
    prob = given.get("p", 0.5 if given["self"] is drawn else given["self"])
    if isinstance(prob, torch.Tensor):
        probs = prob.expand(drawn.shape).reshape(-1).double().tolist()
    else:
        probs = [float(prob)] * drawn.numel()
    cuts = [round(prob * ONE) for prob in probs]
    values = NOW.take(stream, [Use("choice", FINE, 0, (cut,)) for cut in cuts])
    return [float(value < cut) for value, cut in zip(values, cuts, strict=True)]


def _whole_numbers(stream: int, drawn: torch.Tensor, given: dict[str, Any]) -> list[float]:
    low, high = given.get("low", 0), given["high"]
    return [low + value * (high - low) // ONE for value in _taken(stream, drawn, "uniform")]


_DRAWN: dict[str, Callable[[int, torch.Tensor, dict[str, Any]], list[float]]] = {
    **dict.fromkeys(("rand", "rand_like", "uniform_"), _uniform),
    **dict.fromkeys(("randn", "randn_like", "normal_"), _normal),
    **dict.fromkeys(("bernoulli", "bernoulli_"), _bernoulli),
    **dict.fromkeys(("randint", "randint_like"), _whole_numbers),
    "exponential_": _exponential,
    "multinomial": _multinomial,
}
