"""benchmarks/gpu.py on a CPU, in seconds: it judges, and its judgement can fail."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from scripts import load

gpu = load("benchmarks", "gpu")


def test_a_page_and_its_numbers(tmp_path: Path) -> None:
    """Without time every verifier still has its first cases, and the wrong one is found on them."""
    given = ["--minutes", "0", "--part", "laws", "--device", "cpu", "--folder", str(tmp_path)]
    ran = CliRunner().invoke(gpu.main, given)
    assert ran.exit_code == 0, ran.output
    (numbers,), (page,) = tmp_path.glob("*.json"), tmp_path.glob("*.md")
    rows = json.loads(numbers.read_text())["parts"]["laws"]
    wrong = [row for row in rows if not row["lossless"]]
    assert all(row["off"] > 0 for row in wrong)
    assert {row["arithmetic"] for row in wrong} == {"torch float64", "torch float32"}
    assert {row["cases"] for row in rows if "refused" not in row} == {gpu.FEWEST_CASES}
    assert "| block | True | torch float32 |" in page.read_text()


@pytest.mark.parametrize("lossless", [True, False])
def test_what_is_off_is_said(lossless: bool) -> None:
    law: dict[str, Any] = {"verifier": "v", "arithmetic": "torch float32", "cases": 9, "lossless": lossless}
    text: dict[str, Any] = {"verifier": "v", "drafts": "Iid(2)", "lossless": lossless}
    right = {
        "laws": [law | {"off": 0 if lossless else 3}],
        "texts": [text | {"p_value": 0.2 if lossless else 0.0}],
    }
    wrong = {
        "laws": [law | {"off": 3 if lossless else 0}],
        "texts": [text | {"p_value": 0.0 if lossless else 0.2}],
    }
    assert gpu.complaints(right) == []
    assert len(gpu.complaints(wrong)) == 2


@pytest.mark.parametrize("off", [{"off_by_precisions": 1.0}, {"other_tokens": 0.0}])
def test_a_kernel_that_is_off_is_said(off: dict[str, float]) -> None:
    row: dict[str, Any] = {"kernel": "draw", "size": 700, "rows": "float32"}
    assert gpu.complaints({"kernels": [row | off]}) == []
    worse = {name: 1000 * value + 1 for name, value in off.items()}
    assert gpu.complaints({"kernels": [row | worse]}) == ["draw, V = 700, float32: not as on the host"]


@pytest.mark.parametrize(
    ("off", "fault"),
    [({"waits": 1}, "waits"), ({"replay_waits": 2}, "waits"), ({"same": False}, "a replayed round differs")],
)
def test_a_round_that_is_off_is_said(off: dict[str, Any], fault: str) -> None:
    row: dict[str, Any] = {"verifier": "v", "batch": 1, "waits": 0, "replay_waits": 0, "same": True}
    assert gpu.complaints({"rounds": [row, {"verifier": "v", "batch": 1, "waits": None}]}) == []
    (said,) = gpu.complaints({"rounds": [row | off]})
    assert fault in said
