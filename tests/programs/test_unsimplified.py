"""The program over output laws has the optimum of the one over node budgets."""

from __future__ import annotations

import pytest

from program_support import ALL_PAIRS, assert_solved
from reference import number_of
from spectheory import instances
from spectheory.drafts import PerPath, PrefixTree, WithoutReplacement
from spectheory.pair import ModelPair
from spectheory.programs import multi_path_optimum
from spectheory.programs.dual import dual_optimum
from spectheory.programs.unsimplified import unsimplified_optimum, unsimplified_program


@pytest.mark.parametrize("first", range(8))
def test_unsimplified_program_is_the_antichain_program(first: int) -> None:
    """Lemma A.5 and Theorem 4.3 have one optimum, and the law gives budgets and is zero where p is."""
    for number in range(first, len(ALL_PAIRS), 8):
        assert_one_optimum(ALL_PAIRS[number], 1 + number % 3)


def assert_one_optimum(pair: ModelPair, num_drafts: int) -> None:
    """On one pair."""
    exact = unsimplified_optimum(pair, num_drafts)
    assert exact.value == multi_path_optimum(pair, num_drafts).value
    floats = pair.to_float()
    programs = unsimplified_program(pair, num_drafts), unsimplified_program(floats, num_drafts)
    assert_solved(programs[0], exact, programs[1], unsimplified_optimum(floats, num_drafts))

    for depth in range(1, pair.draft_length + 2):
        for index, prob in enumerate(pair.target_path_probs(depth)):
            if prob == 0:
                assert exact.primal[pair.context(depth, index)] == 0
    for index, prob in enumerate(pair.target_path_probs(pair.draft_length + 1)):
        if prob > 0:  # (38) as printed
            path = pair.context(pair.draft_length + 1, index)
            prefixes = [path[:i] for i in range(1, len(path) + 1)]
            probs = [pair.target_path_probs(len(a))[number_of(pair, a)] for a in prefixes]
            assert sum(exact.primal[a] / p for a, p in zip(prefixes, probs, strict=True)) == 1


def test_unsimplified_program_and_dual_for_other_processes() -> None:
    """Trees of drafts and drafts without replacement change the right-hand sides only."""
    for number in range(24):
        pair = instances.random_rational(100 + number, 2, 2, zero_probability=0)
        for process in (PrefixTree((2, 2)), WithoutReplacement((2, 1)), PerPath((pair, pair))):
            best = multi_path_optimum(pair, drafts=process).value
            assert unsimplified_optimum(pair, drafts=process).value == best
            assert dual_optimum(pair, drafts=process).value == best
