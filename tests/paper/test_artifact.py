"""What a result writes: CSV, JSON and report hold the same numbers, figures embed their fonts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paper_support import SMALL, read_csv
from spectheory.paper import write_artifact, write_report


@pytest.mark.parametrize("name", SMALL)
def test_csv_json_and_report_hold_the_same_numbers(name: str, tmp_path: Path) -> None:
    artifact = SMALL[name]()
    write_artifact(artifact, tmp_path)
    write_report([artifact], "command", tmp_path)
    for table in artifact.tables:
        from_csv = read_csv(tmp_path / f"{table.name}.csv")
        document = json.loads((tmp_path / f"{table.name}.json").read_text(encoding="utf-8"))
        assert len(from_csv) == len(document["rows"]) == len(table.rows) > 0
        for left, right in zip(from_csv, document["rows"], strict=True):
            assert left == {key: str(value) for key, value in right.items()}
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert all(file in report for file in artifact.files)


def test_figures_embed_their_fonts(tmp_path: Path) -> None:
    write_artifact(SMALL["otm_bernoulli"](), tmp_path)
    content = (tmp_path / "otm_bernoulli.pdf").read_bytes()
    assert b"/FontFile2" in content  # TrueType, embedded
    assert b"/Type3" not in content
    assert b"CreationDate" not in content
