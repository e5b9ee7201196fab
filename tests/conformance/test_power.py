"""What the suite finds, in 20 runs of each: mistakes, right engines, known-wrong verifiers."""

import json

import numpy as np
import pytest

from audits.specimens.batch_mistakes import BELOW_RESOLUTION, HARMLESS
from audits.specimens.drafting_mistakes import LOGPROB_MISTAKES, DraftingEngine, TwoCallEngine
from conformance import judge
from conformance.case_forms import batch_of
from conformance.simulation import plays, simulated
from scripts import ROOT, load

power = load("benchmarks", "conformance_power")
RESULT = json.loads((ROOT / power.RESULT).read_text())
RUNS = 20


def test_every_designed_mistake_is_found():
    """Each in all of 20 runs, by the case that found it before."""
    known = {name: row["by"] for name, row in RESULT["mistakes"].items()}
    found = {name: share for name, _, share, _ in power.power_of_mistakes(RUNS, known)}
    assert set(found) == set(known)
    assert {name for name, share in found.items() if share < 1} <= set(BELOW_RESOLUTION)


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
