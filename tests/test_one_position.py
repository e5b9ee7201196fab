"""Algorithms that select drafts position by position: kseq, spectr, multi-round rejection and otm."""

from __future__ import annotations

import math
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from law_checks import assert_same_law
from spectheory import certify, instances
from spectheory.algorithms.position_by_position.base import PositionByPosition
from spectheory.algorithms.position_by_position.kseq import (
    KSeq,
    best_division_factor,
    kseq_rule,
    kseq_rule_at,
)
from spectheory.algorithms.position_by_position.multi_round import MultiRound, multi_round_acceptance
from spectheory.algorithms.position_by_position.multi_round_without_replacement import (
    MultiRoundWithoutReplacement,
)
from spectheory.algorithms.position_by_position.otm import OTM
from spectheory.algorithms.position_by_position.spectr import SpecTr
from spectheory.drafts import DraftProcess, Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.law import OutputLaw, output_law
from spectheory.outcome import Outcome
from spectheory.pair import ModelPair
from spectheory.programs import optimal_acceptance, optimum
from spectheory.testing.strategies import pairs
from spectheory.verifier import Verifier

Path = tuple[int, ...]
Law = dict[Path, Any]
# Residuals max(p - q, 0) with more than one token: on two tokens they are point masses, and multi-round
# rejection stays lossless even where its drafts are not what it takes them for.
SPREAD = (["2/5", "2/5", "1/5"], ["1/4", "1/8", "5/8"])
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


# --------------------------------------- the algorithms acted out on explicit trees


class Draw:
    """One token drawn at a node, the row it was drawn from at every context, and what was drawn below."""

    def __init__(self, token: int, model: ModelPair, below: list[Draw]) -> None:
        self.token, self.model, self.below = token, model, below


def row_of(levels: tuple[np.ndarray, ...], context: Path) -> list[Any]:
    """The conditional at a context."""
    number = 0
    for token in context:
        number = number * levels[0].shape[1] + token
    return list(levels[len(context)][number])


def drawn_trees(
    pair: ModelPair, widths: tuple[int, ...], distinct: bool, context: Path = ()
) -> Iterator[tuple[list[Draw], Any]]:
    """Every way to draw the tree below a node, with its probability."""
    if len(context) == len(widths):
        yield [], Fraction(1)
        return
    row, width = row_of(pair.draft, context), widths[len(context)]
    support = [token for token, prob in enumerate(row) if prob > 0]
    for tokens in permutations(support, width) if distinct else product(support, repeat=width):
        prob, left = Fraction(1), Fraction(1)
        for token in tokens:
            prob *= row[token] / left
            left -= row[token] if distinct else 0
        below = [list(drawn_trees(pair, widths, distinct, (*context, token))) for token in tokens]
        for choice in product(*below):
            draws = [Draw(token, pair, sub) for token, (sub, _) in zip(tokens, choice, strict=True)]
            yield draws, prob * prod(weight for _, weight in choice)


def drawn_paths(pair: ModelPair, models: list[ModelPair]) -> Iterator[tuple[list[Draw], Any]]:
    """One path from each model, as trees that never branch."""
    chain = (1,) * pair.draft_length
    chains = [[(draws[0], prob) for draws, prob in drawn_trees(model, chain, False)] for model in models]
    for choice in product(*chains):
        yield [draw for draw, _ in choice], prod(prob for _, prob in choice)


def acted_out(
    pair: ModelPair,
    trees: Iterator[tuple[list[Draw], Any]],
    rule: Callable[..., list[Any]],
    keep: int | None = None,
) -> Law:
    """spectr2023 Algorithm 3 on every tree, draw by draw; ``rule`` gives the law of Y at one node.

    The rule is called with p, the rows of the draws and their tokens.  ``keep`` limits the survivors.
    """
    law: Law = defaultdict(Fraction)

    def select(context: Path, draws: list[Draw], weight: Any) -> None:
        target = row_of(pair.target, context)
        rows = [row_of(draw.model.draft, context) for draw in draws]
        for token, mass in enumerate(rule(target, rows, [draw.token for draw in draws])):
            survivors = [draw for draw in draws if draw.token == token][:keep]
            extended = (*context, token)
            if mass == 0:
                continue
            if not survivors:
                law[extended] += weight * mass
            elif len(extended) == pair.draft_length:
                for extra, prob in enumerate(row_of(pair.target, extended)):
                    law[(*extended, extra)] += weight * mass * prob
            else:
                select(extended, [draw for parent in survivors for draw in parent.below], weight * mass)

    for draws, prob in trees:
        select((), draws, prob)
    return {path: mass for path, mass in law.items() if mass != 0}


def multi_round_rule(target: list[Any], rows: list[list[Any]], tokens: list[int]) -> list[Any]:
    """Accept or reject the tokens in turn against what is left of the target."""
    law, undecided, left = [Fraction(0)] * len(target), Fraction(1), list(target)
    for row, token in zip(rows, tokens, strict=True):
        accept = min(Fraction(1), left[token] / row[token])
        law[token] += undecided * accept
        undecided *= 1 - accept
        if undecided == 0:
            return law
        left = [max(p - q, Fraction(0)) for p, q in zip(left, row, strict=True)]
        left = [mass / sum(left) for mass in left]
    return [mass + undecided * rest for mass, rest in zip(law, left, strict=True)]


