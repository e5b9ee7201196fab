"""The certified interval contains the exact optimum, and closes at scale."""

from fractions import Fraction

import numpy as np
import pytest

from deep import first_is_quick
from interval_checks import proofs_hold
from loops_in_python import run_in_python
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima import multi_path_optimum, optimal_acceptance, single_path_optimum
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.optima.interval.interval import multi_path_interval
from spectheory.pairs.pair import ModelPair

SHAPES = ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (2, 2), (3, 2))


SMALL = [
    (instances.random_rational([31, number], *SHAPES[number % len(SHAPES)]), 1 + number % 8)
    for number in range(48)
] + [(build(2), num_drafts) for build in instances.NAMED.values() for num_drafts in (2, 5)]
"""48 random exact pairs with zeros, ties and equal rows, K = 1..8, and every named instance."""


@first_is_quick("first", range(3))
def test_the_interval_contains_the_exact_optimum(first: int) -> None:
    """lower ≤ optimum of the antichain program ≤ upper, in rational arithmetic, and no wider than asked."""
    for given, num_drafts in SMALL[first::3]:
        pair = given if given.vocab_size**given.draft_length <= 9 else given.truncate(1)
        best = multi_path_interval(pair, num_drafts)
        exact = multi_path_optimum(pair, num_drafts).value
        assert Fraction(best.lower) <= exact <= Fraction(best.upper)
        assert best.status == "optimal"
        assert best.relative_gap <= 1e-6
        proofs_hold(pair, num_drafts, best)
        if num_drafts == 1:
            assert float(single_path_optimum(pair).value) == pytest.approx(best.value, rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_both_proofs_hold_in_rational_arithmetic(seed: int) -> None:
    """The stored floats, read as rationals: the masses satisfy every constraint of Theorem 4.3 exactly and
    sum to at least ``lower``; the least scores that go with z give an exact bound of at most ``upper``.
    Masses a percent larger break a constraint."""
    pair, num_drafts = instances.random_rational([41, seed], 3, 3), 2 + seed % 4
    best = multi_path_interval(pair, num_drafts)
    masses = [np.array([Fraction(x) for x in level], dtype=object) for level in best.node_masses]
    for depth in range(3):
        assert (masses[depth + 1] <= (pair.target[depth] * masses[depth][:, None]).ravel()).all()
    violation, _ = most_violated_antichain(pair, masses, num_drafts)
    assert violation == 0
    assert sum(level.sum() for level in masses) >= Fraction(best.lower)

    z = [np.array([Fraction(slack) for slack in level], dtype=object) for level in best.slacks]
    scores = np.array([Fraction(0)], dtype=object)
    for depth in range(4):
        required = np.full(3**depth, Fraction(1), dtype=object)
        if depth < 3:
            required = required + (pair.target[depth] * z[depth + 1].reshape(-1, 3)).sum(axis=1)
        scores = (np.repeat(scores, 3) if depth else scores) + np.maximum(required - z[depth], Fraction(0))
    ordered = sorted(zip(scores, pair.draft_path_probs(3), strict=True), key=lambda leaf: -leaf[0])
    assert len(ordered) == 27
    total, reached, bound = Fraction(0), Fraction(0), z[0][0]
    for score, prob in ordered:
        total += prob
        hit = 1 - (1 - total) ** num_drafts
        bound += score * (hit - reached)
        reached = hit
    assert Fraction(best.lower) <= bound <= Fraction(best.upper)

    larger = [masses[0], *(level * Fraction(101, 100) for level in masses[1:])]
    too_much_for_the_target = (larger[1] > pair.target[0].ravel()).any()
    assert too_much_for_the_target or most_violated_antichain(pair, larger, num_drafts)[0] > 0


def test_one_path_and_identical_models_need_no_step() -> None:
    """Block verification and its slacks are optimal for K = 1, and for identical models at any K."""
    pair = instances.random_float(4, 3, 3)
    assert multi_path_interval(pair, 1).rounds == 0
    same = instances.random_float(4, 3, 3, agreement=1.0)
    best = multi_path_interval(same, 6)
    assert best.rounds == 0
    assert best.value == pytest.approx(4.0, rel=1e-12)


@pytest.mark.parametrize("concentration", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("num_drafts", [2, 4, 16])
def test_one_position_needs_no_step(num_drafts: int, concentration: float) -> None:
    """The min cut is a feasible law and a dual: 1 + α_K, also where tokens are rarer than rounding."""
    rows = np.random.default_rng([5, num_drafts]).dirichlet(np.full(1_000, concentration), 2)
    pair = ModelPair.context_free_pair(*rows, draft_length=1)
    best = multi_path_interval(pair, num_drafts)
    assert best.rounds == 0
    assert best.relative_gap < 1e-9
    assert best.value == pytest.approx(1 + optimal_acceptance(*rows, num_drafts).value, rel=1e-9)
    assert multi_path_interval(pair, num_drafts + 1).lower > best.upper  # the partner: another cut


def tiny_row(*entries: str) -> list[Fraction]:
    """Exact probabilities; the one given as "rest" takes what the others leave."""
    left = 1 - sum((Fraction(entry) for entry in entries if entry != "rest"), start=Fraction(0))
    return [left if entry == "rest" else Fraction(entry) for entry in entries]


TINY = {
    "unlikely drafts of likely tokens": (
        tiny_row("1/21", "10/21", "10/21"),
        tiny_row("1e-6", "rest", "1e-7"),
    ),
    "zeros beside 1e-30": (tiny_row("1e-30", "3/10", "rest", "0"), tiny_row("3/5", "1e-25", "rest", "1e-12")),
    "a ladder": (tiny_row("rest", "1e-10", "1e-20", "1e-30"), tiny_row("1e-30", "1e-20", "1e-10", "rest")),
    "hardly any overlap": (tiny_row("rest", "1e-15"), tiny_row("1e-18", "rest")),
    "no overlap but 1e-6": (tiny_row("1e-6", "rest", "0"), tiny_row("rest", "0", "1e-30")),
    "one per K": (tiny_row("1/2", "1/4", "rest"), tiny_row("1/64", "1e-9", "rest")),
}


TINY_SIZES = ((1, 1), (1, 2), (1, 8), (1, 64), (2, 3), (2, 64))


TINY_CASES = [(name, L, K) for name, rows in TINY.items() for L, K in TINY_SIZES if len(rows[0]) ** L <= 9]


@first_is_quick(("name", "draft_length", "num_drafts"), TINY_CASES, quick=8)
def test_tiny_probabilities(name: str, draft_length: int, num_drafts: int) -> None:
    """Entries from 1e-6 to 1e-30: the interval holds the rational optimum, not that plus 1e-7."""
    assert_holds_the_optimum(ModelPair.context_free_pair(*TINY[name], draft_length), num_drafts)


def assert_holds_the_optimum(pair: ModelPair, num_drafts: int) -> None:
    best = multi_path_interval(pair, num_drafts, relative_gap=1e-8)
    exact = multi_path_optimum(pair, num_drafts).value
    assert Fraction(best.lower) <= exact <= Fraction(best.upper)
    assert best.relative_gap <= 1e-8
    assert not Fraction(best.lower) <= exact + Fraction(1, 10**7) <= Fraction(best.upper)
    proofs_hold(pair, num_drafts, best)


def test_rows_that_do_not_quite_sum_to_one_widen_the_bounds() -> None:
    """Within the pair's tolerance q(a) and its leaves disagree; both bounds allow for that."""
    rows = np.array([0.5, 0.5]), np.array([0.25, 0.75 + 9e-10])
    loose = ModelPair.context_free_pair(list(rows[0]), list(rows[1]), 2)
    best = multi_path_interval(loose, 2, relative_gap=1e-7)
    assert best.lower < multi_path_optimum(loose, 2).value < best.upper
    assert best.upper - best.lower > 1e-9


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"relative_gap": 0.0}, "relative_gap"),
        ({"relative_gap": float("nan")}, "relative_gap"),
        ({"time_limit": -1.0}, "time_limit"),
        ({"num_drafts": 0}, "num_drafts"),
    ],
)
def test_bad_arguments(keywords: dict[str, float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        multi_path_interval(**{"pair": instances.two_token(), "num_drafts": 2, **keywords})


@pytest.mark.parametrize(
    ("seed", "vocab_size", "draft_length", "num_drafts", "concentration", "agreement"),
    [(1, 2, 8, 4, 1.0, 0.5), (1, 10, 3, 4, 1.0, 0.5), (2, 10, 3, 2, 0.3, 0.0), (3, 10, 3, 8, 0.3, 0.5)],
)
def test_hundreds_of_leaves_close_to_one_in_a_million(
    seed: int, vocab_size: int, draft_length: int, num_drafts: int, concentration: float, agreement: float
) -> None:
    """256 and 1 000 leaves; the bounds move monotonically and end within 1e-6."""
    pair = instances.random_float(seed, vocab_size, draft_length, concentration, agreement)
    history: list[tuple[int, float, float]] = []
    best = multi_path_interval(pair, num_drafts, progress=lambda *entry: history.append(entry))
    assert best.status == "optimal"
    assert best.relative_gap <= 1e-6
    rounds, lowers, uppers = map(np.array, zip(*history, strict=True))
    assert list(rounds) == list(range(best.rounds + 1))
    assert (np.diff(lowers) >= 0).all()
    assert (np.diff(uppers) <= 0).all()
    assert (lowers[-1], uppers[-1]) == (best.lower, best.upper)
    proofs_hold(pair, num_drafts, best)


def test_a_gap_below_rounding_stalls_with_a_valid_interval() -> None:
    """1e-15 is less than what rounding is allowed: the search ends by itself and says so."""
    pair, num_drafts = instances.random_rational([31, 2], 2, 3), 3
    best = multi_path_interval(pair, num_drafts, relative_gap=1e-15)
    assert best.status == "stalled"
    assert not best.reached
    assert best.relative_gap > 1e-15
    exact = multi_path_optimum(pair, num_drafts).value
    assert Fraction(best.lower) <= exact <= Fraction(best.upper)
    assert best.relative_gap < 1e-9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("num_drafts", [10**6, 10**9, 10**12, 10**18])
@pytest.mark.parametrize("name", ["sticky_chain", "partial_overlap", "disjoint_supports", "random"])
def test_as_many_drafts_as_one_likes(name: str, num_drafts: int) -> None:
    """With K beyond all 1/q the optimum is 1 + the target's mass on the contexts that can be drafted."""
    pair = instances.random_rational(3, 5, 3) if name == "random" else instances.NAMED[name](3)
    reach = sum(
        float(pair.target_path_probs(depth)[pair.draft_path_probs(depth) > 0].sum()) for depth in range(4)
    )
    best = multi_path_interval(pair, num_drafts)
    assert best.status == "optimal"
    assert best.lower <= reach + 1e-12
    assert best.upper >= reach * (1 - 1e-5)
    assert best.value == pytest.approx(reach, rel=1e-5)


def test_models_at_the_edge_of_float64_have_an_interval() -> None:
    """Rows down to 1e-300, zeros and tame ones, up to 10^13 drafts: bounds, and no failure of a library."""
    rng = np.random.default_rng(0)

    def extreme(count: int, vocab_size: int) -> np.ndarray:
        rows = rng.dirichlet(np.full(vocab_size, 0.3), count) ** float(rng.choice([1, 1, 10, 40]))
        rows = np.maximum(rows, rng.choice([0.0, 1e-300]))
        return rows / rows.sum(axis=1, keepdims=True)

    for _ in range(60):
        V, L = int(rng.integers(2, 4)), int(rng.integers(1, 4))
        levels = [extreme(V**depth, V) for depth in (*range(L + 1), *range(L))]
        pair = ModelPair(tuple(levels[: L + 1]), tuple(levels[L + 1 :]), tuple("abc"[:V]))
        interval = multi_path_interval(pair, int(10 ** rng.integers(0, 14)))
        assert 1 - 1e-9 <= interval.lower <= interval.upper <= L + 1 + 1e-9


def test_the_loops_are_the_same_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no index may be out of its array.  Sums in another order move the bounds by their last digits."""
    pair = instances.random_float(2, 2, 2, 1.0, 0.0)
    compiled = multi_path_interval(pair, 2)
    folder = "spectheory.optima.interval"
    assert run_in_python(monkeypatch, f"{folder}.row_passes", f"{folder}.tree_passes") > 15
    with np.errstate(divide="ignore"):
        found = multi_path_interval(pair, 2)
    assert (found.status, found.rounds, found.segments) == ("optimal", compiled.rounds, compiled.segments)
    assert found.rounds > 5
    assert found.lower == pytest.approx(compiled.lower, rel=1e-9)
    assert found.upper == pytest.approx(compiled.upper, rel=1e-9)
