"""The printed block efficiencies: complete tables, averages as printed, gains against token verification."""

from collections import Counter

from figures.common.printed import gains_over_token, printed_rows, printed_times
from spectheory.verification.algorithms import verifiers


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


def test_gains_need_token_verification_beside_them() -> None:
    gains = gains_over_token()
    assert all(one.row.verifier != "token" for one in gains)
    assert len(gains) == sum(row.verifier != "token" for row in printed_rows())
    without = [row for row in printed_rows() if row.verifier != "token"]
    assert gains_over_token(without) == []
