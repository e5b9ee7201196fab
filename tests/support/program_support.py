"""Pairs that the programs are tested on, and checks that a solution passes and a moved one fails."""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import CertificationError
from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.optima import ConstraintBlock, LinearProgram, Solution, check_solution
from spectheory.optima.bounds.dual_scores import feasible_scores
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair

TREE_SIZES = ((2, 1), (2, 2), (3, 1), (4, 1))
TREE_PAIRS = [instances.random_rational(4_000 + i, *TREE_SIZES[i % 4]) for i in range(208)]
NAMED_PAIRS = [build(1) for build in instances.NAMED.values()] + [
    instances.two_token(2),
    instances.sticky_chain(2),
    instances.point_masses(2),
    instances.uniform_equal(2),
]
ALL_PAIRS = TREE_PAIRS + NAMED_PAIRS
"""208 random and the named pairs, at most 25 antichains; small weights, zeros in either model, equal rows,
no overlap."""

DUAL_PAIRS = ALL_PAIRS + [instances.random_rational(4_500 + i, 2, 3) for i in range(4)]
"""The same, and four pairs of draft length 3."""

TWO_TOKENS = (["1/3", "2/3"], ["2/3", "1/3"])
"""Target and draft row of the two-token example."""
THREE_TOKENS = (["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])


SHAPES = [(2, 1), (2, 2), (3, 1), (3, 2), (2, 3), (4, 1)]
PAIRS = [instances.random_rational([7, i], *SHAPES[i % len(SHAPES)]) for i in range(204)]
"""Exact pairs with zeros and ties."""


def block_verification_value(pair: ModelPair) -> Fraction:
    """Σ_a w(a) q(a) with w(a) q(a) = min{q(a), p(a_i | a_{1:i-1}) w q(a_{1:i-1})}, w(∅) = 1."""
    masses, total = pair.draft_path_probs(0), Fraction(1)
    for depth in range(1, pair.draft_length + 1):
        proposed = (masses[:, None] * pair.target[depth - 1]).ravel()
        masses = np.minimum(pair.draft_path_probs(depth), proposed)
        total += masses.sum()
    return total


def toy(direction: str, objective: float, rows: list[tuple[float, str, float]], exact: bool) -> LinearProgram:
    """A program in one variable, with a constraint coefficient · x (sense) right-hand side per row."""

    def numbers(values: list[float]) -> np.ndarray:
        return np.array([Fraction(v) for v in values], dtype=object) if exact else np.array(values, float)

    zero = np.zeros(1, int)
    blocks = tuple(
        ConstraintBlock(f"row {i}", "-", sense, zero, zero, numbers([coefficient]), numbers([rhs]))
        for i, (coefficient, sense, rhs) in enumerate(rows)
    )
    return LinearProgram("toy", "-", direction, ("x",), numbers([objective]), blocks)


def assert_certified(program: LinearProgram, solution: Solution, tolerance: float) -> None:
    """The solution proves its value; with one multiplier moved, or another value, it does not."""
    check_solution(program, solution, tolerance)
    block = program.blocks[-1]
    multipliers = solution.dual[block.name].copy()
    number = int(np.argmax(abs(block.rhs)))
    multipliers[number] = multipliers[number] + 1
    wrong = {
        "residual": dataclasses.replace(solution, dual={**solution.dual, block.name: multipliers}),
        "value": dataclasses.replace(solution, value=solution.value + 1),
    }
    for said, other in wrong.items():
        with pytest.raises(CertificationError, match=said):
            check_solution(program, other, tolerance)


def assert_solved(
    exact_program: LinearProgram,
    exact: Solution,
    float_program: LinearProgram,
    floating: Solution,
    width: float = 1e-7,
) -> None:
    """Both values agree, both certify themselves, and the float bounds hold and are close."""
    assert (exact.arithmetic, exact.status, exact.gap) == ("exact", "optimal", 0)
    assert floating.arithmetic == "float64"
    assert floating.value == pytest.approx(float(exact.value), abs=1e-9)
    assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)
    assert floating.lower <= floating.value <= floating.upper
    assert floating.upper - floating.lower < width
    assert_certified(exact_program, exact, 0.0)
    assert_certified(float_program, floating, 1e-8)


def random_scores(rng: np.random.Generator, pair: ModelPair) -> list[np.ndarray]:
    """Feasible scores: arbitrary numbers, clipped from the leaves up."""
    scores = []
    for depth in range(pair.draft_length + 1):
        numbers = rng.integers(-2, 14, pair.vocab_size**depth)
        scores.append(np.array([Fraction(int(n), 8) for n in numbers], dtype=object))
    return feasible_scores(pair, scores)


def position_draft_law(pair: ModelPair, process: DraftProcess) -> dict[tuple[int, ...], Any]:
    """The joint law of the K drafts of a process at one position, {(x_1, .., x_K): probability}."""
    law: dict[tuple[int, ...], Any] = {}
    for tuples in process.tuples(pair, size=10_000):
        probs = fractions_if_exact(tuples.probs)
        law |= dict(zip(map(tuple, tuples.leaves.tolist()), probs.tolist(), strict=True))
    return law
