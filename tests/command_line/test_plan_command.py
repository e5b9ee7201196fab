"""plan: a pair file and language models, what it prints first, and what does not go together."""

from pathlib import Path

import pytest

from cli_support import run_error, run_json, write_pair
from models_support import save_pair
from spectheory.command_line.main import main


def test_a_pair_file_is_planned_exactly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", write_pair(tmp_path), "--target-rows", "4", "--verifier", "greedy_multipath"]
    found = run_json(capsys, *asked)
    best = found["choices"][0]
    assert (best["drafts"], best["block_efficiency"], best["interval"]) == ("iid:2", "212/81", None)
    assert (found["optimum"], found["costs"]) == ("212/81", "assumed")
    dear = run_json(capsys, *asked, "--draft-cost", "0", "--row-cost", "9")
    assert (dear["choices"][0]["drafts"], dear["costs"]) == ("none", "given")


def test_the_first_line_is_the_recommendation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", write_pair(tmp_path), "--target-rows", "4", "--verifier", "greedy_multipath"]
    found = run_json(capsys, *asked)
    assert main(asked) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == found["recommendation"]
    assert first == "take greedy_multipath with iid:2, L = 2: 1.95 times plain decoding"


def test_language_models_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spectheory.simulation.cost.MEASURING_SECONDS", 0.0)
    target, draft = save_pair(tmp_path, "llama")
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("\n".join(f"import {letter}" for letter in "abcdefghij"), encoding="utf-8")
    models = [str(target), str(draft), "--prompts", str(prompts)]
    capsys.readouterr()
    asked = [*models, "--target-rows", "2", "-l", "2", "-v", "block", "--max-new-tokens", "4", "--jobs", "1"]
    found = run_json(capsys, "plan", *asked, "--checkpoint", str(tmp_path / "lines"))
    assert (found["costs"], found["device"], found["tried"]) == ("measured", "cpu", 3)
    assert [entry["target_rows"] for entry in found["calls"]] == [0, 1, 2]
    assert all(entry["interval"] and entry["cost_interval"] for entry in found["choices"])
    assert run_json(capsys, "plan", *asked, "--checkpoint", str(tmp_path / "lines")) == found
    given = run_json(capsys, "plan", *asked, "--draft-cost", "0.1", "--row-cost", "0.1")
    assert (given["costs"], given["calls"], given["tokens_per_second"]) == ("given", [], None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["PAIR", "--temperature", "0.5"], "is a pair file, and --temperature is of language models"),
        (["PAIR", "bundled"], "is a pair file, and bundled is of language models"),
        (["PAIR", "--seed", "3"], "is a pair file, and --seed is of language models"),
        (["PAIR", "--target-rows", "0"], "target_rows must be a whole number of at least 1, got 0"),
        (["PAIR", "--row-cost", "0.1"], "draft_cost was not given, and the other cost was; give both"),
        (["--max-new-tokens", "0"], "max_new_tokens must be a whole number of at least 1, got 0"),
        (["--jobs", "many"], "'many' is not a valid integer"),
        (["PAIR", "--csv", "--json"], "ask for one of them"),
    ],
)
def test_what_is_refused(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = write_pair(tmp_path)
    words = [pair if word == "PAIR" else word for word in arguments]
    assert message in run_error(capsys, "plan", *words)
