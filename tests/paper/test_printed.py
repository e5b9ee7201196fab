"""The printed block efficiencies: complete tables, averages as printed, gains against token verification."""

from __future__ import annotations

from collections import Counter
from statistics import mean

import pytest

from spectheory.paper.printed import gains_over_token, printed_rows, printed_times
from spectheory.verification.algorithms import verifiers

AVERAGES = {  # printed in the last line of a table
    ("block2024 Table 6", "PALM-2-S", 4): {"token": 2.89, "block": 2.99},
    ("block2024 Table 7", "PALM-2-S", 6): {"token": 3.23, "block": 3.43},
    ("block2024 Table 8", "PALM-2-S", 4): {"token": 2.35, "block": 2.43},
    ("block2024 Table 9", "PALM-2-S", 6): {"token": 2.50, "block": 2.63},
    ("block2024 Table 10", "PALM-2-S", 8): {"token": 2.57, "block": 2.73},
}


def test_tables_are_complete() -> None:
    """Every data set has every verifier of its table; names are those of the package; nothing twice."""
    rows = printed_rows()
    assert {row.verifier for row in rows} <= set(verifiers)
    assert len({row[:-2] for row in rows}) == len(rows) == 288
    gains = Counter(row.table for row in rows if row.printed_gain is not None)
    assert gains == {f"block2024 Table {number}": 8 for number in (1, 6, 7, 8, 9, 10)}
    count = Counter(row.table for row in rows)
    assert count["spectr2023 Table 4"] == 3 * 2 * 4
    assert count["block2024 Table 4"] == 3 * 8
    assert count["block2024 Table 5"] == 4 * 8
    assert {count[f"block2024 Table {number}"] for number in (1, 6, 7, 8, 9, 10)} == {2 * 8}
    assert {count[f"spectrgbv2026 Table {number}"] for number in (1, 4)} == {2 * 5 * 4}
    assert {count[f"spectrgbv2026 Table {number}"] for number in (3, 5)} == {4 * 4}


def test_times_are_a_complete_table() -> None:
    """Two drafters, three data sets, four K; their means as printed are claims, see test_printed_tables."""
    rows = printed_times()
    assert len({row[:4] for row in rows}) == len(rows) == 2 * 3 * 4
    assert [row.num_drafts for row in rows] == [1, 2, 3, 4] * 6
    assert {row.draft for row in rows} == {"OPT 350M", "OPT 125M"}


@pytest.mark.parametrize("place", AVERAGES)
def test_printed_averages_are_the_means(place: tuple[str, str, int]) -> None:
    """A number that was copied wrong by more than some hundredths is seen: 2 digits, 5 to 8 data sets."""
    table, target, length = place
    for verifier, average in AVERAGES[place].items():
        values = [
            row.block_efficiency
            for row in printed_rows()
            if (row.table, row.target, row.draft_length, row.verifier) == (table, target, length, verifier)
        ]
        assert abs(mean(values) - average) <= 0.0101, (verifier, mean(values))


def test_gains_need_token_verification_beside_them() -> None:
    gains = gains_over_token()
    assert all(one.row.verifier != "token" for one in gains)
    assert len(gains) == sum(row.verifier != "token" for row in printed_rows())
    without = [row for row in printed_rows() if row.verifier != "token"]
    assert gains_over_token(without) == []
