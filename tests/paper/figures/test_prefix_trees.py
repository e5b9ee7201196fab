"""Shapes of prefix trees with equally many leaves. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from paper_support import Lie, assert_seen, told, told_of
from spectheory.exact.law import output_law
from spectheory.pairs.instances import two_token
from spectheory.paper.figures.prefix_trees import prefix_trees, shapes


def late(*_: Any, process: Any) -> bool:
    """Whether a tree branches after its root only."""
    return bool(process.widths[0] == 1)


def test_values() -> None:
    """Independent paths are the shape (K, 1, ..): their law is that of K i.i.d. drafts."""
    table = prefix_trees(("two_token",), (2,)).tables[0]
    assert table.column("widths") == ["2,1,1"] * 2 + ["1,2,1"] * 2 + ["1,1,2"] * 2
    assert table.column("nodes") == [6, 6, 5, 5, 4, 4]
    for row in table.select(widths="2,1,1"):
        assert row["optimum"] == Fraction(2350, 729)  # theory.md §5
        same = output_law(row["verifier"], two_token(3).to_float(), 2).block_efficiency
        assert row["block_efficiency"] == pytest.approx(float(same), abs=1e-12)


def test_shapes_are_all_factorisations() -> None:
    assert len(shapes(4, 3)) == 6
    assert shapes(3, 2) == [(1, 3), (3, 1)]


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("output_law", told(total_variation=lambda value: value + 1), ["every verifier is lossless"]),
        ("output_law", told(block_efficiency=lambda value: value + 9), ["no verifier exceeds"]),
        (
            "output_law",
            told_of(late, block_efficiency=lambda value: value + 9),
            ["on these pairs no shape"],
        ),
        ("optimum", told_of(late, value=lambda value: value + 9), ["no shape has a larger"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "prefix_trees", called, lie, claims)


def test_partner_trees_with_more_leaves_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four leaves are needed for a tree that scores as many tokens as another with fewer leaves."""
    lie = told_of(late, block_efficiency=lambda value: value + 9)
    assert_seen(
        monkeypatch, "prefix_trees", "output_law", lie, ["nor does a tree"],
        names=("two_token",), num_leaves=(2, 4),
    )  # fmt: skip
