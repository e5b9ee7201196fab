"""spectheory audit: tables, documents, pages, exit codes and what it refuses."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import audits.subject
from audited import CACHE, FLAT, fetched, released
from audits import release_history
from audits.registry import SUBJECTS
from audits.specimens import samplers
from cli_support import run_error, run_json, write_pair
from deep import first_is_quick
from spectheory import auditing
from spectheory.command_line.main import main
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.wheels import Release

SPECIMENS = "audits.specimens.samplers"


def test_a_right_and_a_wrong_function(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Exit 0 and 1; the pair of a file."""
    pair = write_pair(tmp_path, draft_length=1)
    right = ["audit", f"{SPECIMENS}:token_verification", "--as", "sampler", "--pair", str(pair)]
    document = run_json(capsys, *right)
    assert (document["sampler"], document["verdict"]) == ("token_verification", "lossless")
    assert [(case["pair"], case["num_drafts"]) for case in document["cases"]] == [
        (str(pair), number) for number in (1, 2, 3)
    ]
    assert document["scope"]["shapes_text"] == "(2, 1, 1-3)"
    wrong = [word.replace("token_verification", "greedy_acceptance") for word in right]
    assert main(wrong) == 1
    assert "its law is not the target's" in capsys.readouterr().out


@first_is_quick("failure", [InvalidInputError("it cannot be called"), KeyboardInterrupt()])
def test_a_sampler_that_fails_costs_only_its_own_audit(
    failure: BaseException,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one before it is printed, in every form; and where it comes first, there is nothing to print."""
    pair, audited = str(write_pair(tmp_path, draft_length=1)), auditing.audit

    def audit(sampler: Any, pairs: Any, **options: Any) -> Any:
        if sampler.name.startswith("transformers-ensemble"):
            raise failure
        return audited(sampler, pairs, **options)

    monkeypatch.setattr(auditing, "audit", audit)
    code = 130 if isinstance(failure, KeyboardInterrupt) else 2
    asked = ["transformers", "transformers-ensemble", "--pair", pair]
    assert main(["audit", *asked, "--json", "--report", str(tmp_path / "found.md")]) == code
    captured = capsys.readouterr()
    assert json.loads(captured.out)["verdict"] == "lossless"
    assert "| lossless |" in (tmp_path / "found.md").read_text(encoding="utf-8")
    said = str(failure) or "interrupted; finished and printed: 1 of 2"
    assert said in captured.err
    assert main(["audit", "transformers-ensemble", "transformers", "--pair", pair, "--json"]) == code
    assert capsys.readouterr().out == ""


@pytest.mark.deep
def test_several_samplers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pair = str(write_pair(tmp_path, draft_length=1))
    names = ["audit", "transformers", "transformers-ensemble", "--pair", pair]
    assert main([*names, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["audits"]
    assert [audit["verdict"] for audit in found] == [
        "lossless",
        "equals its stated relaxation",
    ]
    assert main(names) == 0
    assert " audits " in capsys.readouterr().out
    assert main([*names, "--csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_what_is_not_there_is_left_out_of_all(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With a line each; asked for by its name it is an error, in one line."""
    pair = str(write_pair(tmp_path, draft_length=1))
    assert main(["audit", "all", "--pair", pair, "--json", "--cache", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    audited = [audit["sampler"] for audit in json.loads(captured.out)["audits"]]
    assert audited == ["transformers", "transformers-ensemble", "transformers-gemma4"]
    left_out = [line for line in captured.err.splitlines() if line.startswith("note: ")]
    assert len(left_out) == sum(subject.in_all for subject in SUBJECTS.values()) - len(audited)
    says = "note: sglang is left out: sglang==0.5.23 is neither fetched nor installed"
    assert any(line.startswith(says) for line in left_out)
    assert main(["audit", "vllm", "--cache", str(tmp_path)]) == 2


def test_fetching(capsys: pytest.CaptureFixture[str]) -> None:
    """What is there is not downloaded again; the version that was tested is the one that is meant."""
    fetched("sglang-0.5.23")
    for requirement in ("sglang", "sglang==0.5.23"):
        assert main(["audit", "fetch", requirement, "--cache", str(CACHE)]) == 0
        assert "0.5.23" in capsys.readouterr().out
    found = run_json(capsys, "audit", "fetch", "sglang", "--cache", str(CACHE))["fetched"]
    assert found == [{"package": "sglang", "version": "0.5.23", "folder": str(CACHE / "sglang-0.5.23")}]


@pytest.mark.deep
def test_a_checkout_and_a_history(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--from a folder; the releases of a history with their verdicts, and the status of the newest."""
    module = "vllm_ascend.sample.rejection_sampler"
    pair = ["--pair", str(write_pair(tmp_path, draft_length=1))]
    wrong = FLAT.replace("bool(coin * q[token] < p[token])", "True")
    texts = {"2": wrong, "1": FLAT}
    for version, text in texts.items():
        released(tmp_path / version, module, text)
        words = ["audit", "vllm-ascend", "--from", str(tmp_path / version), *pair]
        assert main([*words, "--json"]) == (version == "2")
        assert json.loads(capsys.readouterr().out)["provenance"]["file"] == f"{module.replace('.', '/')}.py"
    monkeypatch.setattr(release_history, "released_versions", lambda package: list(texts))
    monkeypatch.setattr(
        audits.subject, "fetch", lambda asked, _, cache: Release("vllm-ascend", asked[-1], cache / asked[-1])
    )
    words = ["audit", "history", "vllm-ascend", "--versions", "2", "--cache", str(tmp_path), *pair]
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["first_bad"], found["first_good"]) == ("2", None)
    assert [each["version"] for each in found["releases"]] == ["2", "1"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--report", "missing/audits.md"], "lie in a folder that exists"),
        (["--report", "audits.txt"], "must end in .sarif, .xml, .md"),
    ],
)
def test_files_that_are_refused(
    options: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Before anything is audited."""
    pair = str(write_pair(tmp_path, draft_length=1))
    asked = ["audit", f"{SPECIMENS}:token_verification", "--as", "sampler", "--pair", pair]
    assert says in run_error(capsys, *asked, *options)


@pytest.mark.parametrize("part", ["fetch", "history"])
@pytest.mark.parametrize(
    "option",
    [
        ["--report", "x.xml"], ["--from", "."], ["--as", "sampler"], ["-k", "2"],
    ],
)  # fmt: skip
def test_options_that_a_part_does_not_have_are_refused(
    capsys: pytest.CaptureFixture[str], part: str, option: list[str]
) -> None:
    said = run_error(capsys, "audit", part, "vllm", *option)
    assert f"No such option '{option[0]}'" in said
    assert f"See: spectheory audit {part} --help" in said


def test_findings_in_sarif(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A file beside what is printed, with the line of the function."""
    pair = str(write_pair(tmp_path, draft_length=1))
    wrong = ["audit", f"{SPECIMENS}:greedy_acceptance", "--as", "sampler", "--pair", pair]
    file = tmp_path / "audit.sarif"
    assert main([*wrong, "--report", str(file)]) == 1
    assert capsys.readouterr().out.startswith("✗ not lossless (followed): greedy_acceptance on")
    (found,) = json.loads(file.read_text(encoding="utf-8"))["runs"][0]["results"]
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "audits/specimens/samplers.py"
    lines = Path(samplers.__file__).read_text(encoding="utf-8").splitlines()
    assert lines[place["region"]["startLine"] - 1].startswith("def greedy_acceptance(")


@pytest.mark.deep
def test_the_workflow_of_the_documentation_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its step on the file of the page, as it is written there."""
    page = (Path(__file__).parents[2] / "docs" / "auditing.md").read_text(encoding="utf-8")
    workflow = page.partition("`.github/workflows/audit.yml`:")[2].partition("```")[2].partition("```")[0]
    (command,) = re.findall(r"- run: spectheory (.*)$", workflow, re.MULTILINE)
    sampler = page.partition("`my_sampler.py`:")[2].partition("```python\n")[2].partition("```")[0]
    (tmp_path / "my_sampler.py").write_text(sampler, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_sampler", raising=False)
    assert main(command.split()) == 0
    assert json.loads((tmp_path / "audit.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert "sarif_file: audit.sarif" in workflow
    sys.modules.pop("my_sampler")


@first_is_quick(("noise", "status"), [("noise", 1), ("torch.empty_like(row).exponential_()", 0)], quick=2)
def test_the_round_of_the_documentation(
    noise: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it is written there, with the noise of the draft; the partner has noise of its own."""
    page = (Path(__file__).parents[2] / "docs" / "auditing.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^\$ spectheory (audit my_round:play .*)$", page, re.MULTILINE)
    text = page.partition("`my_round.py`:")[2].partition("```python\n")[2].partition("```")[0]
    mended = text.replace("(residual / noise)", f"(residual / {noise})")
    assert (mended == text) is (status == 1)
    (tmp_path / "my_round.py").write_text(mended, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "my_round", raising=False)
    assert main(command.split()) == status
    sys.modules.pop("my_round")


@pytest.mark.deep
def test_batches_of_a_function(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All kinds are asked by default."""
    pair = str(write_pair(tmp_path, draft_length=1))
    words = ["audit", f"{SPECIMENS}:batch_is_greedy_if_one_is", "--as", "batch", "--pair", pair, "--json"]
    assert main(words) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["batches"] == ["equal lengths", "no drafts", "ragged", "padded", "greedy"]
    assert [text.partition(" the tokens")[0] for text in found["reasons"]] == [
        "batch: beside other requests (greedy)"
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing"], "no sampler is called 'nothing'"),
        (
            [f"{SPECIMENS}:token_verification"],
            r"say how .* is called, with --as SIGNATURE; .* --as sampler: \(paths, target_rows",
        ),
        ([f"{SPECIMENS}:token_verification", "--as", "coin"], "did you mean 'coins'"),
        ([f"{SPECIMENS}:SPECIMENS", "--as", "coins"], "is dict, expected a function"),
        (
            [f"{SPECIMENS}:token_verification", "--as", "batch"],
            r"calls it with \(rows, generator\); --as .*sampler",
        ),
        (
            [f"{SPECIMENS}:coins_of_positions", "--as", "evaluate_posterior"],
            "calls it with .*logits_processor",
        ),
        ([f"{SPECIMENS}:nothing", "--as", "coins"], "no attribute of module"),
        (["transformers", "--as", "coins"], "a library's sampler knows"),
        (["fetch"], r"Missing argument .LIBRARY"),
        (["history"], r"Missing argument .SAMPLER"),
        (["transformers", "--versions", "2"], "No such option.*--versions"),
        (["math:floor", "--as", "sampler", "--from", "."], "--from is for the samplers of libraries"),
        (["fetch", "sglnag"], "did you mean 'sglang'"),
        (["fetch", "sglang>=1"], "write package or package==version"),
    ],
)
def test_bad_input_is_one_line(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert main(["audit", *words]) == 2
    error = capsys.readouterr().err
    assert re.search(says, error)
    assert error.count("\n") == 1


NOT_FOLLOWED = """
from random import SystemRandom

def sampler(paths, target, draft, generator):
    return [int(SystemRandom().random() > target[0, 0, 0])]
"""


@pytest.mark.parametrize(
    ("others", "status"), [([], 4), (["token_verification"], 4), (["greedy_acceptance"], 1)]
)
def test_what_is_not_decided_has_a_status(
    others: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several verdicts a defect outranks it, and it outranks a lossless one."""
    (tmp_path / "not_followed.py").write_text(NOT_FOLLOWED, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    names = ["not_followed:sampler", *(f"{SPECIMENS}:{name}" for name in others)]
    pair = str(write_pair(tmp_path, draft_length=1))
    assert main(["audit", *names, "--as", "sampler", "--pair", pair, "--within", "0.5", "--csv"]) == status


@pytest.mark.deep
def test_shapes_are_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    """Five tokens with two paths, which no pair of an audit has; wrong samplers of two paths, of a tree."""
    words = ["--as", "sampler", "--vocab", "5", "--draft-length", "1", "--drafts", "2"]
    document = run_json(capsys, "audit", f"{SPECIMENS}:sample_and_compare", *words)
    assert document["scope"]["shapes"] == [[5, 1, 2]]
    assert main(["audit", f"{SPECIMENS}:residual_of_the_target", *words]) == 1
    tree = ["--as", "sampler", "--vocab", "3", "--draft-length", "1", "--drafts", "without_replacement:2"]
    assert main(["audit", f"{SPECIMENS}:recursive_rejection", *tree]) == 1
    assert "without_replacement" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--as", "coins", "--drafts", "2"], "take one drafted path; several are audited with"),
        (["--as", "sampler", "--pair", "PAIR", "--vocab", "3"], "--pair has its own vocabulary"),
        (["--as", "sampler", "--draft-length", "1", "--drafts", "prefix_tree:1,2"], "no pair has drafts of"),
    ],
)
def test_shapes_that_cannot_be_asked(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pair = str(write_pair(tmp_path, draft_length=1))
    given = [pair if word == "PAIR" else word for word in words]
    assert main(["audit", f"{SPECIMENS}:token_verification", *given]) == 2
    assert says in capsys.readouterr().err
