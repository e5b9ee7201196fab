"""Numbers of the figures on enumerated pairs, against theory.md, the papers and independent routes."""

from contextlib import suppress
from fractions import Fraction
from importlib import import_module

import pytest

from figure_support import small, small_once
from figures.common.lossless import OPTIMAL, efficiencies, lossless_verifiers
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.instances import random_float, two_token
from spectheory.verification.algorithms import verifiers

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


def lossless_of_the_registry(draft_length: int) -> set[str]:
    """Who says that it is lossless and is certified on drafts of this length; the optimum stands beside."""
    pair, found = two_token(draft_length).to_float(), set()
    for name, verifier in verifiers.items():
        with suppress(InvalidInputError):
            law = output_law(name, pair, 2)
            if law.total_variation < 1e-9 and verifier.lossless:
                found.add(name)
    return found - {OPTIMAL}


def test_prefix_trees() -> None:
    """Independent paths are the shape (K, 1, ..): their law is that of K i.i.d. drafts."""
    (table,) = small("prefix_trees", num_leaves=(2,)).tables
    assert table.column("widths") == ["2,1,1"] * 3 + ["1,2,1"] * 3 + ["1,1,2"] * 3
    assert table.column("nodes") == [6] * 3 + [5] * 3 + [4] * 3
    for row in table.select(widths="2,1,1"):
        assert row["optimum"] == F(2350, 729)  # theory.md §5
        same = output_law(row["verifier"], two_token(3).to_float(), 2).block_efficiency
        assert row["block_efficiency"] == pytest.approx(float(same), abs=1e-12)
    shapes = import_module("figures.prefix_trees").shapes
    assert len(shapes(4, 3)) == 6
    assert shapes(3, 2) == [(1, 3), (3, 1)]


@pytest.mark.parametrize("draft_length", [1, 2])
def test_no_lossless_verifier_is_left_out(draft_length: int) -> None:
    """Each of the registry is compared; a row without one of them has no number on what others miss."""
    assert "otm" in lossless_of_the_registry(draft_length)
    assert set(lossless_verifiers(draft_length)) == lossless_of_the_registry(draft_length)


def test_the_frontier_has_every_lossless_verifier() -> None:
    (table,) = small_once("frontier").tables
    assert lossless_of_the_registry(2) < {*table.columns}
    (row,) = table.select(agreement=0.3)
    assert (row["conditional_transport"], row["closed_beside_all"]) == (None, None)  # 3^6 tuples


def test_scored_selection_is_ahead_on_average() -> None:
    """No verifier is above the optimum of its row, to the last digit, and it is not above its bound."""
    (table,) = small("frontier", agreements=(0.0, 0.6, 0.9), num_drafts=(2, 4), num_pairs=3).tables
    for row in table.select():
        others = [row[name] for name in lossless_verifiers(2) if name != "scored_multipath"]
        others = [value for value in others if value is not None]
        assert max(others) < row["scored_multipath"] <= row["optimum"] <= row["bound"]
        for name in ("closed", "closed_beside_all"):
            assert row[name] is None or row[name] <= 1
