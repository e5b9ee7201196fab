"""kseq as a verifier: lossless from ρ* on, refused below it, exact where its factor is rational."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from drawn_trees import bracketed_root
from edge_pairs import edge_pairs, random_pairs
from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import optimal_acceptance
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.kseq import (
    KSeq,
    best_division_factor,
    kseq_rule,
    kseq_rule_at,
)
from spectheory.verification.algorithms.position_by_position.spectr import SpecTr


def dirichlet_rows(seed: int, how_many: int = 30) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of 2..40 tokens, among them sparse ones and models that hardly overlap."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(how_many):
        size = int(rng.integers(2, 41))
        target, draft = rng.dirichlet(np.full(size, (0.1, 0.5, 2.0)[number % 3]), size=2)
        rows.append((target, draft))
    return rows


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_division_factor_survives_a_token_the_draft_hardly_knows(num_drafts: int) -> None:
    """p/q = 5e24 at one token: rounding of the draft mass beyond it, times that ratio, must not matter.

    With 1 - cumulative sum as that mass, ρ* comes out as 2.1 for one draft and as 5e24 for three.
    """
    target = np.array([0.1] * 5 + [0.5])
    draft = np.array([1 / 21, 4 / 21, 7 / 21, 3 / 21, 6 / 21, 1e-25])
    found = float(best_division_factor(target, draft, np.array(float(num_drafts))))
    expected = bracketed_root(list(target), list(draft), num_drafts)
    assert abs(found - expected) <= 1e-14 * expected
    pair = ModelPair.context_free_pair(list(target), list(draft), 1)
    acceptance = output_law(SpecTr(), pair, num_drafts).block_efficiency - 1
    assert acceptance >= (1 - math.exp(-1)) * float(optimal_acceptance(target, draft, num_drafts).value)


@first_is_quick("num_drafts", [1, 4, 8, 2, 3], quick=5)
def test_kseq_acceptance_guarantee(num_drafts: int) -> None:
    """spectr2023 Theorem 1 and Eq. 12: acceptance >= (1 - (1 - 1/K)^K) α_K >= (1 - 1/e) α_K, at most α_K."""
    for target, draft in dirichlet_rows(950 + num_drafts, 15):
        pair = ModelPair.context_free_pair(list(target), list(draft), 1)
        best = float(optimal_acceptance(target, draft, num_drafts).value)
        acceptance = float(kseq_rule(target, draft, np.array(float(num_drafts))).acceptance)
        factor = 1 - (1 - 1 / num_drafts) ** num_drafts
        assert acceptance >= factor * best - 1e-12
        assert acceptance >= (1 - math.exp(-1)) * best - 1e-12
        assert acceptance <= best + 1e-12
        if pair.vocab_size**num_drafts <= 2000:
            # what the verifier does: at ρ* no residual token is a drafted one
            reached = output_law(KSeq(), pair, num_drafts).block_efficiency - 1
            assert reached == pytest.approx(acceptance, abs=1e-12)


def factors_above(pair: ModelPair, num_drafts: int) -> list[Fraction]:
    rows = pair.target[0][0].astype(float), pair.draft[0][0].astype(float)
    root = float(best_division_factor(*rows, np.array(float(num_drafts))))
    return [
        Fraction(math.ceil(root * 10**6), 10**6),
        Fraction(math.ceil(root * 7), 7),
        Fraction(num_drafts),
        Fraction(3 * num_drafts),
    ]


@first_is_quick(("vocab_size", "num_drafts", "how_many"), [(2, 2, 12), (3, 2, 12), (2, 3, 8), (4, 3, 3)])
def test_kseq_is_lossless_for_every_factor_from_the_best_on(
    vocab_size: int, num_drafts: int, how_many: int
) -> None:
    """spectr2023 Theorem 1: valid for ρ >= ρ*, exactly for rational ρ; acceptance at least 1 - (1-β)^K."""
    for pair in [*edge_pairs(1), *random_pairs(vocab_size, 1, how_many, 600 + 10 * vocab_size)]:
        target, draft = pair.target[0][0], pair.draft[0][0]
        for factor in factors_above(pair, num_drafts):
            law = output_law(KSeq(factor), pair, num_drafts)
            assert law.pair.is_exact
            assert law.total_variation == 0, (pair.target[0], pair.draft[0], factor)
            beta = sum(min(q, p / factor) for p, q in zip(target, draft, strict=True))
            accepted = law.block_efficiency - 1
            assert 1 - (1 - beta) ** num_drafts <= accepted
            assert accepted <= optimal_acceptance(target, draft, num_drafts).value
        law = output_law(KSeq(), pair, num_drafts)
        assert law.total_variation < 1e-12


def test_kseq_partner_a_factor_below_the_best_is_refused_and_not_lossless() -> None:
    """A shade below ρ*: refused with both numbers; unchecked, an exact defect and a negative residual."""
    refused, wrong = 0, 0
    for pair in [instances.two_token(1), instances.three_token_reversed(1), *random_pairs(3, 1, 20, 640)]:
        rows = pair.target[0][0], pair.draft[0][0]
        root = float(best_division_factor(*(row.astype(float) for row in rows), np.array(2.0)))
        factor = Fraction(math.floor(root * 1000) - 1, 1000)
        if factor < 1:
            continue
        with pytest.raises(InvalidInputError) as error:
            output_law(KSeq(factor), pair, 2)
        assert f"division_factor {factor} is smaller than ρ* = {root!r} of 2 drafts" in str(error.value)
        with pytest.raises(InvalidInputError, match="is smaller than ρ"):
            output_law(KSeq(float(factor)), pair, 2)
        refused += 1
        defect = output_law(KSeq(factor, checked=False), pair, 2).total_variation
        assert isinstance(defect, Fraction)
        # this close to ρ* it is negative at the tokens with target mass and p/ρ < q only (Statement 3.5)
        capped = any(0 < p < q * factor for p, q in zip(*rows, strict=True))
        assert (min(kseq_rule_at(*rows, 2, factor).residual) < 0) == capped
        assert (defect > 0) == capped
        wrong += capped
    assert refused >= 15
    assert wrong >= 10


def test_kseq_at_a_rational_root_is_exact() -> None:
    """Reversed three-token pair, K = 2: ρ* = 3/2 and acceptance 3/4 (theory.md §3), in rationals.

    f(3/2) = 0 exactly, so 3/2 is taken and anything smaller is not, however close.
    """
    pair = instances.three_token_reversed(1)
    law = output_law(KSeq(Fraction(3, 2)), pair, 2)
    assert law.block_efficiency == Fraction(7, 4)
    assert law.total_variation == 0
    with pytest.raises(InvalidInputError, match="is smaller than ρ"):
        output_law(KSeq(Fraction(3, 2) - Fraction(1, 10**30)), pair, 2)


def test_kseq_beyond_the_best_factor_can_accept_more() -> None:
    """A measured fact about spectr2023 Alg. 2: ρ* maximises 1 - (1-β)^K, not P(Y is drafted) (Eq. 3).

    Two-token pair, K = 2, ρ = 2: drafts AA are both rejected with probability 9/16, mass 1/4; the
    residual is (1/3, 2/3), and its A is a drafted token.  P(Y is drafted) = 3/4 + 1/12 = 5/6 > 0.811420.
    """
    pair = instances.two_token(1)
    assert kseq_rule_at(pair.target[0][0], pair.draft[0][0], 2, 2).acceptance == Fraction(3, 4)
    assert output_law(KSeq(2), pair, 2).block_efficiency == 1 + Fraction(5, 6)
    assert output_law(KSeq(), pair, 2).block_efficiency == pytest.approx(1.811420, abs=5e-7)


@pytest.mark.parametrize("factor", [0.5, 0, -1, math.nan, math.inf, True, "2", Fraction(1, 2)])
def test_bad_division_factors_are_refused(factor: Any) -> None:
    with pytest.raises(InvalidInputError, match="division_factor must be a finite number of at least 1"):
        KSeq(factor)
