"""The command check: results made again, proofs checked; what is changed is found, no code of a file runs."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli_support import OWN_VERIFIER, run_json, write_pair
from spectheory.command_line.check_command import _differences
from spectheory.command_line.main import main
from spectheory.exact.proof.check import read

SAMPLER = """
import torch


def first_draft(paths, target_rows, draft_rows, generator):
    return [int(paths[0, 0]), int(torch.multinomial(target_rows[0, 1], 1, generator=generator))]
"""
WRONG = "own_code:ForgotTheResidual"
Made = Callable[..., Path]


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Made:
    """Write what a command prints with --json, into a folder with a pair file and code of one's own."""
    monkeypatch.chdir(tmp_path)
    for module, text in (("own_code", OWN_VERIFIER), ("own_sampler", SAMPLER)):
        (tmp_path / f"{module}.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, module, raising=False)
    write_pair(tmp_path, draft_length=1)

    def write(*arguments: str, code: int = 0) -> Path:
        file = tmp_path / "result.json"
        file.write_text(json.dumps(run_json(capsys, *arguments, code=code, whole=True)), encoding="utf-8")
        return file

    return write


@pytest.mark.parametrize(
    ("arguments", "code", "names"),
    [
        (["certify", "pair.json", "--verifier", "token,block", "--tree", "prefix_tree:2"], 0, []),
        (["certify", "--suite", "standard", "--quick", "--cases", "1", "--verifier", "spectr_gbv"], 1, []),
        (["certify", "pair.json", "--verifier", WRONG], 1, [WRONG]),
        (["prove", "block", "--vocab", "2", "--draft-length", "1", "--show"], 0, []),
        (["audit", "transformers", "--pair", "pair.json"], 0, []),
        (["audit", "own_sampler:first_draft", "--as", "sampler", "--vocab", "2", "--draft-length", "1"], 1,
         ["own_sampler:first_draft"]),
    ],
)  # fmt: skip
def test_a_result_is_made_again_and_a_changed_one_differs(
    made: Made, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, names: list[str]
) -> None:
    file = made(*arguments, code=code)
    (file.parent / "pair.json").unlink()  # the result holds its pair
    found = run_json(capsys, "check", str(file), *names)
    assert (found["verdict"], found["differences"]) == ("the same", [])
    document = json.loads(file.read_text(encoding="utf-8"))
    number = document.get("certificates", [document])[0]
    field = next(
        name for name in ("block_efficiency", "regions", "total_variation", "cases") if name in number
    )
    was, number[field] = number[field], 7
    file.write_text(json.dumps(document), encoding="utf-8")
    found = run_json(capsys, "check", str(file), *names, code=1)
    assert [(each["was"], each["is"]) for each in found["differences"]] == [(7, was)]


def changed_pair(document: dict[str, Any]) -> None:
    document["made_from"]["pair"]["target"] = ["1/4", "3/4"]


def without_a_field(document: dict[str, Any]) -> None:
    del document["worst_path"]


def changed(*path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        for name in path[:-1]:
            document = document[name]
        document[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (changed("made_from", "pair_sha256", value="0"), 1, "made_from.pair_sha256 was '0'"),
        (changed_pair, 1, "block_efficiency was"),
        (changed("made_from", "arguments", "--verifier", value="block"), 4, "made_from.verifier_code.block"),
        (changed("made_from", "verifier_code", "token", value="0"), 4, "made_from.verifier_code.token was"),
        (changed("made_from", "versions", "numpy", value="1.0"), 0, "made again by spectheory certify"),
        (changed("spectheory", value="0.0.9"), 4, "it was made by spectheory 0.0.9, and this is"),
        (changed("made_from", "arguments", "--verifier", value="os:system"), 4, "it runs os:system"),
        (changed("made_from", "arguments", "--tree", value="own_code:Trap"), 4, "it runs own_code:Trap"),
        (changed("made_from", "arguments", "--out", value="stolen"), 4, "it was made with --out stolen"),
        (changed("made_from", "arguments", "--verifier", value="--out=x"), 4, "called '--out=x'"),
        (changed("made_from", "pair", value=None), 4, "it does not hold its pair"),
        (changed("made_from", "pair", "draft", value=["1/2", "1/3"]), 4, "draft row"),
        (changed("made_from", value=None), 2, "is neither a proof nor"),
        (changed("format", value="spectheory-pair/1"), 2, "is neither a proof nor"),
        (without_a_field, 1, "worst_path was '(absent)' and is None"),
        (changed("changes", value={"fixed": ["all"]}), 1, "changes was {'fixed': ['all']} and is '(absent)'"),
        (changed("made_from", "versions", "numpy", value="1.0"), 0, "not compared: made_from.versions"),
        (changed("extra", value=None), 1, "extra was None and is '(absent)'"),
        (changed("seconds", value=1.0), 1, "seconds was 1.0 and is '(absent)'"),
    ],
)  # fmt: skip
def test_nothing_in_a_file_is_believed(
    made: Made,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any]], None],
    code: int,
    said: str,
) -> None:
    file = made("certify", "pair.json", "--verifier", "token")
    document = json.loads(file.read_text(encoding="utf-8"))
    change(document)
    file.write_text(json.dumps(document), encoding="utf-8")
    assert main(["check", str(file)]) == code
    assert said in "".join(capsys.readouterr())
    assert not {"own_code", "own_sampler"} & sys.modules.keys()


