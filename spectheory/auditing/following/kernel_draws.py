"""Random numbers that Triton kernels compute from a seed and a counter.

Function, seed and counter identify such a number.  If a sampler reads one number twice, this is a finding.
We assume that different numbers are independent and uniform, as Philox promises.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from spectheory.auditing.following.operations import DerivedSeed
from spectheory.auditing.following.random_array import RandomArray, lanes_of, random_array, settled
from spectheory.auditing.tape.atoms import UNIFORM, Grid, Number, Source
from spectheory.auditing.tape.decisions import NotEnumerableError, Tape
from spectheory.auditing.tape.races import Exponential, ExponentialDraw

INTERPRETER = "triton.runtime.interpreter"


class PhiloxGrid(Grid):
    """The law of ``tl.rand``: integers, rounded to float32, times a scale that keeps them below 1."""

    def value(self, atom: int) -> float:
        """The value of an atom, in the kernel's arithmetic."""
        scale = np.float32(4.6566127342e-10 if self.atoms == 2**31 else 1.0842020432385337e-19)
        return float(np.int64(atom).astype(np.float32) * scale)


RAND = {
    bits: PhiloxGrid(f"whole numbers of {bits - 1} bits, scaled in float32", 2 ** (bits - 1), torch.float32)
    for bits in (32, 64)
}
"""Bits of the counter -> grid; the sign is folded."""


def read_again(name: str, reader: str, calls: int, is_used: bool) -> Iterator[tuple[str, str]]:
    """Yield the finding that a function reads numbers that were read before.

    If such a number decided nothing in an earlier call, it is as good as new, and there is no finding.

    Args:
        name: the function.
        reader: who read the numbers before, in words.
        calls: how many calls ago.
        is_used: whether a decision depended on them.
    """
    if not calls:
        yield "randomness", f"{name} reads random numbers that {reader} has read before"
    elif is_used:
        yield "randomness", f"{name} reads random numbers that {reader} has used in the call before"


class Draws:
    """Keeps the numbers that kernels read in one run."""

    def __init__(self, tape: Tape, primitives: set[str], findings: set[tuple[str, str]]) -> None:
        self.tape, self.primitives, self.findings = tape, primitives, findings
        self._read: dict[tuple[Any, ...], tuple[int, Any]] = {}

    def block(
        self, name: str, law: str, make: Callable[[Tape], Any], seed: Any, counter: Any, lane: Any = None
    ) -> Any:
        """Make a Triton tensor with one number per entry of the last counter.

        Args:
            name: the name of the random function.
            law: the law of its numbers, in words.
            make: makes a new number.
            seed, counter, lane: integers or Triton tensors.  Only the last argument given may be a block.
        """
        if self.tape.again is not None:
            raise NotEnumerableError("a run with numbers that a kernel makes is not made again with others")
        self.primitives.add(f"{name}: {law}")
        last = counter if lane is None else lane
        first = (_seed(seed), 0 if lane is None else _whole(counter))
        counters = _entries(last)
        entries = counters.ravel().tolist()

        def number(place: int) -> Any:
            key = name, *first, entries[place]
            if key in self._read:
                call, found = self._read[key]
                self.findings.update(read_again(name, "it", self.tape.call - call, found.is_used))
            else:
                self._read[key] = self.tape.call, make(self.tape)
            return self._read[key][1]

        return _tensor(random_array(np.zeros(counters.shape, np.float32), True, number), "float32", last)


def _tensor(data: Any, dtype: str, shaped_as: Any) -> Any:
    interpreter = sys.modules[INTERPRETER]
    tl, shape = interpreter.tl, getattr(shaped_as, "shape", ())
    scalar = getattr(tl, dtype)
    kind = tl.block_type(scalar, list(shape)) if shape else scalar
    return tl.core.tensor(interpreter.TensorHandle(data, scalar), kind)


def _seed(arg: Any) -> Any:
    """Key of a seed: its value, or how it was derived."""
    data = getattr(getattr(arg, "handle", None), "data", None)
    lanes = lanes_of(data) if isinstance(data, RandomArray) else {}
    derived = [value for value in lanes.values() if isinstance(value, DerivedSeed)]
    return derived[0].key if len(derived) == 1 else _whole(arg)


def _entries(arg: Any) -> np.ndarray:
    arg = getattr(arg, "value", arg)
    return settled(arg.handle.data) if hasattr(arg, "handle") else np.array([arg], np.int32)


def _whole(arg: Any) -> int:
    return int(_entries(arg).item())


_CURRENT: list[Draws] = []


@contextmanager
def drawing(draws: Draws) -> Iterator[None]:
    """Inside this context, ``rand`` and the functions of ``gumbel_noise`` read the numbers of ``draws``."""
    _CURRENT.append(draws)
    try:
        yield
    finally:
        _CURRENT.pop()


def rand(seed: Any, offset: Any, n_rounds: Any = None) -> Any:
    """Replaces ``tl.rand(seed, offset)`` in a run that we follow."""
    grid = RAND[64 if _entries(offset).dtype.itemsize == 8 else 32]

    def make(tape: Tape) -> Number:
        return Number((Source(tape, grid),), np.float32, form=UNIFORM)

    return _CURRENT[-1].block("tl.rand", grid.name, make, seed, offset)


def randint(seed: Any, offset: Any, n_rounds: Any = None) -> Any:
    """Replaces ``tl.randint(seed, offset)`` for one offset.  Its number can only seed other numbers."""
    offsets = _entries(offset)
    if offsets.size != 1:
        raise NotEnumerableError(
            "a kernel draws several numbers from tl.randint, whose law is not known here"
        )
    key = ("tl.randint", _seed(seed), _whole(offset))
    _CURRENT[-1].primitives.add("tl.randint: a seed of other numbers, another one where its arguments differ")
    seeds = random_array(np.zeros(offsets.shape, np.int32), True, lambda _: DerivedSeed(key))
    return _tensor(seeds, "int32", offset)


def gumbel_noise(uniform: Any, log_complement: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Replace two functions of a library that computes Gumbel numbers as -log(-log(1-u)).

    In a run that we follow, -log(1-u) is an exponential random number.  Otherwise nothing changes.

    Args:
        uniform: (seed, counter, lanes) -> u, by a hash that the library computes.
        log_complement: u -> log(1-u).
    """

    def followed_uniform(seed: Any, counter: Any, lanes: Any) -> Any:
        if not _CURRENT:
            return uniform(seed, counter, lanes)
        name = uniform.__name__

        def make(tape: Tape) -> ExponentialDraw:
            return ExponentialDraw(Exponential(tape))

        law = "uniform in the unit interval, as real numbers"
        return _CURRENT[-1].block(name, law, make, seed, counter, lanes)

    def followed_logarithm(u: Any) -> Any:
        return -u if _CURRENT else log_complement(u)

    return followed_uniform, followed_logarithm


def elementwise(function: np.ufunc) -> Callable[[Any], Any]:
    """Build a device function that the interpreter lacks from a numpy function."""

    def apply(tensor: Any) -> Any:
        interpreter = sys.modules[INTERPRETER]
        with np.errstate(all="ignore"):
            data = function(tensor.handle.data)
        return interpreter.tl.core.tensor(interpreter.TensorHandle(data, tensor.handle.dtype), tensor.type)

    return apply
