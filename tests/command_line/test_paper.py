"""`reproduce`: one figure by its name, and exit code 1 where a check fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paper_support import read_csv
from spectheory.command_line.main import main
from spectheory.errors import UnknownNameError
from spectheory.paper import Artifact, ResultTable, reproduce


def test_failed_check_is_exit_code_1(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ResultTable("broken", ("value",), [(1,)], "One number.")
    broken = Artifact("broken", "Broken", "none", "", {}, [table], failures=["1 is not 2"])
    monkeypatch.setattr("spectheory.paper.reproduction.ARTIFACTS", {"broken": lambda: broken})
    assert main(["reproduce", "--out", str(tmp_path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is False
    assert "1 is not 2" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_reproduce_one_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["reproduce", "two_token_table", "--out", str(tmp_path / "new"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [result["name"] for result in document["results"]] == ["two_token_table"]
    rows = read_csv(tmp_path / "new" / "two_token_table.csv")
    assert rows[7]["optimum"] == "26945/6561"
    with pytest.raises(UnknownNameError, match="did you mean 'real_pair'"):
        reproduce(["real_piar"], tmp_path)