def without_replacement_rule(target: list[Any], rows: list[list[Any]], tokens: list[int]) -> list[Any]:
    """Multi-round rejection against rows from which the earlier tokens were taken out."""
    reduced = []
    for number, row in enumerate(rows):
        left = [Fraction(0) if token in tokens[:number] else prob for token, prob in enumerate(row)]
        reduced.append([mass / sum(left) for mass in left])
    return multi_round_rule(target, reduced, tokens)


def kseq_rule_by_hand(target: list[Any], rows: list[list[Any]], tokens: list[int]) -> list[Any]:
    """spectr2023 Algorithm 2 with ρ* by bracketing."""
    rho = bracketed_root([float(p) for p in target], [float(q) for q in rows[0]], len(tokens))
    accepted = [min(float(q), float(p) / rho) for p, q in zip(target, rows[0], strict=True)]
    beta = sum(accepted)
    p_acc = 1 - (1 - beta) ** len(tokens)
    law, undecided = [0.0] * len(target), 1.0
    for token in tokens:
        accept = min(1.0, float(target[token]) / (rho * float(rows[0][token])))
        law[token] += undecided * accept
        undecided *= 1 - accept
    residual = [
        max(float(p) - (a / beta * p_acc if beta else 0.0), 0.0)
        for p, a in zip(target, accepted, strict=True)
    ]
    if undecided > 1e-14 and sum(residual) > 0:
        law = [mass + undecided * rest / sum(residual) for mass, rest in zip(law, residual, strict=True)]
    return law


def bracketed_root(target: list[float], draft: list[float], num_drafts: int) -> float:
    """ρ* as the root of S(β(ρ)) = ρ, S(β) = sum_{j<n} (1-β)^j: Eq. 6 divided by β, without cancellation."""

    def excess(rho: float) -> float:
        beta = math.fsum(min(q, p / rho) for p, q in zip(target, draft, strict=True))
        return math.fsum((1 - beta) ** j for j in range(num_drafts)) - rho

    beta_at_one = sum(map(min, target, draft))
    if num_drafts == 1 or beta_at_one == 0 or excess(1.0) <= 1e-15:
        return 1.0
    return float(brentq(excess, 1.0, float(num_drafts), xtol=1e-15, rtol=1e-15))


def mapping_of(law: OutputLaw) -> Law:
    """The package's law as a mapping, zeros left out."""
    return {
        law.pair.context(depth, number): mass
        for depth, masses in enumerate(law.masses, start=1)
        for number, mass in enumerate(masses)
        if mass != 0
    }


def assert_close(found: Law, expected: Law, tolerance: float = 1e-12) -> None:
    """Two mappings of outputs to probabilities, up to rounding."""
    for path in found.keys() | expected.keys():
        assert abs(float(found.get(path, 0)) - float(expected.get(path, 0))) <= tolerance, path


def random_pairs(
    vocab_size: int, draft_length: int, how_many: int, seed: int, **settings: Any
) -> list[ModelPair]:
    """Random exact pairs; small weights make zeros and ties frequent."""
    return [
        instances.random_rational(seed + number, vocab_size, draft_length, **settings)
        for number in range(how_many)
    ]


def edge_pairs(draft_length: int) -> list[ModelPair]:
    """Zeros, ties, equal, disjoint and deterministic models."""
    names = (
        "two_token",
        "equal_models",
        "disjoint_supports",
        "point_masses",
        "partial_overlap",
        "uniform_equal",
    )
    return [instances.NAMED[name](draft_length) for name in names]


# ------------------------------------------------- one draft: everything is token


@pytest.mark.parametrize("verifier", [MultiRound(), OTM(), KSeq(Fraction(1)), KSeq(), SpecTr()], ids=repr)
@pytest.mark.parametrize("draft_length", [1, 2])
def test_one_draft_is_token_verification(verifier: Verifier, draft_length: int) -> None:
    """K = 1: the law of token, exactly where the arithmetic is."""
    if isinstance(verifier, KSeq) and draft_length > 1:
        with pytest.raises(InvalidInputError, match="draft_length 1, got draft_length 2; use 'spectr'"):
            output_law(verifier, instances.two_token(2))
        return
    for pair in [*edge_pairs(draft_length), *random_pairs(3, draft_length, 12, 500)]:
        expected = output_law("token", pair if verifier.exact else pair.to_float())
        assert_same_law(output_law(verifier, pair), expected, 0.0 if verifier.exact else 1e-12)


def test_one_distinct_draft_is_token_verification() -> None:
    """Widths of one: multi_round_without_replacement is token exactly."""
    for pair in [*edge_pairs(2), *random_pairs(3, 2, 12, 520)]:
        found = output_law(MultiRoundWithoutReplacement(), pair, process=WithoutReplacement((1, 1)))
        assert_same_law(found, output_law("token", pair))


def test_one_draft_partner_two_drafts_are_not_token() -> None:
    """With K = 2 every one of them differs from token."""
    pair = instances.two_token(1)
    token = output_law("token", pair)
    for verifier in (MultiRound(), OTM(), KSeq(Fraction(3, 2)), KSeq(), SpecTr()):
        with pytest.raises(AssertionError):
            assert_same_law(output_law(verifier, pair, 2), token, 1e-3)


