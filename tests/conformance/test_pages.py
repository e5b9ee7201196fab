"""The pages of the suite show what the files and the judge say."""

import json

import numpy as np
import pytest

from audits.specimens.batch_engine import BatchEngine
from audits.specimens.batch_mistakes import MISTAKES
from conformance import judge
from conformance.choosing import answers_needed
from conformance.harness_runs import HARNESSES, HERE
from scripts import ROOT, load

engine_tests = load("benchmarks", "engine_tests")
power = load("benchmarks", "conformance_power")
CASES = judge.read_cases(HERE / "cases.jsonl")


def page(name):
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_head_and_number_of_core_cases_are_those_of_the_file():
    head = json.dumps(json.loads((HERE / "cases.jsonl").read_text().splitlines()[0]))
    assert head in page("conformance_format.md")
    core = sum(judge.applies(case, "token", ["core"]) for case in CASES)
    assert f"conforms to token: {core} cases" in page("conformance.md")


def test_profiles_claims_kinds_and_harnesses_are_on_the_page():
    text = page("conformance.md")
    for word in (*judge.CLAIMS, *{case["profile"] for case in CASES}, *(h.file for h in HARNESSES.values())):
        assert f"`{word}`" in text, word
    for kind in {case["kind"] for case in CASES}:
        assert f"| `{kind}` |" in page("conformance_format.md"), kind


@pytest.mark.parametrize(("calls", "change"), [(128, 0.40), (2048, 0.12), (32768, 0.035)])
def test_resolution_of_a_half_is_what_the_page_says(calls, change):
    """The change of a cell of 1/2 that these calls find; they do not find three quarters of it."""
    null = np.array([judge.loosened(0.5), judge.loosened(0.5), judge.ABSOLUTE])

    def needed(by):
        return answers_needed(np.array([0.5 + by, 0.5 - by, 0.0]) * 1e9, null, 0.0)

    assert needed(change) <= calls < needed(0.75 * change)


@pytest.mark.parametrize("title", ["vLLM, runner 1, greedy", "a port (3 tokens, 1 draft"])
def test_protocols_pass_the_right_engine_and_find_some_mistakes(title):
    passes = next(own for name, own in engine_tests.PROTOCOLS.items() if name.startswith(title))

    def verdict(engine):
        return passes(engine, np.random.default_rng(1))

    assert verdict(BatchEngine)
    assert not verdict(MISTAKES["bonus_always"] if "greedy" in title else MISTAKES["correction_from_target"])
    assert verdict(MISTAKES["one_coin_per_batch"])


def stored(name):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}-epyc-2core.json").read_text())


def test_tables_of_the_pages_are_the_stored_results():
    powers, protocols = stored("conformance_power"), stored("engine_tests")
    assert power.changed_table(powers["changed_laws"]) in page("conformance_format.md")
    table = engine_tests.page_table(protocols, powers["mistakes"])
    assert table in page("what_tests_miss.md")
    assert all(own["right_passes"] for title, own in protocols.items() if title != "mistakes")
    del protocols["mistakes"][1]
    assert engine_tests.page_table(protocols, powers["mistakes"]) != table


def test_powers_of_the_page_are_the_stored_ones():
    powers, text = stored("conformance_power"), " ".join(page("conformance_format.md").split())
    missed = {name: row["found"] for name, row in powers["mistakes"].items() if row["found"] < 1}
    said = ", ".join(f"`{name}`, found in {100 * share:.1f} %" for name, share in missed.items())
    assert f"8 bits ({said} of 3 000 runs)" in text
    sure = len(powers["mistakes"]) - len(missed)
    assert f"other {sure} designed mistakes, and each of the {len(powers['verifiers'])} known-wrong" in text
    assert all(row["found"] == 1 for row in powers["verifiers"].values())
    right = powers["right"]
    assert (
        f"{right['engines']} right engines raised no alarm in {right['runs']:,} runs".replace(",", " ")
        in text
    )
    assert f"$10^{{{right['largest_log10_e']:.1f}}}$" in text


def test_mistakes_that_were_not_seen_are_found_as_the_page_says():
    text = page("conformance_format.md")
    first, now = stored("conformance_held_out_first"), stored("conformance_held_out")
    assert now["mistakes"] == len(now["rows"]) >= 60
    assert now["found"] / now["mistakes"] >= 0.95
    assert f"The first run of the suite found {first['found']} of them" in text
    assert f"The suite of today finds {now['found']} of the {now['mistakes']}" in " ".join(text.split())
    assert len(now["missed"]) == now["mistakes"] - now["found"]
    assert "Missed are two:" in text
    assert all("0 of" in row["found"] for row in now["keep_the_law"].values())


def test_seconds_of_the_page_are_the_stored_ones():
    """The suite within 0.1 s in C and 5 s in numpy, the one file within 10 s."""
    rows = stored("conformance_harnesses")
    for name, row in rows.items():
        assert f"| {name} | {row['seconds']:.2f} |" in page("conformance.md"), name
    assert {"c", "javascript", "numpy", "one file"} <= set(rows)
    assert rows["c"]["seconds"] <= 0.1
    assert rows["numpy"]["seconds"] <= 5
    assert rows["one file"]["seconds"] <= 10
    assert rows["one file"]["passes"]
    verdicts = [verdict for row in rows.values() for verdict in row.get("verdicts", {}).values()]
    assert set(verdicts) == {"conforms"}


def test_right_samplers_of_other_rooms_conform_and_wrong_ones_do_not():
    """All but one: a coin of exactly 0, which is drawn once in 2^24 calls."""
    rows = stored("conformance_samplers")["samplers"]
    right = [row["verdict"] for row in rows.values() if not row["is_wrong"]]
    wrong = {name: row["verdict"] for name, row in rows.items() if row["is_wrong"]}
    assert (set(right), len(right) >= 20) == ({"conforms"}, True)
    assert {name for name, verdict in wrong.items() if verdict != "does not conform"} == {
        "boundary_comparison"
    }
    assert len(wrong) >= 50
