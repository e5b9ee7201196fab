"""What the suite finds, in 20 runs of each: mistakes, right engines, known-wrong verifiers."""

import hashlib
import json
import tomllib

import numpy as np
import pytest

from audits.specimens.batch_mistakes import BELOW_RESOLUTION, HARMLESS
from audits.specimens.drafting_mistakes import LOGPROB_MISTAKES, DraftingEngine, TwoCallEngine
from conformance import judge
from conformance.case_forms import batch_of
from conformance.simulation import plays, simulated
from scripts import ROOT, load

power = load("benchmarks", "conformance_power")
held_out = load("benchmarks", "conformance_held_out")
RESULT = json.loads((ROOT / power.RESULT).read_text())
RUNS = 20


def test_every_designed_mistake_is_found():
    """Each in all of 20 runs, by the case that found it before."""
    known = {name: row["by"] for name, row in RESULT["mistakes"].items()}
    found = {name: share for name, _, share, _ in power.power_of_mistakes(RUNS, known)}
    assert set(found) == set(known)
    assert {name for name, share in found.items() if share < 1} <= set(BELOW_RESOLUTION)


def test_committed_powers_are_those_that_are_claimed():
    """3 000 runs of each on the cases of today: every mistake that is not exempt in 0.999 of them."""
    cases = (ROOT / "conformance" / "cases.jsonl").read_bytes()
    assert RESULT["cases_sha256"] == hashlib.sha256(cases).hexdigest()[:16]
    assert RESULT["runs"] >= 3000
    assert set(RESULT["mistakes"]) == set(power.mistakes())
    missed = {name for name, row in RESULT["mistakes"].items() if row["found"] < 0.999}
    assert missed <= set(BELOW_RESOLUTION)
    shares = [row["found"] for row in RESULT["verifiers"].values()]
    assert min(shares[: power.SINGLE_PATH]) >= 0.999
    assert sum(share >= 0.999 for share in shares[power.SINGLE_PATH :]) >= 8
    assert min(row["least_power"] for row in RESULT["changed_laws"].values()) >= 0.999


def test_committed_runs_of_right_engines_have_no_alarm():
    assert RESULT["right"]["alarms"] == 0
    assert RESULT["right"]["engines"] >= 30
    assert RESULT["right"]["runs"] >= 15_000


def test_every_law_that_is_changed_by_1_64_fails_the_right_sampler():
    """After the stated numbers of answers; without a change it does not fail."""
    changed = power.changed_laws(RUNS)
    assert min(row["least_power"] for row in changed.values()) == 1
    assert {name.split(",")[0] for name in changed} >= {"fixed", "drafted", "calls", "logprobs", "pooled"}
    stored = RESULT["changed_laws"]
    assert {name: row["most_answers"] for name, row in changed.items()} == {
        name: row["most_answers"] for name, row in stored.items()
    }
    laws = [law for own in power.all_cases() for _, law, _ in power.laws_in(own)]
    rng = np.random.default_rng(2)
    for law in laws:
        right = np.array([*map(float, law.masses), 0.0])
        counts = rng.multinomial(max(row["most_answers"] for row in changed.values()), right, size=3)
        values = power.log_mixture(counts) - (counts * np.log(law.null)).sum(1)
        assert values.max() < judge.LIMIT


def test_right_engines_raise_no_alarm():
    """One run of each of the right engines, on core cases."""
    for number, engine in enumerate(power.right_engines().values()):
        assert power.largest_e_values(engine, 1, ["core"], number).max() < 6


def test_harmless_variants_are_not_found():
    for number, engine in enumerate(HARMLESS.values()):
        values = power.largest_e_values(engine, RUNS, ["core", "placeholders"], number)
        assert values.max() < 6


@pytest.mark.parametrize(("engine", "profile"), [(DraftingEngine, "drafted"), (TwoCallEngine, "calls")])
def test_engines_that_draft_or_are_called_twice_are_right(engine, profile):
    for own in power.cases_with_laws([profile]):
        assert simulated(plays(engine), own, RUNS, 1).max() < judge.LIMIT


def test_known_wrong_verifiers_are_found():
    """All of one path, and all but one of several paths, by their exact laws given the drafts."""
    shares = [share for _, _, share, _ in power.power_of_verifiers(RUNS)]
    assert [share for share in shares[: power.SINGLE_PATH] if share < 1] == []
    several = shares[power.SINGLE_PATH :]
    assert len(several) == 9
    assert sum(share == 1 for share in several) >= 8


def logprob_answers(own, reported):
    """Answers of a right engine that reports these log probabilities."""
    blocks = plays(power.BatchEngine)(own, own["draws"], np.random.default_rng(3)).tolist()
    batch = batch_of(own["requests"], own["vocab"])

    def answer(request, block):
        tokens = [token for token in block if token >= 0]
        logs = [reported(request.target, request.draft, i, token) for i, token in enumerate(tokens)]
        return {"tokens": tokens, "logprobs": logs}

    return [[answer(each, block) for each, block in zip(batch, call, strict=True)] for call in blocks]


def test_wrong_logprobs_are_found():
    own = next(own for own in power.all_cases() if own["kind"] == "logprobs")

    def verdict(reported):
        return judge.judge([own], {own["id"]: logprob_answers(own, reported)}, profiles=["logprobs"])[
            "verdict"
        ]

    assert verdict(lambda target, draft, i, token: float(np.log(target[i][token]))) == "conforms"
    for name, reported in LOGPROB_MISTAKES.items():
        assert verdict(reported) == "does not conform", name


def test_mistakes_that_were_not_seen_can_be_played():
    """Every edit fits the harness of today; one is found, and the harness without an edit is not."""
    paths = [held_out.MISTAKES, held_out.MISTAKES.with_stem("held_out_mistakes_second")]
    sets = [tomllib.loads(path.read_text(encoding="utf-8"))["mistake"] for path in paths]
    mistakes = [each for own in sets for each in own]
    assert len({each["name"] for each in mistakes}) == len(mistakes)
    for each in mistakes:
        assert callable(held_out.edited(each["edits"], 1)["play"]), each["name"]
    with pytest.raises(ValueError, match="occurs 0 times"):
        held_out.edited([("no such text", "")], 1)
    masks = next(each for each in mistakes if each["name"].startswith("no grammar mask"))
    verdicts = [held_out.verdict_on(held_out.edited(own, 1), ["masks"]) for own in (masks["edits"], [])]
    assert [own["verdict"] for own in verdicts] == ["does not conform", "conforms"]