# -------------------------------------------------------------------- K-SEQ: ρ*


def dirichlet_rows(seed: int, how_many: int = 60) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows of 2..40 tokens, among them sparse ones and models that hardly overlap."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(how_many):
        size = int(rng.integers(2, 41))
        target, draft = rng.dirichlet(np.full(size, (0.1, 0.5, 2.0)[number % 3]), size=2)
        rows.append((target, draft))
    return rows


@pytest.mark.parametrize("num_drafts", [2, 3, 4, 8, 16])
def test_division_factor_is_brentqs_to_1e_14(num_drafts: int) -> None:
    """Eq. 6 by scipy's bracketing of S(β(ρ)) = ρ: relative error below 1e-14, small overlaps included."""
    smallest = 1.0
    for target, draft in dirichlet_rows(900 + num_drafts):
        expected = bracketed_root(list(target), list(draft), num_drafts)
        found = float(best_division_factor(target, draft, np.array(float(num_drafts))))
        assert abs(found - expected) <= 1e-14 * expected
        smallest = min(smallest, float(np.minimum(target, draft).sum()))
    assert smallest < 0.05


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


def test_division_factor_partner_brentq_notices_1e_12() -> None:
    """The comparison is sharp: a factor off by 1e-12 is another number."""
    two = [1 / 3, 2 / 3]
    found = float(best_division_factor(np.array(two), np.array(two[::-1]), np.array(2.0)))
    assert abs(found - bracketed_root(two, two[::-1], 2)) <= 1e-14
    assert abs(found * (1 + 1e-12) - bracketed_root(two, two[::-1], 2)) > 1e-13


@pytest.mark.parametrize("num_drafts", [1, 2, 3, 4, 8])
def test_kseq_acceptance_guarantee(num_drafts: int) -> None:
    """spectr2023 Theorem 1 and Eq. 12: acceptance >= (1 - (1 - 1/K)^K) α_K >= (1 - 1/e) α_K, at most α_K."""
    for target, draft in dirichlet_rows(950 + num_drafts, 40):
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


# ------------------------------------------------------------ K-SEQ: the verifier


def factors_above(pair: ModelPair, num_drafts: int) -> list[Fraction]:
    """Rational division factors at and above ρ*."""
    rows = pair.target[0][0].astype(float), pair.draft[0][0].astype(float)
    root = float(best_division_factor(*rows, np.array(float(num_drafts))))
    return [
        Fraction(math.ceil(root * 10**6), 10**6),
        Fraction(math.ceil(root * 7), 7),
        Fraction(num_drafts),
        Fraction(3 * num_drafts),
    ]


@pytest.mark.parametrize(
    ("vocab_size", "num_drafts", "how_many"), [(2, 2, 30), (3, 2, 30), (2, 3, 25), (4, 3, 15)]
)
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


def test_unchecked_factor_gives_its_exact_defect() -> None:
    """Two-token pair, K = 2, ρ = 1: by hand.  Drafts AA (4/9) reach the residual with probability 1/4.

    A is accepted with probability 1/2, B always: P(Y = A) = 2/3 * 1/2 + 2/3 * 1/2 * 2/3 * 1/2 = 4/9,
    and the residual is B only, so that A comes out with 4/9 instead of 1/3.
    """
    law = output_law(KSeq(1, checked=False), instances.two_token(1), 2)
    assert law.prefix_law(1)[0] == Fraction(4, 9)
    assert law.total_variation == Fraction(1, 9)


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


def test_kseq_is_spectr_at_one_position() -> None:
    """The same law, i.i.d. and on a tree of one level."""
    for pair in [*edge_pairs(1), *random_pairs(3, 1, 10, 660)]:
        for process in (Iid(2), Iid(3), PrefixTree((3,))):
            assert_same_law(
                output_law(KSeq(), pair, process=process), output_law(SpecTr(), pair, process=process)
            )


def test_kseq_exactness_follows_the_factor() -> None:
    """Rational ρ: a rational law; ρ* and a float: float64.  The class attribute stays as it was."""
    pair = instances.two_token(1)
    assert [KSeq(factor).exact for factor in (None, 1.5, 2, Fraction(3, 2))] == [False, False, True, True]
    assert output_law(KSeq(Fraction(3, 2)), pair, 2).pair.is_exact
    assert not output_law(KSeq(1.5), pair, 2).pair.is_exact
    assert_same_law(output_law(KSeq(1.5), pair, 2), output_law(KSeq(Fraction(3, 2)), pair.to_float(), 2))
    root = float(best_division_factor(np.array([1 / 3, 2 / 3]), np.array([2 / 3, 1 / 3]), np.array(2.0)))
    assert_same_law(output_law(KSeq(root), pair, 2), output_law(KSeq(), pair, 2), 1e-12)


@pytest.mark.parametrize("factor", [0.5, 0, -1, math.nan, math.inf, True, "2", Fraction(1, 2)])
def test_bad_division_factors_are_refused(factor: Any) -> None:
    """The text names the value and what to do."""
    with pytest.raises(InvalidInputError, match="division_factor must be a finite number of at least 1"):
        KSeq(factor)


