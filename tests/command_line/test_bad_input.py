"""Bad input to every command: one line on stderr, exit code 2, nothing on stdout, no traceback."""

import json
import os
import re
from pathlib import Path

import pytest

from cli_support import TWO_TOKEN, run_error
from pair_support import BAD_DOCUMENTS, DOCUMENT

FLOATS = TWO_TOKEN | {"target": [0.25, 0.75], "draft": [0.5, 0.5]}

PAIRS: dict[str, tuple[str, str]] = {
    what: (json.dumps(DOCUMENT | fields), says) for what, (fields, says) in BAD_DOCUMENTS.items()
} | {
    "empty": ("", "is not JSON"),
    "half": ("{", "is not JSON"),
    "list": ("[]", "not a pair file"),
    "text": ('"pair"', "not a pair file"),
    "null": ("null", "not a pair file"),
    "no format": (json.dumps({k: v for k, v in TWO_TOKEN.items() if k != "format"}), "not a pair file"),
    "no target": (
        json.dumps({k: v for k, v in TWO_TOKEN.items() if k != "target"}),
        "missing fields: target",
    ),
    "field twice": ('{"format": "spectheory-pair/1", "format": "spectheory-pair/1"}', "stands twice"),
    "nan": (json.dumps(FLOATS).replace("0.25", "NaN"), "not finite"),
    "infinity": (json.dumps(FLOATS).replace("0.25", "Infinity"), "not finite"),
    "minus infinity": (json.dumps(FLOATS).replace("0.25", "-Infinity"), "not finite"),
    "huge float": (json.dumps(FLOATS).replace("0.25", "1e999"), "1e999 is beyond float64"),
    "length huge": (json.dumps(TWO_TOKEN | {"draft_length": 10**9}), "use a shorter draft length"),
    "utf-16": ("\x00", "is not JSON"),
    "deeply nested": ("[" * 100_000, "is not JSON"),
    "long number": (json.dumps(TWO_TOKEN).replace("1/3", "1" * 6000 + "/3", 1), "too many digits"),
}


@pytest.mark.parametrize("command", ["certify", "optimum"])
@pytest.mark.parametrize("name", PAIRS)
def test_pair_files(capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, command: str) -> None:
    content, says = PAIRS[name]
    path = tmp_path / "pair.json"
    path.write_text(content, encoding="utf-8")
    line = run_error(capsys, command, str(path), *(["-v", "block"] if command == "certify" else []))
    assert re.search(says, line)
    assert len(line) < 1000


