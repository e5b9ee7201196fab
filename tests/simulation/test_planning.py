"""Plans: exact values of enumerated pairs, and measurements on language models of known laws."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest
import torch

from decoding_support import saved_pair, tiny_llama, tiny_pair
from spectheory import certify, instances, optimum, plan
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair
from spectheory.pairs.drafts import (
    ConfidenceTree,
    DraftProcess,
    Iid,
    PrefixTree,
    ShapedTree,
    WithoutReplacement,
)
from spectheory.pairs.pair import ModelPair
from spectheory.simulation import Plan, measuring, planning, simulate
from spectheory.simulation.candidates import (
    PLAIN,
    Candidate,
    _spread,
    _widths,
    candidates_of_models,
)
from spectheory.simulation.drawn_tree import drawn_tree
from spectheory.simulation.estimates import Tally
from spectheory.simulation.measuring import halves
from spectheory.simulation.parallel import Task
from spectheory.simulation.runs import looked_up
from spectheory.simulation.settings import SimulationSettings
from spectheory.verification.algorithms import verifiers
from spectheory.verification.outcome import Outcome

TARGET = ["1/2", "3/10", "1/5"]
"""The row of a model that reads nothing, so that the exact plan of the pair is that of the models."""
PROMPTS = [[a, b, c] for a in range(3) for b in range(3) for c in range(3)]
COSTS: dict[str, Any] = {"draft_cost": 0.1, "row_cost": 0.05}


def test_a_plan_of_a_pair_is_the_best_of_all_it_tried() -> None:
    """Against a list of candidates that is written down here, each with its exact law."""
    pair = instances.two_token(2)
    asked: list[Any] = [("block", Iid(1), length, length) for length in (1, 2)]
    asked += [("greedy_multipath", Iid(drafts), 1, drafts) for drafts in (2, 3, 4)]
    asked += [("greedy_multipath", Iid(2), 2, 4)]
    asked += [("naive_sampling", ConfidenceTree(nodes), 1, nodes) for nodes in (1, 2)]
    asked += [("naive_sampling", ConfidenceTree(nodes), 2, nodes) for nodes in (1, 2, 3, 4)]
    asked += [
        ("naive_sampling", ShapedTree(shape), 2, nodes) for shape, nodes in (((2, 1), 3), ((2, 0, 2), 4))
    ]
    values = [
        float(output_law(name, pair.truncate(length), process).block_efficiency)
        / (1 + 0.1 * length + 0.05 * rows)
        for name, process, length, rows in asked
    ]
    names = ["block", "greedy_multipath", "naive_sampling"]
    found = plan(pair, verifiers=names, target_rows=4, **COSTS)
    assert found.best.speed_up == pytest.approx(max(values))
    assert found.best.speed_up > min(values)
    others = [entry.speed_up for entry in found.choices if not entry.tied]
    assert others == sorted(others, reverse=True)
    process = asked[values.index(max(values))][1]
    assert found.optimum == optimum(pair.truncate(found.best.draft_length), process).value
    assert (found.costs, found.confidence, found.tokens_per_second) == ("given", None, None)


def test_exact_ties_go_to_fewer_rows() -> None:
    """Equal models accept every draft, and rows are free: more paths earn what one earns."""
    pair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 1)
    found = plan(pair, verifiers=["multi_round"], target_rows=3, draft_cost=0.1, row_cost=0.0)
    assert [(entry.target_rows, entry.tied) for entry in found.choices] == [
        (1, True), (2, True), (3, True), (0, False)
    ]  # fmt: skip
    assert found.num_tied == 3
    assert "2 tied, of no fewer rows" in found.headline()


def test_costs_decide_and_are_never_zero_by_default() -> None:
    """Without costs long drafts win, with dear rows one token, and with dearer ones no drafts."""
    pair = instances.random_float(1, 2, 3, 0.5)
    free, dear, dearest = (
        plan(pair, verifiers=["block"], target_rows=6, draft_cost=0.0, row_cost=cost)
        for cost in (0.0, 0.3, 9.0)
    )
    assert (free.best.draft_length, dear.best.target_rows, dearest.best.drafts) == (3, 1, "none")
    assert free.best.block_efficiency > dear.best.block_efficiency
    assert dearest.best.speed_up == 1
    assert dearest.headline().startswith("decode without drafts")
    default = plan(pair, verifiers=["block"], target_rows=6)
    again = plan(pair, verifiers=["block"], target_rows=6, draft_cost=0.15, row_cost=0.01)
    assert [entry.speed_up for entry in default.choices] == [entry.speed_up for entry in again.choices]
    assert (default.costs, again.costs) == ("assumed", "given")


def test_candidates_that_are_too_large_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With at most four tuples only one path of two tokens, or two drafts of one, are enumerated."""
    asked: dict[str, Any] = {"verifiers": ["greedy_multipath"], "target_rows": 4}
    whole = plan(instances.two_token(2), **asked)
    monkeypatch.setattr(planning, "MAX_TUPLES", 4)
    part = plan(instances.two_token(2), **asked)
    assert whole.skipped == 0
    assert "too large" not in whole.tables()[-1].note
    assert part.skipped == part.to_document()["skipped"] == whole.tried - part.tried > 0
    assert f"{part.skipped} too large to enumerate" in part.tables()[-1].note


