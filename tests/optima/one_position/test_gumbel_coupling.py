"""The Gumbel coupling: its acceptance against quadrature, draws and bounds; drafter invariance."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from coupled_drafts import gumbel_acceptance
from later import Later
from spectheory.optima import optimal_acceptance
from spectheory.pairs.instances import random_rational

integrate = Later("scipy.integrate")
optimize = Later("scipy.optimize")


def gumbel_tokens(target_row: np.ndarray, draft_row: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, ...]:
    """The drafts [..., K] and the output [...] of given times, [..., K, V]."""
    with np.errstate(divide="ignore"):
        return (times / draft_row).argmin(-1), (times.min(axis=-2) / target_row).argmin(-1)


def rational_rows(seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    pair = random_rational([441, seed], size, 1, zero_probability=seed % 3 / 8)
    return pair.target[0][0], pair.draft[0][0]


def by_quadrature(target: np.ndarray, draft: np.ndarray, num_drafts: int) -> float:
    """theory.md Statement 3.11 with both integrals done numerically."""
    total = 0.0
    for i in np.flatnonzero((target > 0) & (draft > 0)):
        p, ratios = target[i], np.delete(draft, i) / draft[i]
        rest = np.delete(target, i)
        c = np.maximum(p * ratios - rest, 0).sum()

        def another(t: float, p: float = p, ratios: np.ndarray = ratios, rest: np.ndarray = rest) -> float:
            return integrate.quad(
                lambda e: np.exp(-e - np.maximum((t * p + e) * ratios - t * rest, 0).sum()), 0, 60, limit=200
            )[0]

        missed = integrate.quad(
            lambda t, c=c, another=another: (
                num_drafts
                * np.exp(-num_drafts * t)
                * (1 - np.exp(-t * c))
                * (1 - another(t)) ** (num_drafts - 1)
            ),
            0, 40, limit=200,
        )[0]  # fmt: skip
        total += p * (1 - missed)
    return total


@pytest.mark.parametrize(("size", "num_drafts"), [(2, 2), (3, 2), (3, 3)])
def test_the_closed_form_is_the_integral(size: int, num_drafts: int) -> None:
    rows = rational_rows(size, size)
    numeric = by_quadrature(*(row.astype(float) for row in rows), num_drafts)
    assert float(gumbel_acceptance(*rows, num_drafts)) == pytest.approx(numeric, abs=1e-6)


def test_one_draft_and_the_bounds() -> None:
    """Statement 3.11 on 120 rational pairs: K = 1 exactly, (1-d)/(1+d) and the list bound from below, α_K."""
    for seed in range(120):
        p, q = rational_rows(seed, 2 + seed % 4)
        distance = sum(abs(p - q)) / 2
        both = [i for i in range(len(p)) if p[i] * q[i]]
        sums = {i: sum(max(p[j] / p[i], q[j] / q[i]) for j in range(len(p))) for i in both}
        assert gumbel_acceptance(p, q, 1) == sum((1 / sums[i] for i in both), Fraction(0))
        assert gumbel_acceptance(p, q, 1) >= (1 - distance) / (1 + distance)
        for drafts in (2, 3):
            accepted = gumbel_acceptance(p, q, drafts)
            listed = sum((drafts / (sums[i] + (drafts - 1) / p[i]) for i in both), Fraction(0))
            assert listed <= accepted <= optimal_acceptance(p, q, drafts).value, seed
            floats = gumbel_acceptance(p.astype(float), q.astype(float), drafts)
            assert floats == pytest.approx(float(accepted), abs=1e-12)
        if distance == 0:
            assert accepted == 1


ROWS = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])


def test_draws_have_the_laws_and_the_acceptance() -> None:
    """100 000 draws with K = 3: the marginals p and q and the acceptance within 4.5 standard errors."""
    times = np.random.default_rng(442).exponential(size=(100_000, 3, 4))
    drafts, token = gumbel_tokens(*ROWS, times)
    for row, drawn in zip((ROWS[1], ROWS[1], ROWS[1], ROWS[0]), (*drafts.T, token), strict=True):
        shares = np.bincount(drawn, minlength=4) / len(drawn)
        assert (abs(shares - row) < 4.5 * np.sqrt(row * (1 - row) / len(drawn))).all()
    accepted = (drafts == token[:, None]).any(-1).mean()
    exact = float(gumbel_acceptance(*ROWS, 3))
    assert abs(accepted - exact) < 4.5 * np.sqrt(exact * (1 - exact) / len(token))


def rejecting_tokens(target_row: np.ndarray, draft_row: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The partner: the best coupling of one draft, token verification, with the same noise throughout."""
    draft = (times[:, 0] / draft_row).argmin(-1)
    accepts = np.exp(-times[:, 1, 0]) < target_row[draft] / draft_row[draft]
    with np.errstate(divide="ignore"):
        residual = (times[:, 2] / np.maximum(target_row - draft_row, 0)).argmin(-1)
    return np.where(accepts, draft, residual)


def test_drafter_invariance_and_the_partner_without_it() -> None:
    """Another draft model changes the drafts, never the output; that of token verification it changes."""
    times = np.random.default_rng(443).exponential(size=(2_000, 3, 4))
    other = np.array([0.7, 0.1, 0.1, 0.1])
    drafts, token = gumbel_tokens(*ROWS, times)
    others, same = gumbel_tokens(ROWS[0], other, times)
    assert (drafts != others).any()
    assert (token == same).all()
    assert (rejecting_tokens(*ROWS, times) != rejecting_tokens(ROWS[0], other, times)).any()


@pytest.mark.parametrize(("num_drafts", "best", "of_gumbel"), [(1, 5, 5), (2, 6, Fraction(28, 5))])
def test_what_rules_without_communication_accept_on_nine_pairs(
    num_drafts: int, best: int, of_gumbel: Fraction
) -> None:
    """theory.md behind Statement 3.11: laws uniform on two of three tokens, as targets and as drafts.

    A rule is a joint law of the three outputs and the three lists of drafts.  The most that any has in sum
    over the nine pairs is a linear program; the partner is the sum of α_K, which is 6.
    """
    tokens = [(1, 2), (0, 2), (0, 1)]
    rows = [[Fraction(token in some, 2) for token in range(3)] for some in tokens]
    lists = [list(product(some, repeat=num_drafts)) for some in tokens]
    joint = list(product(product(*tokens), product(*lists)))
    hits = [sum(output in some for output in outputs for some in drafted) for outputs, drafted in joint]
    laws = [([outputs[i] == x for outputs, _ in joint], 1 / 2) for i in range(3) for x in tokens[i]]
    laws += [
        ([drafted[i] == x for _, drafted in joint], 1 / len(lists[i])) for i in range(3) for x in lists[i]
    ]
    found = optimize.linprog(
        [-hit for hit in hits],
        A_eq=np.array([law for law, _ in laws], float),
        b_eq=[mass for _, mass in laws],
    )
    assert -found.fun == pytest.approx(best, abs=1e-9)
    pairs = list(product(rows, rows))
    assert sum(gumbel_acceptance(*pair, num_drafts) for pair in pairs) == of_gumbel
    assert sum(optimal_acceptance(*pair, num_drafts).value for pair in pairs) == 6
