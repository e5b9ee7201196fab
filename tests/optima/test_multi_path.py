"""The multi-path program: golden values, random pairs exact against float, all antichains."""

from fractions import Fraction

import numpy as np
import pytest

from deep import first_is_quick
from program_support import (
    DUAL_PAIRS,
    PAIRS,
    SHAPES,
    TWO_TOKENS,
    assert_solved,
    block_verification_value,
)
from spectheory.foundation.errors import InfeasiblePointError
from spectheory.optima import (
    antichains,
    multi_path_optimum,
    multi_path_program,
    optimal_scores,
    optimum,
    single_path_optimum,
    single_path_program,
)
from spectheory.optima.bounds import upper_bound
from spectheory.optima.multi_path import count_antichains
from spectheory.pairs.pair import ModelPair


@pytest.mark.parametrize(("draft_length", "value"), [(1, "17/9"), (2, "212/81"), (3, "2350/729")])
def test_multi_path_two_tokens(draft_length: int, value: str) -> None:
    """greedy_multipath reaches 17/9 and 212/81 (theory.md §5), so the optimum cannot be less."""
    solution = optimum(ModelPair.context_free_pair(*TWO_TOKENS, draft_length), drafts=2)
    assert solution.value == Fraction(value)
    assert solution.method == "multi-path antichain LP"


@first_is_quick("first", range(2))
@first_is_quick("shape", range(len(SHAPES)))
def test_random_pairs(shape: int, first: int) -> None:
    """Exact = float, KKT holds and a perturbed dual does not, single path = block verification."""
    for number in range(shape + first * len(SHAPES), len(PAIRS), 2 * len(SHAPES)):
        pair, num_drafts = PAIRS[number], 1 + number // len(SHAPES) % 3
        floats = pair.to_float()
        one, several = single_path_optimum(pair), multi_path_optimum(pair, num_drafts)
        assert one.value == block_verification_value(pair)
        programs = single_path_program(pair), single_path_program(floats)
        assert_solved(programs[0], one, programs[1], single_path_optimum(floats))
        found = multi_path_optimum(floats, num_drafts)
        programs = (
            multi_path_program(pair, num_drafts, several.members),
            multi_path_program(floats, num_drafts, found.members),
        )
        assert_solved(programs[0], several, programs[1], found)
        assert one.value <= several.value <= pair.draft_length + 1
        assert num_drafts > 1 or several.value == one.value


@first_is_quick("first", range(3))
def test_the_optimal_scores_prove_the_optimum(first: int) -> None:
    """Strong duality: E[max_k c(X^(k))] is the optimum, for one path and for several; partner: lower scores
    at the root are refused, higher ones elsewhere bound no closer."""
    for number, pair in enumerate(DUAL_PAIRS[first::3]):
        best = multi_path_optimum(pair, 1 + number % 3)
        scores = optimal_scores(pair, best)
        assert upper_bound(pair, 1 + number % 3, scores) == best.value
        assert (
            upper_bound(pair, 1, optimal_scores(pair, single_path_optimum(pair)))
            == single_path_optimum(pair).value
        )
        floats = optimal_scores(pair.to_float(), multi_path_optimum(pair.to_float(), 1 + number % 3))
        bound = upper_bound(pair.to_float(), 1 + number % 3, floats)
        assert bound == pytest.approx(float(best.value), abs=1e-8)
        with pytest.raises(InfeasiblePointError):
            upper_bound(pair, 2, [scores[0] - Fraction(1, 1000), *scores[1:]])
    ones = [np.full(2**depth, Fraction(1)) for depth in range(3)]
    assert upper_bound(ModelPair.context_free_pair(*TWO_TOKENS, 2), 2, ones) == 3 > Fraction(212, 81)


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