@pytest.mark.parametrize(
    ("process", "tokens"),
    [
        (Iid(3), 6), (WithoutReplacement((2, 1)), 4), (PrefixTree((2, 2)), 6), (ShapedTree((2, 1)), 3),
        (ConfidenceTree(4), 0), (None, 0),
    ],
)  # fmt: skip
def test_the_drawing_has_the_tokens_of_the_drafts(process: DraftProcess | None, tokens: int) -> None:
    """As many as the target scores, and a line per path; a tree that depends on the text has no drawing."""
    lines = drawn_tree(process, 2)
    assert "".join(lines).count("○") == tokens
    assert len(lines) == (process.num_drafts if process and tokens else 0)


def reads_nothing(row: list[str]) -> Any:
    """A Llama with the same next row behind every text."""
    model = tiny_llama(0, len(row))
    pair = ModelPair.context_free_pair(row, row, 1).to_float()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights.fill_(0.0 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0)
        hidden = model.model(torch.zeros((1, 1), dtype=torch.long))[0][0, 0]
        model.lm_head.weight.zero_()
        model.lm_head.weight[:, 0] = torch.log(torch.tensor(pair.target[0][0])) / hidden[0]
    return model


@pytest.mark.parametrize(
    ("draft", "draft_cost", "row_cost", "chosen"),
    [
        (["1/10", "1/5", "7/10"], 0.01, 0.0, (4, 2)),
        pytest.param(["1/5", "1/2", "3/10"], 0.01, 0.15, (2, 2), marks=pytest.mark.deep),
        pytest.param(["1/5", "1/2", "3/10"], 2.0, 0.1, (0, 0), marks=pytest.mark.deep),
    ],
)
def test_models_of_a_known_pair_get_its_exact_plan(
    draft: list[str], draft_cost: float, row_cost: float, chosen: tuple[int, int]
) -> None:
    """The same choice, and intervals that have the exact numbers.  Other costs: another choice."""
    torch.set_num_threads(1)
    models = LanguageModelPair.of(reads_nothing(TARGET), reads_nothing(draft))
    pair, names = ModelPair.context_free_pair(TARGET, draft, 2), ["block", "greedy_multipath"]
    asked: dict[str, Any] = {"target_rows": 4, "draft_length": 2}
    asked |= {"draft_cost": draft_cost, "row_cost": row_cost}
    exact = plan(pair, verifiers=names, **asked)
    found = plan(models, PROMPTS, names, max_new_tokens=32, **asked)
    assert named(found.best) == named(exact.best)
    assert (found.best.target_rows, found.best.draft_length) == chosen
    numbers = {named(entry): entry for entry in exact.choices}
    assert len(found.choices) == 3
    for entry in found.choices:
        of_pair = numbers[named(entry)]
        assert entry.interval
        assert entry.interval[0] <= of_pair.block_efficiency <= entry.interval[1]
        assert entry.cost_interval == pytest.approx((of_pair.cost, of_pair.cost))
        assert entry.speed_up_interval
        assert entry.speed_up_interval[0] <= of_pair.speed_up <= entry.speed_up_interval[1]


