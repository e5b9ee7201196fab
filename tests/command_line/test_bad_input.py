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
    "drafts 0": ("certify pair.json -v block -k 0", "num_drafts must be a whole number of at least 1"),
    "drafts -1": ("certify pair.json -v block -k -1", "num_drafts must be a whole number"),
    "drafts half": ("certify pair.json -v block -k 1.5", "'1.5' is not a valid integer"),
    "drafts text": ("certify pair.json -v block -k two", "'two' is not a valid integer"),
    "drafts too many": ("certify pair.json -v spectr -k 40", "exceed max_tuples"),
    "drafts too many, advice": ("certify pair.json -v spectr -k 39", "spectheory simulate"),
    "tree unknown": ("certify pair.json -v block --tree forest:2,2", "--tree 'forest:2,2'"),
    "tree without widths": ("certify pair.json -v block --tree prefix_tree", "--tree 'prefix_tree'"),
    "tree of text": ("certify pair.json -v block --tree prefix_tree:a,b", "with whole numbers"),
    "tree too short": ("certify pair.json -v greedy_multipath --tree prefix_tree:2", "1 width,"),
    "tree too long": ("certify pair.json -v greedy_multipath --tree prefix_tree:2,2,2", "3 widths"),
    "tree of width 0": ("certify pair.json -v block --tree prefix_tree:0,1", "at least 1"),
    "tree too wide": ("certify pair.json -v block --tree without_replacement:3,1", ""),
    "tree and drafts": ("certify pair.json -v block --tree prefix_tree:2,1 -k 3", "--num-drafts is 3"),
    "drafts not meant": ("certify pair.json -v multi_round_without_replacement -k 2", "not valid for 'iid'"),
    "pair and suite": ("certify pair.json -v block --suite standard", "either PAIR.json or --suite"),
    "neither": ("certify -v block", "either PAIR.json or --suite"),
    "quick without a suite": ("certify pair.json -v block --quick", "go with --suite standard"),
    "suite unknown": ("certify -v block --suite large", "'large' is not 'standard'"),
    "option unknown": ("certify pair.json -v block --fast", "No such option '--fast'"),
    "two pairs": ("certify pair.json pair.json -v block", "unexpected extra argument"),
    "optimum missing": ("optimum", "Missing argument"),
    "optimum drafts": ("optimum pair.json -k 0", "num_drafts must be a whole number of at least 1, got 0"),
    "optimum calls and tokens": ("optimum pair.json --calls 2 --tokens 3", "both given"),
    "optimum tokens of two paths": ("optimum pair.json --tokens 3 -k 2", "one path each"),
    "optimum length alone": ("optimum pair.json --draft-length 2", "go with --calls or --tokens"),
    "optimum calls 0": ("optimum pair.json --calls 0", "whole number of at least 1"),
    "two forms": ("optimum pair.json --csv --json", "--csv and --json were both given; ask for one"),
    "gap 0": ("optimum pair.json --gap 0", "--gap must be a positive number"),
    "gap negative": ("optimum pair.json -k 2 --gap -1", "--gap must be a positive number"),
    "gap nan": ("optimum pair.json --gap nan", "--gap must be a positive number"),
    "gap infinite": ("optimum pair.json -k 2 --gap inf", "--gap must be a positive number"),
    "time negative": ("optimum pair.json -k 2 --time-limit -1", "must be a positive number"),
    "time nan": ("optimum pair.json --time-limit nan", "must be a positive number"),
    "row missing": ("acceptance --target 1/3,2/3", "--draft"),
    "rows of two lengths": ("acceptance --target 1/3,2/3 --draft 1", "one per token"),
    "row of text": ("acceptance --target a,b --draft 1/2,1/2", ""),
    "row of sum 2": ("acceptance --target 1,1 --draft 1/2,1/2", "sum"),
    "row negative": ("acceptance --target 3/2,-1/2 --draft 1/2,1/2", "negative"),
    "row with a gap": ("acceptance --target 1/3,,2/3 --draft 1/3,1/3,1/3", ""),
    "row of nan": ("acceptance --target nan,1 --draft 1/2,1/2", ""),
    "row divided by 0": ("acceptance --target 1/0,1 --draft 1/2,1/2", ""),
    "acceptance of too many drafts": (
        "acceptance --target 1/3,2/3 --draft 2/3,1/3 -k 50001",
        "the powers of 50001 drafts are too long for rationals",
    ),
    "acceptance drafts": ("acceptance --target 1/3,2/3 --draft 1/2,1/2 -k 0", "drafts must be"),
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
    "simulate folder": ("simulate --target ./no/such/model", "no/such/model"),
    "simulate folder without a model": ("simulate --target .", ""),
    "simulate checkpoint": ("simulate --checkpoint pair.json", "pair.json"),
    "simulate checkpoint device": ("simulate --checkpoint /dev/full", "not a regular file"),
    "simulate tolerance": ("simulate --tolerance 10", "tolerance must be a number from 0 to 0.01"),
    "simulate many threads": ("simulate --threads 100000", "threads must be at most 1024"),
    "tree of many paths": (
        "certify pair.json -v spectr --tree prefix_tree:999999999,9",
        "the limit is 100000",
    ),
    "restrict two prompts": ("restrict --prompt a --prompt-number 2", "--prompt and --prompt-number"),
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


def test_the_tables_are_as_long_as_promised() -> None:
    """At least 120 bad inputs, none of them in the tables twice."""
    assert len(PAIRS) + len(COMMANDS) >= 120
    assert len({content for content, _ in PAIRS.values()}) == len(PAIRS)
    assert len({arguments for arguments, _ in COMMANDS.values()}) == len(COMMANDS)


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
