"""K-SEQ at one position: the root of Eq. 6, the acceptance probability and the residual of Eq. 5."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep import first_is_quick
from spectheory.verification.algorithms.position_by_position import kseq
from spectheory.verification.algorithms.position_by_position.kseq import (
    best_division_factor,
    kseq_rule,
    kseq_rule_at,
)


def exact_excess(rho: Fraction, target: list[Fraction], draft: list[Fraction], num_drafts: int) -> Fraction:
    """f(ρ) = 1 - (1 - β(ρ))^n - ρ β(ρ) without any rounding (spectr2023 Lemma 4)."""
    beta = sum(min(q, p / rho) for p, q in zip(target, draft, strict=True))
    return 1 - (1 - beta) ** num_drafts - rho * beta


def hard_rows(seed: int, how_many: int) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """(K, target, draft) for K = 2..16 and 2..40 tokens, of seven kinds in turn.

    Sparse to even Dirichlet rows, nearly equal rows (relative distance 1e-1 to 1e-15), two tokens with
    one down to 1e-20, entries over 25 orders of magnitude, and drafts on the way to the target.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(how_many):
        num_drafts, size, kind = int(rng.integers(2, 17)), int(rng.integers(2, 41)), number % 7
        if kind < 3:
            target, draft = rng.dirichlet(np.full(size, (0.02, 0.1, 0.5)[kind]), size=2)
        elif kind == 3:
            target = rng.dirichlet(np.ones(size))
            distance = 10.0 ** -rng.integers(1, 16)
            draft = target * np.clip(1 + distance * rng.standard_normal(size), 0.01, None)
        elif kind == 4:
            target, draft = (np.array([1 - tiny, tiny]) for tiny in 10.0 ** -rng.uniform(0.3, 20, 2))
        elif kind == 5:
            target, draft = 10.0 ** -rng.uniform(0, 25, (2, size))
        else:
            target, other = rng.dirichlet(np.ones(size), size=2)
            draft = target + 0.5 ** rng.integers(0, 12) * (other - target)
        rows.append((num_drafts, target / target.sum(), draft / draft.sum()))
    return rows


def is_root(rho: float, target: np.ndarray, draft: np.ndarray, num_drafts: int, relative: Fraction) -> bool:
    """Whether ρ* lies within a relative distance, in rational arithmetic: f decreases (spectr2023 Lemma 4).

    ρ* of the rows divided by their sums; it is at least 1.
    """
    rows = [[Fraction(value) / sum(map(Fraction, row)) for value in row] for row in (target, draft)]
    low, high = Fraction(rho) * (1 - relative), Fraction(rho) * (1 + relative)
    not_above = low < 1 or exact_excess(low, *rows, num_drafts) > 0
    return not_above and exact_excess(high, *rows, num_drafts) <= 0


CANCELLING = [  # β near 1: f as printed is a difference of numbers near 1
    (5, [0.9999002237845481, 9.977621545187443e-05], [0.9999746554021519, 2.534459784808707e-05]),
    (6, [9.40623552069351e-06, 0.9999905937644793], [3.225541923225147e-20, 1.0]),
]


def test_division_factor_is_the_root_to_1e_14() -> None:
    """150 rows of all kinds, in rational arithmetic: |found/ρ* - 1| <= 1e-14."""
    rows = [(number, np.array(p), np.array(q)) for number, p, q in CANCELLING] + hard_rows(1, 150)
    most = 0.0
    for num_drafts, target, draft in rows:
        found = float(best_division_factor(target, draft, np.array(float(num_drafts))))
        assert 1 <= found <= num_drafts
        assert is_root(found, target, draft, num_drafts, Fraction(1, 10**14)), (num_drafts, target, draft)
        most = max(most, found)
    assert len(rows) >= 150
    assert most > 8


