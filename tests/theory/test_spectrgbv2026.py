"""Claims of spectrgbv2026."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product

import numpy as np

from counted import counted
from counted_numbers import operations_of
from spectheory import instances, output_law
from spectheory.exact.iteration import first_tokens_law
from spectheory.optima import optimal_acceptance
from spectheory.pairs.instances import random_rational
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.kseq import kseq_rule_at
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound

ZERO, ONE = Fraction(0), Fraction(1)


def random_pairs(seed: int, how_many: int) -> Iterator[ModelPair]:
    for number in range(how_many):
        yield random_rational([seed, number], 2 + number % 2, 1 + number // 2 % 2)


@counted
def test_the_bound_rises_strictly_exactly_where_a_path_is_drafted_too_rarely() -> Iterator[None]:
    """Remark 5.2: Bound(K+1) ≥ Bound(K), strictly iff some path a has 0 < q(a) < p(a)."""
    verdicts = set()
    named = [build(2) for build in instances.NAMED.values()]
    for pair in [*named, *random_pairs(271, 100)]:
        rare = any(
            0 < q < p
            for depth in range(1, pair.draft_length + 1)
            for p, q in zip(pair.target_path_probs(depth), pair.draft_path_probs(depth), strict=True)
        )
        values = [conditionally_independent_bound(pair, num_drafts) for num_drafts in (1, 2, 3, 4)]
        steps = [b - a for a, b in pairwise(values)]
        assert all(step > 0 for step in steps) if rare else all(step == 0 for step in steps)
        verdicts.add(rare)
        yield
    assert verdicts == {True, False}


@counted
def test_the_bound_tends_to_the_target_mass_of_drafted_paths() -> Iterator[None]:
    """Remark 5.2: the limit is Σ p(a) over drafted a, which is L only if the draft misses nothing."""
    limits = set()
    for pair in [instances.disjoint_supports(2), instances.partial_overlap(2), *random_pairs(272, 100)]:
        limit, rest = ZERO, ZERO
        for depth in range(1, pair.draft_length + 1):
            for p, q in zip(pair.target_path_probs(depth), pair.draft_path_probs(depth), strict=True):
                limit += p if q else 0
                rest += p * (1 - min(ONE, q / p)) ** 40 if p and q else 0
        bound = conditionally_independent_bound(pair, 40)
        assert bound == limit - rest
        limits.add(limit == pair.draft_length)
        yield
    assert limits == {True, False}


@counted
def test_with_one_draft_bound_and_algorithm_are_those_of_greedy_block() -> Iterator[None]:
    """Remark 5.2 and section 4: Bound(1) = Σ min(p, q) = E[τ] of spectr_gbv and of greedy_block."""
    for pair in random_pairs(273, 60):
        overlap = sum(
            np.minimum(pair.target_path_probs(depth), pair.draft_path_probs(depth)).sum()
            for depth in range(1, pair.draft_length + 1)
        )
        assert conditionally_independent_bound(pair, 1) == overlap
        laws = [output_law(name, pair, 1) for name in ("spectr_gbv", "greedy_block")]
        assert [law.block_efficiency - 1 for law in laws] == [overlap] * 2
        assert all((a == b).all() for a, b in zip(laws[0].masses, laws[1].masses, strict=True))
        yield


@counted
def test_lemma_5_1_holds_at_one_position() -> Iterator[None]:
    """At L = 1 no drafts that are independent given Y and have the draft's law exceed Bound(K).

    Drafts that are not independent of each other reach it.
    """
    rng = np.random.default_rng(274)
    p, q = Fraction(1, 3), Fraction(2, 3)
    bound = conditionally_independent_bound(instances.two_token(1), 2)
    best = ZERO
    for _ in range(400):
        met_a = met_b = ONE
        for _ in range(2):  # one draft's conditionals P(A | Y = A), P(A | Y = B), with mean q
            given_a = Fraction(int(rng.integers(0, 13)), 12)
            given_b = (q - p * given_a) / (1 - p)
            if not 0 <= given_b <= 1:
                given_a, given_b = ONE, Fraction(1, 2)
            met_a, met_b = met_a * (1 - given_a), met_b * given_b
        best = max(best, 1 - p * met_a - (1 - p) * met_b)
        assert 1 - p * met_a - (1 - p) * met_b <= bound
        yield
    assert best == bound == Fraction(5, 6)  # reached only by drafts that are not independent of each other


@counted
def test_lemma_5_1_is_false_at_two_positions() -> Iterator[None]:
    """V = 4, L = 2, K = 2: y_2 tells two independent drafts how to differ; E[τ] = 8/9 > Bound = 5/6.

    First tokens are those of the two-token pair. The target's second token is uniform on 0, 1, 2, the
    draft's is 3. Given y_1 = A both drafts start with A; given y_1 = B they do with u(y_2) and v(y_2).
    """
    third = Fraction(1, 3)
    u, v = (ONE, Fraction(1, 2), ZERO), (Fraction(1, 2), ZERO, ONE)
    joint: dict[tuple[tuple[int, int], tuple[int, int]], Fraction] = {}  # (y, (x_1, x_2) at position 1)
    for first, second in product((0, 1), range(3)):
        prob = (third if first == 0 else 2 * third) * third
        starts = [(ONE, ZERO)] * 2 if first == 0 else [(u[second], 1 - u[second]), (v[second], 1 - v[second])]
        for x_1, x_2 in product((0, 1), repeat=2):  # independent given y
            mass = prob * starts[0][x_1] * starts[1][x_2]
            joint[(first, second), (x_1, x_2)] = mass
    draft = (2 * third, third)
    for x_1, x_2 in product((0, 1), repeat=2):  # i.i.d. drafts
        assert sum(mass for (_, x), mass in joint.items() if x == (x_1, x_2)) == draft[x_1] * draft[x_2]
    target, drafted = {}, {}
    for depth in range(3):
        for context in product(range(4), repeat=depth):
            target[context] = [third, 2 * third, 0, 0] if depth == 0 else [third, third, third, 0]
            if depth < 2:
                drafted[context] = [2 * third, third, 0, 0] if depth == 0 else [0, 0, 0, ONE]
    pair = ModelPair.from_contexts(target, drafted, 2)
    length = sum(mass for (y, x), mass in joint.items() if y[0] in x)  # a second token is never met
    assert length == Fraction(8, 9) > Fraction(5, 6) == conditionally_independent_bound(pair, 2)
    yield


@counted
def test_identical_conditionals_leave_the_product_only() -> Iterator[None]:
    """One conditional for all drafts, as Eq. 13 has it.

    Drafts that are i.i.d. as well are then independent of y, and Jensen's inequality makes = into ≤.
    """
    for given_a in (Fraction(n, 20) for n in range(10, 21)):
        p, q = Fraction(1, 3), Fraction(2, 3)
        given_b = (q - p * given_a) / (1 - p)
        both = p * given_a**2 + (1 - p) * given_b**2
        assert (both == q**2) == (given_a == given_b)
        # Jensen, for a prefix with two continuations: the chance to miss is at least that of the mean
        mean = (given_a + given_b) / 2
        assert ((1 - given_a) ** 2 + (1 - given_b) ** 2) / 2 >= (1 - mean) ** 2
        yield


@counted
def test_values_of_the_class_the_bound_and_valid_verifiers() -> Iterator[None]:
    """Theorem 5.3 and section 4.1, two-token pair, L = 1, K = 2: 2/3 < 41/60 < 7/9 < 5/6 < 8/9."""
    pair = instances.two_token(1)
    algorithm = output_law("spectr_gbv", pair, 2).block_efficiency - 1
    product_coupling = 1 - (Fraction(1, 3) * Fraction(1, 3) ** 2 + Fraction(2, 3) * Fraction(2, 3) ** 2)
    one_coupled = 1 - Fraction(1, 3) * Fraction(2, 3)
    bound = conditionally_independent_bound(pair, 2)
    best = optimal_acceptance(pair.target[0][0], pair.draft[0][0], 2).value
    values = [product_coupling, algorithm, one_coupled, bound, best]
    assert values == [Fraction(2, 3), Fraction(41, 60), Fraction(7, 9), Fraction(5, 6), Fraction(8, 9)]
    assert output_law("multi_round", pair, 2).block_efficiency - 1 == Fraction(7, 9)
    yield


def kept(pair: ModelPair, num_drafts: int) -> list[np.ndarray]:
    """P(a is a prefix of what the algorithm accepts) by depth 1..L."""
    return list(output_law("spectr_gbv", pair, num_drafts).accepted_masses[1:])


@counted
def test_lemma_a_1_is_false_for_two_drafts() -> Iterator[None]:
    """Lemma A.1 as a probability that a is kept: too large for K = 2 on most pairs, exact for K = 1."""
    differs = 0
    for pair in random_pairs(275, 60):
        for num_drafts in (1, 2):
            stated = [
                np.array(
                    [
                        p * (1 - (1 - min(ONE, q / p)) ** num_drafts) if p else ZERO
                        for p, q in zip(pair.target_path_probs(d), pair.draft_path_probs(d), strict=True)
                    ],
                    dtype=object,
                )
                for d in range(1, pair.draft_length + 1)
            ]
            same = all((a == b).all() for a, b in zip(kept(pair, num_drafts), stated, strict=True))
            if num_drafts == 1:
                assert same
            else:
                differs += not same
                total = sum(level.sum() for level in stated)
                assert sum(level.sum() for level in kept(pair, 2)) <= total
        yield
    assert differs > 30
    toy = instances.two_token(1)
    assert list(kept(toy, 2)[0]) == [Fraction(31, 120), Fraction(17, 40)]  # the lemma: 1/3 and 1/2


@counted
def test_the_complete_procedure_is_not_lossless() -> Iterator[None]:
    """Theorem 4.2 and Algorithm 3.

    With its modification, K = 2 changes the law of the first tokens; K = 1 does not.
    """
    lossy = 0
    for number in range(30):
        pair = random_rational([276, number], 2, 2, zero_probability=0, equal_row_probability=0)
        pair = ModelPair.context_free_pair(list(pair.target[0][0]), list(pair.draft[0][0]), 2)
        assert first_tokens_law("spectr_gbv", pair, 3, drafts=1).total_variation == 0
        if output_law("spectr_gbv", pair, 2).undefined:
            continue
        lossy += first_tokens_law("spectr_gbv", pair, 3, drafts=2).total_variation > 0
        yield
    assert lossy > 15
    assert output_law("spectr_gbv", instances.two_token(1), 2).prefix_law(1)[0] == Fraction(31, 120)


@counted
def test_it_is_often_below_spectr() -> Iterator[None]:
    """Section 6 on enumerated pairs, K = 2.

    Fewer accepted tokens than spectr on most, and fewer than K = 1 on some.
    """
    below = above = falls = 0
    for pair in random_pairs(277, 80):
        both = [float(output_law(name, pair, 2).block_efficiency) for name in ("spectr_gbv", "spectr")]
        below, above = below + (both[0] < both[1] - 1e-9), above + (both[0] > both[1] + 1e-9)
        falls += both[0] < float(output_law("spectr_gbv", pair, 1).block_efficiency) - 1e-9
        yield
    assert below > above > 0
    assert falls > 0
    toy = [
        output_law(name, instances.two_token(1), 2).block_efficiency for name in ("spectr_gbv", "multi_round")
    ]
    assert toy == [Fraction(101, 60), Fraction(16, 9)]
    assert output_law("spectr", instances.two_token(1), 2).block_efficiency > 1.811


@counted
def test_nu_is_not_a_probability() -> Iterator[None]:
    """Section 3.3: ν_i = p/q exceeds 1; what is kept is min{1, ν_i}; two-token pair, ν(B) = 2."""
    exceeds = 0
    for pair in [instances.two_token(1), *random_pairs(278, 40)]:
        masses = output_law("greedy_block", pair).accepted_masses[1]
        for p, q, mass in zip(pair.target[0][0], pair.draft[0][0], masses, strict=True):
            if q:
                assert mass / q == min(ONE, p / q)
                exceeds += p / q > 1
        yield
    assert exceeds > 20


@counted
def test_the_short_residual_of_kseq_holds_at_the_root_only() -> Iterator[None]:
    """Section 3.2: (p - min(q, p/ρ) ρ)/(1 - ρβ) is Eq. 5 of spectr2023 where p_acc = ρβ, and nowhere else."""
    for ratio, num_drafts in product((2, 3), (2, 3)):
        pair = instances.uniform(6, ratio)
        target, draft = pair.target[0][0], pair.draft[0][0]
        root = ratio * (1 - Fraction(ratio - 1, ratio) ** num_drafts)
        for factor in (root, Fraction(num_drafts)):
            residual = kseq_rule_at(target, draft, num_drafts, factor).residual
            short = [p - min(q, p / factor) * factor for p, q in zip(target, draft, strict=True)]
            assert (list(residual) == short) == (factor == root)
            yield


@counted
def test_costs_per_call() -> Iterator[None]:
    """Section 4.2.

    O(V) for every sub-block of every draft, so O(K L V) per call; multi_round has K L rows as well.
    """
    by_size = [operations_of("spectr_gbv", size, 2, 3) for size in (20, 40, 60)]
    assert abs((by_size[2] - by_size[1]) - (by_size[1] - by_size[0])) <= 0.01 * by_size[0]
    yield
    by_drafts = [operations_of("spectr_gbv", 40, K, 3) for K in (2, 4, 8)]
    assert by_drafts[1] > 1.7 * by_drafts[0]
    assert by_drafts[2] > 1.7 * by_drafts[1]
    yield
    by_length = [operations_of("spectr_gbv", 40, 2, L) for L in (2, 4, 8)]
    assert by_length[2] > 1.7 * by_length[1] > 2.5 * by_length[0]
    yield
