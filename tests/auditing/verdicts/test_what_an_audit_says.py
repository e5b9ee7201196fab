"""One screen of an audit: tokens per call and the gap, rows of the counterexample, scope, time and badge."""

import csv
import json
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from audits.specimens.samplers import (
    batch_is_greedy_if_one_is,
    batch_token_verification,
    greedy_acceptance,
    residual_of_the_target,
    sample_and_compare,
    token_verification,
)
from cli_support import write_pair
from spectheory import audit, instances, optimum
from spectheory.auditing.rounds import by_calls
from spectheory.auditing.rounds.battery import QUICK, audit_pairs, pairs_of_several_paths
from spectheory.auditing.rounds.questions import QUICK_ONLY
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.command_line.audit_reports import badge_of, junit, sarif
from spectheory.command_line.main import main
from spectheory.command_line.tables import print_judgement
from spectheory.foundation.errors import InvalidInputError

PAIR = {"thirds": instances.two_token(2)}
LATE = "the time is up; the cases that were finished are in the scope"


def test_tokens_per_call_and_the_gap() -> None:
    """Of the pair with the largest gap; a wrong sampler has none, since its tokens are no gain."""
    pairs = {**PAIR, "equal models": instances.equal_models(2)}
    found = audit(sample_and_compare, pairs, drafts=1)
    best = optimum(pairs["equal models"]).value
    assert (found.optimum, found.gap) == (best, best - found.block_efficiency)
    assert found.gap == max(case.gap for case in found.cases if case.gap is not None)
    said = f"{float(found.block_efficiency or 0):.6g} on equal models, at most 3 without loss: gap "
    assert found.tokens_text().startswith(said)
    document = found.to_document()
    assert [Fraction(document[name]) for name in ("block_efficiency", "optimum", "gap")] == [
        found.block_efficiency, found.optimum, found.gap,
    ]  # fmt: skip
    assert f"tokens per call: {found.tokens_text()}".partition(": ")[2] in junit([found])
    (verdict,) = sarif([found])["runs"][0]["properties"]["verdicts"]
    assert verdict["tokens per call"] == found.tokens_text()
    assert "tokens per call" in found.to_latex()
    wrong = audit(greedy_acceptance, pairs, drafts=1)
    assert (wrong.optimum, wrong.gap, wrong.block_efficiency, wrong.tokens_text()) == (None, None, None, "")


