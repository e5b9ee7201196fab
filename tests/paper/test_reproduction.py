"""The reproduction gives the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from paper_support import SMALL
from spectheory.paper import ARTIFACTS, write_artifact, write_report


@pytest.mark.parametrize("name", SMALL)
def test_rerun_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    assert SMALL.keys() == ARTIFACTS.keys()
    for folder in ("first", "second"):
        artifact = SMALL[name]()
        assert artifact.failures == []
        write_artifact(artifact, tmp_path / folder)
        write_report([artifact], "command", tmp_path / folder)
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert files == sorted([*artifact.files, "report.md"])
    for file in files:
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes(), file
