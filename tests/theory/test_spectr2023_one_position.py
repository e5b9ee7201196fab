"""Claims of spectr2023 at one position."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import ceil, log2

import numpy as np

from counted import counted
from counted_numbers import Counted, rows
from spectheory import defects, instances, output_law
from spectheory.optima import optimal_acceptance, optimal_acceptance_curve, otm_optimum, otm_program
from spectheory.pairs.instances import random_rational
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.kseq import KSeq, kseq_rule, kseq_rule_at
from spectheory.verification.algorithms.position_by_position.multi_round import multi_round_acceptance

Row = np.ndarray


def random_rows(seed: int, how_many: int, overlapping: bool = False) -> Iterator[tuple[Row, Row]]:
    """Exact rows (target, draft) of 2 to 5 tokens; overlapping ones share a token and are not equal."""
    number = found = 0
    while found < how_many:
        pair = random_rational([seed, number], 2 + number % 4, 1)
        target, draft = pair.target[0][0], pair.draft[0][0]
        number += 1
        if overlapping and not 0 < accepted(target, draft, Fraction(1)) < 1:
            continue
        found += 1
        yield target, draft


def accepted(target: Row, draft: Row, factor: Fraction) -> Fraction:
    """β(ρ) = Σ min(q, p/ρ)."""
    return sum((min(q, p / factor) for p, q in zip(target, draft, strict=True)), Fraction(0))


def excess(target: Row, draft: Row, num_drafts: int, factor: Fraction) -> Fraction:
    """f(ρ) = 1 - (1 - β)^K - ρβ, which is positive exactly below ρ* (Lemma 4)."""
    beta = accepted(target, draft, factor)
    return 1 - (1 - beta) ** num_drafts - factor * beta


def kseq_acceptance(target: Row, draft: Row, num_drafts: int) -> float:
    return float(kseq_rule(target.astype(float), draft.astype(float), np.array(float(num_drafts))).acceptance)


def one_position(target: Row, draft: Row) -> ModelPair:
    return ModelPair.context_free_pair(list(target), list(draft), draft_length=1)


@counted
def test_one_draft_is_the_maximal_coupling() -> Iterator[None]:
    """Eq. 1 corrected: min P(Y ≠ X) = 1 - Σ min(p, q); the printed right side is another number."""
    differs = 0
    for target, draft in random_rows(201, 100):
        overlap = accepted(target, draft, Fraction(1))
        found = otm_optimum(target, draft, 1).value
        assert found == 1 - overlap
        assert output_law("token", one_position(target, draft)).length_probs[1] == overlap
        differs += found != overlap
        yield
    assert differs > 50


@counted
def test_the_transport_program_has_the_printed_size() -> Iterator[None]:
    """Eq. 4: V^(K+1) variables and V^K + V equalities."""
    for size, num_drafts in product((2, 3, 4), (1, 2, 3, 4)):
        row = [Fraction(1, size)] * size
        wanted = size ** (num_drafts + 1), size**num_drafts + size
        assert otm_program(row, row, num_drafts).size == wanted
        yield


@counted
def test_acceptance_grows_with_the_drafts() -> Iterator[None]:
    """Lemma 1: α_K ≤ α_{K+1}."""
    grew = 0
    for target, draft in random_rows(202, 300):
        values = [cut.value for cut in optimal_acceptance_curve(target, draft, 8)]
        assert values == sorted(values)
        grew += values[0] < values[-1]
        yield
    assert grew > 100


@counted
def test_acceptance_tends_to_the_target_mass_of_the_drafted_tokens() -> Iterator[None]:
    """Lemma 1.

    With m the smallest positive q, limit - (1 - m)^K ≤ α_K ≤ limit; the limit is 1 without gaps.
    """
    limits = set()
    for target, draft in random_rows(203, 200):
        limit = sum((p for p, q in zip(target, draft, strict=True) if q), Fraction(0))
        rest = (1 - min(q for q in draft if q)) ** 60
        assert limit - rest <= optimal_acceptance(target, draft, 60).value <= limit
        limits.add(limit == 1)
        yield
    assert limits == {True, False}


@counted
def test_accepting_drafts_in_turn_is_not_valid() -> Iterator[None]:
    """Section 4.

    For draft Ber(1) and target Ber(1/2) a head has probability 1 - 2^-K, which is 1/2 at K = 1 only.
    """
    for num_drafts in range(1, 7):
        law = output_law(
            defects["independent_acceptance"], instances.bernoulli("1", "1/2"), num_drafts
        ).prefix_law(1)
        assert law[1] == 1 - Fraction(1, 2**num_drafts)
        yield


@counted
def test_rejection_needs_constant_drafts() -> Iterator[None]:
    """Appendix B.1 corrected: with two tokens the membership cost can be positive only at constant drafts."""
    for num_drafts in range(1, 7):
        for drafts in product((0, 1), repeat=num_drafts):
            can_reject = any(token not in drafts for token in (0, 1))
            assert can_reject == (len(set(drafts)) == 1)
            always_below_one = all(token in drafts for token in (0, 1))  # what the text says of constant ones
            assert always_below_one != (len(set(drafts)) == 1)
            yield


@counted
def test_bisection_takes_the_printed_number_of_steps() -> Iterator[None]:
    """Theorem 1: ⌈log2((K-1)/δ)⌉ halvings of [1, K]; the upper end is valid, the lower one is not always."""
    tolerance, lower_is_invalid = Fraction(1, 1000), 0
    for target, draft in random_rows(204, 40, overlapping=True):
        for num_drafts in (2, 3, 5):
            low, high, steps = Fraction(1), Fraction(num_drafts), 0
            while high - low > tolerance:
                middle = (low + high) / 2
                above = excess(target, draft, num_drafts, middle) > 0
                low, high, steps = (middle, high, steps + 1) if above else (low, middle, steps + 1)
            assert steps == ceil(log2((num_drafts - 1) / float(tolerance)))
            assert min(kseq_rule_at(target, draft, num_drafts, high).residual) >= 0
            lower_is_invalid += min(kseq_rule_at(target, draft, num_drafts, low).residual) < 0
            yield
    assert lower_is_invalid > 20


@counted
def test_a_step_of_the_bisection_costs_one_pass() -> Iterator[None]:
    """Section 6: operations of the excess at one factor, affine in V: O(V) for each of the halvings."""
    for factor in (Fraction(1), Fraction(3, 2), Fraction(2)):
        counts = []
        for size in (20, 40, 60):
            target, draft = rows(np.random.default_rng(size), 2, size)
            Counted.operations = 0
            excess(target, draft, 3, factor)
            counts.append(Counted.operations)
        assert counts[2] - counts[1] == counts[1] - counts[0] > 20
        yield


@counted
def test_the_excess_falls_and_changes_sign_where_lemma_4_says() -> Iterator[None]:
    """Lemma 4.

    The excess f falls, f(1) ≥ 0 ≥ f(min(K, max p/q)), and 1 - d^K ≥ 1 - d = β(1) in step (2).
    """
    for target, draft in random_rows(205, 150, overlapping=True):
        num_drafts = 2 + len(target) % 3
        grid = [1 + Fraction(n, 8) for n in range(8 * num_drafts)]
        values = [excess(target, draft, num_drafts, factor) for factor in grid]
        assert values == sorted(values, reverse=True)
        assert values[0] >= 0
        ratios = [p / q for p, q in zip(target, draft, strict=True) if q]
        bounded = all(q > 0 for p, q in zip(target, draft, strict=True) if p)
        end = min(Fraction(num_drafts), max(ratios)) if bounded else Fraction(num_drafts)
        assert excess(target, draft, num_drafts, max(end, Fraction(1))) <= 0
        distance = 1 - accepted(target, draft, Fraction(1))
        assert 1 - distance**num_drafts >= 1 - distance == accepted(target, draft, Fraction(1))
        yield


@counted
def test_beyond_the_root_acceptance_is_below_the_line() -> Iterator[None]:
    """C.1 corrected.

    For ρ ≥ ρ*, 1 - (1-β)^K ≤ ρβ, and the residual p - μ has mass (1-β)^K, printed 1 - (1-β)^K.
    """
    strict = misprint = 0
    for target, draft in random_rows(206, 100, overlapping=True):
        num_drafts = 2
        factor = Fraction(num_drafts)  # f(K) ≤ 0, so K is beyond the root
        beta = accepted(target, draft, factor)
        reached = 1 - (1 - beta) ** num_drafts
        assert reached <= factor * beta
        strict += reached < factor * beta
        left = sum(kseq_rule_at(target, draft, num_drafts, factor).residual, Fraction(0))
        assert left == (1 - beta) ** num_drafts
        misprint += left != reached
        yield
    assert strict > 50
    assert misprint > 50


@counted
def test_the_constant_of_the_guarantee() -> Iterator[None]:
    """C.1: c_K = (1 - (1-β(K))^K)/(Kβ(K)) ∈ [1 - (1-1/K)^K, 1) for K ≥ 2; at K = 1 it is 1."""
    for target, draft in random_rows(207, 100, overlapping=True):
        for num_drafts in (1, 2, 3, 6):
            beta = accepted(target, draft, Fraction(num_drafts))
            constant = (1 - (1 - beta) ** num_drafts) / (num_drafts * beta)
            assert 1 - Fraction(num_drafts - 1, num_drafts) ** num_drafts <= constant
            assert constant == 1 if num_drafts == 1 else constant < 1
            yield


@counted
def test_acceptance_at_the_largest_ratio_is_at_least_the_printed_value() -> Iterator[None]:
    """A.2 corrected: at ρ = max p/q the acceptance is ≥ 1 - (1-β)^K, and on some rows larger."""
    larger = 0
    for target, draft in random_rows(208, 40, overlapping=True):
        if not all(q > 0 for p, q in zip(target, draft, strict=True) if p):
            continue
        factor = max(p / q for p, q in zip(target, draft, strict=True) if q)
        reached = output_law(KSeq(factor), one_position(target, draft), 3).block_efficiency - 1
        printed = 1 - (1 - accepted(target, draft, factor)) ** 3
        assert reached >= printed
        larger += reached > printed
        yield
    assert larger > 3


@counted
def test_the_worst_ratio_of_kseq_stays_above_the_guarantee() -> Iterator[None]:
    """Theorem 1 is loose.

    Two tokens, p = 1 - (1-b)^K against q = b, where α_K = 1, reach 8/9, .865, .854, .840.
    """
    for num_drafts, worst_known in ((2, 0.8889), (3, 0.8651), (4, 0.8544), (8, 0.8398)):
        grid = np.arange(1, 300) / 300
        covered = 1 - (1 - grid) ** num_drafts
        target, draft = (np.stack([head, 1 - head], axis=-1) for head in (covered, grid))
        best = optimal_acceptance(target, draft, num_drafts).value
        reached = kseq_rule(target, draft, np.full(len(grid), float(num_drafts))).acceptance
        worst = 1.0
        for optimal, kseq in zip(best, reached, strict=True):
            worst = min(worst, float(kseq / optimal))
            yield
        assert 1 - (1 - 1 / num_drafts) ** num_drafts + 0.1 < worst < worst_known
        for target, draft in random_rows(209 + num_drafts, 50, overlapping=True):
            best = float(optimal_acceptance(target, draft, num_drafts).value)
            assert kseq_acceptance(target, draft, num_drafts) >= worst * best - 1e-3
            yield


@counted
def test_kseq_accepts_at_least_what_multi_round_does() -> Iterator[None]:
    """theory.md Statement 3.9, exactly.

    C_K ≤ ρ*, that is f(C_K) ≥ 0, and the missed masses are in that order.
    """
    equal = strict = 0
    for target, draft in random_rows(214, 1000, overlapping=True):
        for num_drafts in (2, 3):
            total = missed = Fraction(1)  # C_1 = 1; what is missed after the first draft comes next
            for _ in range(num_drafts - 1):
                missed = sum((max(p - total * q, Fraction(0)) for p, q in zip(target, draft, strict=True)))
                total += missed
            missed = sum((max(p - total * q, Fraction(0)) for p, q in zip(target, draft, strict=True)))
            assert multi_round_acceptance(target, draft, num_drafts) == 1 - missed
            room = excess(target, draft, num_drafts, total)
            assert room >= 0
            equal, strict = equal + (room == 0), strict + (room > 0)
            yield
    assert min(equal, strict) > 50


@counted
def test_bernoulli_curves() -> Iterator[None]:
    """Figs. 4 and 6: draft Ber(1/4); multi-round ≤ K-SEQ ≤ α, strict unless b = 1; K-SEQ never reaches 1."""
    first = {}
    for head in ("1/10", "1/2", "3/4", "1"):
        pair = instances.bernoulli("1/4", head)
        target, draft = pair.target[0][0], pair.draft[0][0]
        for num_drafts in range(1, 11):
            best = optimal_acceptance(target, draft, num_drafts).value
            kseq = kseq_acceptance(target, draft, num_drafts)
            multi_round = float(multi_round_acceptance(target, draft, num_drafts))
            assert kseq < 1
            if head == "1" or num_drafts == 1:
                assert abs(kseq - best) < 1e-12
                assert abs(multi_round - best) < 1e-12
            else:
                assert multi_round < kseq < best
            if best == 1:
                first.setdefault(head, num_drafts)
            yield
    assert first == {"1/10": 2, "1/2": 3, "3/4": 5}  # and at b = 1 never


@counted
def test_uniform_curves() -> Iterator[None]:
    """Fig. 5: draft U(120), target U(120/r): α_K = 1 - (1 - 1/r)^K, below 1 for r > 1, and rising."""
    for ratio in (r for r in range(1, 121) if 120 % r == 0):
        pair = instances.uniform(120, ratio)
        curve = optimal_acceptance_curve(pair.target[0][0], pair.draft[0][0], 50)
        for num_drafts, cut in enumerate(curve, start=1):
            assert cut.value == 1 - Fraction(ratio - 1, ratio) ** num_drafts
            yield


@counted
def test_kseq_is_optimal_on_uniform_pairs_and_not_everywhere() -> Iterator[None]:
    """App. B.2.

    The factor ρ* = r (1 - (1-1/r)^K) has f(ρ*) = 0 and p_acc(ρ*) = α_K; on the two-token pair it is below.
    """
    for ratio, num_drafts in product((2, 3, 4, 6), (2, 3, 5)):
        pair = instances.uniform(12, ratio)
        target, draft = pair.target[0][0], pair.draft[0][0]
        root = ratio * (1 - Fraction(ratio - 1, ratio) ** num_drafts)
        assert accepted(target, draft, root) == 1 / max(Fraction(ratio), root)
        assert excess(target, draft, num_drafts, root) == 0
        rule = kseq_rule_at(target, draft, num_drafts, root)
        assert rule.acceptance == optimal_acceptance(target, draft, num_drafts).value
        yield
    pair = instances.two_token(1)
    assert kseq_acceptance(pair.target[0][0], pair.draft[0][0], 2) < 0.82 < 8 / 9
