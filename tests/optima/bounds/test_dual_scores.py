"""Upper bounds from path scores: exact, in float64 and rounded outward; infeasible points."""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from program_support import DUAL_PAIRS, random_scores
from spectheory import instances
from spectheory.foundation.errors import InfeasiblePointError, InvalidInputError
from spectheory.foundation.exact_numbers import exact_values, to_flint, to_fraction
from spectheory.optima import multi_path_optimum, optimal_scores
from spectheory.optima.bounds.context_tree import ContextTree, prefix_sums
from spectheory.optima.bounds.dual_scores import (
    certified_upper_bound,
    feasible_scores,
    needed_scores,
    slacks_from_leaves,
    upper_bound,
)
from spectheory.optima.bounds.tolerances import MACHINE_EPSILON, outward
from spectheory.optima.interval.interval import multi_path_interval
from spectheory.pairs import levels
from spectheory.pairs.pair import ModelPair


def path_scores(pair: ModelPair, scores: list[np.ndarray]) -> np.ndarray:
    return prefix_sums(scores, pair.vocab_size)[-1]


def maximum_by_hand(pair: ModelPair, num_drafts: int, scores: list[np.ndarray]) -> Fraction:
    """E[max_k c(X^(k))] over all K-tuples of paths."""
    probs, totals = pair.draft_path_probs(pair.draft_length), path_scores(pair, scores)
    tuples = map(list, product(range(len(probs)), repeat=num_drafts))
    return sum(prod(probs[leaves]) * max(totals[leaves]) for leaves in tuples)


def test_any_feasible_scores_bound_the_optimum() -> None:
    """Weak duality; the Choquet integral is the mean maximum over K-tuples."""
    rng = np.random.default_rng(17)
    for number, pair in enumerate(DUAL_PAIRS[::2]):
        num_drafts = 1 + number % 3
        scores = random_scores(rng, pair)
        bound = upper_bound(pair, num_drafts, scores)
        assert isinstance(bound, Fraction)
        assert bound == maximum_by_hand(pair, num_drafts, scores)
        assert bound >= multi_path_optimum(pair, num_drafts).value
        floats = [level.astype(float) for level in scores]
        assert upper_bound(pair.to_float(), num_drafts, floats) == pytest.approx(float(bound))
        kept = feasible_scores(pair, scores)
        assert all((a == b).all() for a, b in zip(kept, scores, strict=True))


