"""The frontier. Its recursions against exact laws, and that its checks can fail."""

from __future__ import annotations

import pytest

from paper_support import Changed, Lie, assert_seen, told
from spectheory.exact.law import output_law
from spectheory.pairs.instances import random_float
from spectheory.paper.figures.frontier import SHOWN, efficiencies, frontier


@pytest.mark.parametrize("num_drafts", [2, 3])
def test_recursions_are_the_laws(num_drafts: int) -> None:
    """The same numbers from all tuples of drafts."""
    for agreement in (0.0, 0.6):
        pair = random_float([77, 5], 3, 2, agreement=agreement)
        found = efficiencies(pair, num_drafts)
        assert tuple(found) == SHOWN
        for name, value in found.items():
            assert value == pytest.approx(output_law(name, pair, num_drafts).block_efficiency, abs=1e-9), name


def test_scored_selection_is_ahead_on_average() -> None:
    table = frontier((0.0, 0.6), (3,), (2,), num_pairs=4).tables[0]
    for row in table.select():
        assert (
            max(row[name] for name in SHOWN[:-1]) < row["scored_multipath"] <= row["optimum"] <= row["bound"]
        )


def less(original: object) -> object:
    """The optimum as large as one token."""
    return lambda *rest, **options: Changed(
        original(*rest, **options),  # type: ignore[operator]
        lower=lambda _: 9.0,
    )


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("multi_path_interval", told(upper=lambda value: value - 1), ["no verifier exceeds"]),
        ("multi_path_interval", less, ["the bound of the best cap", "scored selection closes"]),
        (
            "efficiencies",
            lambda original: lambda *rest: original(*rest) | {"scored_multipath": 1.0},
            ["scored selection closes", "it loses to no other"],
        ),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "frontier", called, lie, claims)
