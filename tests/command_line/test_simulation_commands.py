"""Commands on language models."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from cli_support import one_call, run_error, run_json
from spectheory.command_line.main import main
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, SamplingOptions, bundled_prompts, restrict
from spectheory.pairs.pair import ModelPair


def test_different_tokenizers_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from models_support import save_model, save_tokenizer

    for side, texts in (("target", ["import os"] * 4), ("draft", ["def main():"] * 4)):
        save_model(tmp_path / side, "llama", seed=1, layers=1)
        save_tokenizer(tmp_path / side, texts)
    capsys.readouterr()  # saving a model shows a progress bar
    arguments = ("simulate", str(tmp_path / "target"), str(tmp_path / "draft"))
    assert "different tokenizers" in run_error(capsys, *arguments)


def test_simulate(capsys: pytest.CaptureFixture[str], tiny_models: list[str]) -> None:
    arguments = one_call(tiny_models, "-l", "3", "--samples", "4", "-k", "2")
    document = run_json(capsys, *arguments, "--max-prompt-tokens", "2")
    assert (document["interrupted"], document["max_prompt_tokens"]) == (False, 2)
    assert [e["verifier"] for e in document["estimates"]] == ["token", "block", "spectr", "greedy_multipath"]
    for estimate in document["estimates"]:
        low, high = estimate["interval"]
        assert 1 <= low <= estimate["block_efficiency"] <= high <= 5
        assert sum(estimate["length_probs"]) == pytest.approx(1, abs=1e-9)
        assert estimate["samples"] == 12
    arguments += ["--max-prompt-tokens", "2", "--verifier", "token"]
    (alone,) = run_json(capsys, *arguments)["estimates"]
    with_block = document["estimates"][0]
    assert alone == with_block | {"gain": None, "gain_interval": None}
    gain = with_block["block_efficiency"] - document["estimates"][1]["block_efficiency"]
    assert with_block["gain"] == pytest.approx(gain)
    assert main(arguments) == 0
    assert f"{document['estimates'][0]['block_efficiency']:.4f}" in capsys.readouterr().out


def test_simulate_in_latex(capsys: pytest.CaptureFixture[str], tiny_models: list[str]) -> None:
    arguments = one_call(tiny_models, "-k", "2", "-v", "spectr,token")
    (_, token) = run_json(capsys, *arguments)["estimates"]
    low, high = token["gain_interval"]
    assert main([*arguments, "--latex"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("\\begin{table}")
    assert f"& {token['gain']:+.3f} ({low:+.3f} to {high:+.3f}) &" in printed
    assert "--json and --latex were both given" in run_error(capsys, *arguments, "--json", "--latex")


def test_whole_texts_by_the_number_of_drafts(
    capsys: pytest.CaptureFixture[str], tiny_models: list[str]
) -> None:
    """A line per verifier and K; a verifier of one path has one line."""
    arguments = ["simulate", *tiny_models, "-l", "2", "-n", "6", "-v", "block,spectr,greedy_block"]
    arguments += ["--jobs", "1"]
    document = run_json(capsys, *arguments, "-k", "1-3")
    assert document["num_drafts"] == [1, 2, 3]
    assert document["max_new_tokens"] == 6
    assert document["prompts_used"] == 3
    shapes = [(entry["verifier"], entry["num_drafts"]) for entry in document["estimates"]]
    assert shapes == [("block", 1), ("spectr", 1), ("spectr", 2), ("spectr", 3), ("greedy_block", 1)]
    assert main([*arguments, "-k", "1-3"]) == 0
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if " spectr " in line]
    for line, entry in zip(lines, document["estimates"][1:4], strict=True):
        assert f"{entry['gain']:+.3f} (" in line
        assert f"{entry['block_efficiency']:.4f} (" in line
    assert "greedy_block *" in printed
    assert main([*arguments, "-k", "1-3", "--csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    for row, entry in zip(rows, document["estimates"], strict=True):
        assert (row["verifier"], int(row["num_drafts"])) == (entry["verifier"], entry["num_drafts"])
        assert (row["lossless"], int(row["samples"])) == (str(entry["lossless"]), entry["samples"])
        assert [float(row["low"]), float(row["high"])] == entry["interval"]
        assert float(row["block_efficiency"]) == entry["block_efficiency"]
    one = run_json(capsys, *arguments, "-k", "3")
    assert (one["num_drafts"], [entry["num_drafts"] for entry in one["estimates"]]) == (3, [1, 3, 1])
    for wrong, words in (
        (("-k", "1,1"), "drafts must be one number or several different ones"),
        (("-k", "1-x"), "is not a whole number or a list"),
        (("-k", "4-1"), "'4-1' is not a whole number or a list"),
        (("-k", "1-1000000000"), "of 100 at most"),
        (("--width", "0"), "width must be a positive number"),
        (("--jobs", "all"), "'all' is not a valid integer"),
    ):
        assert words in run_error(capsys, *arguments, *wrong)
    assert "without whole texts" in run_error(capsys, *one_call(tiny_models), "--width", "0.1")


def test_decode(capsys: pytest.CaptureFixture[str], tiny_models: list[str]) -> None:
    """The text is the sum of its pieces, and it says so; greedy texts do not depend on the verifier."""
    arguments = ["decode", *tiny_models, "--draft-length", "3", "-n", "12"]
    document = run_json(capsys, *arguments, "--drafts", "prefix_tree:2,1,1", "-v", "spectr")
    assert (document["draft_process"], document["num_drafts"]) == ("prefix_tree", 2)
    assert len(document["texts"]) == 3
    for text in document["texts"]:
        assert text["tokens"] == len(text["token_ids"]) <= 12
        assert text["calls"] == len(text["accepted_per_call"])
        assert text["tokens_per_call"] == pytest.approx(1 + sum(text["accepted_per_call"]) / text["calls"])
    greedy = [
        [text["token_ids"] for text in run_json(capsys, *arguments, "--temperature", "0", *more)["texts"]]
        for more in (("-v", "token"), ("-v", "greedy_multipath", "-k", "2"))
    ]
    assert greedy[0] == greedy[1]
    itself = [
        "decode",
        tiny_models[0],
        tiny_models[0],
        *arguments[3:],
    ]  # the target as its own draft: all is accepted
    assert main(itself) == 0
    printed = capsys.readouterr().out
    assert "def main(argument):" in printed
    assert "4.00 tokens per call" in printed
    assert "‹" in printed  # in a file, accepted parts stand within these marks
    assert "--prompt and --prompts" in run_error(capsys, *arguments, "--prompt", "x")


def test_simulate_drafts_a_tree(capsys: pytest.CaptureFixture[str], tiny_models: list[str]) -> None:
    arguments = [*tiny_models, "-l", "2", "-n", "4", "-v", "multi_round", "--drafts", "prefix_tree:2,2"]
    document = run_json(capsys, "simulate", *arguments)
    assert (document["num_drafts"], document["draft_process"]) == (4, "prefix_tree:2,2")
    assert [entry["num_drafts"] for entry in document["estimates"]] == [4]


def test_simulate_goes_on_from_a_checkpoint(
    capsys: pytest.CaptureFixture[str], tiny_models: list[str], tmp_path: Path
) -> None:
    file = str(tmp_path / "checkpoint.jsonl")
    arguments = one_call(tiny_models, "--checkpoint", file)
    first = run_json(capsys, *arguments)
    assert run_json(capsys, *arguments) == first
    assert "seed (0 there, 1 here)" in run_error(capsys, *arguments, "--seed", "1")
    assert "verifiers" in run_error(capsys, *arguments, "--verifier", "token,spectr")
    swapped = ["simulate", tiny_models[1], tiny_models[0], *arguments[3:]]
    assert "draft configuration, draft name" in run_error(capsys, *swapped)


def test_a_torn_checkpoint_is_said_on_stderr_alone(
    capsys: pytest.CaptureFixture[str], tiny_models: list[str], tmp_path: Path
) -> None:
    """One line that is no error; the JSON on stdout is that of an unbroken run."""
    file = tmp_path / "checkpoint.jsonl"
    arguments = one_call(tiny_models, "--checkpoint", str(file))
    first = run_json(capsys, *arguments)
    file.write_bytes(file.read_bytes()[:-10])
    assert main([*arguments, "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out).items() >= first.items()
    assert captured.err.startswith("note: the last line of the checkpoint")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("-l 0", "draft_length must be"), ("-l 99999999999999", "draft_length must be at most 10000"),
        ("--jobs 0", "jobs must be"), ("-k 0", "drafts must be"),
        ("-v block,block", "listed twice"), ("-v blok", "did you mean 'block'"), ("--samples -1", "samples"),
        ("--drafts prefix_tree:2,2 -l 3", "2 widths, [2, 2]; expected one per drafted token, 3"),
        ("--drafts without_replacement:2,2 -v spectr", "it takes iid, prefix_tree"),
        ("--prompts nowhere", "cannot read the prompts"), ("-l 2 -n -1", "max_new_tokens must be"),
        ("-v kseq", "works at one position"), ("--checkpoint no/where", "a folder that does not exist"),
    ],
)  # fmt: skip
def test_simulate_is_refused_before_tokenizers_are_read(
    words: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So an error takes as long as importing torch; the partner looks for the models."""

    def find(*_: Any, **__: Any) -> None:
        raise InvalidInputError("models are looked for")

    monkeypatch.setattr(LanguageModelPair, "load", find)
    assert says in run_error(capsys, "simulate", *words.split())
    assert "models are looked for" in run_error(capsys, "simulate")


