"""Claims of spectr2023 on sequences, draft sets and costs."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from counted import counted
from counted_numbers import operations_of
from later import Later
from spectheory import instances, output_law
from spectheory.exact.iteration import expected_decoded_tokens
from spectheory.optima import optimal_acceptance, otm_program
from spectheory.pairs.contexts import Context, numbered_context
from spectheory.pairs.drafts import PrefixTree
from spectheory.pairs.instances import random_rational
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.otm import OTM
from spectheory.verification.algorithms.position_by_position.spectr import SpecTr
from table import READ_DRAFT_ROWS
from theory_examples import PathsAsDrafts

optimize = Later("scipy.optimize")
stats = Later("scipy.stats")


def given_length(law: Any, length: int) -> np.ndarray:
    """The law of the first token given that ``length`` tokens are decoded."""
    masses = law.masses[length - 1].reshape(law.pair.vocab_size, -1).sum(axis=1)
    return masses / masses.sum()


@counted
def test_given_the_number_of_tokens_the_output_is_not_the_targets() -> Iterator[None]:
    """Theorem 2, display, refuted.

    a single decoded token is never A at L = 1; without the condition it is p.
    """
    for name, draft_length, num_drafts in product(("multi_round", "otm", "spectr"), (1, 2), (1, 2)):
        pair = instances.two_token(draft_length)
        law = output_law(name, pair, num_drafts)
        conditional = given_length(law, 1)
        assert abs(conditional[0] - Fraction(1, 3)) > Fraction(1, 10)
        if draft_length == 1:
            assert conditional[0] == 0
        assert float(law.total_variation) < 1e-12
        assert abs(float(law.prefix_law(1)[0]) - 1 / 3) < 1e-12
        yield


@counted
def test_drafts_must_be_independent() -> Iterator[None]:
    """Eq. 8 and App. D: Algorithm 3 on |S| paths of a tree that branches after the root is not lossless."""
    for widths, lossless in (((2, 1), True), ((3, 1), True), ((1, 2), False), ((2, 2), False)):
        for verifier in (OTM(), SpecTr()):
            process = PrefixTree(widths)
            as_printed = output_law(PathsAsDrafts(verifier), instances.two_token(2), drafts=process)
            assert (float(as_printed.total_variation) < 1e-12) == lossless
            repaired = output_law(verifier, instances.two_token(2), drafts=process)
            assert float(repaired.total_variation) < 1e-12
            yield


AGREE, PART = (["1", "0", "0"], ["1", "0", "0"]), (["1", "0", "0"], ["0", "1", "0"])
HIT, ROOT = (["1", "0", "0"], ["1/2", "1/2", "0"]), (["1/4", "3/4", "0"], ["1/3"] * 3)


def behind_a(context: Context) -> tuple[list[str], list[str]]:
    """The second token is drafted with 1/2, then the models agree."""
    return AGREE if context else HIT


def whole(context: Context) -> tuple[list[str], list[str]]:
    """Tokens A, B, C, the first of which is drafted uniformly; after B and C the models part."""
    if not context:
        return ROOT
    return behind_a(context[1:]) if context[0] == 0 else PART


def pair_of(rows: Callable[[Context], tuple[list[str], list[str]]], draft_length: int) -> ModelPair:
    contexts = [numbered_context(n, depth, 3) for depth in range(draft_length + 1) for n in range(3**depth)]
    return ModelPair.from_contexts(
        {context: rows(context)[0] for context in contexts},
        {context: rows(context)[1] for context in contexts if len(context) < draft_length},
        draft_length,
    )


def best_plan(num_drafts: int, further: Sequence[float], accepted: float | None) -> float:
    """The most tokens that a plan at the root of this pair earns, over all or those that accept this much.

    A plan gives (number of A, of B) among the drafts to A, to B or to neither; A behind n survivors is worth
    1 + further[n] tokens, B 2, neither 1: a linear program.
    """
    kinds = [(a, b) for a in range(num_drafts + 1) for b in range(num_drafts + 1 - a)]
    law = [stats.multinomial.pmf([num_drafts - a - b, a, b], num_drafts, [1 / 3] * 3) for a, b in kinds]
    gains = [further[a] if a else -1e9 for a, _ in kinds] + [1.0 if b else -1e9 for _, b in kinds]
    one = np.eye(len(kinds))
    found = optimize.linprog(
        -np.array(gains),
        A_ub=np.vstack([np.hstack([one, one]), np.kron(np.eye(2), np.ones(len(kinds)))]),
        b_ub=[*law, 1 / 4, 3 / 4],
        A_eq=None if accepted is None else np.ones((1, 2 * len(kinds))),
        b_eq=None if accepted is None else [accepted],
    )
    return 1 - float(found.fun)


@counted
def test_no_optimal_plan_per_position_is_optimal_per_sequence() -> Iterator[None]:
    """Alg. 3, line 1.

    K = 3, L = 6: plans of largest acceptance earn at most 301/108, another earns 45/16.
    """
    behind = [Fraction(0)] + [1 + 5 * (1 - Fraction(1, 2) ** drafts) for drafts in (1, 2, 3)]
    for drafts in (1, 2, 3):
        found = output_law("spectr", pair_of(behind_a, 5).to_float(), drafts).block_efficiency
        assert found == pytest.approx(float(behind[drafts]), abs=1e-9)
        yield
    pair, further = pair_of(whole, 6), [float(value) for value in behind]
    largest = float(optimal_acceptance(pair.target[0][0], pair.draft[0][0], 3).value)
    assert best_plan(3, further, largest) == pytest.approx(301 / 108, abs=1e-9)
    assert best_plan(3, further, None) == pytest.approx(45 / 16, abs=1e-9)
    yield


@counted
def test_the_plan_of_otm_against_other_rules() -> Iterator[None]:
    """Alg. 3, line 1.

    One of the optimal plans is taken: with it otm is below both others at L = 2 on one pair, at L = 1 never.
    """
    below = {"spectr": 0, "multi_round": 0}
    for number in (485, 375, *range(40)):
        pair = random_rational([7, number], 3, 2)
        value = {name: float(output_law(name, pair, 2).block_efficiency) for name in ("otm", *below)}
        for name in below:
            below[name] += value["otm"] < value[name] - 1e-9
        if number == 375:
            assert value["multi_round"] > value["spectr"] + 0.01
        short = pair.truncate(1)
        best = float(output_law("otm", short, 2).block_efficiency)
        assert all(float(output_law(name, short, 2).block_efficiency) <= best + 1e-9 for name in below)
        yield
    assert min(below.values()) >= 1


@counted
def test_trees_and_independent_drafts_compared() -> Iterator[None]:
    """Section 7.

    K = 4 paths, L = 2; the tree (2, 2) is worse than (4, 1) on most pairs and better on some.
    """
    better = worse = 0
    for number in range(60):
        pair = random_rational([211, number], 2, 2)
        tree, flat = (
            float(output_law("spectr", pair, drafts=PrefixTree(widths)).block_efficiency)
            for widths in ((2, 2), (4, 1))
        )
        better, worse = better + (tree > flat + 1e-9), worse + (tree < flat - 1e-9)
        yield
    assert 0 < better < worse


@counted
def test_between_one_and_l_plus_1_tokens_are_decoded() -> Iterator[None]:
    """Section 7: the length law lives on 1..L+1 and sums to 1."""
    for name, number in product(READ_DRAFT_ROWS, range(6)):
        pair = random_rational([212, number], 2, 1 + number % 3)
        lengths = output_law(name, pair, 2).length_probs
        assert len(lengths) == pair.draft_length + 1
        assert abs(float(sum(lengths)) - 1) < 1e-12
        assert min(lengths) >= 0
        yield


@counted
def test_identical_models_decode_l_plus_1_tokens() -> Iterator[None]:
    """Section 2, with one path and, for verifiers position by position, with several; not for a ranking."""
    for name, num_drafts, draft_length in product(READ_DRAFT_ROWS, (1, 2, 3), (1, 2)):
        pair = instances.uniform_equal(draft_length)
        value = float(output_law(name, pair, num_drafts).block_efficiency)
        full = abs(value - (draft_length + 1)) < 1e-12
        assert full == (name != "greedy_multipath" or num_drafts == 1)
        yield


@counted
def test_tokens_per_call_is_the_block_efficiency_of_a_context_free_pair() -> Iterator[None]:
    """Section 8: E[N(i)]/i = E[τ+1] where every call meets the same rows, and not in general."""
    for name in ("token", "block", "multi_round"):
        pair = random_rational([213, 1], 3, 1)
        pair = type(pair).context_free_pair(list(pair.target[0][0]), list(pair.draft[0][0]), 2)
        one = output_law(name, pair, 2).block_efficiency
        decoded = expected_decoded_tokens(name, pair, 3, drafts=2)
        assert [tokens / calls for calls, tokens in enumerate(decoded, start=1)] == [one] * 3
        yield
    chain = instances.sticky_chain(2)
    first, second = expected_decoded_tokens("token", chain, 2, memory=1)
    assert second != 2 * first


@counted
def test_spectr_gains_with_drafts_and_with_length() -> Iterator[None]:
    """App. E: block efficiency does not fall with K nor with L, and P(τ ≥ i) does not depend on L."""
    for number in range(40):
        pair = random_rational([214, number], 2 + number % 2, 2)
        laws = [output_law("spectr", pair, num_drafts) for num_drafts in (1, 2, 3)]
        values = [float(law.block_efficiency) for law in laws]
        assert all(a <= b + 1e-9 for a, b in pairwise(values))
        short = output_law("spectr", pair.truncate(1), 2)
        assert abs(float(short.length_probs[0] - laws[1].length_probs[0])) < 1e-12
        assert float(short.block_efficiency) <= values[1] + 1e-12
        yield


@counted
def test_multi_round_costs_grow_linearly_in_the_vocabulary() -> Iterator[None]:
    """Operations of one call: affine in V, while the plan of Eq. 4 has V^(K+1) entries."""
    first, second, third = (operations_of("multi_round", size, 2, 2) for size in (20, 40, 60))
    assert second - first == third - second
    yield
    sizes = [otm_program([Fraction(1, n)] * n, [Fraction(1, n)] * n, 2).num_variables for n in (5, 10, 20)]
    assert sizes == [n**3 for n in (5, 10, 20)]
    yield