def named(entry: Any) -> tuple[Any, ...]:
    return entry.verifier, entry.drafts, entry.draft_length


def drawn(mean: float, spread: float, *numbers: int) -> Tally:
    """40 calls behind each of so many prompts, with a mean of their own each."""
    draw, prompts = np.random.default_rng(numbers), numbers[0]
    tally = Tally.zeros(prompts, 4)
    tally.counted_lengths[:, 0] = 40
    tally.expected[:] = 40 * (mean + spread * draw.standard_normal(prompts))
    return tally


def noisy(self: measuring.Texts, task: Any, step: Any) -> dict[str, Tally]:
    """All drafts earn 2 tokens, with the same noise for a candidate behind the same prompts."""
    candidate = self.candidates[task.batch]
    if candidate == PLAIN:
        return {"": drawn(1.0, 0.0, len(self.prompts))}
    words = str((candidate.name, candidate.drafts, candidate.draft_length)).encode()
    return {"": drawn(2.0, 0.3, len(self.prompts), *words, *np.array(self.prompts).ravel().tolist())}


@pytest.mark.deep
@pytest.mark.parametrize("same_half", [False, True])
def test_what_is_reported_did_not_choose(monkeypatch: pytest.MonkeyPatch, same_half: bool) -> None:
    """The leader does not seem to earn more than 2.  The partner: it does where the same half reports it."""
    monkeypatch.setattr(measuring.Texts, "do", noisy)
    if same_half:
        monkeypatch.setattr(planning, "halves", lambda *asked: (halves(*asked)[0],) * 2)
    pair, errors = tiny_pair(), []
    for seed in range(40):
        found = plan(
            pair, PROMPTS, ["block", "greedy_multipath"], target_rows=6, draft_length=3, seed=seed,
            draft_cost=0.0, row_cost=0.0,
        )  # fmt: skip
        errors.append(float(found.choices[1].block_efficiency) - 2.0)
    assert found.best.target_rows == 1  # all are tied
    assert (np.mean(errors) > 4 * 0.3 / (13 * 40) ** 0.5) == same_half


@pytest.mark.deep
@pytest.mark.parametrize("together", [True, False])
def test_the_intervals_of_a_plan_hold_together(monkeypatch: pytest.MonkeyPatch, together: bool) -> None:
    """In at least 80 % of plans.  The partner: with the level of each candidate alone they do not."""
    monkeypatch.setattr(measuring.Texts, "do", noisy)
    monkeypatch.setattr(planning, "REPORTED", 6)
    if not together:
        report = planning.report
        monkeypatch.setattr(
            planning, "report", lambda trials, level: [report([one], level)[0] for one in trials]
        )
    pair, held = tiny_pair(), 0
    for seed in range(100):
        found = plan(
            pair, PROMPTS, ["block", "greedy_multipath"], target_rows=6, draft_length=3, seed=seed,
            confidence=0.8, draft_cost=0.0, row_cost=0.0,
        )  # fmt: skip
        ends = [entry.speed_up_interval for entry in found.choices if entry.verifier]
        held += all(low <= 2.0 <= high for low, high in filter(None, ends))
    assert (held >= 73) == together  # 0.8 x 100, less 1.8 standard deviations


