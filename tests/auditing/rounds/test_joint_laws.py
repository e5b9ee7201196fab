"""Laws as dictionaries: a pair is its first entry and the law of the second given the first."""

from __future__ import annotations

from fractions import Fraction

from spectheory.auditing.rounds.joint_laws import given, marginal, total_variation

LAW = {
    (0, 0): Fraction(1, 2),
    (0, 1): Fraction(1, 8),
    (1, 1): Fraction(1, 8),
    (1, 2): Fraction(1, 4),
}


def test_a_law_is_its_first_entry_times_the_second_given_it() -> None:
    first, second = marginal(LAW, 0), given(LAW)
    assert {(a, b): first[a] * mass for a, law in second.items() for b, mass in law.items()} == LAW
    assert all(sum(law.values()) == 1 for law in (first, *second.values()))
    assert marginal(LAW, 1) == {0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)}


def test_total_variation_is_a_metric_up_to_1() -> None:
    """0 for equal laws, 1 for disjoint ones, symmetric, with the triangle inequality."""
    laws = [marginal(LAW, 1), *given(LAW).values(), {7: Fraction(1)}]
    for a in laws:
        assert total_variation(a, a) == 0
        for b in laws:
            assert total_variation(a, b) == total_variation(b, a)
            assert (total_variation(a, b) == 1) is not any(a.get(key, 0) * b.get(key, 0) for key in {*a, *b})
            assert all(total_variation(a, b) <= total_variation(a, c) + total_variation(c, b) for c in laws)
