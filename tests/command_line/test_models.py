"""Commands on language models."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli_support import run_error, run_json
from spectheory.command_line.main import main


def test_different_tokenizers_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from models_support import save_model, save_tokenizer

    for side, texts in (("target", ["import os"] * 4), ("draft", ["def main():"] * 4)):
        save_model(tmp_path / side, "llama", seed=1, layers=1)
        save_tokenizer(tmp_path / side, texts)
    capsys.readouterr()  # saving a model shows a progress bar
    arguments = ("simulate", "--target", str(tmp_path / "target"), "--draft", str(tmp_path / "draft"))
    assert "different tokenizers" in run_error(capsys, *arguments)


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


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_simulate_interrupted(
    tiny_models: list[str], tmp_path: Path, stop: signal.Signals, code: int
) -> None:
    """Ctrl-C or a kill: what is finished is printed, "interrupted" is true, one line on stderr."""
    checkpoint = tmp_path / "checkpoint.json"
    command = [
        sys.executable, "-m", "spectheory", "simulate", *tiny_models, "--samples", "300", "--batch-size", "1",
        "--checkpoint", str(checkpoint), "--json",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not checkpoint.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(stop)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert err.startswith("error: interrupted")
    assert err.count("\n") == 1
    assert json.loads(out)["interrupted"] is True
