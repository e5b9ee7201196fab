"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from spectheory.command_line.main import main

TWO_TOKEN = {
    "format": "spectheory-pair/1",
    "vocab": ["A", "B"],
    "draft_length": 2,
    "context_free": True,
    "target": ["1/3", "2/3"],
    "draft": ["2/3", "1/3"],
}
CERTIFY_KEYS = {
    "verifier", "vocab_size", "draft_length", "num_drafts", "arithmetic", "block_efficiency",
    "block_efficiency_float", "target_matching", "total_variation", "optimum", "optimum_float", "gap_float",
    "first_token_law", "worst_path",
}  # fmt: skip
OWN_VERIFIER = '''
from spectheory.arrays import divide_or_zero, namespace, normalise, positive_part, take_row, take_token
from spectheory.outcome import Outcome


class FirstToken:
    """Verifies the first drafted token and ignores the others."""

    name = "first_token"

    def residual(self, target, draft):
        return normalise(positive_part(target - draft))

    def outcome(self, paths, target_rows, draft_rows):
        target, draft, token = target_rows[..., 0, 0, :], draft_rows[..., 0, 0, :], paths[..., 0, 0]
        reject = positive_part(1 - divide_or_zero(take_token(target, token), take_token(draft, token)))
        stop_probs = 0 * target_rows[..., 0]
        stop_probs[..., 0, 0], stop_probs[..., 0, 1] = reject, 1 - reject
        rows = namespace(target).stack([self.residual(target, draft), target_rows[..., 0, 1, :]], axis=-2)
        return Outcome(stop_probs, lambda path_index, length: take_row(rows, length))


class ForgotTheResidual(FirstToken):
    """After a rejection it draws from the target, as if nothing had been rejected."""

    name = "forgot_the_residual"

    def residual(self, target, draft):
        return target
'''


@pytest.fixture
def pair_file(tmp_path: Path) -> str:
    return write_pair(tmp_path)


def write_pair(folder: Path, **changes: Any) -> str:
    path = folder / "pair.json"
    path.write_text(json.dumps(TWO_TOKEN | changes), encoding="utf-8")
    return str(path)


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, Any]:
    """The one JSON object a command prints; stderr must be empty and the exit code as expected."""
    assert main([*arguments, "--json"]) == code
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.count("\n") == 1
    document = json.loads(captured.out)
    assert isinstance(document, dict)
    return document


def run_error(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 2) -> str:
    """The one line on stderr of a command that fails; stdout must be empty."""
    assert main(list(arguments)) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    return captured.err


# ------------------------------------------------------------------------------------- certify


@pytest.mark.parametrize(
    ("verifier", "draft_length", "num_drafts", "efficiency", "best"),
    [
        ("token", 2, 1, "19/9", "20/9"),  # block2024 section 2: E[tau] = 10/9
        ("block", 2, 1, "20/9", "20/9"),  # and 11/9
        ("block", 8, 1, "26945/6561", "26945/6561"),
        ("greedy_multipath", 2, 2, "212/81", "212/81"),
    ],
)
def test_certify_two_token_values(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    verifier: str,
    draft_length: int,
    num_drafts: int,
    efficiency: str,
    best: str,
) -> None:
    path = write_pair(tmp_path, draft_length=draft_length)
    document = run_json(capsys, "certify", path, "--verifier", verifier, "--num-drafts", str(num_drafts))
    assert document.keys() >= CERTIFY_KEYS
    assert document["block_efficiency"] == efficiency
    assert document["optimum"] == best
    assert document["total_variation"] == "0"
    assert document["target_matching"] is True
    assert document["worst_path"] is None
    assert document["first_token_law"] == {"A": "1/3", "B": "2/3"}
    gap = float(Fraction(best) - Fraction(efficiency))
    assert document["gap_float"] == pytest.approx(gap, abs=1e-12)