# -------------------------------------------------------- multi-round rejection


@pytest.mark.parametrize(
    ("draft_length", "num_drafts", "efficiency"),
    [(1, 2, Fraction(16, 9)), (2, 2, Fraction(7, 3)), (2, 3, Fraction(1816, 729))],
)
def test_multi_round_reference_values(draft_length: int, num_drafts: int, efficiency: Fraction) -> None:
    """theory.md §5: the two-token pair."""
    law = output_law(MultiRound(), instances.two_token(draft_length), num_drafts)
    assert law.block_efficiency == efficiency
    assert law.total_variation == 0


def test_multi_round_reference_partner_one_survivor_earns_less() -> None:
    """Following the accepted draft alone, not the later ones that share its token, misses 7/3."""
    pair = instances.two_token(2)

    def efficiency(keep: int | None) -> Fraction:
        law = acted_out(pair, drawn_trees(pair, (2, 1), False), multi_round_rule, keep)
        return sum((len(path) * mass for path, mass in law.items()), Fraction(0))

    assert efficiency(None) == Fraction(7, 3)
    assert efficiency(1) < Fraction(7, 3)


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_multi_round_at_one_position_accepts_as_its_closed_form(num_drafts: int) -> None:
    """Acceptance 1 - prod_k (1 - sum min(p_k, q)), exactly; 13/18 for the three-token pair (theory.md §3)."""
    for pair in [*edge_pairs(1), *random_pairs(3, 1, 12, 680)]:
        closed = multi_round_acceptance(pair.target[0][0], pair.draft[0][0], num_drafts)
        assert output_law(MultiRound(), pair, num_drafts).block_efficiency == 1 + closed
        assert closed <= optimal_acceptance(pair.target[0][0], pair.draft[0][0], num_drafts).value
    assert output_law(MultiRound(), instances.three_token_reversed(1), 2).block_efficiency == 1 + Fraction(
        13, 18
    )


SIZES = [
    # V, widths or K paths, how many
    (2, (2, 1), 12),
    (2, (1, 2), 12),
    (2, (2, 2), 8),
    (3, (2,), 12),
    (3, (3,), 6),
    (3, (2, 1), 4),
    (3, (1, 2), 4),
    (2, (1, 2, 1), 4),
    (2, (2, 1, 1), 4),
]


@pytest.mark.parametrize(("vocab_size", "widths", "how_many"), SIZES)
def test_laws_on_prefix_trees_are_those_acted_out(
    vocab_size: int, widths: tuple[int, ...], how_many: int
) -> None:
    """multi_round exactly and spectr to 1e-12, draw by draw on explicit trees; both lossless."""
    length = len(widths)
    cases = random_pairs(vocab_size, length, how_many, 700)
    for pair in [*(edge_pairs(length) if prod(widths) == 2 and length < 3 else []), *cases]:
        process = PrefixTree(widths)
        law = output_law(MultiRound(), pair, process=process)
        assert mapping_of(law) == acted_out(pair, drawn_trees(pair, widths, False), multi_round_rule)
        assert law.total_variation == 0
        law = output_law(SpecTr(), pair, process=process)
        assert_close(
            mapping_of(law),
            acted_out(pair, drawn_trees(pair, widths, False), kseq_rule_by_hand),
            1e-12,
        )
        assert law.total_variation < 1e-12


@pytest.mark.parametrize(
    ("vocab_size", "widths", "how_many"),
    [
        (2, (2,), 10),
        (3, (2,), 25),
        (3, (3,), 15),
        (4, (3,), 10),
        (3, (2, 1), 15),
        (3, (1, 2), 15),
        (3, (2, 2), 12),
    ],
)
def test_multi_round_without_replacement_is_lossless_and_as_acted_out(
    vocab_size: int, widths: tuple[int, ...], how_many: int
) -> None:
    """102 random pairs, exactly; zeros wherever every draft row still has enough tokens."""
    process, used = WithoutReplacement(widths), 0
    for number in range(20 * how_many):
        zeros = 0.15 if vocab_size > max(widths) else 0.0
        pair = instances.random_rational(800 + number, vocab_size, len(widths), zero_probability=zeros)
        support = min(int((level > 0).sum(axis=1).min()) for level in pair.draft)
        if support < max(widths):
            continue
        law = output_law(MultiRoundWithoutReplacement(), pair, process=process)
        assert law.total_variation == 0
        expected = acted_out(pair, drawn_trees(pair, widths, True), without_replacement_rule)
        assert mapping_of(law) == expected
        used += 1
        if used == how_many:
            break
    assert used == how_many


def test_multi_round_without_replacement_edge_cases() -> None:
    """Equal models accept the first draft, disjoint supports nothing; with all tokens drawn one is."""
    equal, disjoint = instances.equal_models(1), instances.disjoint_supports(1)
    for widths in ((1,), (2,)):
        process = WithoutReplacement(widths)
        for pair, efficiency in ((equal, 2), (disjoint, 1)):
            law = output_law(MultiRoundWithoutReplacement(), pair, process=process)
            assert (law.block_efficiency, law.total_variation) == (efficiency, 0)
    whole = output_law(
        MultiRoundWithoutReplacement(), instances.two_token(2), process=WithoutReplacement((2, 2))
    )
    assert whole.block_efficiency == 3


