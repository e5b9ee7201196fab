"""The command prove: verdicts and exit codes, the file that it writes, and the check of that file."""

import sys
from pathlib import Path

import pytest

from cli_support import OWN_VERIFIER, run_error, run_json
from spectheory.command_line.main import main
from spectheory.exact.proof.proof_file import read, write

WRONG = "spectheory.verification.defective.corrections:DraftBonus"
SHAPE = ["--vocab-size", "2", "--draft-length", "1"]


def test_a_proof_is_written_and_checked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "block.proof")
    found = run_json(capsys, "prove", "block", *SHAPE, "--out", path)
    assert (found["verdict"], found["open_regions"], found["pair"]) == ("proved", 0, None)
    assert run_json(capsys, "prove", "--check", path)["regions"] == found["regions"]
    assert main(["prove", "--check", path]) == 0
    assert "proved: block is lossless on every pair with 2 tokens" in capsys.readouterr().out
    assert main(["prove", "--check", path, "token"]) == 4
    assert "undecided: the proof is rejected: it is of block, not of token" in capsys.readouterr().out


def test_the_pair_that_refutes_is_confirmed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "pair.json")
    assert run_json(capsys, "prove", WRONG, *SHAPE, "--out", path, code=1)["verdict"] == "refuted"
    assert run_json(capsys, "certify", path, "--verifier", WRONG, code=1)["target_matching"] is False


def test_a_statement_is_proved_and_checked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "proof")
    statement = ["--statement", "at_least:token"]
    found = run_json(capsys, "prove", "block", *SHAPE, *statement, "--verbose", "--out", path)
    assert (found["statement"], found["verdict"], len(found["formulas"])) == ("at_least:token", "proved", 4)
    assert main(["prove", "--check", path]) == 0
    assert "block is at_least:token on every pair" in capsys.readouterr().out
    shape = ["--vocab-size", "2", "--draft-length", "2", "--statement", "at_least:block", "--out", path]
    assert main(["prove", "token", *shape]) == 1
    assert "--verifier token,block confirms it" in capsys.readouterr().err


def test_a_search_that_stops_is_undecided(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["--vocab-size", "3", "--draft-length", "2"]
    found = run_json(capsys, "prove", "block", *shape, "--time-limit", "0.01", code=4)
    assert (found["verdict"], found["open_regions"]) == ("undecided", 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument 'VERIFIER'"),
        (["token"], "Missing option '--vocab-size'"),
        (["token", "--vocab-size", "2"], "Missing option '--draft-length'"),
        (["--check", "proof", "--vocab-size", "2"], "--check takes no --vocab-size"),
        (["kseq", *SHAPE], "computes in float64"),
        (["token", "--vocab-size", "1", "--draft-length", "1"], "vocab_size must be at least 2"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(["prove", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_partner_a_proof_that_was_changed_does_not_hold(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "proof"
    run_json(capsys, "prove", "token", *SHAPE, "--out", str(path))
    changes = (("domain", "some rows"), "some rows"), (("points", [["x"]]), "does not hold")
    for change, said in changes:
        changed = tmp_path / "changed"
        write(changed, read(path) | dict([change]))
        found = run_json(capsys, "prove", "--check", str(changed), code=4)
        assert (found["verdict"], found["lossless"]) == ("undecided", None)
        assert said in found["because"]
    path.write_bytes(b"no proof")
    assert "is not a proof" in run_error(capsys, "prove", "--check", str(path))


def test_a_check_imports_only_what_the_command_line_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_code.py").write_text(OWN_VERIFIER, encoding="utf-8")
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    path, name = str(tmp_path / "proof"), "own_code:FirstToken"
    assert main(["prove", name, *SHAPE, "--out", path]) == 0
    assert f"spectheory prove --check {path} {name} checks it" in " ".join(capsys.readouterr().err.split())
    assert "name a verifier of your own after the file" in run_error(capsys, "prove", "--check", path)
    assert run_json(capsys, "prove", "--check", path, name)["verdict"] == "proved"
    statement = f"at_least:{name}"
    assert main(["prove", "block", *SHAPE, "--statement", statement, "--out", path]) == 0
    assert f"{path} --statement {statement} checks it" in " ".join(capsys.readouterr().err.split())
    monkeypatch.delitem(sys.modules, "own_code")
    assert f"add --statement {statement}" in run_error(capsys, "prove", "--check", path)
    assert "own_code" not in sys.modules
    assert "not of 'law'" in run_error(capsys, "prove", "--check", path, "--statement", "law")
    assert run_json(capsys, "prove", "--check", path, "--statement", statement)["verdict"] == "proved"


def test_nothing_is_said_of_a_file_that_was_not_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "token", "--vocab-size", "2", "--draft-length", "1"]) == 0
    assert capsys.readouterr().err == ""
