"""Measured rows, as data of the figures."""

from pathlib import Path

import pytest

from figures.common import measured
from figures.common.measured import Measurement, measurement


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once more with another number, which is another measurement."""
    monkeypatch.setattr(measured, "FOLDER", tmp_path)
    for seconds in (0.1, 0.3):
        found = Measurement("python a.py", "a machine", ["method", "seconds"], [["a", seconds], ["b", 2.5]])
        found.write("times")
        assert measurement("times") == found
    assert found.select(method="b") == [{"method": "b", "seconds": 2.5}]
    assert (tmp_path / "times.json").read_text().count("\n  [") == 2


@pytest.mark.parametrize("path", sorted(measured.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_every_measurement_names_its_command_and_machine(path: Path) -> None:
    """All rows have as many entries as columns."""
    found = measurement(path.stem)
    assert found.command
    assert found.machine
    assert found.rows
    assert {len(row) for row in found.rows} == {len(found.columns)}
