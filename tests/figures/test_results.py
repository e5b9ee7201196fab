"""Tables that are built row by row, claims that are tried case by case, and their file."""

import json
from fractions import Fraction

import pytest

from figures.results import Check, Checks, Findings, ResultTable, as_float, lines_of_rows
from spectheory.foundation.errors import InvalidInputError


def test_a_claim_holds_where_every_case_does() -> None:
    checks = Checks()
    for number in range(5):
        checks.expect("numbers are below 5", number < 5, f"{number}")
        checks.expect("numbers are below 1", number < 1, f"{number}")
    good, bad = checks
    assert (good.passed, good.evidence) == (True, "5 of 5")
    assert (bad.passed, bad.evidence) == (False, "4 of 5 failed: 1; 2; 3; ...")
    assert not Check("nothing was tried").passed
    assert Findings("", [], checks).failures == ["numbers are below 1: 4 of 5 failed: 1; 2; 3; ..."]


def test_rows_have_the_columns_of_the_first() -> None:
    table = ResultTable("t", "")
    table.add(pair="a", value=Fraction(1, 3))
    with pytest.raises(InvalidInputError, match="a row of t has the columns pair, value, got value, pair"):
        table.add(value=1, pair="a")
    table.add(pair="b", value=0.5)
    assert table.select(pair="a") == [{"pair": "a", "value": Fraction(1, 3)}]
    assert table.where(pair="a").rows == [("a", Fraction(1, 3))]
    assert table["value"] == [1 / 3, 0.5]
    assert table.distinct("pair") == ["a", "b"]


def test_texts_of_rationals_are_drawn_as_numbers_and_others_are_not() -> None:
    assert [as_float(value) for value in ("-1/3", "2", "2,1,1", "V = 2", True, None)] == [
        -1 / 3, 2.0, "2,1,1", "V = 2", True, None,
    ]  # fmt: skip


def test_a_file_has_a_line_per_row_and_reads_back() -> None:
    table = ResultTable("t", "c", ("a", "b"), [(["x"], Fraction(1, 3)), ([], None)])
    findings = Findings("e", [table], [Check("c", 1)], {"shapes": [[1, 2]], "seed": 3})
    text = lines_of_rows(findings.to_document())
    assert sum(line.strip().startswith(('[["x"], "1/3"]', "[[], null]")) for line in text.splitlines()) == 2
    assert Findings.from_document(json.loads(text)).to_document() == findings.to_document()