def takes_the_draft(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Wrong: no coin, and the next token by numpy's legacy functions, which no run follows."""
    legacy: Any = np.random
    row = target_rows[0, -1].numpy().astype(float)
    return [int(paths[0, 0]), int(legacy.choice(len(row), p=row / row.sum()))]


def test_a_counterexample_has_the_basis_of_the_audit() -> None:
    """A law that was learned is never called one of rationals."""
    found = audit(takes_the_draft, {"thirds": instances.two_token(1)}, drafts=1, within=0.02)
    document = found.to_document()
    assert (document["verdict"], document["basis"]) == ("not lossless", "probed")
    assert document["counterexample"]["basis"] == "probed"
    assert found.counterexample is not None
    assert found.counterexample.basis == "rationals"  # the partner: the certificate alone does not know


def test_a_gap_that_is_rounding() -> None:
    """One drafted token: token verification is optimal, up to the floats of its coins."""
    found = audit(token_verification, {"two residual tokens": instances.two_residual_tokens(1)}, drafts=1)
    assert (
        found.tokens_text()
        == "1.75 on two residual tokens, at most 1.75 without loss: no gap beyond rounding"
    )


def test_the_screen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Verdict and basis, the counterexample with its rows, the scope in one line; the details if asked."""
    named = "audits.specimens.samplers:{} --as sampler --drafts 1 --vocab 2 --draft-length 1".format
    assert main(["audit", *named("greedy_acceptance").split(), "--badge", str(tmp_path / "a.svg")]) == 1
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("✗ not lossless (followed): greedy_acceptance on ")
    assert second.startswith("counterexample: the completed output starts with '0' with probability ")
    text = "\n".join(rest)
    assert "│ rows there " in text
    assert "target (" in text
    assert "│ scope " in text
    assert "│ arithmetic " not in text
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert main(["audit", *named("token_verification").split(), "--verbose"]) == 0
    first, second, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("✓ lossless (followed): token_verification on ")
    assert second.startswith("tokens per call: ")
    assert any(line.startswith("│ arithmetic ") for line in rest)


def test_the_badge_has_the_worst_verdict() -> None:
    right, wrong = (audit(each, PAIR, drafts=1) for each in (sample_and_compare, greedy_acceptance))
    for audits, said in (
        ([right], "lossless"), ([wrong], "not lossless"), ([right, wrong], "not lossless, 2 samplers"),
    ):  # fmt: skip
        picture = ElementTree.fromstring(badge_of(audits))
        assert [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")][1] == said


@pytest.mark.parametrize(
    ("sampler", "is_lossless"), [(sample_and_compare, True), (residual_of_the_target, False)]
)
def test_a_quick_audit(sampler: Any, is_lossless: bool) -> None:
    """Fewer pairs, which the scope says; a mistake with two paths is found."""
    found = audit(sampler, quick=True)
    assert found.is_lossless is is_lossless
    assert QUICK_ONLY in found.scope.refused
    assert {case.pair for case in found.cases} <= {*QUICK[1], *QUICK[2]}
    assert set(QUICK[1]) <= set(audit_pairs())
    assert set(QUICK[2]) <= set(pairs_of_several_paths(2))


def test_a_sampler_with_too_many_runs_is_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only loops, which have a run for almost every region, have few calls to learn a law after that."""
    monkeypatch.setattr(by_calls, "FEW_CALLS", 10)
    pairs = {"two residual tokens": instances.two_residual_tokens(1)}
    for most, basis in ((2, "probed"), (100, "followed")):
        sampler = Shipped(token_verification, "sampler", num_drafts=[1], max_runs=most)
        found = audit(sampler, pairs, within=0.02)
        assert (found.verdict, found.basis) == ("lossless", basis)


@pytest.mark.parametrize(("most", "is_followed"), [(2, False), (100, True)])
def test_two_calls_of_what_is_not_followed_are_said(most: int, is_followed: bool) -> None:
    pairs = {"two residual tokens": instances.two_residual_tokens(1)}
    found = audit(Shipped(token_verification, "sampler", num_drafts=[1], max_runs=most), pairs, within=0.02)
    words = "two calls in a row, as one is not followed"
    assert any(words in text for text in found.scope.refused) is not is_followed


@pytest.mark.parametrize("within", [0.0, -1.0, 1.0])
def test_the_error_of_a_learned_law_is_a_share(within: float) -> None:
    with pytest.raises(InvalidInputError, match="within must lie between 0 and 1"):
        audit(token_verification, PAIR, within=within)


def test_a_defect_in_batches_alone_is_said_so() -> None:
    """If no pair is judged; the partner with a pair is not said to have none."""
    found = audit(batch_is_greedy_if_one_is, PAIR, signature="batch")
    assert found.judgement()[1].endswith(" on 1 case")
    alone = replace(found, cases=())
    assert alone.judgement() == ("not lossless", f"{found.sampler}, in batches; no pair was judged")


@pytest.mark.parametrize(
    ("sampler", "is_lossless"), [(batch_token_verification, True), (batch_is_greedy_if_one_is, False)]
)
def test_batches_of_a_quick_audit(sampler: Any, is_lossless: bool) -> None:
    """One of every kind."""
    found = audit(sampler, PAIR, signature="batch", quick=True)
    assert found.is_lossless is is_lossless
    assert sorted(found.batches) == ["equal lengths", "greedy", "no drafts", "padded", "ragged"]


def test_an_audit_stops_with_what_was_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was seen: undecided; a defect that was seen stays one.  The partner has the time."""
    late = audit(sample_and_compare, PAIR, drafts=1, time_limit=0.0)
    assert (late.verdict, late.reasons[0]) == ("undecided", LATE)
    assert audit(sample_and_compare, PAIR, drafts=1, time_limit=600.0).is_lossless
    words = "audit audits.specimens.samplers:token_verification --as sampler --time 0 --json"
    assert main(words.split()) == 4
    assert json.loads(capsys.readouterr().out)["reasons"] == [LATE]
    calls, clock = list[int](), time.monotonic

    def counted(*given: Any) -> list[int]:
        calls.append(1)
        return greedy_acceptance(*given)

    monkeypatch.setattr(time, "monotonic", lambda: clock() + 1e6 * (len(calls) > 200))
    found = audit(counted, {**PAIR, "again": instances.two_token(3)}, drafts=1, time_limit=1e5)
    assert found.is_defective
    assert LATE in found.scope.refused


@pytest.mark.parametrize(("seconds", "is_judged"), [("0", False), ("600", True)])
def test_without_a_case_nothing_was_measured(
    seconds: str, is_judged: bool, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """No format names a distance, a basis or a tolerance that no case has shown.  The partner has a case."""
    words = "audit audits.specimens.samplers:token_verification --as sampler --drafts 1"
    words += f" --pair {write_pair(tmp_path, draft_length=1)} --time {seconds}"
    measured = ("total_variation", "forbidden", "basis", "within", "would_have_been_seen")
    main([*words.split(), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert [document[name] is not None for name in measured] == [is_judged] * len(measured)
    main([*words.split(), "--csv", "--report", str(tmp_path / "a.xml"), "--report", str(tmp_path / "a.md")])
    header, row = csv.reader(capsys.readouterr().out.splitlines())
    cells = dict(zip(header, row, strict=True))
    assert [cells[name] != "" for name in measured] == [is_judged] * len(measured)
    found = audit(token_verification, PAIR, drafts=1, time_limit=float(seconds))
    printed = [(tmp_path / name).read_text(encoding="utf-8") for name in ("a.xml", "a.md")]
    for text in (*printed, json.dumps(sarif([found])), found.to_latex()):
        assert ("here up to" in text) is is_judged
        assert "0 cases" not in text
    assert (">undecided<" in badge_of([found])) is not is_judged


def test_samplers_in_several_processes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same documents in the same order, a counterexample among them."""
    pair = write_pair(tmp_path, draft_length=1)
    names = ["token_verification", "greedy_acceptance"]
    words = ["audit", *(f"audits.specimens.samplers:{name}" for name in names), "--as", "sampler", "-k", "1"]
    printed = []
    for jobs in ("1", "2"):
        assert main([*words, "--pair", str(pair), "--json", "--jobs", jobs]) == 1
        printed.append(json.loads(capsys.readouterr().out))
    assert printed[0] == printed[1]
    assert [each["sampler"] for each in printed[1]["audits"]] == names
    assert printed[1]["audits"][1]["counterexample"]["counterexample"]["path"]


def ragged_fails(rows: list[Any], generator: Any) -> list[list[int]]:
    """Token verification of a batch that stacks its rows, as if all were equally long."""
    torch.stack([row.target_probs for row in rows])
    return batch_token_verification(rows, generator)


def test_what_was_left_out_is_on_the_screen_with_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The partner is the same sampler without the mistake."""
    for sampler, is_left_out in ((ragged_fails, True), (batch_token_verification, False)):
        found = audit(sampler, PAIR, signature="batch", quick=True)
        print_judgement(found, is_verbose=False)
        assert found.is_lossless
        assert ("stack expects each tensor to be equal size" in capsys.readouterr().out) is is_left_out


def other_order(paths: Any, draft_rows: Any, target_rows: Any, generator: Any) -> list[int]:
    """As ``token_verification``, in another order: only the target has a row after all drafts."""
    assert len(target_rows[0]) == len(paths[0]) + 1
    return token_verification(paths, target_rows, draft_rows, generator)


def test_a_sampler_that_raises_is_shown_its_error_first(capsys: pytest.CaptureFixture[str]) -> None:
    """It may be called in another order than it expects; a wrong law is shown its counterexample first."""
    for sampler, start in (
        (other_order, "because: it makes no valid output"),
        (greedy_acceptance, "counterexample:"),
    ):
        print_judgement(audit(sampler, PAIR, drafts=1), is_verbose=False)
        assert capsys.readouterr().out.splitlines()[1].startswith(start)