def test_without_replacement_partner_the_wrong_rows_are_not_lossless() -> None:
    """Multi-round rejection with q where the draft came from q without the earlier token: a defect."""

    class WithReplacementRows(MultiRound):
        draft_processes = frozenset({"without_replacement"})

    pair = ModelPair.context_free_pair(*SPREAD, 1)
    law = output_law(WithReplacementRows(), pair, process=WithoutReplacement((2,)))
    assert law.total_variation > Fraction(1, 100)


def test_multi_round_without_replacement_needs_its_process() -> None:
    """Other processes are refused by name; paths without a process too, because their draws are unknown."""
    verifier = MultiRoundWithoutReplacement()
    for process in (Iid(2), PrefixTree((2,)), PerPath((instances.two_token(1),) * 2)):
        with pytest.raises(
            InvalidInputError, match=f"not valid for '{process.name}' drafts; it takes without"
        ):
            output_law(verifier, instances.two_token(1), process=process)
    half = np.full((2, 2, 2), 0.5)
    with pytest.raises(InvalidInputError, match="set it up with bind"):
        verifier.outcome(np.array([[0], [1]]), half, half[:, :1])


def test_a_verifier_set_up_for_other_paths_is_refused() -> None:
    """The draws of two paths say nothing about three."""
    rows = np.full((3, 2, 2), 0.5)
    for verifier in (SpecTr(), MultiRound(), OTM()):
        with pytest.raises(InvalidInputError, match="draws 2 paths, but got 3; set it up with bind"):
            verifier.bind(PrefixTree((2,))).outcome(np.array([[0], [1], [1]]), rows, rows[:, :1])


@pytest.mark.parametrize(
    ("vocab_size", "draft_length", "num_drafts", "how_many"),
    [(2, 1, 3, 10), (2, 2, 2, 12), (3, 1, 2, 12), (3, 2, 2, 4)],
)
def test_multi_round_with_a_model_per_path(
    vocab_size: int, draft_length: int, num_drafts: int, how_many: int
) -> None:
    """spectr2023 footnote 8: every path from its own model, each rejected against its own row; exactly."""
    for number, pair in enumerate(random_pairs(vocab_size, draft_length, how_many, 1000)):
        models = [
            instances.random_rational(2000 + 10 * number + k, vocab_size, draft_length)
            for k in range(num_drafts)
        ]
        law = output_law(MultiRound(), pair, process=PerPath(tuple(models)))
        assert law.total_variation == 0
        assert mapping_of(law) == acted_out(pair, drawn_paths(pair, models), multi_round_rule)


def test_model_per_path_partner_one_row_for_all_is_not_lossless() -> None:
    """Using the first model's row for every path breaks it; equal models make it i.i.d."""

    class FirstRowForAll(MultiRound):
        def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
            return super().outcome(paths, target_rows, np.repeat(draft_rows[..., :1, :, :], 2, axis=-3))

    pair = ModelPair.context_free_pair(*SPREAD, 1)
    models = (pair, ModelPair.context_free_pair(SPREAD[0], ["1/8", "1/2", "3/8"], 1))
    assert output_law(MultiRound(), pair, process=PerPath(models)).total_variation == 0
    assert output_law(FirstRowForAll(), pair, process=PerPath(models)).total_variation > Fraction(1, 100)
    same = output_law(MultiRound(), pair, process=PerPath((pair, pair)))
    assert_same_law(same, output_law(MultiRound(), pair, 2))


@pytest.mark.parametrize(
    ("vocab_size", "draft_length", "num_drafts", "how_many"),
    [(2, 1, 3, 30), (2, 2, 2, 40), (2, 2, 3, 20), (3, 2, 2, 15), (4, 1, 3, 15)],
)
def test_multi_round_is_lossless_on_iid_drafts(
    vocab_size: int, draft_length: int, num_drafts: int, how_many: int
) -> None:
    """120 random pairs and the edge cases: target-matching exactly, no better than the optimum at L = 1."""
    for pair in [
        *random_pairs(vocab_size, draft_length, how_many, 1200),
        *edge_pairs(draft_length)[::num_drafts],
    ]:
        law = output_law(MultiRound(), pair, num_drafts)
        assert law.total_variation == 0
        assert all(mass >= 0 for masses in law.masses for mass in masses)
        if draft_length == 1:
            best = optimal_acceptance(pair.target[0][0], pair.draft[0][0], num_drafts).value
            assert law.block_efficiency <= 1 + best


# --------------------------------------------- draws on a tree, and what goes wrong


