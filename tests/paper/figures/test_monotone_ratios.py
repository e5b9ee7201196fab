"""Ratios along a ranking. Its data, and that its checks can fail."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest

from paper_support import Lie, assert_seen
from spectheory.exact.law import output_law
from spectheory.pairs.instances import sticky_chain, two_token
from spectheory.paper.figures.monotone_ratios import global_order, monotone_ratios


def test_values() -> None:
    """The tree-based order earns what greedy multi-path does; the drawn ratios average to 1."""
    findings = monotone_ratios(num_pairs=2)
    first = findings.table("monotone_ratios").select(number=0)[0]
    assert first["tree_based"] == output_law("greedy_multipath", sticky_chain(3), 3).block_efficiency
    along = findings.table("monotone_ratios_along")
    ends = [0.0, *along.column("draft_mass")]
    for name in ("selected_over_draft", "target_over_draft"):
        widths = [after - before for before, after in pairwise(ends)]
        assert sum(w * r for w, r in zip(widths, along.column(name), strict=True)) == pytest.approx(1)


def test_the_global_order_sorts_path_ratios() -> None:
    """On the two-token pair B doubles a ratio: AA < AB = BA < BB."""
    assert global_order(two_token(2)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("leaf_order", lambda original: global_order, ["target / draft does fall"]),
        ("global_order", lambda original: lambda pair: original(pair)[::-1], ["neither order"]),
        ("optimum", lambda original: lambda *_: SimpleNamespace(value=1), ["no order exceeds"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "monotone_ratios", called, lie, claims)


def test_partner_another_order_is_no_ranking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ratios read off in the reverse of the order that selects."""
    from spectheory.optima.bounds.skewed_draft import SkewedDraft

    reverse = SimpleNamespace(from_order=lambda pair, k, order: SkewedDraft.from_order(pair, k, order[::-1]))
    assert_seen(
        monkeypatch, "monotone_ratios", "SkewedDraft", lambda original: reverse, ["selected / draft does not"]
    )
