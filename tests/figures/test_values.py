"""Numbers of the figures on enumerated pairs, against theory.md, the papers and independent routes."""

from fractions import Fraction

import pytest

from figure_support import small
from figures.common.lossless import efficiencies, lossless_verifiers
from spectheory.exact.law import output_law
from spectheory.pairs.instances import random_float

F = Fraction


def test_acceptance_length_values() -> None:
    """Token: P(tau >= l) = (2/3)^l.  Block: E[w_l], w_l = min(1, w_{l-1} p/q), by its own recursion.

    w is 2^-j with j up by one on A (drafted with 2/3) and down by one, not below 0, on B.
    """
    (table,) = small("acceptance_length", draft_length=10).tables
    levels = {0: F(1)}
    for length in range(1, 11):
        grown: dict[int, Fraction] = {}
        for level, mass in levels.items():
            for step, probability in ((1, F(2, 3)), (-1, F(1, 3))):
                to = max(level + step, 0)
                grown[to] = grown.get(to, F(0)) + mass * probability
        levels = grown
        token, block = (table.select(verifier=name, length=length)[0] for name in ("token", "block"))
        assert token["exact"] == F(2, 3) ** length
        assert block["exact"] == sum(mass / 2**level for level, mass in levels.items())


def test_draft_length_gain() -> None:
    """20/19 at two tokens; then the third pair's gain shrinks.

    The printed gain grows (block2024 Tables 1, 6-10).
    Of two printed digits of the efficiencies the gain can be recomputed to half a percent.
    """
    table, *_, printed = small("draft_length_gain", max_length=4, num_random=1).tables
    two, lost = (table.where(pair=name).column("relative_gain") for name in ("two_token", "lost_lead"))
    assert two[:2] == lost[:2] == pytest.approx([0, 1 / 19])
    assert two == sorted(two)
    assert lost[1:] == sorted(lost[1:], reverse=True)
    assert table.where(pair="two_token").column("block") == [F(5, 3), F(20, 9), F(8, 3), F(247, 81)]
    for drafter in ("PALM-2-XXS", "PALM-2-XXXS"):
        gains = printed.where(drafter=drafter).column("gain_in_percent")
        assert gains == sorted(gains)
        for row, gain in zip(printed.select(drafter=drafter), gains, strict=True):
            assert abs(100 * (row["block"] / row["token"] - 1) - gain) < 0.5


def test_two_token_table_values() -> None:
    """E[tau] of the two-token pair (theory.md §4); token is sum_{i=1..L} (2/3)^i."""
    lengths = (1, 2, 3, 4)
    (table,) = small("two_token_table", draft_lengths=lengths).tables
    block = [F(2, 3), F(11, 9), F(5, 3), F(166, 81)]
    assert table.column("block_accepted") == block
    assert table.column("token_accepted") == [sum(F(2, 3) ** i for i in range(1, n + 1)) for n in lengths]
    assert table.column("optimum") == [value + 1 for value in block]


@pytest.mark.parametrize("num_drafts", [2, 3])
def test_recursions_of_the_frontier_are_the_laws(num_drafts: int) -> None:
    for agreement in (0.0, 0.6):
        pair = random_float([77, 5], 3, 2, agreement=agreement)
        found = efficiencies(pair, num_drafts, 100)
        known = lossless_verifiers(2)
        assert [*found] == [name for name in known if num_drafts == 2 or name != "conditional_transport"]
        for name, value in found.items():
            assert value == pytest.approx(output_law(name, pair, num_drafts).block_efficiency, abs=1e-9), name
