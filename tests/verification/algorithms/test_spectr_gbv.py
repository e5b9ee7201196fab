"""spectr_gbv against its printed equations, acted out with the set H; what it claims and what it does."""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import pytest

from reference import (
    Law,
    Path,
    draft_prob,
    law_of,
    leaves,
    normalised,
    target_prob,
    target_row,
    without_zeros,
)
from spectheory import certify, instances, output_law
from spectheory.exact.iteration import completed_law, modified_pair
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
from spectheory.verification.algorithms.spectr_gbv import (
    SpecTrGbv,
    conditionally_independent_bound,
)
from table import small_cases

ZERO, ONE = Fraction(0), Fraction(1)


class UndefinedCorrectionError(Exception):
    """Eq. 4 is 0/0 at a stop of positive probability."""


def rejected_mass(pair: ModelPair, path: Path, num_drafts: int) -> Fraction:
    """q(x)(1 - min{p(x)/q(x), 1})^K in the paper's letters; 0 where the target has no mass."""
    target, draft = target_prob(pair, path), draft_prob(pair, path)
    return target * (1 - min(draft / target, ONE)) ** num_drafts if target else ZERO


def children(pair: ModelPair, path: Path) -> list[Path]:
    return [(*path, token) for token in range(pair.vocab_size)]


def acceptance(pair: ModelPair, path: Path, num_drafts: int, undefined: Fraction = ZERO) -> Fraction:
    """Eq. 2 and Eq. 3 letter by letter; ``undefined`` where they are 0/0."""
    target, drafted_prob = target_prob(pair, path), 1 - (1 - draft_prob(pair, path)) ** num_drafts
    if len(path) == pair.draft_length:
        numerator, denominator = target - rejected_mass(pair, path, num_drafts), drafted_prob
    else:
        longer = sum(rejected_mass(pair, child, num_drafts) for child in children(pair, path))
        numerator = longer - rejected_mass(pair, path, num_drafts)
        denominator = drafted_prob - target + longer
    return numerator / denominator if denominator else undefined


def printed_law(
    pair: ModelPair, num_drafts: int, undefined: Fraction = ZERO, remember_rejected: bool = True
) -> Law:
    """Algorithm 1 acted out for every ordered tuple of drafts and every outcome of every η.

    Raises:
        UndefinedCorrectionError: the text gives no correction token where one is needed.
    """
    law: Law = defaultdict(Fraction)
    possible = [path for path in leaves(pair) if draft_prob(pair, path) > 0]
    for drafts in product(possible, repeat=num_drafts):
        weight = prod((draft_prob(pair, path) for path in drafts), start=ONE)
        stops: Law = defaultdict(Fraction)
        _act_out(pair, drafts, 0, 1, 0, (), frozenset(), weight, stops, undefined, remember_rejected)
        for block, mass in stops.items():
            if mass == 0:
                continue
            if len(block) == pair.draft_length:
                row = target_row(pair, block)
            else:
                masses = [rejected_mass(pair, child, num_drafts) for child in children(pair, block)]
                if sum(masses) == 0:
                    raise UndefinedCorrectionError(block)
                row = normalised(masses)
            for token, prob in enumerate(row):
                law[(*block, token)] += mass * prob
    return without_zeros(law)


def _act_out(
    pair: ModelPair,
    drafts: tuple[Path, ...],
    k: int,
    i: int,
    tau: int,
    block: Path,
    rejected: frozenset[Path],
    weight: Fraction,
    stops: Law,
    undefined: Fraction,
    remember_rejected: bool,
) -> None:
    """Draft k stands before its sub-block of length i."""
    if weight == 0:
        return
    if k == len(drafts) or tau == pair.draft_length:
        stops[block] += weight
        return
    if i > pair.draft_length:
        _act_out(
            pair, drafts, k + 1, tau + 1, tau, block, rejected, weight, stops, undefined, remember_rejected
        )
        return
    prefix = drafts[k][:i]
    accept = acceptance(pair, prefix, len(drafts), undefined)
    if prefix in rejected and remember_rejected:
        accept = ZERO
    rest = (stops, undefined, remember_rejected)
    _act_out(pair, drafts, k, i + 1, i, prefix, rejected, weight * accept, *rest)
    _act_out(pair, drafts, k, i + 1, tau, block, rejected | {prefix}, weight * (1 - accept), *rest)


