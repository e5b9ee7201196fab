"""Commands on enumerated pairs and single positions: their numbers and exit codes."""

import csv
import json
from fractions import Fraction
from pathlib import Path

import pytest

from cli_support import OWN_VERIFIER, run_json, write_pair
from deep import first_is_quick
from spectheory import instances
from spectheory.command_line.main import main
from spectheory.verification.algorithms import verifiers


def test_certify_float_pair_has_null_exact_fields(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_pair(tmp_path, target=[0.25, 0.75], draft=[0.75, 0.25])
    document = run_json(capsys, "certify", path, "--verifier", "block")
    assert document["arithmetic"] == "float64"
    assert document["block_efficiency"] is None
    assert document["optimum"] is None
    assert document["optimum_float"] == pytest.approx(document["block_efficiency_float"], abs=1e-9)


def test_certify_own_verifier_and_its_wrong_partner(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, pair_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The right one is lossless (exit 0); drawing from p instead of the residual is not (exit 1).

    On the first token, P(A) of the wrong one is 2/3 * 1/2 + 2/3 * 1/2 * 1/3 = 4/9, not 1/3.
    """
    (tmp_path / "cli_own_verifier.py").write_text(OWN_VERIFIER, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    good = run_json(capsys, "certify", pair_file, "--verifier", "cli_own_verifier:FirstToken")
    assert (good["block_efficiency"], good["total_variation"]) == ("5/3", "0")

    wrong = ("certify", pair_file, "--verifier", "cli_own_verifier:ForgotTheResidual")
    document = run_json(capsys, *wrong, code=1)
    assert document["target_matching"] is False
    assert [stop.pop("length") for stop in document["counterexample"].pop("stops")] == [0, 1]
    assert document["counterexample"] == {
        "path": ["A"], "probability": "4/9", "target": "1/3", "drafts": [["A", "A"]], "given_drafts": "2/3",
    }  # fmt: skip

    assert main(list(wrong)) == 1
    sentence = "the completed output starts with 'A' with probability 4/9; the target gives 1/3"
    assert sentence in " ".join(capsys.readouterr().out.replace("│", " ").split())


def test_several_verifiers_are_compared_the_best_first(
    capsys: pytest.CaptureFixture[str], pair_file: str
) -> None:
    """In a table; documents and rows keep the order that was asked for."""
    names = ("token", "block")
    assert main(["certify", pair_file, "--verifier", ",".join(names)]) == 0
    out = capsys.readouterr().out
    assert "verifiers on this pair, the best first" in out
    assert out.index(" block ") < out.index(" token ")
    assert main(["certify", pair_file, "--verifier", ",".join(names), "--csv"]) == 0
    assert [row["verifier"] for row in csv.DictReader(capsys.readouterr().out.splitlines())] == [*names]


def test_optimum(capsys: pytest.CaptureFixture[str], pair_file: str) -> None:
    document = run_json(capsys, "optimum", pair_file, "--drafts", "2")
    assert set(document) == {"value", "value_float", "lower", "upper", "method", "status"}
    assert document["value"] == "212/81"
    assert document["lower"] <= 212 / 81 <= document["upper"]
    assert document["upper"] - document["lower"] < 1e-12
    assert main(["optimum", pair_file]) == 0
    assert "20/9 = 2.222222" in capsys.readouterr().out


def test_optimum_of_several_calls(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """theory.md Statement 4.9: block verification is optimal; in two calls it earns two times 20/9 here."""
    two_token = tmp_path / "two_token.json"
    instances.two_token(2).save(two_token)
    tokens = run_json(capsys, "optimum", str(two_token), "--calls", "2", "--memory", "0")
    assert (tokens["question"], tokens["value"], tokens["block"]) == ("tokens in 2 calls", "40/9", "40/9")
    assert tokens["value_float"] == tokens["block_float"] == pytest.approx(40 / 9)
    assert main(["optimum", str(two_token), "--tokens", "6", "--csv"]) == 0
    (calls,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert calls["value"] == calls["block"] == "728/243"
    assert main(["optimum", str(two_token), "--tokens", "6", "--memory", "0"]) == 0
    assert "728/243 = 2.995885" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "draft", "optimal", "kseq", "multi_round", "lower"),
    [
        ("1/3,2/3", "2/3,1/3", "8/9", 0.811420, "7/9", "2/3"),
        ("1/2,1/3,1/6", "1/6,1/3,1/2", "29/36", 0.75, "13/18", "29/48"),
    ],
)
def test_acceptance_reference_values(
    capsys: pytest.CaptureFixture[str],
    target: str,
    draft: str,
    optimal: str,
    kseq: float,
    multi_round: str,
    lower: str,
) -> None:
    """Two drafts; Lemma 3 is tight from above in both cases, and 1 - (1 - 1/2)^2 = 3/4 from below."""
    document = run_json(capsys, "acceptance", target, draft, "--drafts", "2")
    assert document["optimal"] == document["upper_bound"] == optimal
    assert document["lower_bound"] == lower
    assert document["multi_round"] == multi_round
    # spectrgbv2026 Eq. 5 is printed as an upper bound; with two drafts the optimum exceeds it here.
    assert Fraction(document["spectr_gbv_bound"]) < Fraction(optimal)
    assert document["kseq"] == pytest.approx(kseq, abs=1e-6)
    assert document["kseq_division_factor"] >= 1
    cut = document["minimising_set"]
    p, q = ([Fraction(value) for value in row.split(",")] for row in (target, draft))
    # The cut proves the value: alpha = p(H) + 1 - q(H)^2.
    assert sum(p[i] for i in cut) + 1 - sum(q[i] for i in cut) ** 2 == Fraction(optimal)
    assert main(["acceptance", target, draft, "-k", "2"]) == 0
    assert "multi-round" in capsys.readouterr().out


def test_a_minimum_cut_may_be_empty(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["acceptance", "1/2,1/2", "1/2,1/2", "-k", "2"]) == 0
    assert "optimal (OTM)" in capsys.readouterr().out


@pytest.mark.parametrize("num_drafts", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("target", "draft"),
    [("1/2,1/2", "1/2,1/2"), ("1,0", "0,1"), ("1/4,1/4,1/2,0", "1/4,1/4,0,1/2"), ("0.1,0.9", "0.75,0.25")],
)
def test_acceptance_order(
    capsys: pytest.CaptureFixture[str], target: str, draft: str, num_drafts: int
) -> None:
    """lower <= K-SEQ and lower, multi-round <= optimal <= upper (Lemma 3, Eq. 11), zeros included."""
    document = run_json(capsys, "acceptance", target, draft, "--drafts", str(num_drafts))
    optimal = Fraction(document["optimal"])
    assert Fraction(document["lower_bound"]) <= optimal <= Fraction(document["upper_bound"])
    assert Fraction(document["multi_round"]) <= optimal
    assert document["lower_bound_float"] - 1e-12 <= document["kseq"] <= float(optimal) + 1e-12


def test_acceptance_of_very_many_drafts(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("1/3,2/3", "2/3,1/3", "--drafts", "20000")
    document = run_json(capsys, "acceptance", *arguments)
    assert document["optimal"] == "1"
    assert document["multi_round_float"] == pytest.approx(1)


def test_acceptance_on_a_large_vocabulary(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is enumerated: 210 tokens and 30 drafts answer too."""
    row = [f"{i}/22155" for i in range(1, 211)]
    arguments = (",".join(row), ",".join(reversed(row)), "--drafts", "30")
    document = run_json(capsys, "acceptance", *arguments)
    assert document["lower_bound_float"] <= document["kseq"] <= document["optimal_float"]


def test_verifiers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run_json(capsys, "verifiers")["verifiers"]
    claims = {row["name"]: row["lossless"] for row in rows}
    assert claims == {name: verifier.lossless for name, verifier in verifiers.items()}
    assert not claims["greedy_block"]
    assert not claims["spectr_gbv"]
    assert {"name", "source", "num_drafts", "arithmetic", "draft_processes"} <= rows[0].keys()
    assert main(["verifiers"]) == 0
    assert "multi_round_without_replacement" in capsys.readouterr().out


@first_is_quick(
    ("arguments", "key"),
    [
        (["certify", "PAIR", "-v", "token"], None),
        (["certify", "PAIR", "-v", "token,block"], "certificates"),
        (["certify", "--suite", "quick", "-v", "greedy_multipath"], None),
        (["optimum", "PAIR"], None),
        (["verifiers"], "verifiers"),
        (["acceptance", "1/3,2/3", "2/3,1/3"], None),
    ],
    quick=2,
)
def test_csv_has_the_fields_of_json(
    capsys: pytest.CaptureFixture[str], pair_file: str, arguments: list[str], key: str | None
) -> None:
    """A line per result; nested values are JSON, what is null is empty."""
    arguments = [pair_file if argument == "PAIR" else argument for argument in arguments]
    document = run_json(capsys, *arguments)
    assert main([*arguments, "--csv"]) == 0
    captured = capsys.readouterr()
    rows, expected = list(csv.DictReader(captured.out.splitlines())), document[key] if key else [document]
    assert captured.err == ""
    assert len(rows) == len(expected)
    for row, entry in zip(rows, expected, strict=True):
        assert list(row) == list(entry)
        for field, value in entry.items():
            nested = isinstance(value, (dict, list))
            assert (json.loads(row[field]) if nested else row[field]) == (
                value if nested else "" if value is None else str(value)
            )
