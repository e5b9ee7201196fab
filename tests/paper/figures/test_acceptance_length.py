"""P(tau >= l) of token and block against independent recursions."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paper_support import Lie, assert_seen, told
from spectheory.paper import acceptance_length


def test_acceptance_length_values() -> None:
    """Token: P(tau >= l) = (2/3)^l.  Block: E[w_l], w_l = min(1, w_{l-1} p/q), by its own recursion.

    w is 2^-j with j up by one on A (drafted with 2/3) and down by one, not below 0, on B.
    """
    table = acceptance_length(draft_length=10, samples=400).tables[0]
    levels = {0: Fraction(1)}
    for length in range(1, 11):
        grown: dict[int, Fraction] = {}
        for level, mass in levels.items():
            for step, probability in ((1, Fraction(2, 3)), (-1, Fraction(1, 3))):
                to = max(level + step, 0)
                grown[to] = grown.get(to, Fraction(0)) + mass * probability
        levels = grown
        token, block = (table.select(verifier=name, length=length)[0] for name in ("token", "block"))
        assert token["exact"] == Fraction(2, 3) ** length
        assert block["exact"] == sum(mass / 2**level for level, mass in levels.items())


@pytest.mark.parametrize(
    ("called", "lie", "claims"),
    [
        ("output_law", told(length_probs=lambda probs: probs[::-1]), ["every exact probability"]),
    ],
)
def test_partner_checks_can_fail(
    monkeypatch: pytest.MonkeyPatch, called: str, lie: Lie, claims: list[str]
) -> None:
    assert_seen(monkeypatch, "acceptance_length", called, lie, claims)
