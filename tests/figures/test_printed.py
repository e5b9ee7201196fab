"""The printed block efficiencies: complete tables, averages as printed, gains against token verification."""

from collections import Counter

from figures.common.printed import printed_rows
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
