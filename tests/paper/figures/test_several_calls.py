"""The optimum of several calls. Its data, and that its checks can fail."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Changed, Lie, assert_seen
from spectheory.paper.figures.several_calls import several_calls


def test_values() -> None:
    """theory.md Statement 4.9: the calls for n tokens.  Statement 4.10: (1-ρ)((L-1)ρ - 1), where positive."""
    findings = several_calls(max_tokens=6, draft_lengths=(3, 4), steps=6)
    calls = {row["tokens"]: row["calls"] for row in findings.table("several_calls").select(verifier="block")}
    assert [calls[n] for n in (1, 2, 3, 6)] == [1, Fraction(4, 3), Fraction(14, 9), Fraction(668, 243)]
    losses = findings.table("two_calls").select()
    assert len(losses) == 8 + 7  # the worst ratio of L = 4 is one of the six steps
    for row in losses:
        length, ratio = row["draft_length"], row["ratio"]
        assert row["loss"] == max(0, (1 - ratio) * ((length - 1) * ratio - 1))
    worst = findings.table("two_calls").select(is_worst=True)
    assert [row["loss"] for row in worst] == [Fraction(1, 8), Fraction(1, 3)]


def changed(**changes: object) -> Lie:
    """A result of a program with other numbers."""
    return lambda original: lambda *rest, **options: Changed(original(*rest, **options), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("fewest_calls", changed(value=lambda value: value - 1), ["block verification needs the fewest"]),
        ("fewest_calls", changed(value=lambda value: value + 1), ["no verifier needs fewer"]),
        ("calls_for", lambda original: lambda *rest: original(*rest) + 1, ["the calls of block"]),
        ("most_decoded_tokens", changed(value=lambda value: value + 1), ["two calls lose at most"]),
        ("most_decoded_tokens", changed(block=lambda block: block + 1), ["the pair early_stop"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "several_calls", called, lie, claims)
