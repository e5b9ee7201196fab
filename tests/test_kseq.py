"""K-SEQ at one position: the root of Eq. 6, the acceptance probability and the residual of Eq. 5."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from spectheory.algorithms.kseq import best_division_factor, kseq_rule
from spectheory.programs import optimal_acceptance

NUM_DRAFTS = (1, 2, 3, 4, 8)


def random_rows(seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of 2..40 tokens, a third of them with zeros on both sides."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(60):
        size = int(rng.integers(2, 41))
        target, draft = rng.dirichlet(np.full(size, 0.5), size=2)
        if number % 3 == 0:
            target = np.where(rng.random(size) < 0.3, 0, target)
            draft = np.where(rng.random(size) < 0.3, 0, draft)
        if target.sum() > 0 and draft.sum() > 0:
            rows.append((target / target.sum(), draft / draft.sum()))
    return rows


def exact_excess(rho: Fraction, target: np.ndarray, draft: np.ndarray, num_drafts: int) -> Fraction:
    """f(ρ) = 1 - (1 - β(ρ))^n - ρ β(ρ) without any rounding (spectr Lemma 4)."""
    beta = sum(min(Fraction(q), Fraction(p) / rho) for p, q in zip(target, draft, strict=True))
    return 1 - (1 - beta) ** num_drafts - rho * beta


@pytest.mark.parametrize("num_drafts", NUM_DRAFTS)
def test_division_factor_brackets_the_root_exactly(num_drafts: int) -> None:
    """f is decreasing; in rational arithmetic it is > 0 at ρ - 1e-13 and <= 0 at ρ + 1e-13."""
    for target, draft in random_rows(num_drafts):
        rho = Fraction(float(best_division_factor(target, draft, np.array(float(num_drafts)))))
        assert 1 <= rho <= num_drafts
        step = Fraction(1, 10**13)
        if rho > 1:
            assert exact_excess(rho - step, target, draft, num_drafts) > 0
        # the rows sum to 1 up to rounding only, and f is 0 up to that at ρ = 1 where n = 1
        assert exact_excess(rho + step, target, draft, num_drafts) <= Fraction(1, 10**15)


@pytest.mark.parametrize("num_drafts", NUM_DRAFTS[1:])
def test_division_factor_agrees_with_brentq(num_drafts: int) -> None:
    """Eq. 6 solved by scipy's bracketing on [1, n]."""
    compared = 0
    for target, draft in random_rows(100 + num_drafts):

        def excess(rho: float, target: np.ndarray = target, draft: np.ndarray = draft) -> float:
            beta = math.fsum(np.minimum(draft, target / rho))
            return 1 - (1 - beta) ** num_drafts - rho * beta

        if not excess(1.0) > 1e-12 or not excess(float(num_drafts)) < 0:
            continue
        expected = brentq(excess, 1.0, float(num_drafts), xtol=1e-15, rtol=1e-15)
        found = float(best_division_factor(target, draft, np.array(float(num_drafts))))
        assert found == pytest.approx(expected, abs=1e-13 * num_drafts)
        compared += 1
    assert compared >= 40


def test_division_factor_partner_a_perturbed_factor_fails() -> None:
    """The bracket is sharp: 1e-9 away from ρ* it no longer holds."""
    target, draft = np.array([1 / 3, 2 / 3]), np.array([2 / 3, 1 / 3])
    rho = Fraction(float(best_division_factor(target, draft, np.array(2.0)))) + Fraction(1, 10**9)
    assert exact_excess(rho - Fraction(1, 10**13), target, draft, 2) < 0


@pytest.mark.parametrize("num_drafts", range(1, 9))
def test_equal_and_disjoint_rows(num_drafts: int) -> None:
    """p = q: ρ* = 1 and everything is accepted.  Disjoint supports: nothing is, and the residual is p."""
    row = np.array([0.5, 0.25, 0.25, 0.0])
    same = kseq_rule(row, row, np.array(float(num_drafts)))
    assert float(same.division_factor) == 1
    assert float(same.acceptance) == 1
    np.testing.assert_allclose(same.residual, 0, atol=1e-15)
    target, draft = np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.25, 0.75])
    apart = kseq_rule(target, draft, np.array(float(num_drafts)))
    assert float(apart.acceptance) == 0
    np.testing.assert_array_equal(apart.residual, target)


