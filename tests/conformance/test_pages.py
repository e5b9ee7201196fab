"""The pages of the suite show what the files and the judge say."""

import json
import tomllib
from fractions import Fraction

import numpy as np
import pytest

from audits.specimens.batch_engine import BatchEngine
from audits.specimens.batch_mistakes import MISTAKES
from conformance import judge
from conformance.choosing import answers_needed
from conformance.harness_runs import HARNESSES, HERE
from scripts import ROOT, load

engine_tests = load("benchmarks", "engine_tests")
held_out = load("benchmarks", "conformance_held_out")
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
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}-xeon-2core.json").read_text())


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


MISSED_OF_THE_SECOND = {
    "drafts in 8 bits": "Drafts in 8 bits lose",
    "draft is drawn from logits in bfloat16, and verified with rows in float32": "from logits in bfloat16,",
}


def second_set():
    """The edits of the second set, by name, and its stored result."""
    path = held_out.MISTAKES.with_stem("held_out_mistakes_second")
    mistakes = tomllib.loads(path.read_text(encoding="utf-8"))["mistake"]
    return {each["name"]: each for each in mistakes}, stored("conformance_held_out_second")


def test_second_set_of_unseen_mistakes_was_found_as_the_page_says():
    text = " ".join(page("conformance_format.md").split())
    mistakes, second = second_set()
    wrong = {name for name, each in mistakes.items() if "keeps_the_law" not in each}
    assert set(second["rows"]) == wrong
    assert second["keep_the_law"].keys() == mistakes.keys() - wrong
    assert len(wrong) == second["mistakes"] >= 64
    assert f"has {len(wrong)} mistakes that were written later" in text
    reports = sum("seen" in each for each in mistakes.values())
    assert f"{reports} follow public reports. Their first run found" in text
    share = 100 * second["found"] / second["mistakes"]
    assert f"found {second['found']} of the {second['mistakes']} ({share:.1f} %" in text
    missed = {name for name, row in second["rows"].items() if row["found"] == "0 of 1"}
    assert missed == set(second["missed"]) == set(MISSED_OF_THE_SECOND)
    assert len(missed) == second["mistakes"] - second["found"]
    assert all(said in text for said in MISSED_OF_THE_SECOND.values())
    assert all(row["found"] == "0 of 1" for row in second["keep_the_law"].values())
    assert {own["verdict"] for own in second["without_an_edit"]["verdicts"]} == {"conforms"}


def test_total_variation_of_the_missed_is_what_the_page_says():
    """A draft of token 39 999 that is never accepted, and draft rows from logits of 8 bits."""
    mistakes, _ = second_set()
    wide = next(case for case in CASES if case["id"] == "wide")
    assert (wide["draws"], wide["requests"][1]["drafts"][0]) == (24, 39999)
    law = judge.Law(wide["requests"][1]["law"]["token"])
    starts = [block[0] == 39999 for block in law.blocks]
    assert sum(mass for mass, is_kept in zip(law.masses, starts, strict=True) if is_kept) == 1 / 2
    for edits, some in ((mistakes["drafts in 8 bits"]["edits"], False), ([], True)):
        answers = list(held_out.edited(edits, 1)["play"](wide))
        assert any(39999 in call[1] for call in answers) is some
    gaps = []
    requests = [own for case in CASES if case["kind"] == "drafted" for own in case["requests"]]
    for own in requests:
        for row in own["draft"]:
            masses = np.array([float(Fraction(mass)) for _, mass in row], np.float32)
            bits = np.log(masses).view(np.uint32) + 0x8000 & 0xFFFF0000
            rounded = np.exp(bits.view(np.float32).astype(float))
            gaps.append(np.abs(rounded / rounded.sum() - masses).sum() / 2)
    assert 0.0005 < max(gaps) < 0.0015


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
