"""The front between block efficiency and total variation (theory.md Statement 5.22)."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from deep import first_is_quick
from program_support import ALL_PAIRS, assert_certified
from reference import number_of
from spectheory import ModelPair, defects, output_law, verifiers
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import check_solution, lossy_optimum, lossy_program, multi_path_optimum, optimum
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.pairs.drafts import WithoutReplacement
from spectheory.pairs.instances import disjoint_supports, random_rational, three_token_reversed, two_token

BUDGETS = tuple(Fraction(n, 12) for n in (0, 1, 2, 3, 6, 12))
PAIRS = (
    (two_token(2), 2),
    (three_token_reversed(1), 3),
    (random_rational(451, 2, 2, zero_probability=0.2), 1),
    (random_rational(452, 3, 1), 2),
    (disjoint_supports(1), 2),
)


@pytest.mark.parametrize(("pair", "num_drafts"), PAIRS)
def test_the_front_starts_at_the_optimum_and_is_concave(pair: ModelPair, num_drafts: int) -> None:
    values = [lossy_optimum(pair, budget, num_drafts).value for budget in BUDGETS]
    assert values[0] == optimum(pair, num_drafts).value
    assert values[-1] == pair.draft_length + 1
    steps = list(zip(BUDGETS, values, strict=True))
    slopes = [(b - a) / (y - x) for (x, a), (y, b) in pairwise(steps)]
    assert slopes == sorted(slopes, reverse=True)
    assert min(slopes) >= 0


def test_one_position_is_the_lossless_optimum_and_the_budget() -> None:
    """L = 1, K = 1: a mass ε of drafted tokens is accepted beyond Σ min(p, q)."""
    pair = three_token_reversed(1)
    overlap = optimum(pair).value
    for budget in BUDGETS:
        assert lossy_optimum(pair, budget).value == min(Fraction(2), overlap + budget)


def lossy_laws(pair: ModelPair, num_drafts: int) -> list[Any]:
    """The rational laws of published and of known-wrong verifiers that take the pair."""
    found = []
    for name in (*defects, "block", "greedy_block", "greedy_multipath", "traversal", "spectr_gbv"):
        verifier = defects[name] if name in defects else verifiers[name]
        try:
            law = output_law(verifier, pair, num_drafts)
        except InvalidInputError:
            continue
        if isinstance(law.total_variation, Fraction) and not law.undefined:
            found.append(law)
    return found


def test_no_verifier_passes_the_front() -> None:
    """Whatever a verifier deviates by, it earns no more than the program allows for that."""
    pair = two_token(2)
    laws = lossy_laws(pair, 2)
    lossy = [law for law in laws if law.total_variation > 0]
    assert len(lossy) > 15
    for law in laws:
        assert law.block_efficiency <= lossy_optimum(pair, law.total_variation, 2).value
    # partner: some of them earn more than a smaller deviation allows, so that the front says something
    assert any(law.block_efficiency > lossy_optimum(pair, law.total_variation / 4, 2).value for law in lossy)


def test_the_point_is_a_law_at_the_distance_it_says() -> None:
    """Second route: the completed output of R, and its distance from the target."""
    pair, budget = two_token(2), Fraction(1, 10)
    program, found = lossy_program(pair, budget, 2), lossy_optimum(pair, budget, 2)
    check_solution(program, found)
    excess = Fraction(0)
    for number, prob in enumerate(pair.target_path_probs(3)):
        path = pair.context(3, number)
        completed = sum(
            found.primal[path[:length]] * prob / pair.target_path_probs(length)[number >> (3 - length)]
            for length in (1, 2, 3)
        )
        excess += max(completed - prob, Fraction(0))
    assert excess == budget


def test_floats_and_other_drafts() -> None:
    pair = random_rational(453, 3, 1)
    exact = lossy_optimum(pair, "1/20", 2)
    floats = lossy_optimum(pair.to_float(), 0.05, 2)
    assert abs(floats.value - exact.value) < 1e-9
    assert floats.upper >= exact.value
    distinct = WithoutReplacement((2,))
    assert lossy_optimum(pair, 0, drafts=distinct).value == optimum(pair, drafts=distinct).value


@pytest.mark.parametrize(
    ("budget", "says"), [(0.1, "exact"), ("x", "number"), ("3/2", "0, 1"), (None, "number")]
)
def test_bad_budgets_are_refused(budget: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        lossy_optimum(two_token(1), budget)


@first_is_quick("first", range(8))
def test_unsimplified_program_is_the_antichain_program(first: int) -> None:
    """Lemma A.5 and Theorem 4.3 have one optimum, and the law gives budgets and is zero where p is."""
    for number in range(first, len(ALL_PAIRS), 8):
        pair, num_drafts = ALL_PAIRS[number], 1 + number % 3
        program = lossy_program(pair, 0, num_drafts)
        exact = solve_in_its_arithmetic(program)
        assert exact.value == multi_path_optimum(pair, num_drafts).value
        assert_certified(program, exact, 0)
        floating = solve_in_its_arithmetic(lossy_program(pair.to_float(), 0, num_drafts))
        assert floating.value == pytest.approx(float(exact.value), abs=1e-9)
        assert exact.value <= Fraction(floating.upper)
        for depth in range(1, pair.draft_length + 2):
            for index, prob in enumerate(pair.target_path_probs(depth)):
                path = pair.context(depth, index)
                if prob == 0:
                    assert exact.primal[path] == 0
                elif depth == pair.draft_length + 1:  # (38) as printed
                    prefixes = [path[:i] for i in range(1, depth + 1)]
                    probs = [pair.target_path_probs(len(a))[number_of(pair, a)] for a in prefixes]
                    assert sum(exact.primal[a] / p for a, p in zip(prefixes, probs, strict=True)) == 1