class CountsRepeats:
    """Makes a position-by-position verifier treat repeated draws as independent drafts."""

    def __init__(self, verifier: PositionByPosition) -> None:
        self.verifier, self.name, self.exact = verifier, f"{verifier.name}_repeats", verifier.exact

    def outcome(self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Outcome:
        return self.verifier.outcome(paths, target_rows, draft_rows)


@pytest.mark.parametrize("widths", [(1, 2), (2, 2)])
def test_draws_partner_counting_repeats_breaks_validity(widths: tuple[int, ...]) -> None:
    """The paths below one node share its draw; as independent drafts they give TV far above rounding."""
    pair = ModelPair.context_free_pair(*SPREAD, 2)
    process = PrefixTree(widths)
    for verifier in (SpecTr(), MultiRound()):
        assert output_law(verifier, pair, process=process).total_variation < 1e-12
        assert output_law(CountsRepeats(verifier), pair, process=process).total_variation > 1e-2
    wrong = output_law(
        CountsRepeats(OTM()), instances.two_token(2), process=PrefixTree((1, 2))
    ).total_variation
    assert wrong > Fraction(1, 100)


def test_trees_of_iid_paths_agree_with_iid() -> None:
    """PrefixTree((K, 1)) is Iid(K): the same laws."""
    for pair in random_pairs(2, 2, 6, 1300):
        for verifier in (SpecTr(), MultiRound(), OTM()):
            assert_same_law(
                output_law(verifier, pair, process=PrefixTree((3, 1))), output_law(verifier, pair, 3), 1e-15
            )


@given(pair=pairs(exact=True), width=st.integers(1, 2))
def test_prefix_trees_with_any_pair(pair: ModelPair, width: int) -> None:
    """Branching at the last depth, pairs with zeros, ties and a single token; V <= 3, L <= 2."""
    process = PrefixTree((1,) * (pair.draft_length - 1) + (width,))
    assert output_law(MultiRound(), pair, process=process).total_variation == 0
    assert output_law(OTM(), pair, process=process).total_variation == 0
    assert output_law(SpecTr(), pair, process=process).total_variation < 1e-12


@pytest.mark.parametrize("process", [PerPath((instances.two_token(2),) * 2), WithoutReplacement((2, 1))])
@pytest.mark.parametrize("verifier", [SpecTr(), OTM()], ids=repr)
def test_processes_that_are_not_meant_are_refused(verifier: Verifier, process: DraftProcess) -> None:
    """K-SEQ and the plan from q^n suppose drafts from one q, with replacement."""
    with pytest.raises(InvalidInputError, match=f"not valid for '{process.name}' drafts"):
        output_law(verifier, instances.two_token(2), process=process)


# --------------------------------------------------------------------------- OTM


@pytest.mark.parametrize(
    ("vocab_size", "num_drafts", "how_many"), [(2, 2, 30), (2, 3, 20), (3, 2, 30), (3, 3, 12), (4, 2, 12)]
)
def test_otm_at_one_position_is_optimal(vocab_size: int, num_drafts: int, how_many: int) -> None:
    """104 pairs: block efficiency 1 + α_K, exactly, with α_K from the min cut; lossless."""
    for pair in [*edge_pairs(1), *random_pairs(vocab_size, 1, how_many, 1400)]:
        law = output_law(OTM(), pair, num_drafts)
        best = optimal_acceptance(pair.target[0][0], pair.draft[0][0], num_drafts).value
        assert law.total_variation == 0
        assert law.block_efficiency == 1 + best


def test_otm_reference_values() -> None:
    """Two-token pair, L = 1, K = 2: 17/9, the multi-path optimum (theory.md §5)."""
    pair = instances.two_token(1)
    certificate = certify(OTM(), pair, 2)
    assert certificate.block_efficiency == Fraction(17, 9) == certificate.optimum
    assert certificate.is_valid
    assert output_law(OTM(), pair, 3).block_efficiency == 2
    assert output_law(OTM(), instances.three_token_reversed(1), 3).block_efficiency == 1 + Fraction(199, 216)


def test_otm_partner_the_others_are_below_it() -> None:
    """K-SEQ at any factor and multi-round rejection stay strictly below the plan on the two-token pair."""
    pair = instances.two_token(1)
    best = output_law(OTM(), pair, 2).block_efficiency
    assert output_law(MultiRound(), pair, 2).block_efficiency < best
    for factor in (None, Fraction(3, 2), Fraction(7, 4), 2, 3):
        assert output_law(KSeq(factor), pair, 2).block_efficiency < best


@pytest.mark.parametrize("process", [Iid(2), Iid(3), PrefixTree((1, 2)), PrefixTree((2, 2))])
def test_otm_on_longer_drafts_is_lossless(process: DraftProcess) -> None:
    """L = 2, exactly; never above the optimum of all valid verifiers (i.i.d. drafts)."""
    for pair in [*random_pairs(2, 2, 8, 1500), instances.point_masses(2), instances.two_token(2)]:
        law = output_law(OTM(), pair, process=process)
        assert law.total_variation == 0
        if process == Iid(2):
            assert law.block_efficiency <= optimum(pair, 2).value


def test_otm_at_two_positions_is_not_the_block_optimum() -> None:
    """Position by position is not optimal for the block: below the multi-path optimum at L = 2."""
    pair = instances.two_token(2)
    assert output_law(OTM(), pair, 2).block_efficiency < optimum(pair, 2).value


def test_otm_float_rows_agree_with_exact_ones() -> None:
    """The float plan is lossless to rounding and as good as the exact one."""
    for pair in random_pairs(3, 1, 10, 1600):
        exact, in_float = output_law(OTM(), pair, 2), output_law(OTM(), pair.to_float(), 2)
        assert in_float.total_variation < 1e-12
        assert in_float.block_efficiency == pytest.approx(float(exact.block_efficiency), abs=1e-9)


def test_otm_refuses_plans_that_are_too_large() -> None:
    """The text says the size, the limit and what to do instead; the limit can be moved both ways."""
    pair = instances.uniform(12, 3)
    with pytest.raises(EnumerationTooLargeError) as error:
        output_law(OTM(), pair, 3)
    for part in (
        "V^(K+1) = 12^4 = 20736 entries",
        "the limit is 20000",
        "use 'spectr'",
        "raise max_variables",
    ):
        assert part in str(error.value)
    with pytest.raises(EnumerationTooLargeError, match=r"2\^3 = 8 entries, the limit is 7; use 'spectr' or"):
        output_law(OTM(max_variables=7), instances.two_token(1), 2)
    assert output_law(OTM(max_variables=8), instances.two_token(1), 2).total_variation == 0


def test_otm_takes_drafts_of_any_probability_but_zero() -> None:
    """A tuple whose probability underflows leaves the law lossless; an impossible one is refused."""
    pair = ModelPair.context_free_pair([0.5, 0.5], [1.0, 1e-200], 1)
    assert output_law(OTM(), pair, 2).total_variation < 1e-12
    rows = np.array([[[0.5, 0.5], [0.5, 0.5]]])
    with pytest.raises(
        InvalidInputError, match=r"drafts \(1,\) have probability 0 under the draft row \[1.0, 0.0\]"
    ):
        OTM().outcome(np.array([[1]]), rows, np.array([[[1.0, 0.0]]]))


# ------------------------------------------------------------- torch, and memory


def batch_of(pair: ModelPair, process: DraftProcess, batch: int, seed: int) -> tuple[np.ndarray, ...]:
    """Random tuples of the process with their rows, paths [batch, K, L]."""
    chunks = list(process.tuples(pair, 1000))
    leaves = np.concatenate([chunk.leaves for chunk in chunks])
    probs = np.concatenate([chunk.probs for chunk in chunks]).astype(float)
    chosen = leaves[np.random.default_rng(seed).choice(len(leaves), size=batch, p=probs / probs.sum())]
    size, length = pair.vocab_size, pair.draft_length
    prefixes = [chosen // size ** (length - depth) for depth in range(length + 1)]
    paths = np.stack([prefix % size for prefix in prefixes[1:]], axis=-1)
    target_rows = np.stack([pair.target[depth][prefixes[depth]] for depth in range(length + 1)], axis=-2)
    draft_rows = np.stack(
        [
            np.stack(
                [process.draft_levels(pair, k)[i][prefixes[i][:, k]] for k in range(process.num_drafts)],
                axis=1,
            )
            for i in range(length)
        ],
        axis=-2,
    )
    return paths, target_rows, draft_rows


FLOAT_MODELS = tuple(instances.random_float(60 + k, 3, 2) for k in range(2))
TORCH_CASES: list[tuple[Verifier, ModelPair, DraftProcess]] = [
    (KSeq(), instances.random_float(1, 5, 1), Iid(3)),
    (KSeq(2.5), instances.random_float(1, 5, 1), Iid(2)),
    (KSeq(Fraction(5, 2)), instances.partial_overlap(1).to_float(), PrefixTree((2,))),
    (SpecTr(), instances.random_float(2, 3, 2), Iid(3)),
    (SpecTr(), instances.random_float(3, 3, 2), PrefixTree((2, 2))),
    (SpecTr(), instances.partial_overlap(2).to_float(), PrefixTree((1, 2))),
    (MultiRound(), instances.random_float(4, 3, 2), Iid(3)),
    (MultiRound(), instances.random_float(5, 3, 2), PrefixTree((2, 2))),
    (MultiRound(), instances.disjoint_supports(2).to_float(), PrefixTree((2, 1))),
    (MultiRound(), FLOAT_MODELS[0], PerPath(FLOAT_MODELS)),
    (MultiRoundWithoutReplacement(), instances.random_float(6, 4, 2), WithoutReplacement((2, 2))),
    (MultiRoundWithoutReplacement(), instances.equal_models(2).to_float(), WithoutReplacement((3, 1))),
    (OTM(), instances.random_float(7, 3, 2), PrefixTree((2, 1))),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("verifier", "pair", "process"), TORCH_CASES, ids=[f"{v.name}-{p.name}" for v, _, p in TORCH_CASES]
)
def test_torch_agrees_with_numpy(
    verifier: Verifier, pair: ModelPair, process: DraftProcess, device: str
) -> None:
    """Batches of 8 x 6 tuples: stop probabilities and the rows of all stops made, to 1e-12."""
    arrays = [array.reshape((8, 6, *array.shape[1:])) for array in batch_of(pair, process, 48, seed=5)]
    verifier = verifier.bind(process)
    expected = verifier.outcome(*arrays)
    found = verifier.outcome(*(torch.from_numpy(array).to(device) for array in arrays))
    assert found.stop_probs.shape == (8, 6, process.num_drafts, pair.draft_length + 1)
    assert found.stop_probs.dtype == torch.float64
    assert found.stop_probs.device.type == device
    np.testing.assert_allclose(found.stop_probs.cpu().numpy(), expected.stop_probs, rtol=0, atol=1e-12)
    np.testing.assert_allclose(expected.stop_probs.sum(axis=(-2, -1)), 1, rtol=0, atol=1e-12)
    compared = 0
    for path_index, length in np.ndindex(expected.stop_probs.shape[2:]):
        where = np.full((8, 6), path_index), np.full((8, 6), length)
        rows = found.correction(*(torch.from_numpy(index).to(device) for index in where)).cpu().numpy()
        stops = expected.stop_probs[:, :, path_index, length] > 1e-9
        np.testing.assert_allclose(rows[stops], expected.correction(*where)[stops], rtol=0, atol=1e-12)
        np.testing.assert_allclose(rows[stops].sum(axis=-1), 1, rtol=0, atol=1e-12)
        compared += int(stops.sum())
    assert compared >= 48


@pytest.mark.parametrize("device", DEVICES)
def test_float32_rows_stay_float32(device: str) -> None:
    """Rows in float32, whose sums are off by 1e-7: float32 outcomes near the float64 ones."""
    for verifier, pair, process in TORCH_CASES:
        configured = verifier.bind(process)
        paths, *rows = batch_of(pair, process, 48, seed=6)
        expected = configured.outcome(paths, *rows).expected_tokens()
        narrow = [torch.from_numpy(row).to(device).float() for row in rows]
        found = configured.outcome(torch.from_numpy(paths).to(device), *narrow)
        assert found.stop_probs.dtype == torch.float32
        np.testing.assert_allclose(found.stop_probs.sum(dim=(-2, -1)).cpu(), 1, rtol=0, atol=1e-5)
        if isinstance(verifier, OTM):  # another of the optimal plans may be chosen: the mean is the same
            continue
        np.testing.assert_allclose(found.expected_tokens().cpu().numpy(), expected, rtol=0, atol=2e-4)


def test_torch_partner_another_process_disagrees() -> None:
    """On the same paths, the verifier that was not told about the tree gives other numbers."""
    pair = instances.random_float(3, 3, 2)
    arrays = batch_of(pair, PrefixTree((2, 2)), 48, seed=5)
    told = SpecTr().bind(PrefixTree((2, 2))).outcome(*arrays)
    assert np.abs(told.stop_probs - SpecTr().outcome(*arrays).stop_probs).max() > 1e-3


@pytest.mark.parametrize("verifier", [SpecTr(), MultiRound()], ids=repr)
def test_memory_does_not_grow_with_the_draft_length(verifier: Verifier) -> None:
    """V = 30 000: from L = 2 to L = 8 the peak beyond the given rows grows by less than a third.

    Correction rows at all prefixes would be [K, L+1, V], three times as large.
    """
    peaks = []
    for length in (2, 8):
        rng = np.random.default_rng(length)
        paths = rng.integers(0, 30_000, size=(4, length))
        rows = rng.random((4, length + 1, 30_000))
        rows /= rows.sum(axis=-1, keepdims=True)
        draft_rows = rows[:, :-1, ::-1].copy()
        tracemalloc.start()
        outcome = verifier.outcome(paths, rows, draft_rows)
        outcome.correction(np.array(1), np.array(length))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] * 4 / 3


def test_laws_do_not_depend_on_how_tokens_are_named() -> None:
    """Reversing the vocabulary reverses the law of the algorithms that look at probabilities only."""
    for pair in random_pairs(3, 1, 6, 1700):
        turned = ModelPair(
            tuple(level[::-1, ::-1] if level.shape[0] > 1 else level[:, ::-1] for level in pair.target),
            tuple(level[:, ::-1] for level in pair.draft),
            pair.vocab,
        )
        for process in (Iid(2), PrefixTree((3,))):
            one, other = (output_law(MultiRound(), each, process=process) for each in (pair, turned))
            assert one.block_efficiency == other.block_efficiency
            assert (one.masses[0] == other.masses[0][::-1]).all()


def test_drafts_that_all_carry_one_token() -> None:
    """Drafts that all carry one token: it is accepted or the round ends, whatever their number."""
    pair = instances.two_token(1)
    for verifier, num_drafts in ((MultiRound(), 2), (MultiRound(), 3), (OTM(), 2), (KSeq(2), 2)):
        for token in (0, 1):
            paths = np.full((1, num_drafts, 1), token)
            target_rows = np.stack([pair.target[0][0], pair.target[1][token]])[None, None].repeat(
                num_drafts, axis=1
            )
            draft_rows = pair.draft[0][None, None].repeat(num_drafts, axis=1)
            outcome = verifier.outcome(paths, target_rows, draft_rows)
            assert outcome.stop_probs.sum() == 1
            assert (outcome.stop_probs[0, 1:] == 0).all()
            if outcome.stop_probs[0, 0, 0] > 0:
                row = outcome.correction(np.array([0]), np.array([0]))[0]
                assert row[token] == 0
                assert row.sum() == 1


def test_trees_that_are_acted_out_sum_to_one() -> None:
    """The probabilities of the trees and paths that the references run over."""
    pair = instances.random_rational(43, 3, 2, zero_probability=0)
    for widths, distinct in (((2, 1), False), ((2, 2), True), ((1, 2), True)):
        assert sum(prob for _, prob in drawn_trees(pair, widths, distinct)) == 1
    assert sum(prob for _, prob in drawn_paths(pair, [pair, pair])) == 1
