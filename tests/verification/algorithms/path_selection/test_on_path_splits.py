"""Statement 5.23: the sampled program of ``benchmarks/on_path_splits.py`` against a law of two pairs of rows.

Where a pair of rows behind a token is one of two, the best split on average is a rational program of its own.
"""

from fractions import Fraction
from itertools import chain, combinations, pairwise, product
from typing import Any

import numpy as np
import pytest

from scripts import load
from spectheory.foundation.arrays import power_sum
from spectheory.optima import solve_exact
from spectheory.optima.solving.linear_program import ConstraintBlock, LinearProgram
from spectheory.pairs.instances import random_rational
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers

benchmark = load("benchmarks", "on_path_splits")

VOCAB = 3
PROBS = (Fraction(1, 3), Fraction(2, 3))
"""Of the two pairs of rows."""


class Example:
    """A root and two pairs of rows, all positive: in rationals, and as the benchmark takes them."""

    def __init__(self, seed: int) -> None:
        pair = random_rational([231, seed], VOCAB, 2, zero_probability=0, equal_row_probability=0)
        self.pair, self.root = pair, (pair.target[0][0], pair.draft[0][0])
        self.next_rows = [(pair.target[1][one], pair.draft[1][one]) for one in (0, 1)]

    def in_floats(self) -> tuple[np.ndarray, ...]:
        return tuple(row.astype(float) for row in self.root)

    def rows(self, which: tuple[int, ...]) -> Any:
        chosen = np.array([self.next_rows[one] for one in which]).astype(float)
        return benchmark.NextRows.of(chosen[:, 0], chosen[:, 1])

    def best_split(self, which: tuple[int, ...], score: Any) -> tuple[float, np.ndarray]:
        found: tuple[float, np.ndarray] = benchmark.best_split(*self.in_floats(), self.rows(which), score)
        return found

    def mean_over_samples(self, size: int, score: Any) -> float:
        samples = product((0, 1), repeat=size)
        return sum(
            float(np.prod([PROBS[one] for one in which])) * self.best_split(which, score)[0]
            for which in samples
        )

    def mean_efficiency(self, name: str, num_drafts: int) -> Fraction:
        mean = Fraction(0)
        for which in product((0, 1), repeat=VOCAB):
            target, draft = (np.array([self.next_rows[one][side] for one in which]) for side in (0, 1))
            levels = (self.root[0][None], target, self.pair.target[2]), (self.root[1][None], draft)
            pair = ModelPair(*levels, self.pair.vocab)
            value = verifiers[name].skewed_draft(pair, num_drafts).block_efficiency(pair)
            mean += np.prod([PROBS[one] for one in which]) * value
        return mean


def rational_optimum(example: Example, values: list[Fraction], masses: list[Fraction]) -> Fraction:
    """The best mean of a split of a law of φ: every set of tokens and every value of φ is a constraint."""
    (target, draft), count = example.root, len(values)
    law = np.arange(VOCAB * count).reshape(VOCAB, count)
    served = law.size + np.arange(VOCAB)
    below = served[-1] + 1 + np.arange(2 * VOCAB).reshape(VOCAB, 2)
    size = int(below[-1, -1]) + 1
    gain = np.full(size, Fraction(0))
    gain[served], gain[below] = draft, np.outer(draft, PROBS)
    equal = [({law[x, j]: draft[x] for x in range(VOCAB)}, mass) for j, mass in enumerate(masses)]
    least = [({served[x]: Fraction(1)}, target[x] / draft[x]) for x in range(VOCAB)]
    for x in range(VOCAB):
        equal.append(({column: Fraction(1) for column in law[x]}, Fraction(1)))
        least.append(
            ({served[x]: Fraction(1), **dict(zip(law[x], (-v for v in values), strict=True))}, Fraction(0))
        )
    subsets = list(chain.from_iterable(combinations(range(VOCAB), n) for n in range(VOCAB + 1)))
    for x, s, chosen, slope in product(range(VOCAB), (0, 1), subsets, values):
        p, q = example.next_rows[s]
        parts = {
            below[x, s]: Fraction(1),
            served[x]: -sum((p[y] for y in range(VOCAB) if y not in chosen), Fraction(0)),
        }
        parts |= {law[x, j]: -max(value - slope, Fraction(0)) for j, value in enumerate(values)}
        least.append((parts, slope * sum((q[y] for y in chosen), Fraction(0))))

    def block(name: str, sense: Any, lines: list[tuple[dict[int, Fraction], Fraction]]) -> ConstraintBlock:
        entries = [
            (row, column, factor) for row, (parts, _) in enumerate(lines) for column, factor in parts.items()
        ]
        rows, columns, factors = zip(*entries, strict=True)
        limits = np.array([limit for _, limit in lines], dtype=object)
        return ConstraintBlock(
            name, "theory.md Statement 5.23", sense,
            np.array(rows), np.array(columns), np.array(factors, dtype=object), limits,
        )  # fmt: skip

    blocks = block("split", "==", equal), block("served", "<=", least)
    program = LinearProgram("best split", "theory.md Statement 5.23", "max", tuple(range(size)), gain, blocks)
    return 1 + solve_exact(program).value