def test_a_result_without_a_pair_needs_none(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """A proof is of no pair, whether its file says so or not."""
    file = made("prove", "block", "--vocab", "2", "--draft-length", "1", "--show")
    document = json.loads(file.read_text(encoding="utf-8"))
    del document["made_from"]["pair"]
    file.write_text(json.dumps(document), encoding="utf-8")
    assert run_json(capsys, "check", str(file))["verdict"] == "the same"


def test_a_name_that_comes_twice_is_refused(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Readers keep one of the values, and not all the same one."""
    file = made("certify", "pair.json", "--verifier", "token")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("{", '{"format": "none", ', 1), encoding="utf-8")
    assert main(["check", str(file)]) == 2
    assert "every name once" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--from", "--cache"])
def test_options_of_audits_are_refused_elsewhere(
    made: Made, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    made("prove", "block", "--vocab", "2", "--draft-length", "1", "--out", "block.proof")
    certificate = made("certify", "pair.json", "--verifier", "token")
    for name, kind in ((certificate.name, "certify"), ("block.proof", "proof")):
        assert main(["check", name, option, "."]) == 2
        assert f"is of the format spectheory-{kind}/1" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["fetch", "sglang"], ["history", "transformers"]])
def test_a_file_downloads_nothing(made: Made, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    file = made("audit", "transformers", "--pair", "pair.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    document["made_from"]["arguments"]["names"] = words
    file.write_text(json.dumps(document), encoding="utf-8")
    assert f"audit {words[0]} downloads files" in run_json(capsys, "check", str(file), code=4)["because"]


def test_a_proof_imports_only_what_is_named(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    shape, path, name = (
        ["--vocab", "2", "--draft-length", "1"],
        str(tmp_path / "proof"),
        "own_code:FirstToken",
    )
    made("prove", name, *shape, "--out", path)
    assert "no verifier is called 'first_token'" in run_json(capsys, "check", path, code=4)["because"]
    assert run_json(capsys, "check", path, name)["verdict"] == "the same"
    made("prove", "block", *shape, "--statement", f"at_least:{name}", "--out", path)
    assert f"it runs {name}" in run_json(capsys, "check", path, code=4)["because"]
    assert run_json(capsys, "check", path, name)["verdict"] == "the same"
    forged = read(path) | {"verifier": "own_sampler:first_draft", "statement": "lossless"}
    Path(path).write_bytes(gzip.compress(json.dumps(forged).encode()))
    assert run_json(capsys, "check", path, code=4)["verdict"] == "cannot be made again here"
    assert "own_sampler" not in sys.modules


@pytest.mark.parametrize("others", [["block"], ["nonsense:Nothing"], ["token", "block"]])
def test_a_name_that_a_result_does_not_speak_of(
    made: Made, capsys: pytest.CaptureFixture[str], others: list[str]
) -> None:
    file = made("certify", "pair.json", "--verifier", "token")
    assert run_json(capsys, "check", str(file), "token")["verdict"] == "the same"
    found = run_json(capsys, "check", str(file), *others, code=1)
    assert found["because"] == f"it does not speak of {others[-1]}"


def test_a_proof_is_of_one_verifier(made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "token.proof"
    made("prove", "token", "--vocab", "2", "--draft-length", "1", "--out", str(out))
    assert run_json(capsys, "check", str(out), "token")["verdict"] == "the same"
    assert run_json(capsys, "check", str(out), "token", "block", code=1)["verdict"] == "differs"


def test_a_small_defect_cannot_be_erased(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers far below the tolerance of libraries are compared by their size."""
    file = made("certify", "pair.json", "--verifier", WRONG, code=1)
    for was, now, same in (
        (4e-10, 0.0, False),
        (4e-10, 4.1e-10, False),
        (1e-16, 0.0, True),
        (0.3, 0.3 + 1e-15, True),
    ):
        assert (not list(_differences({"a": was}, {"a": now}))) is same
    assert run_json(capsys, "check", str(file), WRONG)["verdict"] == "the same"


def test_an_audit_beside_an_older_one_is_the_same(
    made: Made, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """What changed since the older one is not looked at; the file of the sampler is, but for its folder."""
    name = "own_sampler:first_draft"
    small = [name, "--as", "sampler", "--vocab", "2", "--draft-length", "1", "--num-drafts", "1"]
    older = made("audit", *small, code=1).rename(tmp_path / "older.json")
    file = made("audit", *small, "--against", str(older), code=1)
    assert run_json(capsys, "check", str(file), name)["verdict"] == "the same"
    document = json.loads(file.read_text(encoding="utf-8"))
    document["provenance"]["file"] = "/elsewhere/own_sampler.py"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert run_json(capsys, "check", str(file), name)["verdict"] == "the same"
    document["provenance"]["file"] = "/elsewhere/rejection_sampler.py"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert run_json(capsys, "check", str(file), name, code=1)["verdict"] == "differs"