def test_infeasible_scores_are_refused_with_the_violated_condition() -> None:
    pair = instances.two_token(2)
    best = optimal_scores(pair, multi_path_optimum(pair, 2))

    def changed(depth: int, index: int, by: Any) -> list[np.ndarray]:
        scores = [level.copy() for level in best]
        scores[depth][index] += by
        return scores

    tiny = Fraction(1, 10**30)
    for scores, text in (
        (changed(0, 0, tiny), r"z\(∅\) = 1 \+ .* = 0, got y\(∅\) = .*, expected"),
        (changed(0, 0, -tiny), r"z\(∅\) = 1"),
        (changed(2, 3, 2), r"z\(a\) = 1 \+ Σ_x p\(x\|a\) z\(a,x\) - y\(a\) >= 0, got .* at \w+ \(1, 1\)"),
        (changed(1, 0, -9), r"y\(a\) >= 0, got .* at context \(0,\)"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            upper_bound(pair, 2, scores)
    floats = pair.to_float()
    nearly = [level.astype(float) + 1e-13 for level in best]
    assert upper_bound(floats, 2, nearly) == pytest.approx(212 / 81, abs=1e-11)
    with pytest.raises(InvalidInputError, match="not feasible"):
        upper_bound(floats, 2, [level + 1e-3 for level in nearly])
    with pytest.raises(InvalidInputError, match="not feasible"):
        upper_bound(floats, 2, [level * float("nan") for level in nearly])
    with pytest.raises(InvalidInputError, match="2 depths; expected 3"):
        upper_bound(pair, 2, best[:2])
    with pytest.raises(InvalidInputError, match="shape"):
        upper_bound(pair, 2, [best[0], best[0], best[0]])
    with pytest.raises(InvalidInputError, match="use one kind"):
        upper_bound(pair, 2, nearly)
    with pytest.raises(InvalidInputError, match="num_drafts"):
        upper_bound(pair, 0, best)


def test_infeasible_scores_and_slacks_are_rejected_with_their_node() -> None:
    """Optimal scores and slacks pass; lowered at one node, negative, or of a wrong shape they do not."""
    pair = instances.random_float(3, 2, 4)
    best = multi_path_interval(pair, 2)
    y, z = [level.copy() for level in best.scores], [level.copy() for level in best.slacks]
    bound = certified_upper_bound(pair, 2, y, z)
    assert bound == pytest.approx(best.upper, rel=1e-9)
    node = int(np.argmax(y[4]))
    y[4][node] -= 1e-3
    with pytest.raises(InfeasiblePointError, match="expected at least") as caught:
        certified_upper_bound(pair, 2, y, z)
    assert caught.value.witness == (pair.context(4, node),)
    y[4][node] += 2e-3
    assert certified_upper_bound(pair, 2, y, z) > bound
    z[2][1] = -0.5
    with pytest.raises(InvalidInputError, match="at least 0"):
        certified_upper_bound(pair, 2, y, z)
    with pytest.raises(InvalidInputError, match="depths"):
        certified_upper_bound(pair, 2, y[:3], z)


def dyadic_pair(rng: np.random.Generator, vocab_size: int, draft_length: int) -> ModelPair:
    """A float pair whose entries are multiples of 2^-40, so that every row sums to 1 exactly."""

    def rows(depth: int) -> np.ndarray:
        weights = np.floor(rng.dirichlet(np.ones(vocab_size), size=vocab_size**depth) * 2**40)
        weights[:, 0] += 2**40 - weights.sum(axis=1)
        return weights / 2**40

    target, draft = ([rows(i) for i in range(n)] for n in (draft_length + 1, draft_length))
    return ModelPair(tuple(target), tuple(draft), tuple(str(i) for i in range(vocab_size)))


def feasible_point(rng: np.random.Generator, pair: ModelPair) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Random slacks, and scores rounded up so that the floats are feasible in rational arithmetic."""
    V, L = pair.vocab_size, pair.draft_length
    z = [rng.random(V**depth) * (L + 1 - depth) * (depth > 0) for depth in range(L + 1)]
    y = []
    for depth in range(L + 1):
        needed = [Fraction(1)] * V**depth
        if depth < L:
            below = exact_values(pair.target[depth]) * exact_values(z[depth + 1]).reshape(-1, V)
            needed = [1 + row.sum() for row in below]
        least = [
            max(need - Fraction(slack), Fraction(0)) for need, slack in zip(needed, z[depth], strict=True)
        ]
        y.append(np.array([outward(score)[1] for score in least]))
    return y, z


def objective_by_hand(pair: ModelPair, num_drafts: int, y: list[np.ndarray], z: list[np.ndarray]) -> Fraction:
    """z(∅) + Σ_i c_i (f(q(S_i)) - f(q(S_{i-1}))) over the paths by falling score, every float as the rational
    it is."""
    exact = exact_pair(pair)
    scores = path_scores(exact, [exact_values(level) for level in y])
    total, reached, value = Fraction(0), Fraction(0), Fraction(z[0][0])
    for score, prob in sorted(
        zip(scores, exact.draft_path_probs(pair.draft_length), strict=True), reverse=True
    ):
        total += prob
        hit = 1 - (1 - total) ** num_drafts
        value, reached = value + score * (hit - reached), hit
    return value


def exact_pair(pair: ModelPair) -> ModelPair:
    target, draft = ([exact_values(rows) for rows in side] for side in (pair.target, pair.draft))
    return ModelPair(tuple(target), tuple(draft), pair.vocab)


def test_certified_is_never_below_the_exact_value_and_plain_is_sometimes() -> None:
    """120 float pairs and points that are feasible in rational arithmetic: three readings of one bound.

    The exact value is that of the same floats as rationals.  The plain float lies below it on some of them,
    so it is no proof.  The certified one never does, and exceeds the plain one by the allowance at most.
    """
    rng = np.random.default_rng(97)
    below = 0
    for number in range(120):
        V, L = ((2, 2), (3, 2), (2, 4), (4, 1), (5, 2))[number % 5]
        pair, num_drafts = dyadic_pair(rng, V, L), 1 + number % 4
        y, z = feasible_point(rng, pair)
        exact = objective_by_hand(pair, num_drafts, y, z)
        levels = [[exact_values(level) for level in side] for side in (y, z)]
        assert upper_bound(exact_pair(pair), num_drafts, *levels) == exact

        plain = upper_bound(pair, num_drafts, y, z)
        certified = certified_upper_bound(pair, num_drafts, y, z)
        assert Fraction(certified) >= min(exact, L + 1)
        tree = ContextTree.of(pair)
        largest = float(path_scores(pair, y).max() + z[0][0])
        allowance = tree.rounding * largest + tree.mismatch * plain
        assert certified <= min(plain, L + 1) + allowance + 4 * MACHINE_EPSILON * plain
        below += Fraction(plain) < exact < L + 1
    assert below > 10


def test_certified_makes_up_for_scores_that_are_too_small() -> None:
    """The interval's own point, whose scores rounding may leave too small: divided by 1 - t in rationals,
    t the exact shortfall, its exact value is a proof, and the certified float is not below it."""
    rng = np.random.default_rng(5)
    short = 0
    for number in range(30):
        pair, num_drafts = dyadic_pair(rng, 2 + number % 2, 2), 2 + number % 3
        best = multi_path_interval(pair, num_drafts, relative_gap=1e-4)
        y, z = best.scores, best.slacks
        tree = ContextTree.of(exact_pair(pair))
        needed = needed_scores(tree, [to_flint(exact_values(level)) for level in z])
        shortfall = max(
            to_fraction(need) - Fraction(score) - Fraction(slack)
            for levels in zip(needed, y, z, strict=True)
            for need, score, slack in zip(*levels, strict=True)
        )
        short += shortfall > 0
        exact = objective_by_hand(pair, num_drafts, y, z) / (1 - max(shortfall, Fraction(0)))
        certified = certified_upper_bound(pair, num_drafts, y, z)
        assert Fraction(certified) >= min(exact, pair.draft_length + 1)
        assert certified == pytest.approx(float(exact), rel=1e-12)
    assert short > 5


@pytest.mark.parametrize("depths", [(0,), (2,), (0, 1, 2)])
def test_scores_that_are_too_small_by_what_is_tolerated_still_bound_the_optimum(
    depths: tuple[int, ...],
) -> None:
    """The optimal scores lowered by 9·10^-10 fall below the optimum; their shortfall makes up for it."""
    pair = instances.two_token(2)
    tree = ContextTree.of(pair)
    best = [to_flint(level) for level in optimal_scores(pair, multi_path_optimum(pair, 2))]
    z = [level.astype(float) for level in slacks_from_leaves(tree, lambda depth, need: need - best[depth])]
    y = [np.maximum(level.astype(float) - 9e-10 * (depth in depths), 0) for depth, level in enumerate(best)]
    z = [np.maximum(level, 0) for level in z]
    optimum = Fraction(212, 81)
    assert Fraction(certified_upper_bound(pair, 2, y, z)) >= optimum
    assert upper_bound(pair.to_float(), 2, y, z) > 212 / 81 - 1e-12
    assert objective_by_hand(pair, 2, y, z) < optimum - Fraction(1, 10**10)


def test_draft_rows_below_one_are_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """After A the draft row sums to 0.9: q(A) = 1/2, where the leaves below A have 0.45.  By hand the optimum
    of one path is 1 + q(A) + q(A) = 2, for the target is sure of A.  The leaves alone would say 1.9."""
    monkeypatch.setattr(levels, "SUM_TOLERANCE", 0.2)
    half = np.full((2, 2), 0.5)
    target = (np.array([[1.0, 0.0]]), half, np.full((4, 2), 0.5))
    pair = ModelPair(target, (half[:1], 0.9 * half), ("A", "B"))
    y = [np.ones(1), np.array([2.0, 0.0]), np.zeros(4)]
    z = [np.zeros(1), np.array([0.0, 2.0]), np.ones(4)]
    assert upper_bound(pair, 1, y, z) == pytest.approx(1.9)
    assert Fraction(certified_upper_bound(pair, 1, y, z)) >= 2