def cells(count: int, num_drafts: int) -> tuple[list[Fraction], list[Fraction]]:
    edges = [Fraction(number, count) for number in range(count + 1)]
    values = [power_sum(high, low, num_drafts) for low, high in pairwise(edges)]
    return values, [Fraction(1, count)] * count


@pytest.fixture(autouse=True)
def solved_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "GAP", 1e-7)


@pytest.mark.parametrize(("seed", "num_drafts"), [(0, 2), (1, 3), (2, 2)])
def test_cuts_reach_the_rational_program(seed: int, num_drafts: int) -> None:
    """A sample with the law's own shares has the value of the program in which nothing is sampled."""
    example = Example(seed)
    exact = float(rational_optimum(example, *cells(4, num_drafts)))
    score = benchmark.cell_means(4, num_drafts)
    value, plan = example.best_split((0, 1, 1), score)
    assert exact - 1e-7 <= value <= exact + 3e-7
    found = benchmark.efficiency(plan, *example.in_floats(), example.rows((0, 1, 1)), score)
    assert value - 2e-7 <= found <= value


@pytest.mark.parametrize("seed", [1, 17, 25])
def test_samples_are_above_the_best_split_on_average(seed: int) -> None:
    """Where the two pairs of rows want different splits: E[value over S rows] falls with S, and stays above.

    Partner: what a split that is best for a sample earns on all rows is below the best, so it is no limit.
    """
    example, score, own = Example(seed), benchmark.cell_means(4, 2), (0, 1, 1)
    best, _ = example.best_split(own, score)
    means = [example.mean_over_samples(size, score) for size in (1, 2, 4)]
    assert means[0] > means[1] > means[2] > best + 1e-6
    plans = [example.best_split((one,), score)[1] for one in (0, 1)]
    earned = [benchmark.efficiency(plan, *example.in_floats(), example.rows(own), score) for plan in plans]
    assert max(earned) <= best
    assert sum(float(prob) * value for prob, value in zip(PROBS, earned, strict=True)) < best - 1e-5


@pytest.mark.parametrize(("seed", "num_drafts"), [(0, 2), (1, 3), (2, 4)])
def test_ends_of_cells_are_above_every_rule(seed: int, num_drafts: int) -> None:
    """Ends fall, means rise, with ends above; rules of the family stay below the ends, and above one cell."""
    example, own = Example(seed), (0, 1, 1)
    ends = [example.best_split(own, benchmark.cell_ends(count, num_drafts))[0] for count in (1, 4, 16, 64)]
    means = [example.best_split(own, benchmark.cell_means(count, num_drafts))[0] for count in (1, 4, 16, 64)]
    assert ends == sorted(ends, reverse=True)
    assert means == sorted(means)
    assert 0 < ends[-1] - means[-1] < (ends[1] - means[1]) / 64
    earned = float(example.mean_efficiency("scored_multipath", num_drafts))
    assert means[0] + 1e-3 < earned < ends[-1] + 1e-7


@pytest.mark.parametrize("seed", [1, 17])
def test_the_control_is_nothing_in_the_mean(seed: int) -> None:
    """Over the rows behind the tokens and samples of two, for a plan that knows neither.

    Partner: a plan that is best for the sample earns more on it than elsewhere, so its mean is below 0.
    """
    example, score = Example(seed), benchmark.cell_means(4, 2)
    _, plan = example.best_split((0, 1, 1), score)
    of_a_plan = of_the_best = 0.0
    for own, sample in product(product((0, 1), repeat=VOCAB), product((0, 1), repeat=2)):
        chance = float(np.prod([PROBS[one] for one in (*own, *sample)]))
        given = example.in_floats(), example.rows(own), example.rows(sample)
        of_a_plan += chance * benchmark.control(plan, *given[0], *given[1:], score)
        best = example.best_split(sample, score)[1]
        of_the_best += chance * benchmark.control(best, *given[0], *given[1:], score)
    assert of_a_plan == pytest.approx(0, abs=1e-12)
    assert of_the_best < -1e-5


def test_ends_keep_the_mean_of_every_cell() -> None:
    for count, num_drafts in product((1, 3, 8), (2, 3, 4)):
        values, masses = benchmark.cell_ends(count, num_drafts)
        assert masses.min() >= 0
        assert masses.sum() == pytest.approx(1, abs=1e-12)
        assert values @ masses == pytest.approx(1, abs=1e-12)


def test_the_largest_part_covers() -> None:
    """At 99 %, in 500 runs of 40 pairs; partner: the quotient of the means fails in about half of them."""
    rng, below, plain = np.random.default_rng(232), 0, 0
    for _ in range(500):
        left = rng.gamma(2, 1, size=40)
        missing = left * 0.05 + rng.normal(0, 0.2, size=40)
        below += benchmark.largest_part(missing, left) < 0.95
        plain += 1 - missing.mean() / left.mean() < 0.95
    assert below <= 12
    assert 200 <= plain <= 300
    nothing = rng.normal(0, 1, size=40)
    assert benchmark.largest_part(nothing, nothing - nothing.mean()) == np.inf
