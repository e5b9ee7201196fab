"""plan: the three ways to ask, and what does not go together."""

from pathlib import Path

import pytest

from cli_support import run_error, run_json, write_pair
from spectheory.command_line.main import main


def test_a_pair_file_is_planned_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", write_pair(tmp_path), "--budget", "4", "--verifier", "greedy_multipath"]
    found = run_json(capsys, *asked)
    best = found["choices"][0]
    assert (best["drafts"], best["block_efficiency"], best["interval"]) == ("iid:2", "212/81", None)
    assert found["optimum"] == "212/81"
    dear = run_json(capsys, *asked, "--row-cost", "1")["choices"][0]
    assert (dear["target_rows"], dear["speed_up"] < best["speed_up"]) == (1, True)


def test_a_profile_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    found = run_json(capsys, "plan", "--profile", "3/5, 3/10", "--budget", "4", "--draft-length", "3")
    assert found["choices"][0]["block_efficiency"] == "619/250"
    assert main(["plan", "--profile", "0.6,0.3", "--budget", "4"]) == 0
    shown = capsys.readouterr().out
    assert "shaped_tree:2,1,0,1" in shown
    assert "verifier" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["PAIR", "--profile", "1/2"], "give one of them"),
        (["PAIR", "--temperature", "0.5"], "PAIR.json was given, and temperature is of language models"),
        (["--profile", "1/2", "--seed", "3"], "--profile was given, and seed is of language models"),
        (["--profile", "1/2", "--verifier", "block"], "leave out --verifier"),
        (["--profile", "1/2", "--budget", "0"], "'--budget': 0 is not in the range x>=1"),
        (["PAIR", "--budget", "-2"], "'--budget': -2 is not in the range x>=1"),
        (["--tokens", "0"], "max_new_tokens must be a whole number of at least 1, got 0; that is --tokens"),
        (["--profile", "3/5,3/5"], "a profile holds probabilities"),
        (["PAIR", "--csv", "--json"], "ask for one of them"),
    ],
)
def test_what_is_refused(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = write_pair(tmp_path)
    words = [pair if word == "PAIR" else word for word in arguments]
    assert message in run_error(capsys, "plan", *words)
