"""Rows of probabilities: what is exact, what is float64, and what is refused."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from flint import fmpq

from spectheory.foundation.errors import InvalidPairError
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import parse_probs, parse_rows


@pytest.mark.parametrize("entry", ["1e999999999", "1e-999999999", "1" * 5000])
def test_numbers_of_absurd_length_are_refused(entry: str) -> None:
    with pytest.raises(InvalidPairError, match="too many digits"):
        parse_probs([entry, "0"])
    assert parse_probs(["1e-20", "0.99999999999999999999"]).sum() == 1


EXACT: dict[str, list[Any]] = {
    "texts": ["1/4", "0.75"],
    "numpy texts": list(np.array(["1/4", "3/4"])),
    "Fraction": [Fraction(1, 4), Fraction(3, 4)],
    "Decimal": [Decimal("0.25"), Decimal("75E-2")],
    "sympy": [sympy.Rational(1, 4), sympy.Rational(3, 4)],
    "flint": [fmpq(1, 4), fmpq(3, 4)],
    "all of them": ["1/4", Decimal("0.25"), sympy.Rational(1, 4), fmpq(1, 4)],
}
IN_FLOAT: dict[str, Any] = {
    "floats": [0.25, 0.75],
    "numpy array": np.array([0.25, 0.75]),
    "numpy array in float32": np.array([0.25, 0.75], dtype=np.float32),
    "numpy scalars": [np.float64(0.25), np.float32(0.75)],
    "numpy half precision": [np.float16(0.25), np.float16(0.75)],
    "arrays without axes": [np.array(0.25), np.array(0.75)],
    "tensor": torch.tensor([0.25, 0.75], dtype=torch.float64),
    "tensor in float32": torch.tensor([0.25, 0.75]),
    "tensor in bfloat16": torch.tensor([0.25, 0.75], dtype=torch.bfloat16),
    "tensor with a gradient": torch.tensor([0.25, 0.75], requires_grad=True),
    "tensors without axes": list(torch.tensor([0.25, 0.75])),
    "sympy's floats": [sympy.Float(0.25), sympy.Float(0.75)],
}


@pytest.mark.parametrize("kind", EXACT)
def test_rationals_of_any_library_are_exact(kind: str) -> None:
    row = parse_probs(EXACT[kind])
    assert row.sum() == 1
    assert row[0] == Fraction(1, 4)
    assert {type(entry) for entry in row} == {Fraction}
    assert ModelPair.context_free_pair(EXACT[kind], EXACT[kind], np.int64(2)).is_exact


@pytest.mark.parametrize("kind", IN_FLOAT)
def test_floats_of_any_library_are_float64(kind: str) -> None:
    """Also in a pair beside whole numbers, and never beside an exact row."""
    row = parse_probs(IN_FLOAT[kind])
    assert row.dtype == np.float64
    assert row.tolist() == [0.25, 0.75]
    assert ModelPair.context_free_pair(IN_FLOAT[kind], [0, 1], 1).arithmetic == "float64"
    with pytest.raises(InvalidPairError, match="exact and float entries are mixed"):
        ModelPair.context_free_pair(IN_FLOAT[kind], EXACT["sympy"], 1)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (True, "a probability cannot be True"),
        (np.True_, "a probability cannot be True"),
        (torch.tensor(True), "a probability cannot be True"),
        (None, "must be a string or a number, got None"),
        (0.5j, "must be a string or a number"),
        (sympy.sqrt(2) / 2, "must be a string or a number"),
        (Decimal("NaN"), "'NaN' is not a rational"),
        (Decimal("Infinity"), "'Infinity' is not a rational"),
        (Decimal("1E+999999"), "too many digits"),
        ([0.5], r"must be a string or a number, got \[0\.5\]"),
        (np.array([0.5]), "must be a string or a number, got array"),
    ],
)
def test_what_is_no_probability(entry: Any, message: str) -> None:
    with pytest.raises(InvalidPairError, match=message):
        parse_probs([entry, "1/2"])


@pytest.mark.parametrize(
    "row", ["1/3", b"1", 3, None, np.array(0.5), torch.tensor(0.5), {0.5, 0.25}, iter([0.5, 0.5])]
)
def test_what_is_no_row(row: Any) -> None:
    with pytest.raises(InvalidPairError, match="a row must be a list of probabilities"):
        parse_probs(row)
    with pytest.raises(InvalidPairError, match="must be a string or a number"):
        parse_probs(np.array([[0.5, 0.5]]))


WHOLE: dict[str, Any] = {
    "int": [0, 1],
    "numpy": np.array([0, 1]),
    "numpy scalars": [np.int64(0), np.uint8(1)],
    "sympy": [sympy.Integer(0), sympy.Integer(1)],
    "tensor": torch.tensor([0, 1]),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_whole_numbers_go_with_both(kind: str) -> None:
    assert parse_probs(WHOLE[kind]).tolist() == [Fraction(0), Fraction(1)]
    for other, exact in ((["1/2", "1/2"], True), ([0.5, 0.5], False)):
        rows = parse_rows({"whole": WHOLE[kind], "other": other})
        assert {row.dtype == object for row in rows.values()} == {exact}


def test_whole_numbers_beyond_float64_are_refused() -> None:
    """Beside a float they cannot be one; alone they are exact, and no law."""
    with pytest.raises(InvalidPairError, match="too large for a float64"):
        parse_probs([0.5, 10**400])
    assert parse_probs([10**400])[0] == 10**400
