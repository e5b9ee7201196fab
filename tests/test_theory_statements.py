"""Statements of docs/theory.md that no program of the package implements, each checked as it is stated."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np
import pytest

from compact_form import compact_form_program
from spectheory import ModelPair, certify, instances, optimal_acceptance, optimum, output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import multi_path_optimum, optimal_scores, solve_exact
from spectheory.optima.bounds import dual_objective
from spectheory.pairs.drafts import DraftProcess, PrefixTree, WithoutReplacement
from spectheory.pairs.instances import random_rational
from theory_examples import ScoredPair, cap_scores, kseq_defect, low_ratio_pair


def random_pairs(vocab_size: int, draft_length: int, how_many: int, seed: int) -> list[ModelPair]:
    return [random_rational([seed, n], vocab_size, draft_length) for n in range(how_many)]


def texts(row: np.ndarray) -> list[str]:
    return [str(entry) for entry in row]


# ------------------------------------------------------------------- Statement 3.5: K-SEQ, both directions


def test_kseq_is_lossless_exactly_where_statement_3_5_says() -> None:
    """p_acc <= β max(ρ, m), for factors on both sides of ρ*; with partners of both verdicts."""
    verdicts = set()
    for pair in random_pairs(3, 1, 40, 71):
        target, draft = pair.target[0][0], pair.draft[0][0]
        ratios = [p / q for p, q in zip(target, draft, strict=True) if p and q]
        for num_drafts, factor in product((2, 3), (1, Fraction(6, 5), Fraction(3, 2), Fraction(9, 5), 3)):
            if not ratios:
                continue
            beta = sum(min(q, p / factor) for p, q in zip(target, draft, strict=True))
            accepted = 1 - (1 - beta) ** num_drafts
            lossless = accepted <= beta * max(factor, min(ratios))
            defect = kseq_defect(texts(target), texts(draft), num_drafts, str(factor))
            assert (defect == 0) == lossless, (texts(target), texts(draft), num_drafts, factor)
            verdicts.add((lossless, accepted <= beta * factor))
    assert verdicts == {(True, True), (True, False), (False, False)}


# ---------------------------------------------------- §2: the class of couplings of spectrgbv2026 Lemma 5.1


def test_the_class_of_conditionally_independent_couplings_attains_7_9() -> None:
    """Two-token pair, L = 1, K = 2: over a grid of couplings, drafts independent given the output.

    With a binary output two drafts that are independent, and independent given the output, have covariance
    zero there, so one of them does not depend on it.  The other one's conditionals are a segment.
    """
    p, q = Fraction(1, 3), Fraction(2, 3)  # of token A
    best = Fraction(0)
    for step in range(61):
        given_a = Fraction(step, 60)
        given_b = (q - p * given_a) / (1 - p)
        if not 0 <= given_b <= 1:
            continue
        missed = p * (1 - given_a) * (1 - q) + (1 - p) * given_b * q
        best = max(best, 1 - missed)
    assert best == Fraction(7, 9)
    assert best < optimal_acceptance(["1/3", "2/3"], ["2/3", "1/3"], 2).value


# --------------------------------------------------------------- Statement 5.4: level sets are the worst sets


@pytest.mark.parametrize("factor", [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(5, 2)])
def test_the_worst_set_of_leaves_is_a_level_set(factor: Fraction) -> None:
    """max r(S) - c f(q(S)) over all 2^M sets, against the level sets of r/q only."""
    for seed in range(15):
        weights = np.random.default_rng([72, seed]).integers(0, 6, size=(2, 6))
        weights[:, 0] += 1
        r, q = ([Fraction(int(w), int(row.sum())) for w in row] for row in weights)

        def value(leaves: Sequence[int], r: list[Any] = r, q: list[Any] = q) -> Fraction:
            missed = 1 - sum((q[leaf] for leaf in leaves), Fraction(0))
            return sum((r[leaf] for leaf in leaves), Fraction(0)) - factor * (1 - missed**3)

        everything = range(6)
        worst = max(value(S) for S in chain.from_iterable(combinations(everything, n) for n in range(7)))
        by_ratio = sorted(everything, key=lambda leaf: (q[leaf] > 0, -r[leaf] / q[leaf] if q[leaf] else 0))
        by_ratio = [leaf for leaf in by_ratio if r[leaf] or q[leaf]]
        assert max(value(by_ratio[:n]) for n in range(len(by_ratio) + 1)) == worst


# ------------------------------------------------------------------- Statement 5.11: two sides, and their gap


@pytest.mark.parametrize("num_pieces", [2, 4, 8])
def test_compact_forms_enclose_the_optimum_within_the_stated_gap(num_pieces: int) -> None:
    """inner <= optimum <= outer, outer - inner <= K(K-1)(L+1)(L+2)/(8 N^2)."""
    ends = [Fraction(n, num_pieces) for n in range(num_pieces + 1)]
    middles = [(low + high) / 2 for low, high in pairwise(ends)]
    gaps = []
    for pair in [instances.two_token(2), *random_pairs(2, 2, 4, 73)]:
        for num_drafts in (2, 3):
            inner = solve_exact(compact_form_program(pair, num_drafts, ends, "inner")).value
            outer = solve_exact(compact_form_program(pair, num_drafts, middles, "outer")).value
            assert inner <= optimum(pair, num_drafts).value <= outer
            stated = Fraction(num_drafts * (num_drafts - 1) * 3 * 4, 8 * num_pieces**2)
            assert outer - inner <= stated
            gaps.append(outer - inner)
    assert max(gaps) > 0


# ------------------------------------------------------------ Statement 5.13: for every draft process


def random_scores(pair: ModelPair, seed: int) -> list[np.ndarray]:
    """Feasible y by depth: y + z = 1 + Σ p z with random shares, z = 0 at the root."""
    rng = np.random.default_rng(seed)
    scores, carried = [], None
    for depth in reversed(range(pair.draft_length + 1)):
        total = np.full(pair.vocab_size**depth, Fraction(1))
        if carried is not None:
            total = total + (pair.target[depth] * carried.reshape(-1, pair.vocab_size)).sum(axis=1)
        share = np.array([Fraction(int(n), 4) for n in rng.integers(0, 5, size=len(total))])
        scores.append(total if depth == 0 else share * total)
        carried = total - scores[-1]
    return scores[::-1]


def expected_best_score(pair: ModelPair, process: DraftProcess, scores: list[np.ndarray]) -> Fraction:
    """E[max_k c(X^k)] over all tuples of drafts."""
    path_scores = scores[0]
    for level in scores[1:]:
        path_scores = np.repeat(path_scores, pair.vocab_size) + level
    tuples = process.tuples(pair, 1000)
    return sum((probs * path_scores[leaves].max(axis=1)).sum() for leaves, probs in tuples)


TREES: list[tuple[str, DraftProcess]] = [
    ("multi_round", PrefixTree((1, 2))),
    ("multi_round", PrefixTree((2, 1))),
    ("multi_round_without_replacement", WithoutReplacement((2, 1))),
]


@pytest.mark.parametrize(("name", "process"), TREES)
def test_scores_bound_every_draft_process(name: str, process: DraftProcess) -> None:
    """E[max_k c(X^k)] is at least the optimum of the process, and that what a lossless verifier earns."""
    for seed in range(8):
        pair = random_rational([74, seed], 2, 2, zero_probability=0)
        bound = expected_best_score(pair, process, random_scores(pair, seed))
        law = output_law(name, pair, drafts=process)
        assert law.total_variation == 0
        assert law.block_efficiency <= optimum(pair, drafts=process).value <= bound


@pytest.mark.parametrize(("name", "process"), TREES)
def test_scores_partner_the_best_ones_are_attained(name: str, process: DraftProcess) -> None:
    """The smallest bound is the optimum, so that no score could be left out."""
    pair = random_rational([74, 0], 2, 2, zero_probability=0)
    scores = optimal_scores(pair, multi_path_optimum(pair, drafts=process))
    assert expected_best_score(pair, process, scores) == optimum(pair, drafts=process).value
    scores[0] = scores[0] - Fraction(1, 1000)
    assert expected_best_score(pair, process, scores) < optimum(pair, drafts=process).value


# ------------------------------------------------------------------------- Statement 5.14: scores with a cap


def thresholds(pair: ModelPair, most: int) -> list[Fraction]:
    """The positive ratios p/q of one position, up to ``most``, and ``most`` itself."""
    target, draft = pair.target[0][0], pair.draft[0][0]
    ratios = {p / q for p, q in zip(target, draft, strict=True) if q}
    return [*sorted(ratio for ratio in ratios if 0 < ratio < most), Fraction(most)]


def test_capped_scores_bound_every_verifier_and_give_block_on_one_path() -> None:
    """Feasible for every C > 0; K = 1, C = 1 is the block efficiency of block verification."""
    for pair in [instances.two_token(3), *random_pairs(3, 2, 12, 75)]:
        block = output_law("block", pair).block_efficiency
        assert dual_objective(pair, 1, cap_scores(pair, Fraction(1))) == block
        for num_drafts, cap in product((2, 3), (Fraction(1, 3), Fraction(1), Fraction(2), Fraction(7))):
            bound = dual_objective(pair, num_drafts, cap_scores(pair, cap))
            assert bound >= optimum(pair, num_drafts).value


def test_capped_scores_reach_the_optimum_at_one_position() -> None:
    """L = 1: the best C in (0, K] is the min cut; the best C >= 1 is not, on some pair."""
    missed = 0
    for pair in [low_ratio_pair(), *random_pairs(3, 1, 40, 76)]:
        best = 1 + optimal_acceptance(pair.target[0][0], pair.draft[0][0], 2).value
        caps = thresholds(pair, 2)
        values = {cap: dual_objective(pair, 2, cap_scores(pair, cap)) for cap in [*caps, Fraction(1)]}
        assert min(values.values()) == best
        missed += min(value for cap, value in values.items() if cap >= 1) > best
    assert missed > 0


def test_capped_scores_partner_smaller_scores_are_refused() -> None:
    """A perturbed dual: scores that promise less than 1 + Σ p z at the root are no bound."""
    pair = instances.two_token(2)
    scores = cap_scores(pair, Fraction(1))
    scores[0] = scores[0] - Fraction(1, 100)
    with pytest.raises(InvalidInputError):
        dual_objective(pair, 2, scores)


# --------------------------------------------------------------------------- Statement 5.18: scored selection

SCORED = [instances.two_token(2), instances.uniform_equal(2), *random_pairs(2, 2, 4, 77)]
SCORED += random_pairs(3, 2, 2, 78)


def by_rows(target: Sequence[Any], draft: Sequence[Any]) -> tuple[Any, bool]:
    """A rule without any merit: a share and an order that depend on the rows of the context."""
    return (target[0] + draft[-1]) / 2, target[0] > draft[0]


@pytest.mark.parametrize("bins", [1, 3, 4])
def test_scored_selection_is_lossless_for_any_rule(bins: int) -> None:
    """(M) is all that is needed: exact total variation 0, and never above the optimum."""
    for pair in SCORED:
        certificate = certify(ScoredPair(bins, by_rows), pair, 2)
        assert certificate.is_valid
        assert certificate.total_variation == 0
        assert certificate.block_efficiency <= certificate.optimum


def test_scored_selection_with_uniform_scores_is_block() -> None:
    """All μ_a uniform: R = 1, a random path, the efficiency of one path."""
    for pair in SCORED:
        law = output_law(ScoredPair(3, lambda target, draft: (target[0] * 0 + 1, False)), pair, 2)
        assert law.block_efficiency == output_law("block", pair).block_efficiency
        assert law.total_variation == 0


def test_scored_selection_partner_needs_the_law_of_the_selected_path() -> None:
    """Verified against q, not against q R, the same selection is not lossless."""
    wrong = output_law(ScoredPair(4, by_rows, skewed=False), instances.two_token(2), 2)
    assert wrong.total_variation > 0