class Clock:
    """Seconds that pass with the calls of the models alone: so many per call, and so many per token read."""

    def __init__(self, pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        for model, call, token in ((pair.target_model, 100.0, 1.0), (pair.draft_model, 5.0, 0.0)):

            def goes_on(_: Any, args: Any, named: Any, call: float = call, token: float = token) -> None:
                read = named.get("input_ids", args[0] if args else None)
                self.now += call + token * read.shape[1]

            model.register_forward_pre_hook(goes_on, with_kwargs=True)
        monkeypatch.setattr("spectheory.decoding.speed.time.perf_counter", lambda: self.now)


def test_measured_costs_are_those_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plain call takes 101 seconds, a drafted token 5, and a row one more."""
    pair = tiny_pair()
    Clock(pair, monkeypatch)
    monkeypatch.setattr("spectheory.simulation.cost.MOST_ROUNDS", 0)
    asked: dict[str, Any] = {"verifiers": ["block", "greedy_multipath"], "target_rows": 2, "draft_length": 2}
    measured = plan(pair, PROMPTS, max_new_tokens=4, **asked)
    given = plan(pair, PROMPTS, max_new_tokens=4, draft_cost=5 / 101, row_cost=1 / 101, **asked)
    assert [named(entry) for entry in measured.choices] == [named(entry) for entry in given.choices]
    for one, other in zip(measured.choices, given.choices, strict=True):
        assert one.cost == pytest.approx(other.cost)
        assert one.interval == pytest.approx(other.interval)
    assert [entry.target_rows for entry in measured.calls] == [0, 1, 2]
    assert [entry.target for entry in measured.calls] == pytest.approx([101, 102, 103])
    assert [entry.draft for entry in measured.calls] == [None, *[pytest.approx(5)] * 2]
    assert measured.tokens_per_second == pytest.approx(measured.best.speed_up / 101)
    assert (given.calls, given.tokens_per_second, measured.device) == ([], None, "cpu")
    assert f"{measured.tokens_per_second:.3g} tokens per second" in measured.headline()


def test_estimates_are_found_again_by_simulate() -> None:
    """Behind the half that did not choose, and with other random numbers."""
    pair, calls = tiny_pair(), []
    found = plan(
        pair, PROMPTS, ["block", "naive_sampling"], target_rows=2, draft_length=2, max_new_tokens=6, seed=3,
        progress=lambda done, total: calls.append((done, total)), **COSTS,
    )  # fmt: skip
    assert calls == [(number, 9) for number in range(1, 10)]
    assert (found.tried, len(found.choices), found.confidence) == (6, 3, 0.95)
    first, second = halves(PROMPTS, 3)
    assert sorted(first + second) == sorted(PROMPTS)
    assert (len(first), len(second)) == (14, 13)
    entry = next(one for one in found.choices if one.verifier)
    process = Iid(1) if entry.drafts == "iid:1" else ConfidenceTree(int(entry.drafts.partition(":")[2]))
    asked: dict[str, Any] = {"drafts": process, "draft_length": entry.draft_length, "max_new_tokens": 6}
    (again,) = simulate(pair, second, [entry.verifier], seed=4, confidence=1 - 0.05 / 3, **asked).estimates
    assert entry.block_efficiency == again.block_efficiency
    assert entry.interval == pytest.approx(again.interval)
    (other,) = simulate(pair, first, [entry.verifier], seed=3, **asked).estimates
    assert other.block_efficiency != entry.block_efficiency
    assert "95 % confidence" in found.tables()[0].note


@pytest.mark.filterwarnings("ignore::spectheory.foundation.errors.UnfinishedLineNotice")
def test_a_plan_goes_on_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After any line, also an incomplete one, the result and the bytes are those of an unbroken plan."""
    pair, timed = saved_pair(tmp_path), []

    def calls(loaded: Any, prompts: Any, shapes: Any, options: Any, fewest: int) -> np.ndarray:
        timed.append(len(prompts))
        return np.array([[[1.0, len(prompts) / 100, 1.0]] * len(shapes)] * fewest)

    monkeypatch.setattr(measuring, "time_calls", calls)

    def planned(file: Path, **changes: Any) -> Plan:
        asked = {"target_rows": 4, "draft_length": 2, "max_new_tokens": 4, "checkpoint": file} | changes
        return plan(pair, PROMPTS, ["block"], **asked)

    whole = planned(tmp_path / "whole")
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + (1 + 3) + (1 + 3)
    for kept in range(len(lines)):
        file = tmp_path / f"broken {kept}"
        file.write_bytes(b"".join(lines[: kept + 1]) + b"".join(lines[kept + 1 : kept + 2])[:9])
        timed.clear()
        assert planned(file) == whole
        assert timed == ([14, 13] if kept < 1 else [13] if kept < 5 else [])
        assert file.read_bytes() == b"".join(lines)

    def stop(done: int, total: int) -> None:
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planned(tmp_path / "interrupted", progress=stop)
    assert (tmp_path / "interrupted").read_bytes() == b"".join(lines[:7])
    for change, field in (({"seed": 1}, "seed"), ({"draft_cost": 0.1, "row_cost": 0.1}, "costs")):
        with pytest.raises(InvalidInputError, match=f"different in {field}"):
            planned(file, **change)


class AlwaysAccepts:
    name = "always_accepts"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        stops = 0 * target_rows[..., 0]
        stops[..., 0, -1] += 1
        return Outcome.from_rows(stops, target_rows)


def test_a_verifier_that_is_not_lossless_is_no_choice() -> None:
    """It would earn the most: more than any lossless one can."""
    pair = instances.two_token(1)
    found = plan(pair, verifiers=["block", AlwaysAccepts()], target_rows=2)
    assert (found.best.verifier, tuple(found.left_out)) == ("block", ("always_accepts",))
    assert "left out, because one call is not lossless on this pair: always_accepts" in found.tables()[0].note
    assert found.to_document()["left_out"] == ["always_accepts"]
    with pytest.raises(InvalidInputError, match="one call is not lossless on this pair: always_accepts"):
        plan(pair, verifiers=[AlwaysAccepts()], target_rows=2)


def test_the_limit_of_a_plan_is_an_upper_end() -> None:
    """On this pair only an interval is known, and no verifier is above its upper end."""
    pair = ModelPair.context_free_pair(["1/10", "9/10"], ["2/5", "3/5"], 7)
    found = plan(pair, verifiers=["greedy_multipath"], target_rows=14, draft_cost=0.0, row_cost=0.0)
    assert found.optimum is not None
    assert found.optimum >= found.best.block_efficiency
    certificate = certify("greedy_multipath", pair, 2)
    shown = certificate.shown()["optimum"]
    lower, upper = (float(end) for end in shown.split(" to "))
    assert lower < upper
    assert certificate.block_efficiency <= upper == float(certificate.best.upper)


def test_rows_are_the_drafted_tokens() -> None:
    block = verifiers["block"]
    for process, length, rows in (
        (Iid(3), 4, 12), (PrefixTree((2, 1, 2)), 3, 8), (WithoutReplacement((3, 1)), 2, 6),
        (ConfidenceTree(7), 4, 7), (ShapedTree((2, 1)), 2, 3),
    ):  # fmt: skip
        assert Candidate(block, process, length).target_rows == rows
    assert set(_widths(4, 2)) == {(1, 1), (1, 2), (1, 3), (2, 1)}
    assert _spread(6, (1, 2, 3)) == [1, 2, 3, 4, 6]


def test_every_candidate_is_within_the_budget() -> None:
    plain, *found = candidates_of_models(looked_up(planning.VERIFIERS), 8, 4)
    assert (plain, PLAIN.target_rows, PLAIN.cost(0.1, 0.2)) == (PLAIN, 0, 1)
    assert max(candidate.target_rows for candidate in found) == 8
    kinds = {(candidate.name, candidate.process and candidate.process.name) for candidate in found}
    assert kinds == {
        ("block", "iid"), ("scored_multipath", "iid"), ("traversal", "iid"),
        ("multi_round_without_replacement", "without_replacement"), ("naive_sampling", "confidence_tree"),
    }  # fmt: skip


def test_equal_prompts_are_in_one_half() -> None:
    first, second = halves(PROMPTS * 2, 0)
    assert not {*map(tuple, first)} & {*map(tuple, second)}
    assert len(first) + len(second) == 2 * len(PROMPTS)


def test_another_process_decodes_the_same_texts(tmp_path: Path) -> None:
    """The work of a task goes there without the weights that are loaded here."""
    settings = SimulationSettings(max_new_tokens=4)
    candidates = [Candidate(verifiers["block"], Iid(1), 1)]
    texts = measuring.Texts(saved_pair(tmp_path), candidates, PROMPTS, settings, 1)
    found = texts.do(Task(0, ()), lambda draws: None)[""]
    there = cloudpickle.loads(cloudpickle.dumps(texts))
    assert "models" in vars(texts.pair)
    assert "models" not in vars(there.pair)
    assert there.do(Task(0, ()), lambda draws: None)[""].to_document() == found.to_document()


def test_what_is_refused() -> None:
    pair = instances.two_token(2)
    for wrong, match in (
        ({"target_rows": 0}, "target_rows"), ({"draft_length": 0}, "draft_length"),
        ({"draft_cost": -1, "row_cost": 0}, "draft_cost must be a number of at least 0"),
        ({"draft_cost": 0, "row_cost": "1"}, "row_cost must be a number of at least 0"),
        ({"draft_cost": 0.1}, "row_cost was not given, and the other cost was"),
        ({"seed": 1}, "seed is an argument of language models"),
        ({"prompts": ["x"]}, "prompts is an argument of language models"),
        ({"max_prompt_tokens": 1}, "max_prompt_tokens is an argument of language models"),
    ):  # fmt: skip
        arguments: dict[str, Any] = {"target_rows": 4, **wrong}
        with pytest.raises(InvalidInputError, match=match):
            plan(pair, **arguments)
    with pytest.raises(InvalidInputError, match="no verifier takes drafts of so few rows"):
        plan(pair, verifiers=["multi_round_without_replacement"], target_rows=1)
    with pytest.raises(InvalidInputError, match="no verifier takes drafts of so few rows"):
        plan(tiny_pair(), PROMPTS, ["multi_round_without_replacement"], target_rows=1)
    with pytest.raises(InvalidInputError, match="at least 8 different prompts, got 2"):
        plan(tiny_pair(), PROMPTS[:2] * 4)
    with pytest.raises(InvalidInputError, match="max_new_tokens must be"):
        plan(tiny_pair(), PROMPTS, max_new_tokens=0)


def test_a_long_prompt_is_cut_as_its_error_says() -> None:
    pair = tiny_pair()
    long = [[token, *[0] * (pair.max_positions or 0)] for token in range(3)] + PROMPTS
    asked: dict[str, Any] = {"verifiers": ["block"], "target_rows": 1, "max_new_tokens": 2, **COSTS}
    with pytest.raises(InvalidInputError, match=r"max_prompt_tokens \(simulate and plan: --max-prompt"):
        plan(pair, long, **asked)
    assert plan(pair, long, max_prompt_tokens=3, **asked).tried == 2


def test_an_estimate_says_what_it_does_not_know() -> None:
    found = replace(plan(instances.two_token(1), verifiers=["block"], target_rows=1), unknown=["block"])
    assert found.headline().endswith("times plain decoding (not known to be lossless)")
    assert "not known to be lossless: block" in found.tables()[0].note
