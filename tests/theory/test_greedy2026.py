"""Claims of greedy2026 on rankings and on the algorithm."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product

import numpy as np

from counted import counted
from counted_numbers import operations_of
from spectheory import instances, optimum, output_law
from spectheory.optima import on_path_optimum, path_selection_optimum
from spectheory.optima.bounds import SkewedDraft, is_skewed_draft, leaf_order
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.optima.greedy_polymatroid import decompose_into_rankings
from spectheory.pairs.instances import off_path_pairs, random_rational
from spectheory.pairs.pair import ModelPair
from tree_rankings import best_ranking

HALF = Fraction(1, 2)


def random_pairs(seed: int, how_many: int) -> Iterator[tuple[ModelPair, int]]:
    """Pairs with V = 2 or 3 and L = 1 or 2, and K = 2 or 3."""
    for number in range(how_many):
        yield random_rational([seed, number], 2 + number % 2, 1 + number // 2 % 2), 2 + number // 4 % 2


@counted
def test_the_skewed_ratio_rises_along_every_ranking() -> Iterator[None]:
    """Eq. 20: q^Γ(P_i)/q(P_i) does not fall with i, for random orders of the leaves (x ↦ x^K is convex)."""
    for number, (pair, num_drafts) in enumerate(random_pairs(241, 200)):
        rng = np.random.default_rng([242, number])
        order = rng.permutation(pair.vocab_size**pair.draft_length).tolist()
        law = SkewedDraft.from_order(pair, num_drafts, order).leaf_law
        draft = pair.draft_path_probs(pair.draft_length)
        ratios = [law[leaf] / draft[leaf] for leaf in order if draft[leaf]]
        assert ratios == sorted(ratios)
        yield


@counted
def test_the_polymatroid_order_is_the_ranking_reversed() -> Iterator[None]:
    """App. H and section 5: ψ({P_1..P_i}) - ψ({P_1..P_{i-1}}) is the law of the ranking P_M < .. < P_1."""
    same = 0
    for number, (pair, num_drafts) in enumerate(random_pairs(243, 100)):
        rng = np.random.default_rng([244, number])
        order = rng.permutation(pair.vocab_size**pair.draft_length).tolist()
        draft = pair.draft_path_probs(pair.draft_length)
        psi = [1 - (1 - sum(draft[order[:n]], Fraction(0))) ** num_drafts for n in range(len(order) + 1)]
        greedy = {leaf: psi[n + 1] - psi[n] for n, leaf in enumerate(order)}
        reverse = SkewedDraft.from_order(pair, num_drafts, order[::-1]).leaf_law
        assert all(greedy[leaf] == reverse[leaf] for leaf in order)
        same += list(SkewedDraft.from_order(pair, num_drafts, order).leaf_law) == list(reverse)
        yield
    assert same < 50


@counted
def test_the_linearised_program_satisfies_the_antichain_inequalities() -> Iterator[None]:
    """Section 4: block verification of a selected path never passes through an antichain too often."""
    for number, (pair, num_drafts) in enumerate(random_pairs(245, 100)):
        rng = np.random.default_rng([246, number])
        leaves = pair.vocab_size**pair.draft_length
        laws = [SkewedDraft.from_order(pair, num_drafts, rng.permutation(leaves).tolist()) for _ in range(3)]
        mixed = SkewedDraft.mixture([Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], laws)
        masses = mixed.accepted_masses(pair)
        assert most_violated_antichain(pair, masses, num_drafts)[0] <= 0
        yield


@counted
def test_every_token_is_accepted_exactly_where_the_target_is_feasible() -> Iterator[None]:
    """Below Theorem 4.6 and its converse: the optimum is L+1 iff p(S) ≤ f(q(S)) for all sets of leaves."""
    verdicts = set()
    for pair, num_drafts in random_pairs(247, 60):
        law = pair.target_path_probs(pair.draft_length)
        feasible = is_skewed_draft(pair, law, num_drafts).is_member
        assert (optimum(pair, num_drafts).value == pair.draft_length + 1) == feasible
        verdicts.add(feasible)
        yield
    assert verdicts == {True, False}


@counted
def test_the_optimum_is_a_selection_with_block_verification() -> Iterator[None]:
    """Theorem 4.6: the best skewed draft attains the optimum of Theorem 4.3, as a mixture of rankings."""
    for pair, num_drafts in random_pairs(248, 24):
        best = path_selection_optimum(pair, num_drafts)
        assert best.value == optimum(pair, num_drafts).value
        found = decompose_into_rankings(pair, num_drafts, best.skewed_draft.leaf_law)
        drafts = [SkewedDraft.from_order(pair, num_drafts, order) for order in found.orders]
        mixed = SkewedDraft.mixture(found.weights, drafts)
        assert mixed.block_efficiency(pair) == best.value
        assert len(found.orders) <= pair.vocab_size**pair.draft_length
        yield


@counted
def test_block_efficiency_can_fall_with_the_number_of_drafts() -> Iterator[None]:
    """Section 6, no theorem: two-token pair, L = 2, falls from K = 3 on towards 19/9; L = 1 likewise."""
    pair = instances.two_token(2)
    values = [SkewedDraft.from_ranking(pair, K).block_efficiency(pair) for K in range(1, 13)]
    assert values[:3] == sorted(values[:3])
    assert values[2:] == sorted(values[2:], reverse=True)
    assert values[2] == Fraction(2018, 729)
    assert 0 < values[-1] - Fraction(19, 9) < Fraction(1, 4)
    assert output_law("greedy_multipath", pair, 4).block_efficiency == values[3]
    yield
    short = instances.two_token(1)
    values = [SkewedDraft.from_ranking(short, K).block_efficiency(short) for K in range(1, 5)]
    assert values == [Fraction(5, 3), Fraction(17, 9), Fraction(53, 27), Fraction(151, 81)]
    yield
    falls = 0
    for pair, _ in random_pairs(249, 200):
        one, two = (SkewedDraft.from_ranking(pair, K).block_efficiency(pair) for K in (1, 2))
        falls += two < one
        assert (
            SkewedDraft.from_ranking(pair, 1).block_efficiency(pair)
            == output_law("block", pair).block_efficiency
        )
        yield
    assert falls > 10


@counted
def test_identical_models_do_not_give_the_largest_block_efficiency() -> Iterator[None]:
    """Section 2.1 against Algorithm 1: fair coins, L = 1, K = 1..5: 2, 7/4, 13/8, 25/16, 49/32."""
    pair = instances.uniform_equal(1)
    printed = [Fraction(2), Fraction(7, 4), Fraction(13, 8), Fraction(25, 16), Fraction(49, 32)]
    for num_drafts, value in enumerate(printed, start=1):
        assert output_law("greedy_multipath", pair, num_drafts).block_efficiency == value
        assert optimum(pair, num_drafts).value == 2
        yield


@counted
def test_the_ratio_order_is_not_always_the_best() -> Iterator[None]:
    """Section 5: at one position p/q is the best of all V! orders on most rows, not on all."""
    best_of_all = 0
    for number in range(100):
        pair = random_rational([250, number], 2 + number % 2, 1)
        found = best_ranking(pair, 3)
        orders = permutations(range(pair.vocab_size))
        by_orders = max(SkewedDraft.from_order(pair, 3, order).block_efficiency(pair) for order in orders)
        assert found.best.value == by_orders
        best_of_all += found.greedy.value == by_orders
        yield
    assert 50 < best_of_all < 100


@counted
def test_a_global_order_by_the_ratio_of_paths_is_not_always_better() -> Iterator[None]:
    """Section 5: leaves by p/q against the tree order by p/q: better on some pairs, worse on others."""
    better = worse = 0
    for number in range(120):
        pair = random_rational([251, number], 2, 2)
        target, draft = (probs(2) for probs in (pair.target_path_probs, pair.draft_path_probs))
        order = sorted(range(4), key=lambda leaf: (target[leaf] / draft[leaf] if draft[leaf] else 0, leaf))
        overall = SkewedDraft.from_order(pair, 2, order).block_efficiency(pair)
        tree = SkewedDraft.from_ranking(pair, 2).block_efficiency(pair)
        assert SkewedDraft.from_order(pair, 2, leaf_order(pair)).block_efficiency(pair) == tree
        better, worse = better + (overall > tree), worse + (overall < tree)
        if number == 2:
            assert (overall, tree) == (Fraction(255111, 122500), Fraction(268971, 122500))
        yield
    assert min(better, worse) >= 1


@counted
def test_local_orders_are_needed_at_depths_below_l_only() -> Iterator[None]:
    """Def. 5.2 and Algorithm 1, line 5.

    L keys per leaf, from the rows at depths 0..L-1; Eq. 21 is not injective.
    """
    ties = 0
    for pair, _ in random_pairs(252, 40):
        asked: list[int] = []

        def ranking(target_rows: np.ndarray, draft_rows: np.ndarray, asked: list[int] = asked) -> np.ndarray:
            asked.append(len(target_rows))
            return target_rows

        leaf_order(pair, ranking)
        assert asked == [pair.vocab_size**depth for depth in range(pair.draft_length)]
        row = [p / q for p, q in zip(pair.target[0][0], pair.draft[0][0], strict=True) if q]
        ties += len(set(row)) < len(row)
        yield
    assert ties > 0


@counted
def test_printed_sums_are_no_law_under_ties() -> Iterator[None]:
    """Eqs. 22-23 with strict <: tied tokens are all ranked below nothing; fair coins sum to 1/2."""
    for target, draft, total in (
        ([HALF, HALF], [HALF, HALF], HALF),
        (
            [Fraction(1, 4), Fraction(1, 4), HALF],
            [Fraction(3, 8), Fraction(3, 8), Fraction(1, 4)],
            Fraction(23, 32),
        ),
    ):
        ratio = [p / q for p, q in zip(target, draft, strict=True)]
        below = [sum(q for q, other in zip(draft, ratio, strict=True) if other < mine) for mine in ratio]
        printed = sum((q + b) ** 2 - b**2 for q, b in zip(draft, below, strict=True))
        assert printed == total
        pair = ModelPair.context_free_pair(target, draft, 1)
        assert sum(SkewedDraft.from_ranking(pair, 2).leaf_law) == 1
        yield


@counted
def test_off_path_information_can_help_two_drafts() -> Iterator[None]:
    """Section 4: no on-path verifier of several drafts attains both optima of theory.md Statement 5.17."""
    pairs = off_path_pairs()
    for K in (2, 3, 4):
        optima = [optimum(pair, K).value for pair in pairs]
        assert optima == [4 - Fraction(2, 3**K), 3 - Fraction(1, 3**K)]
        assert on_path_optimum(pairs, K).value == sum(optima) - Fraction(1, 3**K)
        for pair, best in zip(pairs, optima, strict=True):  # on one pair nothing is lost
            assert on_path_optimum([pair], K).value == best
        yield


@counted
def test_costs_of_greedy_multipath() -> Iterator[None]:
    """Section 5: operations grow like V log V, not like V K; linearly in L."""
    by_size = [operations_of("greedy_multipath", size, 2, 2) for size in (16, 64, 256)]
    assert by_size[2] / by_size[1] < 4 * 8 / 6 * 1.1  # (256 log 256) / (64 log 64)
    yield
    by_drafts = [operations_of("greedy_multipath", 200, K, 2) for K in (2, 4, 8)]
    assert by_drafts[2] < 1.5 * by_drafts[0]
    yield
    by_length = [operations_of("greedy_multipath", 64, 2, L) for L in (2, 4, 8)]
    assert by_length[2] < 4.4 * by_length[0]
    yield


@counted
def test_the_printed_step_68_to_69_fails_where_the_weight_is_capped() -> Iterator[None]:
    """App. C: q (p/q) w ≤ q min{1, (p/q) w} is false where w p/q > 1; D p ≤ q is needed besides."""
    fails = 0
    for p, q, w in product(*(3 * [[Fraction(n, 4) for n in range(1, 5)]])):
        step_68, step_69 = q * (p / q) * w, q * min(Fraction(1), (p / q) * w)
        assert min(step_68, q) == step_69
        fails += step_68 > step_69
        yield
    assert fails > 0