COMMANDS: dict[str, tuple[str, str]] = {
    "no pair": ("certify nothing.json -v block", "nothing.json: No such file"),
    "folder": ("certify . -v block", "directory"),
    "not a text": ("optimum binary.txt", "UTF-8"),
    "no verifier": ("certify pair.json", "--verifier"),
    "verifier empty": ("certify pair.json -v ,", "--verifier ',' names no verifier beside a comma"),
    "verifier missing": ("certify pair.json -v block,", "--verifier 'block,' names no verifier beside"),
    "verifier unknown": ("certify pair.json -v blok", "did you mean 'block'"),
    "one of two unknown": ("certify pair.json -v block,tokn", "did you mean 'token'"),
    "module missing": ("certify pair.json -v nosuchmodule:Own", "No module named 'nosuchmodule'"),
    "no module": ("certify pair.json -v :Own", "names no verifier"),
    "no attribute": ("certify pair.json -v json:", "names no verifier"),
    "attribute missing": ("certify pair.json -v json:Own", "no attribute of module 'json' is called 'Own'"),
    "relative": ("certify pair.json -v ../json:loads", "names no verifier"),
    "file": ("certify pair.json -v mine.py:Own", "without .py"),
    "not a verifier": ("certify pair.json -v json:loads", "is not a verifier"),
    "drafts 0": ("certify pair.json -v block -k 0", "drafts must be a whole number of at least 1"),
    "drafts -1": ("certify pair.json -v block -k -1", "drafts must be a whole number"),
    "drafts half": ("certify pair.json -v block -k 1.5", "'1.5' is not a whole number"),
    "drafts text": ("certify pair.json -v block -k two", "'two' is not a whole number"),
    "drafts too many": ("certify pair.json -v spectr -k 40", "exceed max_tuples"),
    "drafts too many, advice": ("certify pair.json -v spectr -k 39", "spectheory simulate"),
    "tree unknown": ("certify pair.json -v block --drafts forest:2,2", "--drafts 'forest:2,2'"),
    "tree without widths": (
        "certify pair.json -v block --drafts prefix_tree",
        "'prefix_tree' is not a whole number",
    ),
    "tree of text": ("certify pair.json -v block --drafts prefix_tree:a,b", "with whole numbers"),
    "tree too short": ("certify pair.json -v greedy_multipath --drafts prefix_tree:2", "1 width,"),
    "tree too long": ("certify pair.json -v greedy_multipath --drafts prefix_tree:2,2,2", "3 widths"),
    "tree of width 0": ("certify pair.json -v block --drafts prefix_tree:0,1", "at least 1"),
    "tree too wide": ("certify pair.json -v block --drafts without_replacement:3,1", ""),
    "several numbers": ("certify pair.json -v block -k 1,2", "drafts must be a whole number"),
    "drafts not meant": ("certify pair.json -v multi_round_without_replacement -k 2", "not valid for 'iid'"),
    "pair and suite": ("certify pair.json -v block --suite standard", "either a pair file or --suite"),
    "neither": ("certify -v block", "either a pair file or --suite"),
    "cases without a suite": ("certify pair.json -v block --cases 2", "go with --suite"),
    "drafts of a suite": ("certify -v block --suite quick -k 2", "leave out --drafts"),
    "suite unknown": ("certify -v block --suite large", "'large' is not one of 'standard', 'quick'"),
    "option unknown": ("certify pair.json -v block --fast", "No such option '--fast'"),
    "two pairs": ("certify pair.json pair.json -v block", "unexpected extra argument"),
    "optimum missing": ("optimum", "Missing argument"),
    "optimum drafts": ("optimum pair.json -k 0", "drafts must be a whole number of at least 1"),
    "optimum calls and tokens": ("optimum pair.json --calls 2 --tokens 3", "both given"),
    "optimum tokens of two paths": ("optimum pair.json --tokens 3 -k 2", "one path each"),
    "optimum memory alone": ("optimum pair.json --memory 2", "goes with --calls or --tokens"),
    "optimum calls 0": ("optimum pair.json --calls 0", "whole number of at least 1"),
    "two forms": ("optimum pair.json --csv --json", "--json and --csv were both given; ask for one"),
    "gap negative": ("optimum pair.json -k 2 --relative-gap -1", "relative_gap must be a positive number"),
    "gap nan": ("optimum pair.json --relative-gap nan", "relative_gap must be a positive number"),
    "gap infinite": ("optimum pair.json -k 2 --relative-gap inf", "relative_gap must be a positive number"),
    "time negative": ("optimum pair.json -k 2 --time-limit -1", "must be a positive number"),
    "time nan": ("optimum pair.json --time-limit nan", "must be a positive number"),
    "row missing": ("acceptance 1/3,2/3", "Missing argument"),
    "rows of two lengths": ("acceptance 1/3,2/3 1", "one per token"),
    "row of text": ("acceptance a,b 1/2,1/2", ""),
    "row of sum 2": ("acceptance 1,1 1/2,1/2", "sum"),
    "row negative": ("acceptance 3/2,-1/2 1/2,1/2", "negative"),
    "row with a gap": ("acceptance 1/3,,2/3 1/3,1/3,1/3", ""),
    "row of nan": ("acceptance nan,1 1/2,1/2", ""),
    "row divided by 0": ("acceptance 1/0,1 1/2,1/2", ""),
    "acceptance of too many drafts": (
        "acceptance 1/3,2/3 2/3,1/3 -k 50001",
        "the powers of 50001 drafts are too long for rationals",
    ),
    "acceptance drafts": ("acceptance 1/3,2/3 1/2,1/2 -k 0", "drafts must be"),
    "command unknown": ("certfy pair.json", "No such command 'certfy'"),
    "simulate verifiers empty": ("simulate -v ,", "names no verifier beside a comma"),
    "simulate seed text": ("simulate --seed x", "'x' is not a valid integer"),
    "simulate samples": ("simulate --samples 0", "samples must be a whole number of at least 1"),
    "simulate confidence nan": ("simulate --confidence nan", "confidence"),
    "simulate temperature nan": ("simulate --temperature nan", "temperature"),
    "simulate top-p 0": ("simulate --top-p 0", "top_p"),
    "simulate prompts missing": ("simulate --prompts nothing.txt", "nothing.txt"),
    "simulate prompts folder": ("simulate --prompts .", ""),
    "simulate prompts empty": ("simulate --prompts empty.txt", "empty.txt"),
    "simulate prompts binary": ("simulate --prompts binary.txt", "binary.txt"),
    "simulate folder": ("simulate ./no/such/model", "no/such/model"),
    "simulate folder without a model": ("simulate .", ""),
    "simulate checkpoint": ("simulate --checkpoint pair.json", "pair.json"),
    "simulate checkpoint device": ("simulate --checkpoint /dev/full", "not a regular file"),
    "tree of many paths": (
        "certify pair.json -v spectr --drafts prefix_tree:999999999,9",
        "the limit is 100000",
    ),
    "decode two prompts": ("decode --prompt a --prompts b", "--prompt and --prompts"),
    "decode in CSV": ("decode --prompt a -n 1 -l 1 --csv", "leave out --csv"),
    "models to fetch": ("models fetch", "name the model to fetch: smollm2"),
    "models of a list": ("models list smollm2", "takes no name"),
    "models unknown": ("models drop", "'drop' is not one of 'list', 'fetch'"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Path("pair.json").write_text(json.dumps(TWO_TOKEN), encoding="utf-8")
    Path("empty.txt").write_text("", encoding="utf-8")
    Path("binary.txt").write_bytes(bytes(range(128, 256)))
    before = sorted(os.listdir())
    arguments, says = COMMANDS[name]
    line = run_error(capsys, *arguments.split())
    assert says in line
    assert "Traceback" not in line
    assert len(line) < 1000
    assert sorted(os.listdir()) == before


def test_good_input_is_not_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partner: the pair that all tables change is taken, so what is refused is the change."""
    monkeypatch.chdir(tmp_path)
    for content in (TWO_TOKEN, FLOATS, DOCUMENT):
        Path("pair.json").write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(AssertionError):
            run_error(capsys, "certify", "pair.json", "-v", "block")
        capsys.readouterr()
