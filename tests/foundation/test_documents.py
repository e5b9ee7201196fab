"""Numbers in documents and in texts for people."""

import errno
import os
import re
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spectheory.foundation import documents
from spectheory.foundation.documents import (
    LONGEST_RATIONAL,
    both,
    decimal_text,
    exact_text,
    number_text,
    replace_file,
    to_json,
    value_text,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.pair import ModelPair


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (2, "2"),
        (100.0, "100"),
        (0.5, "0.5"),
        (-0.5, "-0.5"),
        (20 / 9, "2.222222"),
        (0.001, "0.001"),
        (0.0009999, "0.0009999"),
        (1.23456789e-12, "1.23457e-12"),
        (1e9, "1e+09"),
        (1 - 1e-9, "1.000000"),  # not 1
        (2 + 1e-9, "2.000000"),
        (Fraction(10**30 - 1, 10**30), "1.000000"),
        (Fraction(17, 20), "0.85"),
        (np.float64(0.25), "0.25"),
        (float("inf"), "inf"),
    ],
)
def test_decimals(value: Any, text: str) -> None:
    assert decimal_text(value) == text


@pytest.mark.parametrize(
    ("value", "with_decimal", "without"),
    [
        (Fraction(20, 9), "20/9 = 2.222222", "20/9"),
        (Fraction(2), "2", "2"),
        (Fraction(1, 10**9), "1/1000000000 = 1e-09", "1/1000000000"),
        (0.25, "0.25", "0.25"),
        (None, "-", "-"),
    ],
)
def test_numbers_for_people(value: Any, with_decimal: str, without: str) -> None:
    assert number_text(value) == value_text(value) == with_decimal
    assert number_text(value, decimal=False) == value_text(value, decimal=False) == without


def test_long_rationals_have_a_text_and_endless_files_have_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Python's own text of a whole number ends at 4300 digits."""
    long = Fraction(1, 10**5000)
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(4300)
    try:
        with pytest.raises(ValueError, match="4300 digits"):
            str(long)
        found = to_json(long), exact_text(long), number_text(long)
    finally:
        sys.set_int_max_str_digits(before)
    assert found[0] == found[1] == "1/1" + 5000 * "0"
    assert found[2].startswith("1/1000")
    assert to_json(Fraction(3)) == "3"
    file = tmp_path / "pair.json"
    file.write_bytes(b"12345")
    monkeypatch.setattr(documents, "MAX_BYTES", 5)
    assert documents.read_file(file) == b"12345"
    monkeypatch.setattr(documents, "MAX_BYTES", 4)
    with pytest.raises(InvalidInputError, match=r"pair\.json has more than 4 bytes"):
        documents.read_file(file)
    with pytest.raises(InvalidInputError, match=r"^\S*pair\.json has more than 4 bytes"):
        ModelPair.load(file)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the system names none, as on a full disk; nothing is left beside the old content."""
    file = tmp_path / "found.json"
    replace_file(file, "old")
    error = OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    monkeypatch.setattr(Path, "write_bytes", lambda self, data: (_ for _ in ()).throw(error))
    with pytest.raises(OSError, match=re.escape(f"'{file}'")):
        replace_file(file, "new")
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["old"]


@dataclass
class Outer:
    row: tuple[Any, ...]
    value: Any
    inner: Any = None


@given(value=st.fractions(min_value=-3, max_value=3, max_denominator=10**6))
def test_decimals_are_close(value: Fraction) -> None:
    """Within half a unit of the sixth decimal, or of the sixth digit; a whole text is the number itself."""
    text = decimal_text(value)
    assert abs(Fraction(text) - value) <= Fraction(51, 10**8)
    assert ("." in text or "e" in text) == (value.denominator != 1)


def test_long_rationals_are_cut() -> None:
    """At the limit a rational is whole; beyond it shows its first digits and always its decimal."""
    longest = Fraction(int("3" * 19 + "1"), 10**18)
    assert len(str(longest)) == LONGEST_RATIONAL
    assert number_text(longest, decimal=False) == str(longest)
    longer = Fraction(int("3" * 20 + "1"), 10**20)
    assert len(str(longer)) > LONGEST_RATIONAL
    for decimal in (True, False):
        assert number_text(longer, decimal=decimal) == "33333333333333333333... = 3.333333"
    assert to_json(longer) == exact_text(longer) == str(longer)  # documents have all of it
    assert both("value", longer)["value"] == str(longer)


def test_documents_hold_what_json_holds() -> None:
    """Also within one another."""
    nested = {"law": Outer((Fraction(1, 3), np.int64(2)), np.array([0.5]), None)}
    assert to_json(nested) == {"law": {"row": ["1/3", 2], "value": 0.5, "inner": None}}
    assert to_json([Outer((), True, Outer((), False))])[0]["inner"] == {
        "row": [],
        "value": False,
        "inner": None,
    }
