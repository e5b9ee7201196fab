"""The command prove: verdicts and exit codes, the file that it writes, and the check of that file."""

from pathlib import Path

import pytest

from cli_support import run_json
from spectheory.command_line.main import main

WRONG = "spectheory.verification.defective.corrections:DraftBonus"
SHAPE = ["--vocab", "2", "--draft-length", "1"]


def test_a_proof_is_written_and_checked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "block.proof")
    found = run_json(capsys, "prove", "block", *SHAPE, "--out", path)
    assert (found["verdict"], found["open_regions"], found["pair"]) == ("proved", 0, None)
    assert run_json(capsys, "check", path)["statement"]["regions"] == found["regions"]
    assert main(["check", path]) == 0
    assert "block is lossless on every pair with 2 tokens" in capsys.readouterr().out
    assert main(["check", path, "token"]) == 1
    assert "it is of block, not of token" in capsys.readouterr().out


def test_the_pair_that_refutes_is_confirmed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "pair.json")
    assert run_json(capsys, "prove", WRONG, *SHAPE, "--out", path, code=1)["verdict"] == "refuted"
    assert run_json(capsys, "certify", path, "--verifier", WRONG, code=1)["target_matching"] is False


def test_a_statement_is_proved_and_checked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "proof")
    statement = ["--statement", "at_least:token"]
    found = run_json(capsys, "prove", "block", *SHAPE, *statement, "--show", "--out", path)
    assert (found["statement"], found["verdict"], len(found["formulas"])) == ("at_least:token", "proved", 4)
    assert main(["check", path]) == 0
    assert "block is at_least:token on every pair" in capsys.readouterr().out
    shape = ["--vocab", "2", "--draft-length", "2", "--statement", "at_least:block", "--out", path]
    assert main(["prove", "token", *shape]) == 1
    assert "--verifier token,block confirms it" in capsys.readouterr().err


def test_a_search_that_stops_is_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["--vocab", "3", "--draft-length", "2"]
    found = run_json(capsys, "prove", "block", *shape, "--time-limit", "0.01", code=4)
    assert (found["verdict"], found["open_share"]) == ("undecided", 1)


def test_an_undecided_search_is_resumed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "search")
    assert main(["prove", "block", *SHAPE, "--time-limit", "1e-9", "--out", path]) == 4
    assert f"--resume {path} goes on" in capsys.readouterr().err
    assert run_json(capsys, "prove", "block", *SHAPE, "--resume", path)["verdict"] == "proved"
    assert main(["prove", "token", *SHAPE, "--resume", path]) == 2
    assert "verifier_code" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["token"], "Missing option '--vocab'"),
        (["kseq", *SHAPE], "computes in float64"),
        (["token", "--vocab", "1", "--draft-length", "1"], "vocab_size must be at least 2"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(["prove", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_nothing_is_said_of_a_file_that_was_not_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "token", "--vocab", "2", "--draft-length", "1"]) == 0
    assert capsys.readouterr().err == ""
