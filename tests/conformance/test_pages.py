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