@pytest.mark.parametrize("sections", [2, 5])
def test_division_factor_of_rows_longer_than_the_sections(
    sections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More entries than intervals tried at once, as in a real vocabulary: the search takes several steps."""
    monkeypatch.setattr(kseq, "MAX_SECTIONS", sections)
    for num_drafts, target, draft in hard_rows(2, 35):
        found = float(best_division_factor(target, draft, np.array(float(num_drafts))))
        assert is_root(found, target, draft, num_drafts, Fraction(1, 10**14)), (num_drafts, target, draft)


def test_division_factor_partner_3e_14_is_noticed() -> None:
    """The bracket is sharp on every row: factors off by 3e-14, either way, are refused."""
    for num_drafts, target, draft in hard_rows(1, 40):
        found = float(best_division_factor(target, draft, np.array(float(num_drafts))))
        for off in (1 + 3e-14, 1 - 3e-14):
            assert not is_root(found * off, target, draft, num_drafts, Fraction(1, 10**14)) or found * off < 1


def test_one_draft_leaves_the_residual_of_token_verification() -> None:
    """n = 1: max(p - q, 0) bit for bit, by ρ* and by ρ = 1; p - min(q, p/ρ) for any other ρ."""
    for _, target, draft in hard_rows(3, 70):
        expected = np.maximum(target - draft, 0)
        if expected.any():  # float rows can have p <= q everywhere without being equal
            np.testing.assert_array_equal(kseq_rule(target, draft, np.array(1.0)).residual, expected)
        np.testing.assert_array_equal(kseq_rule_at(target, draft, 1, 1).residual, expected)
        larger = kseq_rule_at(target, draft, 1, 1.5).residual
        np.testing.assert_array_equal(larger, target - np.minimum(draft, target / 1.5))


@first_is_quick("dtype", [np.float64, np.float32])
def test_a_residual_below_the_last_bits_is_not_lost(dtype: type) -> None:
    """(1 - β)^n < eps: where a draft can be rejected there is a row to draw from, of tokens with p > q."""
    tiny = 0
    for num_drafts, target, draft in hard_rows(5, 250):
        target, draft = target.astype(dtype), draft.astype(dtype)
        rule = kseq_rule(target, draft, np.array(num_drafts, dtype=dtype))
        if (target < rule.division_factor * draft).any():
            assert rule.residual.any()
            assert (target >= draft)[rule.residual > 0].all()
            tiny += np.maximum(target - rule.division_factor * draft, 0).sum() == 0
    assert tiny > 15  # rows on which the formula alone leaves nothing


@pytest.mark.parametrize("num_drafts", range(1, 9))
def test_equal_and_disjoint_rows(num_drafts: int) -> None:
    """p = q: ρ* = 1 and everything is accepted.  Disjoint supports: nothing is, and the residual is p."""
    row = np.array([0.5, 0.25, 0.25, 0.0])
    same = kseq_rule(row, row, np.array(float(num_drafts)))
    assert float(same.division_factor) == 1
    assert float(same.acceptance) == 1
    np.testing.assert_array_equal(same.residual, 0)
    target, draft = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75])
    apart = kseq_rule(target, draft, np.array(float(num_drafts)))
    assert float(apart.acceptance) == 0
    np.testing.assert_array_equal(apart.residual, target)


@given(
    weights=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=6).filter(
        lambda pairs: any(p for p, _ in pairs) and any(q for _, q in pairs)
    ),
    num_drafts=st.integers(1, 8),
)
def test_rule_is_a_transport_plan_for_any_rows(weights: list[tuple[int, int]], num_drafts: int) -> None:
    """Validity (spectr2023 Theorem 1) for whole weights with zeros and ties."""
    target, draft = (np.array(side, dtype=float) for side in zip(*weights, strict=True))
    target, draft = target / target.sum(), draft / draft.sum()
    rule = kseq_rule(target, draft, np.array(float(num_drafts)))
    assert 1 <= rule.division_factor <= num_drafts
    assert (rule.residual >= 0).all()
    accepted = np.minimum(draft, target / float(rule.division_factor))
    beta = accepted.sum()
    assert float(rule.acceptance) == pytest.approx(1 - (1 - beta) ** num_drafts, abs=1e-14)
    assert rule.residual.sum() == pytest.approx((1 - beta) ** num_drafts, abs=1e-12)
    if beta > 0:
        accepted = accepted / beta * float(rule.acceptance)
    np.testing.assert_allclose(accepted + rule.residual, target, rtol=0, atol=1e-12)
