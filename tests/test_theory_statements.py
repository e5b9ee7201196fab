"""Statements of docs/theory.md that no program of the package implements, each checked as it is stated."""

from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from compact_form import compact_form_program
from spectheory import ModelPair, instances, optimum, output_law, verifiers
from spectheory.optima import multi_path_optimum, optimal_scores, solve_exact
from spectheory.pairs.drafts import DraftProcess, PrefixTree, WithoutReplacement
from spectheory.pairs.instances import random_rational
from theory_examples import OnPathOptimum, kseq_defect


def random_pairs(vocab_size: int, draft_length: int, how_many: int, seed: int) -> list[ModelPair]:
    return [random_rational([seed, n], vocab_size, draft_length) for n in range(how_many)]


def texts(row: np.ndarray) -> list[str]:
    return [str(entry) for entry in row]


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


class InProportion(OnPathOptimum):
    """Not the choice of the proof: lossless, and not optimal."""

    def _given_both(self, kept: Any, alone: Any, q: Any, prob: Any, target: Any, draft: Any) -> Any:
        return (kept - q**2 * alone) / prob * target if prob else target * 0


def test_two_tokens_and_two_paths_of_two_are_served_with_rows_on_the_paths() -> None:
    """Statement 5.26, with the partner that splits in proportion to the target."""
    ahead = 0
    for number in range(40):
        pair = random_rational([96, number], 2, 2, zero_probability=0.15 * (number % 3))
        best = optimum(pair, 2).value
        verifier, wrong = (kind(verifiers["greedy_multipath"]) for kind in (OnPathOptimum, InProportion))
        assert verifier.block_efficiency(pair, 2) == best, number
        ahead += wrong.block_efficiency(pair, 2) < best
        if number < 4:
            assert output_law(verifier, pair, 2).total_variation == 0
    assert ahead > 4
