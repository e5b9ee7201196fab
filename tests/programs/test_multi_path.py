"""The multi-path program: golden values, random pairs exact against float, all antichains."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from program_support import PAIRS, SHAPES, TWO_TOKENS, assert_certified, block_verification_value
from spectheory.pair import ModelPair
from spectheory.programs import (
    Solution,
    antichains,
    count_antichains,
    multi_path_optimum,
    multi_path_program,
    optimum,
    single_path_optimum,
    single_path_program,
)


@pytest.mark.parametrize(("draft_length", "value"), [(1, "17/9"), (2, "212/81"), (3, "2350/729")])
def test_multi_path_two_tokens(draft_length: int, value: str) -> None:
    """greedy_multipath reaches 17/9 and 212/81 (theory.md §5), so the optimum cannot be less."""
    solution = optimum(ModelPair.context_free_pair(*TWO_TOKENS, draft_length), drafts=2)
    assert solution.value == Fraction(value)
    assert solution.method == "multi-path antichain LP"


def assert_consistent(exact: Solution, floating: Solution) -> None:
    assert exact.arithmetic == "exact"
    assert floating.arithmetic == "float64"
    assert floating.value == pytest.approx(float(exact.value), abs=1e-9)
    assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)
    assert floating.lower <= floating.value <= floating.upper
    assert floating.upper - floating.lower < 1e-9
    assert Fraction(exact.lower) <= exact.value <= Fraction(exact.upper)


@pytest.mark.parametrize("shape", range(len(SHAPES)))
def test_random_pairs(shape: int) -> None:
    """Exact = float, KKT holds and a perturbed dual does not, single path = block verification."""
    for number in range(shape, len(PAIRS), len(SHAPES)):
        assert_programs_agree(number)


def assert_programs_agree(number: int) -> None:
    """On one pair, with one draft and with 1 to 3."""
    pair = PAIRS[number]
    exact, floating = single_path_optimum(pair), single_path_optimum(pair.to_float())
    assert exact.value == block_verification_value(pair)
    assert_consistent(exact, floating)
    assert_certified(single_path_program(pair), exact, 0)
    assert_certified(single_path_program(pair.to_float()), floating, 1e-8)

    num_drafts = 1 + number % 3
    several, floating = (
        multi_path_optimum(pair, num_drafts),
        multi_path_optimum(pair.to_float(), num_drafts),
    )
    assert_consistent(several, floating)
    assert_certified(multi_path_program(pair, num_drafts), several, 0)
    assert_certified(multi_path_program(pair.to_float(), num_drafts), floating, 1e-8)
    if num_drafts == 1:
        assert several.value == exact.value
    assert exact.value <= several.value <= pair.draft_length + 1


@pytest.mark.parametrize(
    ("vocab_size", "counts"), [(2, [2, 5, 26, 677, 458_330]), (3, [2, 9, 730, 389_017_001])]
)
def test_antichain_counts(vocab_size: int, counts: list[int]) -> None:
    """theory.md §5."""
    assert [count_antichains(vocab_size, depth) for depth in range(len(counts))] == counts


@pytest.mark.parametrize(("vocab_size", "depth"), [(1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2)])
def test_antichains_are_all_antichains(vocab_size: int, depth: int) -> None:
    """Distinct, no member a prefix of another, as many as counted, single nodes first."""
    members = antichains(vocab_size, depth)
    nodes = members.shape[1]
    assert len(members) == count_antichains(vocab_size, depth) == len({row.tobytes() for row in members})
    assert not members[0].any()
    assert (members[1 : nodes + 1] == np.eye(nodes, dtype=bool)).all()
    for node in range(1, nodes):
        ancestor = node
        while ancestor:
            ancestor = (ancestor - 1) // vocab_size
            assert not (members[:, node] & members[:, ancestor]).any()


def test_many_antichains_exact_by_row_generation() -> None:
    """83 521 antichains (V = 4, L = 2), certified against every one of them."""
    rows = (["1/2", "1/4", "1/6", "1/12"], ["1/12", "1/6", "1/4", "1/2"])
    pair = ModelPair.context_free_pair(*rows, 2)
    exact, floating = optimum(pair, 2), optimum(pair.to_float(), 2)
    assert exact.value == Fraction(799, 384)
    assert len(exact.dual["prefix matching"]) == 83_521
    assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)
