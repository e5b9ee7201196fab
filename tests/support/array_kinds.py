"""One table of rationals in every kind of array that the package computes with."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from flint import fmpq

from spectheory.foundation import exact_numbers


def objects(table: Any) -> np.ndarray:
    return np.array(table, dtype=object)


KINDS: dict[str, Callable[[Any], Any]] = {
    "Fraction": objects,
    "fmpq": lambda table: exact_numbers.to_flint(objects(table)),
    "float64": lambda table: objects(table).astype(float),
    "torch": lambda table: torch.tensor(objects(table).astype(float)),
}


def assert_is(found: Any, expected: Any, kind: str) -> None:
    """The same numbers, exactly for rationals, in the kind that went in."""
    if kind in ("Fraction", "fmpq"):
        assert {type(value) for value in found.ravel()} == {fmpq if kind == "fmpq" else Fraction}
        assert exact_numbers.to_fractions(found).tolist() == expected
    else:
        assert isinstance(found, torch.Tensor) == (kind == "torch")
        np.testing.assert_allclose(np.asarray(found), objects(expected).astype(float), rtol=0, atol=1e-15)
