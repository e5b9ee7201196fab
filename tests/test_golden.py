"""What the library said before it was made smaller, it says now: laws, optima, figures, estimates."""

import copy
import json

import pytest

import golden

PARTS_OF_TABLE = 40
"""The table of pairs is compared in so many parts, of which one is quick."""


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.deep) for part in range(1, PARTS_OF_TABLE))]
)
def test_laws_and_optima(part: int) -> None:
    for case in golden.cases()[part::PARTS_OF_TABLE]:
        found = golden.row_of_case(case)
        assert golden.differences(golden.kept_rows()[found["case"]], found) == []


@pytest.mark.parametrize("name", golden.PARTS)
def test_documents(name: str) -> None:
    kept = json.loads((golden.KEPT / f"{name}.json").read_text(encoding="utf-8"))
    assert golden.differences(kept, golden.PARTS[name]()) == []


def test_every_pair_and_verifier_is_golden() -> None:
    assert len(golden.kept_rows()) == len(golden.cases())
    """Those that came later have no golden number; those of then are all there."""
    asked = {name.split()[0] for row in golden.kept_rows().values() for name in row["verifiers"]}
    assert asked <= {*golden.verifiers, *golden.defects}
    assert len(asked) == 14 + 2 + 33


def test_partner_a_number_that_changed_is_named() -> None:
    """A rational, a float beyond its tolerance, a verdict, a digest, or one that is gone; not a sentence."""
    row = {"value": "5/3", "float": 0.5, "verdict": True, "law": "78cee404cd321dce", "words": "as it was"}
    for field, value in (("value", "5/4"), ("float", 0.5 + 1e-11), ("verdict", False), ("law", "0" * 16)):
        assert golden.differences([row], [row | {field: value}]) == [
            f"0.{golden.FIELDS.get(field, field)}: {row[field]!r} was golden, {value!r} is now"
        ]
        assert len(golden.differences([row], [{key: row[key] for key in row if key != field}])) == 1
    assert golden.differences([row], [row | {"float": 0.5 + 1e-13, "words": "another"}]) == []


@pytest.mark.parametrize(
    ("lower", "upper", "is_inside"),
    [(1.2, 1.8, True), (1.5, 1.5, True), (0.9, 1.5, False), (1.5, 2.1, False)],
)
def test_an_interval_may_become_narrower(lower: float, upper: float, is_inside: bool) -> None:
    kept = {"optimum": {"lower": 1.0, "upper": 2.0}}
    now = copy.deepcopy(kept) | {"optimum": {"lower": lower, "upper": upper}}
    assert (golden.differences(kept, now) == []) is is_inside
