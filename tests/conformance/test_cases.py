"""The files of the suite are what the code makes, and their laws are right."""

import json
from fractions import Fraction
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError

import conformance
from conformance import judge
from conformance.case_forms import TieError, exact_in_float32, grid, processed, request, row_of
from conformance.laws import SEPARATOR
from conformance.writing import files

HERE = Path(conformance.__file__).parent
CASES = judge.read_cases(HERE / "cases.jsonl")


def test_files_are_made_anew_byte_for_byte():
    for name, text in files().items():
        assert (HERE / name).read_text(encoding="utf-8") == text, f"{name}: run python -m conformance.writing"


def test_lines_keep_the_schema():
    lines = [json.loads(line) for line in (HERE / "cases.jsonl").read_text().splitlines()]
    validator = Draft202012Validator(json.loads((HERE / "schema.json").read_text()))
    for line in lines:
        validator.validate(line)
    del lines[1]["vocab"]
    with pytest.raises(ValidationError):
        validator.validate(lines[1])


def rows_of(case):
    requests = case.get("requests", [case])
    requests = [*requests, *(following for each in requests for following in each.get("then", []))]
    for each in requests:
        yield from each.get("weights", each["target"])
        yield from each["draft"]


def test_every_probability_that_a_sampler_gets_is_exact_in_float32():
    rows = [row_of(row) for case in CASES if case["kind"] != "range" for row in rows_of(case)]
    assert len(rows) > 1000
    assert all(exact_in_float32(row) for row in rows)
    assert not exact_in_float32({0: Fraction(1, 3)})


def token_law(drafts, target, draft):
    """Token verification, written out: what the library's law must be."""
    law, reach = {}, Fraction(1)
    for i, token in enumerate(drafts):
        p = target[i]
        if token < 0:
            for y, mass in p.items() if reach else ():
                law[(*drafts[:i], y)] = law.get((*drafts[:i], y), 0) + reach * mass
            return law
        chance = min(Fraction(1), p.get(token, Fraction(0)) / draft[i][token])
        left = {y: mass - draft[i].get(y, 0) for y, mass in p.items() if mass > draft[i].get(y, 0)}
        for y, mass in left.items() if reach and chance < 1 else ():
            law[(*drafts[:i], y)] = law.get((*drafts[:i], y), 0) + reach * (1 - chance) * mass / sum(
                left.values()
            )
        reach *= chance
    for y, mass in target[-1].items() if reach else ():
        law[(*drafts, y)] = law.get((*drafts, y), 0) + reach * mass
    return law


def test_laws_of_fixed_drafts_are_those_of_token_verification():
    compared = 0
    for case in CASES:
        for each in case.get("requests", ()) if case["kind"] in ("fixed", "logprobs") else ():
            if "token" in each["law"]:
                target, draft = ([row_of(row) for row in each[name]] for name in ("target", "draft"))
                law = {tuple(block): Fraction(mass) for block, mass in each["law"]["token"]}
                assert law == token_law(tuple(each["drafts"]), target, draft)
                compared += 1
    assert compared > 300


def test_laws_of_drafted_cases_have_the_rows_as_marginals():
    case = next(case for case in CASES if case["kind"] == "drafted")
    for each in case["requests"]:
        first = {}
        for block, mass in each["law"]["token"]:
            assert block[each["length"]] == SEPARATOR
            first[block[0]] = first.get(block[0], 0) + Fraction(mass)
        assert first == row_of(each["draft"][0])


def test_lossless_laws_are_the_target_s():
    """Given one-hot drafts, every completed block has the product of the target's rows."""
    own = request([0], [{0: Fraction(1, 4), 1: Fraction(3, 4)}, {2: Fraction(1)}], [{0: Fraction(1)}])
    assert own["law"]["lossless"] == [[[0, 2], "1/4"], [[1, 2], "3/4"]]
    half = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    assert "lossless" not in request([0], [half, half], [half])["law"]


def test_settings_are_applied_in_the_order_of_the_file():
    weights = {0: Fraction(16), 1: Fraction(4), 2: Fraction(1)}
    assert processed(weights, {"temperature": 0.5, "top_p": 0.9}, [], 0) == {0: Fraction(1)}
    assert processed(weights, {"temperature": 2, "top_k": 2}, [], 0) == {0: Fraction(2, 3), 1: Fraction(1, 3)}
    assert processed(weights, {"allowed": [[1, 2]]}, [], 0) == {1: Fraction(4, 5), 2: Fraction(1, 5)}
    with pytest.raises(TieError):
        processed({0: Fraction(1), 1: Fraction(1)}, {"temperature": 0}, [], 0)


def test_grids_refuse_probabilities_that_are_no_multiples():
    third = {1: Fraction(1, 3), 2: Fraction(2, 3)}
    own = request([0], [third, {0: Fraction(1)}], [{0: Fraction(1)}])
    with pytest.raises(ValueError, match="multiples"):
        grid("thirds", 3, 8, own, "")


def test_every_profile_and_kind_is_there():
    assert {case["kind"] for case in CASES} == {
        "fixed", "drafted", "calls", "logprobs", "pooled", "grid", "range",
    }  # fmt: skip
    assert {case["profile"] for case in CASES} >= {
        "core", "settings", "masks", "placeholders", "wide", "many", "precision", "block", "broken-rows",
        "coins", "lossless", "drafted", "paths", "logprobs", "calls",
    }  # fmt: skip


def test_requests_of_ragged_cases_have_rows_of_their_own():
    """Rows that are equal would hide a request that reads another's."""
    ragged = [case for case in CASES if case["id"].startswith("ragged")]
    assert {len(each["drafts"]) for case in ragged for each in case["requests"]} == {0, 1, 2, 3, 4}
    for case in ragged:
        rows = [json.dumps(each["target"]) for each in case["requests"]]
        assert len(set(rows)) == len(rows)
