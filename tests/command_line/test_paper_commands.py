"""`reproduce`: one exhibit by its name, the list of them, exit code 1 where a check fails; `claims`."""

import json
from pathlib import Path

import pytest

from spectheory.command_line.main import main
from spectheory.paper import Checks, Findings, exhibit, read_exhibit, select_claims


def test_failed_check_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @exhibit("block2024", title="Broken", source="none")
    def broken() -> Findings:
        checks = Checks()
        checks.expect("1 is 2", 1 == 2, "it is not")
        return Findings("", [], checks)

    monkeypatch.setattr("spectheory.paper.reproduction.EXHIBITS", {"broken": broken})
    assert main(["reproduce", "--out", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False
    assert main(["reproduce", "--out", str(tmp_path)]) == 1
    assert "FAILED: 1 is 2" in capsys.readouterr().out
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "**failed**: 1 is 2 (1 of 1 failed: it is not)" in report


def test_reproduce_one_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "two_token_table", "--out", str(tmp_path / "new"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [result["name"] for result in document["results"]] == ["two_token_table"]
    found = read_exhibit("two_token_table", tmp_path / "new")
    assert found is not None
    assert found.findings.tables[0].column("optimum")[7] == "26945/6561"


def test_the_list_computes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "--list", "--json"]) == 0
    assert "two_token_table" in [entry["name"] for entry in json.loads(capsys.readouterr().out)["exhibits"]]
    assert main(["reproduce", "--list"]) == 0
    assert "otm_bernoulli" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_claims_of_one_paper_with_one_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON object, or a table with a line of counts; nothing that is not asked for."""
    assert main(["claims", "--paper", "block2024", "--verdict", "refuted", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    wanted = select_claims("block2024", "refuted")
    assert document["claims"] == [claim.to_document() for claim in wanted]
    assert document["counts"]["refuted"] == len(wanted) == sum(document["counts"].values())
    assert main(["claims", "--paper", "block2024", "--verdict", "refuted"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == f"{len(wanted)} statements: {len(wanted)} refuted"
    assert all(claim.id in printed for claim in wanted)
    assert "57/8" in printed
    assert "BV-H2 " not in printed


def test_all_claims_and_unknown_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims"]) == 0
    assert "224 statements: " in capsys.readouterr().out
    assert main(["claims", "--paper", "spectr202"]) == 2
    assert "did you mean 'spectr2023'" in capsys.readouterr().err
    assert main(["claims", "--verdict", "wrong"]) == 2
    assert "known: proved, holds" in capsys.readouterr().err
