"""Python's ``random`` and numpy's generators on handed numbers.

Python's functions call ``random`` and ``getrandbits``, so we replace these two.  numpy's functions call a bit
generator, a struct of C functions.  We put our own bit generator below the legacy functions, ``Generator``
and every name by which they were imported.  For functions that draw whole rows we replace numpy's Python
functions, so that the numbers of a race stay in one row.
"""

import ctypes
import math
import random
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spectheory.auditing.handing.numbers import (
    BITS,
    NOW,
    ONE,
    NotHandedError,
    Use,
    case_of,
    cuts_of,
    exponential,
    normal,
)

_UNIFORM = Use("uniform")
_HALF = Use("uniform", 1 << (BITS - 32))
"""A number of 32 bits."""


class Seeded:
    """The handed numbers of a generator: new numbers, or the numbers that belong to its seed.

    Args:
        name: the name of the generator.
        seed: the seed that the code gave; ``None`` for a generator without seed.
    """

    def __init__(self, name: str, seed: Any = None) -> None:
        self.name, self.seed, self.drawn = name, None if seed is None else repr(seed), 0

    def take(self, uses: Sequence[Use]) -> list[int]:
        if self.seed is None:
            return NOW.take(NOW.stream(), uses)
        self.drawn += 1
        state = (self.name, self.seed, self.drawn)
        return NOW.take(NOW.stream(state, None, f"{self.name} with a seed"), uses)

    def one(self, use: Use) -> int:
        (value,) = self.take((use,))
        return value


class HandedRandom(random.Random):
    """``random.Random`` with handed ``random`` and ``getrandbits``.  Its other methods call these two."""

    def __init__(self, seed: Any = None) -> None:
        self._numbers = Seeded("random.Random", seed)
        super().__init__(seed)

    def forget(self) -> None:
        """Forget the seed, and the stored second number of a pair of normal numbers."""
        self._numbers, self.gauss_next = Seeded("random.Random"), None

    def seed(self, a: Any = None, version: int = 2) -> None:
        self._numbers = Seeded("random.Random", a)
        super().seed(a, version)

    def getstate(self) -> Any:
        raise NotHandedError("the sampler reads the state of Python's generator, which handed numbers lack")

    def setstate(self, state: Any) -> None:
        raise NotHandedError("the sampler sets the state of Python's generator, which handed numbers lack")

    def random(self) -> float:
        return super().random() if NOW.point is None else self._numbers.one(_UNIFORM) / ONE

    def getrandbits(self, k: int) -> int:
        if NOW.point is None:
            return super().getrandbits(k)
        # More than 40 bits are not told apart: cuts are known to 2^-40.
        value = self._numbers.one(Use("uniform", max(1, ONE >> min(k, 40))))
        return value >> (BITS - k) if k <= BITS else value << (k - BITS)

    def choices(
        self, population: Any, weights: Any = None, *, cum_weights: Any = None, k: int = 1
    ) -> list[Any]:
        if NOW.point is None:
            return super().choices(population, weights, cum_weights=cum_weights, k=k)
        if cum_weights is not None:
            weights = np.diff([0, *cum_weights]).tolist()
        cuts = cuts_of([1.0] * len(population) if weights is None else list(map(float, weights)))
        uses = [Use("choice", 1, 0, cuts)] * k
        return [population[case_of(value, cuts)] for value in self._numbers.take(uses)]