def test_law_as_printed() -> None:
    """R equals Algorithm 1 with its set H acted out; where the text gives no law, none is given."""
    defined, undefined = 0, 0
    for case in small_cases():
        try:
            expected = printed_law(case.pair, case.num_drafts)
        except UndefinedCorrectionError:
            undefined += 1
            law = output_law(SpecTrGbv(), case.pair, case.num_drafts)
            assert law.undefined > 0, case
            assert law.undefined + sum(mass.sum() for mass in law.masses) == 1, case
            continue
        defined += 1
        assert law_of(output_law(SpecTrGbv(), case.pair, case.num_drafts)) == expected, case
    assert defined > 40
    assert undefined > 0


def test_law_partner_forgetting_rejected_blocks() -> None:
    """Without H a shared prefix is verified again by the next draft: another law."""
    pair = instances.two_token(1)
    assert printed_law(pair, 2, remember_rejected=False) != law_of(output_law(SpecTrGbv(), pair, 2))
    # A draft twice A (probability 4/9) then accepts it with 1 - (1 - h)^2.
    assert printed_law(pair, 2, remember_rejected=False)[(1,)] < printed_law(pair, 2)[(1,)]


def test_one_draft_is_greedy_block() -> None:
    """At K = 1, Eqs. 2-4 are block_verification's Algorithm 4 and 5, wherever those are defined."""
    for case in small_cases():
        one_draft = law_of(output_law(SpecTrGbv(), case.pair))
        assert one_draft == law_of(output_law(GreedyBlock(), case.pair)), case
        modified = (modified_pair(verifier, case.pair) for verifier in (SpecTrGbv(), GreedyBlock()))
        for one, other in zip(*(pair.target for pair in modified), strict=True):
            assert (one == other).all(), case
    pair = instances.two_token(1)  # partner: not at K = 2
    assert law_of(output_law(SpecTrGbv(), pair, 2)) != law_of(output_law(GreedyBlock(), pair, 2))


def test_acceptance_never_leaves_the_interval() -> None:
    """Eqs. 2 and 3 are in [0, 1] at every node with q > 0, for K = 1, 2, 3 (x φ(y/x) is subadditive)."""
    strictly_inside = 0
    for case in small_cases():
        for depth in range(1, case.pair.draft_length + 1):
            nodes = [case.pair.context(depth, n) for n in range(case.pair.vocab_size**depth)]
            for node, num_drafts in product(nodes, (1, 2, 3)):
                if draft_prob(case.pair, node):
                    h = acceptance(case.pair, node, num_drafts)
                    assert 0 <= h <= 1, (case, node)
                    strictly_inside += 0 < h < 1
    assert strictly_inside > 100


@pytest.mark.parametrize("draft_length", [1, 2])
def test_identical_models_leave_no_correction(draft_length: int) -> None:
    """Two drafts of identical fair coins can all be rejected, and Eq. 4 is 0/0."""
    pair = instances.uniform_equal(draft_length)
    with pytest.raises(UndefinedCorrectionError):
        printed_law(pair, 2)
    certificate = certify(SpecTrGbv(), pair, 2, with_optimum=False)
    assert certificate.undefined > 0
    assert not certificate
    if draft_length == 1:
        # h = 2/3: equal drafts (1/2) are rejected with 1/3, as one sub-block; different ones with 1/9.
        assert certificate.undefined == Fraction(1, 2) * Fraction(1, 3) + Fraction(1, 2) * Fraction(1, 9)
    assert certify(SpecTrGbv(), pair, 1, with_optimum=False).block_efficiency == draft_length + 1