def test_reference_acceptances() -> None:
    """THEORY, section 3: 0.811420 for the two-token pair, 0.75 for the reversed three-token pair (K = 2)."""
    two = np.array([1 / 3, 2 / 3])
    assert float(kseq_rule(two, two[::-1], np.array(2.0)).acceptance) == pytest.approx(0.811420, abs=5e-7)
    three = np.array([1 / 2, 1 / 3, 1 / 6])
    assert float(kseq_rule(three, three[::-1], np.array(2.0)).acceptance) == pytest.approx(0.75, abs=1e-12)


@pytest.mark.parametrize(("support", "ratio"), [(4, 2), (6, 2), (6, 3), (9, 3), (12, 4), (5, 1)])
@pytest.mark.parametrize("num_drafts", [1, 2, 3, 5, 8])
def test_uniform_pairs(support: int, ratio: int, num_drafts: int) -> None:
    """spectr App. B.2: draft U(d), target U(d/r): K-SEQ attains the optimum 1 - (1 - 1/r)^K."""
    draft = np.full(support, 1 / support)
    target = np.where(np.arange(support) < support // ratio, ratio / support, 0)
    rule = kseq_rule(target, draft, np.array(float(num_drafts)))
    assert float(rule.acceptance) == pytest.approx(1 - (1 - 1 / ratio) ** num_drafts, abs=1e-12)


@pytest.mark.parametrize("num_drafts", NUM_DRAFTS)
def test_acceptance_lies_between_the_bounds(num_drafts: int) -> None:
    """spectr Theorem 1: (1 - 1/e) α_K <= acceptance <= α_K; with one draft it is α_1."""
    below = 0
    for target, draft in random_rows(200 + num_drafts):
        best = float(optimal_acceptance(target, draft, num_drafts).value)
        found = float(kseq_rule(target, draft, np.array(float(num_drafts))).acceptance)
        assert (1 - math.exp(-1)) * best - 1e-12 <= found <= best + 1e-12
        below += found < best - 1e-6
    assert (below > 0) == (num_drafts > 1)  # strictly below the optimum on some rows, except for n = 1


@pytest.mark.parametrize("num_drafts", NUM_DRAFTS)
def test_residual_is_what_is_missing(num_drafts: int) -> None:
    """Eq. 5: p = (accepted law) + residual, residual >= 0, of mass (1 - β)^n = 1 - acceptance."""
    for target, draft in random_rows(300 + num_drafts):
        rule = kseq_rule(target, draft, np.array(float(num_drafts)))
        accepted = np.minimum(draft, target / float(rule.division_factor))
        beta = accepted.sum()
        assert float(rule.acceptance) == pytest.approx(1 - (1 - beta) ** num_drafts, abs=1e-14)
        assert (rule.residual >= 0).all()
        assert rule.residual.sum() == pytest.approx((1 - beta) ** num_drafts, abs=1e-12)
        output = (accepted / beta * float(rule.acceptance) if beta > 0 else 0) + rule.residual
        np.testing.assert_allclose(output, target, rtol=0, atol=1e-12)


@given(
    weights=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=6).filter(
        lambda pairs: any(p for p, _ in pairs) and any(q for _, q in pairs)
    ),
    num_drafts=st.integers(1, 8),
)
def test_rule_is_a_transport_plan_for_any_rows(weights: list[tuple[int, int]], num_drafts: int) -> None:
    """Validity (spectr Theorem 1) for whole weights with zeros and ties."""
    target, draft = (np.array(side, dtype=float) for side in zip(*weights, strict=True))
    target, draft = target / target.sum(), draft / draft.sum()
    rule = kseq_rule(target, draft, np.array(float(num_drafts)))
    assert 1 <= rule.division_factor <= num_drafts
    assert (rule.residual >= 0).all()
    accepted = np.minimum(draft, target / float(rule.division_factor))
    if accepted.sum() > 0:
        accepted = accepted / accepted.sum() * float(rule.acceptance)
    np.testing.assert_allclose(accepted + rule.residual, target, rtol=0, atol=1e-12)


def test_batches_equal_their_elements() -> None:
    """Leading axes, with another number of drafts in each element."""
    rng = np.random.default_rng(7)
    target, draft = rng.dirichlet(np.ones(5), size=(2, 4, 3))
    num_drafts = rng.integers(1, 5, size=(4, 3)).astype(float)
    together = kseq_rule(target, draft, num_drafts)
    assert together.residual.shape == (4, 3, 5)
    for index in np.ndindex(4, 3):
        alone = kseq_rule(target[index], draft[index], num_drafts[index])
        assert together.division_factor[index] == alone.division_factor
        assert together.acceptance[index] == alone.acceptance
        np.testing.assert_array_equal(together.residual[index], alone.residual)