class _Functions(ctypes.Structure):
    """``bitgen_t`` of numpy's C interface: a state, and functions for 64 bits, 32 bits, doubles, raw bits."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("state", "uint64", "uint32", "double", "raw")]


class HandedBits:
    """A bit generator for numpy.  It has a lock and a capsule, as numpy requires.

    Args:
        seed: the seed that the code gave.
        is_legacy: True if its users compute integers from the lower bits, not the upper bits.  We then
            reverse the bits, so that an integer corresponds to an interval of a coordinate.
    """

    def __init__(self, seed: Any = None, is_legacy: bool = False) -> None:
        self.lock, self.numbers, self.seed = threading.RLock(), Seeded("numpy.random", seed), seed
        made: dict[str, tuple[Any, Callable[[Any], Any]]] = {
            "uint64": (ctypes.c_uint64, lambda _: self._bits(_UNIFORM, 64, is_legacy)),
            "uint32": (ctypes.c_uint32, lambda _: self._bits(_HALF, 32, is_legacy)),
            "double": (ctypes.c_double, lambda _: self.numbers.one(_UNIFORM) / ONE),
        }
        self._kept = {
            name: ctypes.CFUNCTYPE(kind, ctypes.c_void_p)(function) for name, (kind, function) in made.items()
        }
        pointers = {name: ctypes.cast(function, ctypes.c_void_p) for name, function in self._kept.items()}
        self._functions = _Functions(**pointers, raw=pointers["uint64"])
        capsule = ctypes.pythonapi.PyCapsule_New
        capsule.restype, capsule.argtypes = (
            ctypes.py_object,
            [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
        )
        self._name = b"BitGenerator"
        self.capsule = capsule(ctypes.addressof(self._functions), self._name, None)

    def _bits(self, use: Use, count: int, is_legacy: bool) -> int:
        value = self.numbers.one(use) << max(count - BITS, 0) >> max(BITS - count, 0)
        return int(f"{value:0{count}b}"[::-1], 2) if is_legacy else value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotHandedError(f"the sampler uses {name} of numpy's bit generator, which handed numbers lack")


class HandedGenerator(np.random.Generator):
    """``numpy.random.Generator`` with handed rows.  Exponential and normal numbers are made by inversion."""

    def __init__(self, bits: HandedBits) -> None:
        super().__init__(bits)  # type: ignore[arg-type]
        self._bits = bits

    def random(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        return self._rows(size, _UNIFORM, lambda value: value / ONE, out)

    def standard_exponential(
        self, size: Any = None, dtype: Any = float, method: str = "zig", out: Any = None
    ) -> Any:
        return self._rows(size, Use("exponential"), exponential, out)

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        """Normal numbers.  numpy's own method would keep every second number for a later call."""
        return self._rows(size, _UNIFORM, normal, out)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return low + np.subtract(high, low) * self.random(_size_for(size, low, high))

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return loc + scale * self.standard_normal(_size_for(size, loc, scale))

    def exponential(self, scale: Any = 1.0, size: Any = None) -> Any:
        return scale * self.standard_exponential(_size_for(size, scale))

    def gumbel(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return loc - scale * np.log(self.standard_exponential(_size_for(size, loc, scale)))

    def _rows(self, size: Any, use: Use, made: Callable[[int], float], out: Any = None) -> Any:
        """Numbers in an array of the given size, whose last axis is a row; or in ``out``."""
        if out is not None:
            out[...] = self._rows(out.shape, use, made)
            return out
        shape = () if size is None else (size,) if isinstance(size, (int, np.integer)) else tuple(size)
        width = shape[-1] if shape else 1
        uses = [use._replace(row=place // width) for place in range(math.prod(shape))]
        values = [made(value) for value in self._bits.numbers.take(uses)]
        return values[0] if size is None else np.array(values).reshape(shape)


def _size_for(size: Any, *parameters: Any) -> Any:
    """The size of an array of numbers with these parameters, if the caller gives none."""
    return np.broadcast_shapes(*map(np.shape, parameters)) or None if size is None else size


GLOBAL_BITS = HandedBits(is_legacy=True)
"""The bit generator of numpy's legacy functions, inside ``handing``."""
_GLOBAL = HandedGenerator(GLOBAL_BITS)
LEGACY_ROWS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("random", "random_sample", "ranf", "sample"), _GLOBAL.random),
    **{
        name: getattr(_GLOBAL, name)
        for name in ("uniform", "standard_normal", "normal", "standard_exponential", "exponential", "gumbel")
    },
    "rand": lambda *shape: _GLOBAL.random(shape or None),
    "randn": lambda *shape: _GLOBAL.standard_normal(shape or None),
}
"""numpy's legacy functions that draw rows.  The others draw single numbers from the bit generator."""


def seed_globally(seed: Any = None) -> None:
    """Replaces ``numpy.random.seed``."""
    GLOBAL_BITS.numbers = Seeded("numpy.random", seed)
