"""Rationals that count the operations on them: what an algorithm costs, independent of the machine."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.verification.algorithms import verifiers

OPERATIONS = ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "neg", "abs")
COMPARISONS = ("lt", "le", "gt", "ge", "eq")


class Counted(Fraction):
    """A rational; ``Counted.operations`` is how often any of them was computed with or compared."""

    operations = 0
    __hash__ = Fraction.__hash__


def _counting(name: str) -> Callable[..., Any]:
    plain = getattr(Fraction, name)

    def operation(self: Counted, *others: Any) -> Any:
        Counted.operations += 1
        result = plain(self, *others)
        return Counted(result) if isinstance(result, Fraction) else result

    return operation


for _name in (*OPERATIONS, *COMPARISONS):
    setattr(Counted, f"__{_name}__", _counting(f"__{_name}__"))


def rows(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Random rows without zeros or ties, [*shape]."""
    weights = rng.integers(1, 10_000, size=shape)
    table = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        table[index] = Counted(int(weights[index]), int(weights[index[:-1]].sum()))
    return table


def operations_of(name: str, vocab_size: int, num_drafts: int, draft_length: int) -> int:
    """How many operations the outcome of one tuple of drafts takes, correction rows not included."""
    V, K, L = vocab_size, num_drafts, draft_length
    rng = np.random.default_rng(0)
    paths = rng.permuted(np.tile(np.arange(V), (K * L, 1)), axis=1)[:, 0].reshape(1, K, L)
    target, draft = rows(rng, 1, K, L + 1, V), rows(rng, 1, K, L, V)
    Counted.operations = 0
    verifiers[name].outcome(paths, target, draft)
    return Counted.operations