def test_a_tree_has_a_draft_length(capsys: pytest.CaptureFixture[str], tiny_models: list[str]) -> None:
    """A tree sets L where --draft-length does not; where both are given they must agree."""
    tree = ("--drafts", "prefix_tree:2,1", "-v", "spectr")
    for command in (("decode", "-n", "2"), ("simulate", "-n", "0", "--samples", "2", "--jobs", "1")):
        assert run_json(capsys, *command, *tiny_models, *tree)["draft_length"] == 2
        assert "2 widths" in run_error(capsys, *command, *tiny_models, *tree, "-l", "3")


def test_numbers_are_checked_before_weights_are_loaded(
    capsys: pytest.CaptureFixture[str],
    tiny_models: list[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from spectheory.models.loading import ModelSource

    monkeypatch.setattr(ModelSource, "model", lambda *_: pytest.fail("weights are loaded"))
    (tmp_path / "long.txt").write_text("short\n" + "long " * 100)
    for arguments, words in (
        (("--seed", "-1"), "seed must be a whole number of at least 0"),
        (("--samples", "1" + "0" * 21), "samples must be at most 1000000000, got 1000"),
        (("-k", "100000"), "drafts must be at most 10000 for language models"),
        (("--samples", "1"), "samples must be a whole number of at least 2"),
        (("--batch-size", "0"), "batch_size must be a whole number of at least 1"),
        (("--drafts", "0"), "drafts must be"),
        (("--draft-length", "0"), "draft_length must be"),
        (("--draft-length", "100"), "prompt 1 ('def main(argument):'): a prompt of"),
        (("--confidence", "2"), "confidence must lie between 0 and 1"),
        (("--max-prompt-tokens", "0"), "max_prompt_tokens must be"),
        (("--temperature", "-1"), "temperature must be"),
        (("--top-k", "0"), "top_k must be"),
        (("--top-p", "2"), "top_p must be"),
        (("--verifier", "tokn"), "did you mean"),
        (("--verifier", "token,token"), "listed twice"),
        (("--checkpoint", str(tmp_path)), "is a folder"),
        (("--checkpoint", str(tmp_path / "no" / "file")), "does not exist"),
        (("--prompts", str(tmp_path / "long.txt")), "prompt 2 ('long long long long long'...)"),
        (("--prompts", str(tmp_path / "long.txt")), "with max_prompt_tokens (simulate and plan: --max"),
        (("--csv", "--json"), "--json and --csv"),
    ):
        assert words in run_error(capsys, *one_call(tiny_models), *arguments)
    with pytest.raises(pytest.fail.Exception, match="weights are loaded"):  # the partner
        main(["simulate", *tiny_models])


def test_verifiers_that_are_not_lossless_are_marked(
    capsys: pytest.CaptureFixture[str], tiny_models: list[str]
) -> None:
    arguments = one_call(tiny_models)
    document = run_json(capsys, *arguments, "-v", "block,greedy_block")
    assert [estimate["lossless"] for estimate in document["estimates"]] == [True, False]
    assert main([*arguments, "-v", "block,greedy_block"]) == 0
    out = capsys.readouterr().out
    assert "greedy_block *" in out
    assert "block * " not in out.replace("greedy_block * ", "")
    assert "* not lossless on its own" in out
    assert main([*arguments, "-v", "block"]) == 0
    assert "lossless" not in capsys.readouterr().out


def test_restrict_writes_a_pair_that_certify_takes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = str(tmp_path / "pair.json")
    summary = run_json(capsys, "restrict", "--prompt", "def main", "-m", "3", "-l", "2", "--out", path)
    assert len(summary["vocab"]) == 3
    pair = ModelPair.load(path)
    assert (pair.vocab_size, pair.draft_length) == (3, 2)
    assert summary["target_row"] == pair.target[0][0].tolist()
    document = run_json(capsys, "certify", path, "--verifier", "block")
    assert document["target_matching"] is True
    assert main(["restrict", "--prompt", "def main", "--out", path]) == 0
    assert "written to" in capsys.readouterr().out


def test_restrict_prints_the_pair_itself(capsys: pytest.CaptureFixture[str]) -> None:
    models = LanguageModelPair.load("bundled", "bundled", device="cpu")
    expected = restrict(models, bundled_prompts()[0], 2, 1, options=SamplingOptions(temperature=0.5))
    capsys.readouterr()  # loading a model shows a progress bar
    document = run_json(capsys, "restrict", "-m", "2", "-l", "1", "--temperature", "0.5")
    assert ModelPair.from_document(document) == expected


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--tokens", "0"], "num_tokens must be a whole number of at least 1"),
        (["--tokens", "100", "-l", "3"], "100^3 contexts"),
        (["-l", "0"], "draft_length must be a whole number of at least 1"),
        (["--temperature", "-1"], ""),
    ],
)
def test_restrict_refuses_before_weights_are_loaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.setattr(
        "spectheory.models.LanguageModelPair.models", property(lambda self: pytest.fail("loaded"))
    )
    assert says in run_error(capsys, "restrict", *arguments)
