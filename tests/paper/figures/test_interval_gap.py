"""The certified interval, round by round. Its data, and that its checks can fail."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from paper_support import Lie, assert_seen
from spectheory.paper.figures.interval_gap import interval_gap


def crossing(*_: Any, progress: Any = None, **__: Any) -> Any:
    """A search whose bounds cross and loosen, and that stalls off the optimum."""
    if progress is not None:
        progress(0, 2.0, 1.0)
        progress(1, 1.0, 2.0)
    return SimpleNamespace(status="stalled", lower=9.0, upper=9.5)


def test_bounds_close_in() -> None:
    table = interval_gap(((3, 2),), relative_gap=1e-5).tables[0]
    lower, upper, gap = (table.column(name) for name in ("lower", "upper", "relative_gap"))
    assert lower == sorted(lower)
    assert upper == sorted(upper, reverse=True)
    assert gap[-1] <= 1e-5
    assert max(upper) <= 3


def test_measured_times_have_both_methods_and_the_largest_tree() -> None:
    """Seconds are measured, not computed: only that they are there, and which method misses its gap."""
    table = interval_gap(((2, 2),)).table("interval_gap_seconds")
    assert max(row["vocab_size"] ** row["draft_length"] for row in table.select(method="interval")) == 10_000
    assert {row["method"] for row in table.select(status="time limit")} == {"leaf-set cuts"}
    assert min(table.column("seconds")) > 0


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        (
            "multi_path_interval",
            lambda original: crossing,
            [
                "the bounds never cross",
                "neither is ever",
                "the gap asked for",
                "the interval contains",
                "measured intervals",
            ],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "interval_gap", called, lie, claims)