def test_undefined_acceptance_can_matter() -> None:
    """p(a) = 1 > q(a) with equal rows at a: Eq. 2 is 0/0, and the law depends on what it is taken as."""
    half = ["1/2", "1/2"]
    one_more: Any = {(x, y): half for x in (0, 1) for y in (0, 1)}
    pair = ModelPair.from_contexts(
        {(): ["1", "0"], (0,): half, (1,): half} | one_more, {(): half, (0,): half, (1,): half}, 2
    )
    as_zero, as_one = printed_law(pair, 2, ZERO), printed_law(pair, 2, ONE)
    assert as_zero != as_one
    assert law_of(output_law(SpecTrGbv(), pair, 2)) == as_zero
    assert printed_law(pair, 1, ZERO) == printed_law(pair, 1, ONE)


def test_bound_is_equation_5() -> None:
    """Against the sum over all nodes in plain Python; K = 1 gives the sum of min(p, q)."""
    for case in small_cases():
        pair = case.pair
        nodes = [
            pair.context(depth, n)
            for depth in range(1, pair.draft_length + 1)
            for n in range(pair.vocab_size**depth)
        ]
        for num_drafts in (1, 2, 3):
            expected = sum(target_prob(pair, a) - rejected_mass(pair, a, num_drafts) for a in nodes)
            assert conditionally_independent_bound(pair, num_drafts) == expected, case
            as_float = conditionally_independent_bound(pair.to_float(), num_drafts)
            assert as_float == pytest.approx(float(expected), rel=0, abs=1e-12)
        overlap = sum(min(target_prob(pair, a), draft_prob(pair, a)) for a in nodes)
        assert conditionally_independent_bound(pair, 1) == overlap


@pytest.mark.parametrize(
    ("draft_length", "num_drafts", "mean_length", "defect"),
    [(1, 2, "41/60", "3/40"), (1, 3, "1075/1482", "21/247"), (2, 2, "74693/57120", "22499/342720")],
)
def test_it_does_not_attain_its_bound(
    draft_length: int, num_drafts: int, mean_length: str, defect: str
) -> None:
    """Thm 5.3 claims E[τ] = Bound(K); on the two-token example it is smaller (values acted out here)."""
    pair = instances.two_token(draft_length)
    law = output_law(SpecTrGbv(), pair, num_drafts)
    acted_out = printed_law(pair, num_drafts)
    assert law.block_efficiency == sum(len(path) * mass for path, mass in acted_out.items())
    assert law.block_efficiency - 1 == Fraction(mean_length)
    assert law.total_variation == Fraction(defect)
    assert law.block_efficiency - 1 < conditionally_independent_bound(pair, num_drafts)


def test_complete_procedure_is_not_lossless() -> None:
    """Algorithms 1 and 2 together, the output completed by hand: defect 381/3808 at L = 2, K = 2."""
    pair = instances.two_token(2)
    completed: Law = defaultdict(Fraction)
    for output, mass in printed_law(pair, 2).items():
        if len(output) == 1:
            masses = [rejected_mass(pair, child, 2) for child in children(pair, output)]
            row = normalised(masses) if sum(masses) else target_row(pair, output)
            for token, prob in enumerate(row):
                completed[(*output, token)] += mass * prob
        else:
            completed[output[:2]] += mass
    by_hand = sum(abs(completed[path] - target_prob(pair, path)) for path in leaves(pair)) / 2
    assert by_hand == Fraction(381, 3808)
    law = completed_law(SpecTrGbv(), pair, 2)
    first_two = law.reshape(4, 2).sum(axis=1)
    assert first_two.tolist() == [completed[path] for path in leaves(pair)]
    one_draft = completed_law(SpecTrGbv(), pair, 1)  # partner: lossless at K = 1
    assert (one_draft == pair.target_path_probs(3)).all()


@pytest.mark.parametrize("num_drafts", [2, 3])
def test_rounding_makes_no_negative_probability(num_drafts: int) -> None:
    """The same path drafted K times, of models that agree: quotients of two small differences."""
    rng = np.random.default_rng(0)
    target = rng.dirichlet(np.full(3, 0.1), size=(4_000, 1, 4)).repeat(num_drafts, axis=1)
    paths = rng.integers(0, 3, size=(4_000, 1, 3)).repeat(num_drafts, axis=1)
    assert SpecTrGbv().outcome(paths, target, target[:, :, :3]).stop_probs.min() >= 0
