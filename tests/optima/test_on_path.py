"""One verifier that sees on-path rows only, on several pairs at once (theory.md Statement 5.17)."""

from fractions import Fraction

import pytest

from spectheory import ModelPair, output_law
from spectheory.foundation.errors import SolverError
from spectheory.optima import check_solution, multi_path_optimum, on_path_optimum, on_path_program
from spectheory.optima.solving.simplex import Simplex
from spectheory.pairs.instances import NAMED, off_path_pairs, random_rational

SHAPES = ((2, 1, 2), (2, 2, 2), (2, 1, 3), (3, 1, 2), (2, 2, 1))
ON_PATH = ("block", "multi_round", "greedy_multipath", "scored_multipath")


@pytest.mark.parametrize("number", range(10))
def test_on_one_pair_nothing_is_lost(number: int) -> None:
    """The kernel of one pair knows the pair: the value is the optimum of the antichain program."""
    size, length, drafts = SHAPES[number % len(SHAPES)]
    pair = random_rational([421, number], size, length, zero_probability=number % 3 / 6)
    found = on_path_optimum([pair], drafts)
    assert found.value == multi_path_optimum(pair, drafts).value
    floats = on_path_optimum([pair.to_float()], drafts)
    assert abs(floats.value - found.value) < 1e-7
    assert floats.upper >= found.value


@pytest.mark.parametrize("name", sorted(NAMED))
def test_named_instances(name: str) -> None:
    pair = NAMED[name](1)
    assert on_path_optimum([pair], 2).value == multi_path_optimum(pair, 2).value


def test_the_family_lies_between_published_verifiers_and_the_optima() -> None:
    """A verifier of the package sees on-path rows only, so its sum is at most the program's."""
    pairs, drafts = off_path_pairs(), 2
    program = on_path_program(pairs, drafts)
    best = on_path_optimum(pairs, drafts)
    check_solution(program, best)
    for name in ON_PATH:
        assert sum(output_law(name, pair, drafts).block_efficiency for pair in pairs) <= best.value
    assert sum(multi_path_optimum(pair, drafts).value for pair in pairs) - best.value == Fraction(1, 9)
    for number in range(4):
        others = tuple(random_rational([422, number, version], 2, 2) for version in (0, 1))
        alone = sum(multi_path_optimum(pair, drafts).value for pair in others)
        # partner: pairs that differ at the root are told apart by every draft, so nothing is lost
        assert on_path_optimum(others, drafts).value == alone


@pytest.mark.parametrize(("number", "drafts"), [(1, 4), (10, 3)])
def test_a_program_that_looks_infeasible_in_floats(number: int, drafts: int) -> None:
    """Several drafts of a model that nearly agrees: HiGHS gives up, and rationals find the optimum."""
    pair, tenth = random_rational([421, number], 2, 2, zero_probability=0.3), Fraction(1, 10)
    rows = [tenth * own + (1 - tenth) * other for own, other in zip(pair.draft, pair.target, strict=False)]
    near = ModelPair(pair.target, rows, pair.vocab)
    with pytest.raises(SolverError, match="got infeasible"):
        Simplex().basis(on_path_program([near], drafts))
    assert on_path_optimum([near], drafts).value == multi_path_optimum(near, drafts).value