def test_certify_float_pair_has_null_exact_fields(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_pair(tmp_path, target=[0.25, 0.75], draft=[0.75, 0.25])
    document = run_json(capsys, "certify", path, "--verifier", "block")
    assert document["arithmetic"] == "float64"
    assert document["block_efficiency"] is None
    assert document["optimum"] is None
    assert document["optimum_float"] == pytest.approx(document["block_efficiency_float"], abs=1e-9)


def test_certify_table_states_the_numbers(capsys: pytest.CaptureFixture[str], pair_file: str) -> None:
    assert main(["certify", pair_file, "--verifier", "block"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    for text in ("block: lossless", "20/9 = 2.222222", "A 1/3, B 2/3"):
        assert text in captured.out


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
    assert document["counterexample"] == {"path": ["A"], "law": "4/9", "target": "1/3"}

    assert main(list(wrong)) == 1
    sentence = "the completed output starts with A with probability 4/9; the target gives 1/3"
    assert sentence in " ".join(capsys.readouterr().out.replace("│", " ").split())


# --------------------------------------------------------------------- optimum and acceptance


def test_optimum(capsys: pytest.CaptureFixture[str], pair_file: str) -> None:
    document = run_json(capsys, "optimum", pair_file, "--num-drafts", "2")
    assert set(document) == {"value", "value_float", "lower", "upper", "method", "status"}
    assert document["value"] == "212/81"
    assert document["lower"] <= 212 / 81 <= document["upper"]
    assert document["upper"] - document["lower"] < 1e-12
    assert main(["optimum", pair_file]) == 0
    assert "20/9 = 2.222222" in capsys.readouterr().out


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
    document = run_json(capsys, "acceptance", "--target", target, "--draft", draft, "--num-drafts", "2")
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
    assert main(["acceptance", "--target", target, "--draft", draft, "-k", "2"]) == 0
    assert "multi-round" in capsys.readouterr().out


@pytest.mark.parametrize("num_drafts", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("target", "draft"),
    [("1/2,1/2", "1/2,1/2"), ("1,0", "0,1"), ("1/4,1/4,1/2,0", "1/4,1/4,0,1/2"), ("0.1,0.9", "0.75,0.25")],
)
def test_acceptance_order(
    capsys: pytest.CaptureFixture[str], target: str, draft: str, num_drafts: int
) -> None:
    """lower <= K-SEQ and lower, multi-round <= optimal <= upper (Lemma 3, Eq. 11), zeros included."""
    document = run_json(
        capsys, "acceptance", "--target", target, "--draft", draft, "--num-drafts", str(num_drafts)
    )
    optimal = Fraction(document["optimal"])
    assert Fraction(document["lower_bound"]) <= optimal <= Fraction(document["upper_bound"])
    assert Fraction(document["multi_round"]) <= optimal
    assert document["lower_bound_float"] - 1e-12 <= document["kseq"] <= float(optimal) + 1e-12


def test_acceptance_of_very_many_drafts(capsys: pytest.CaptureFixture[str]) -> None:
    """Rationals of tens of thousands of digits are printed."""
    arguments = ("--target", "1/3,2/3", "--draft", "2/3,1/3", "--num-drafts", "20000")
    document = run_json(capsys, "acceptance", *arguments)
    assert document["optimal"] == "1"
    assert document["multi_round_float"] == pytest.approx(1)


def test_acceptance_on_a_large_vocabulary(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is enumerated: 210 tokens and 30 drafts answer too."""
    row = [f"{i}/22155" for i in range(1, 211)]
    arguments = ("--target", ",".join(row), "--draft", ",".join(reversed(row)), "--num-drafts", "30")
    document = run_json(capsys, "acceptance", *arguments)
    assert document["lower_bound_float"] <= document["kseq"] <= document["optimal_float"]


# --------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"target": ["1/3", "1/3"]}, "sums to 2/3, not 1"),
        ({"target": [0.25, 0.5], "draft": [0.5, 0.5]}, "sums to 0.75, not 1"),
        ({"target": ["4/3", "-1/3"]}, "negative entry"),
        ({"draft": [0.5, 0.5]}, "mixed"),
        ({"target": ["1/3", "x"]}, "'x' is not a rational"),
        ({"target": ["1"]}, "one per token"),
        ({"draft_length": 0}, "draft_length must be a whole number of at least 1"),
        ({"vocab": ["A", "A"]}, "repeated"),
        ({"format": "other"}, "spectheory-pair/1"),
        (
            {"context_free": False, "target": {"": ["1/3", "2/3"]}, "draft": {"": ["2/3", "1/3"]}},
            "has no row at context",
        ),
    ],
)
def test_malformed_pairs_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    path = write_pair(tmp_path, **changes)
    assert expected in run_error(capsys, "certify", path, "--verifier", "block")
    assert expected in run_error(capsys, "optimum", path)


def test_unreadable_pair_files_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.json")
    assert "missing.json" in run_error(capsys, "certify", missing, "--verifier", "block")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    assert "is not JSON" in run_error(capsys, "optimum", str(broken))
    broken.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in run_error(capsys, "optimum", str(broken))
    assert "directory" in run_error(capsys, "optimum", str(tmp_path)).lower()


@pytest.mark.parametrize("num_drafts", ["0", "-1"])
def test_num_drafts_below_one(capsys: pytest.CaptureFixture[str], pair_file: str, num_drafts: str) -> None:
    for command in (
        ("certify", pair_file, "--verifier", "block"),
        ("optimum", pair_file),
        ("acceptance", "--target", "1/3,2/3", "--draft", "2/3,1/3"),
    ):
        error = run_error(capsys, *command, "--num-drafts", num_drafts)
        assert f"num_drafts must be a whole number of at least 1, got {num_drafts}" in error


def test_unknown_verifier_suggests_the_nearest(capsys: pytest.CaptureFixture[str], pair_file: str) -> None:
    assert "did you mean 'block'?" in run_error(capsys, "certify", pair_file, "--verifier", "blok")
    assert "did you mean 'token'?" in run_error(capsys, "simulate", "--verifier", "tokn")
    assert "cannot import" in run_error(capsys, "certify", pair_file, "--verifier", "no_such_module:name")


def test_enumeration_too_large_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_pair(tmp_path, draft_length=8)
    error = run_error(capsys, "certify", path, "--verifier", "spectr", "--num-drafts", "4")
    assert "spectheory simulate" in error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["certify"], "Missing argument"),
        (["certify", "x.json"], "Missing option"),
        (["certfy"], "No such command"),
        (["optimum", "x.json", "--nonsense"], "No such option"),
        (["optimum", "x.json", "--num-drafts", "two"], "not a valid integer"),
        (["acceptance", "--target", "1/3,2/3", "--draft", "1"], "one per token"),
        (["acceptance", "--target", "1/3,1/3", "--draft", "1/2,1/2"], "sums to 2/3"),
        (["acceptance", "--target", "", "--draft", ""], "rational"),
        (["simulate", "--samples", "1"], "at least 2"),
        (["simulate", "--verifier", ","], "at least one verifier"),
        (["simulate", "--verifier", "token,token"], "twice"),
        (["simulate", "--num-drafts", "0", "--samples", "2"], "num_drafts"),
        (["simulate", "--draft-length", "0", "--samples", "2"], "draft_length"),
        (["simulate", "--confidence", "1"], "confidence"),
        (["simulate", "--temperature", "0"], "temperature"),
        (["simulate", "--device", "abacus"], "device must be"),
        (["simulate", "--target", "./no-such-folder"], "does not exist"),
        (["simulate", "--prompts", "no-such-file.txt"], "cannot read the prompts"),
        (["reproduce", "acceptance_lenght"], "did you mean 'acceptance_length'?"),
    ],
)
def test_usage_errors_are_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    assert expected in run_error(capsys, *arguments)


def test_different_tokenizers_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from models_support import save_model, save_tokenizer

    for side, texts in (("target", ["import os"] * 4), ("draft", ["def main():"] * 4)):
        save_model(tmp_path / side, "llama", seed=1, layers=1)
        save_tokenizer(tmp_path / side, texts)
    capsys.readouterr()  # saving a model shows a progress bar
    arguments = ("simulate", "--target", str(tmp_path / "target"), "--draft", str(tmp_path / "draft"))
    assert "different tokenizers" in run_error(capsys, *arguments)


@pytest.mark.parametrize(
    ("tree", "optimal"), [("prefix_tree:2,1", "212/81"), ("without_replacement:2,1", None)]
)
def test_trees_of_drafts(
    capsys: pytest.CaptureFixture[str], pair_file: str, tree: str, optimal: str | None
) -> None:
    """A prefix tree of widths (2, 1) is two i.i.d. paths; two distinct first tokens are another law."""
    document = run_json(capsys, "certify", pair_file, "--verifier", "block", "--tree", tree)
    best = run_json(capsys, "optimum", pair_file, "--tree", tree)["value"]
    assert (document["num_drafts"], document["block_efficiency"]) == (2, "20/9")
    assert document["optimum"] == best
    assert (best == "212/81") is (optimal == "212/81")


@pytest.mark.parametrize("tree", ["prefix_tree", "comb:2,1", "prefix_tree:2,x", "prefix_tree:0,1"])
def test_bad_trees(capsys: pytest.CaptureFixture[str], pair_file: str, tree: str) -> None:
    error = run_error(capsys, "certify", pair_file, "--verifier", "block", "--tree", tree)
    assert "whole number" in error


def test_users_broken_verifier_is_one_line(
    capsys: pytest.CaptureFixture[str],
    pair_file: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An exception in a user's code is bad input (2), not a defect that was found (1)."""
    code = "class Boom:\n    def outcome(self, *arguments):\n        raise RuntimeError('why')\n"
    (tmp_path / "users_code.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    error = run_error(capsys, "certify", pair_file, "--verifier", "users_code:Boom")
    assert "'Boom' failed: RuntimeError: why" in error


def test_verifiers_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Every published verifier with what it claims; two of them do not claim to be lossless."""
    rows = run_json(capsys, "verifiers")["verifiers"]
    assert [row["name"] for row in rows if not row["lossless"]] == ["greedy_block", "spectr_gbv"]
    assert {"name", "source", "num_drafts", "arithmetic", "draft_processes"} <= rows[0].keys()
    assert main(["verifiers"]) == 0
    assert "multi_round_without_replacement" in capsys.readouterr().out


def test_solver_failure_is_one_line(
    capsys: pytest.CaptureFixture[str], pair_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import spectheory.programs
    from spectheory.errors import SolverError

    def fail(*arguments: Any, **options: Any) -> None:
        raise SolverError("the program\nended with status 'infeasible'")

    monkeypatch.setattr(spectheory.programs, "optimum", fail)
    assert "status 'infeasible'" in run_error(capsys, "optimum", pair_file)


# --------------------------------------------------------------------------------- simulate


@pytest.fixture(scope="module")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    from models_support import save_pair

    folder = tmp_path_factory.mktemp("tiny")
    target, draft = save_pair(folder, "llama")
    prompts = folder / "prompts.txt"
    prompts.write_text("def main(argument):\n\nimport argparse\n\nfor index in\n", encoding="utf-8")
    return ["--target", str(target), "--draft", str(draft), "--prompts", str(prompts), "--device", "cpu"]


def test_simulate(capsys: pytest.CaptureFixture[str], tiny_models: list[str]) -> None:
    arguments = ["simulate", *tiny_models, "--draft-length", "3", "--samples", "4", "--num-drafts", "2"]
    document = run_json(capsys, *arguments, "--verifier", "token,block,spectr,greedy_multipath")
    assert document["interrupted"] is False
    assert [e["verifier"] for e in document["estimates"]] == ["token", "block", "spectr", "greedy_multipath"]
    for estimate in document["estimates"]:
        low, high = estimate["interval"]
        assert 1 <= low <= estimate["block_efficiency"] <= high <= 5
        assert sum(estimate["length_probs"]) == pytest.approx(1, abs=1e-9)
        assert estimate["samples"] == 12
    assert run_json(capsys, *arguments, "--verifier", "token")["estimates"] == document["estimates"][:1]
    assert main([*arguments, "--verifier", "token"]) == 0
    assert f"{document['estimates'][0]['block_efficiency']:.4f}" in capsys.readouterr().out


def test_simulate_goes_on_from_a_checkpoint(
    capsys: pytest.CaptureFixture[str], tiny_models: list[str], tmp_path: Path
) -> None:
    file = str(tmp_path / "checkpoint.json")
    arguments = ["simulate", *tiny_models, "--draft-length", "2", "--samples", "2", "--checkpoint", file]
    first = run_json(capsys, *arguments)
    assert run_json(capsys, *arguments) == first
    assert "seed" in run_error(capsys, *arguments, "--seed", "1")


def test_simulate_interrupted(tiny_models: list[str], tmp_path: Path) -> None:
    """Ctrl-C: what is finished is printed, "interrupted" is true, one line on stderr, exit 130."""
    checkpoint = tmp_path / "checkpoint.json"
    command = [
        sys.executable, "-m", "spectheory", "simulate", *tiny_models, "--samples", "300", "--batch-size", "1",
        "--checkpoint", str(checkpoint), "--json",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.startswith("error: interrupted")
    assert err.count("\n") == 1
    assert json.loads(out)["interrupted"] is True


# --------------------------------------------------------------------------------- processes


def test_help_answers_at_once() -> None:
    """Nothing heavy is imported for --help: neither numpy nor torch nor rich."""
    code = (
        "import sys\nfrom spectheory.command_line.main import main\ncode = main(['--help'])\n"
        "heavy = {'numpy', 'torch', 'rich', 'scipy', 'matplotlib', 'cvxpy'} & set(sys.modules)\n"
        "sys.exit(code or bool(heavy))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for command in ("certify", "optimum", "acceptance", "simulate", "reproduce"):
        assert command in result.stdout


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("certify", "optimum", "acceptance", "simulate", "reproduce"):
        assert main([command, "--help"]) == 0
        assert "--json" in capsys.readouterr().out
    assert main([]) == 0
    assert "Usage: spectheory" in capsys.readouterr().out
    assert main(["--version"]) == 0
    assert "spectheory 0." in capsys.readouterr().out


def test_module_entry_point_and_closed_pipe(pair_file: str) -> None:
    """``python -m spectheory ... | true`` ends without a traceback."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "spectheory", "certify", pair_file, "--verifier", "block"]
    result = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert result.stderr == ""
    result = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    assert json.loads(result.stdout)["block_efficiency"] == "20/9"
