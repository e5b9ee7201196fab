"""plan: a pair file or language models, and what does not go together."""

from pathlib import Path

import pytest

from cli_support import run_error, run_json, write_pair


def test_a_pair_file_is_planned_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", write_pair(tmp_path), "--budget", "4", "--verifier", "greedy_multipath"]
    found = run_json(capsys, *asked)
    best = found["choices"][0]
    assert (best["drafts"], best["block_efficiency"], best["interval"]) == ("iid:2", "212/81", None)
    assert found["optimum"] == "212/81"
    dear = run_json(capsys, *asked, "--row-cost", "1")["choices"][0]
    assert (dear["target_rows"], dear["speed_up"] < best["speed_up"]) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["PAIR", "--temperature", "0.5"], "is a pair file; options of language models go without"),
        (["PAIR", "bundled"], "is a pair file; options of language models go without"),
        (["PAIR", "--budget", "-2"], "target_rows must be a whole number of at least 1, got -2"),
        (["-n", "0"], "max_new_tokens must be a whole number of at least 1, got 0"),
        (["PAIR", "--csv", "--json"], "ask for one of them"),
    ],
)
def test_what_is_refused(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = write_pair(tmp_path)
    words = [pair if word == "PAIR" else word for word in arguments]
    assert message in run_error(capsys, "plan", *words)
