"""Replace random functions of torch, Python and numpy by functions of handed numbers, inside a context."""

import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from spectheory.auditing.following.replacements import Replacement, not_compiled, only_one_at_a_time, replaced
from spectheory.auditing.handing.numbers import NOW, NotHandedError
from spectheory.auditing.handing.python_numbers import (
    GLOBAL_BITS,
    LEGACY_ROWS,
    HandedBits,
    HandedGenerator,
    HandedRandom,
    seed_globally,
)
from spectheory.auditing.handing.torch_numbers import HandedTorch

_LIBRARIES = {"torch", "numpy", "scipy", "random"}
"""We replace no names in modules of these libraries: their generators get handed numbers already."""


@contextmanager
def handing() -> Iterator[None]:
    """Inside this context, ``numbers.run_at`` hands its function all random numbers that the function draws.

    We do not replace generators of Python and numpy that existed before, generators in C, nor those of a
    device or of the system.  If a function draws from these, its answer is not a function of the numbers, and
    ``probe`` raises an error.

    Raises:
        InvalidInputError: another thread has replaced the random functions.
    """
    with ExitStack() as stack:
        stack.enter_context(only_one_at_a_time())
        legacy: Any = np.random
        before = legacy.get_bit_generator()
        stack.enter_context(replaced(_replacements()))
        legacy.set_bit_generator(GLOBAL_BITS)
        stack.callback(legacy.set_bit_generator, before)
        stack.enter_context(not_compiled())
        stack.enter_context(HandedTorch())
        stack.callback(NOW.forget)
        NOW.forget()
        yield


def _replacements() -> list[Replacement]:
    python = HandedRandom()
    owner = random.random.__self__  # type: ignore[attr-defined]
    new: dict[int, Any] = {}
    found: list[Replacement] = []
    for module, names in (
        (random, {name: getattr(python, name) for name in _methods_of(owner)}),
        (np.random, {**LEGACY_ROWS, "default_rng": _default_generator, "seed": seed_globally, **_REFUSED}),
    ):
        new |= {id(getattr(module, name)): function for name, function in names.items()}
        found += [(module, name, function) for name, function in names.items()]
    NOW.at_begin = [python.forget, seed_globally]
    found.append((random, "Random", HandedRandom))
    return found + [
        (module, name, new[id(value)])
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").partition(".")[0] not in _LIBRARIES
        for name, value in list(getattr(module, "__dict__", {}).items())
        if id(value) in new
    ]


def _methods_of(generator: random.Random) -> list[str]:
    """Names of the functions of ``random`` that are methods of its global generator."""
    return [name for name, value in vars(random).items() if getattr(value, "__self__", None) is generator]


def _default_generator(seed: Any = None) -> np.random.Generator:
    return seed if isinstance(seed, np.random.Generator) else HandedGenerator(HandedBits(seed))


def _state_of_numpy(*_: Any, **__: Any) -> Any:
    raise NotHandedError("the sampler uses the state of numpy's generator, which handed numbers lack")


_REFUSED = dict.fromkeys(("get_state", "set_state"), _state_of_numpy)
