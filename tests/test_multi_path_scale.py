"""The multi-path optimum at scale: intervals around the exact optimum, bounds that reject, early stops."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from spectheory import instances
from spectheory.bounds.antichain_hulls import most_violated_antichain
from spectheory.bounds.context_tree import ContextTree, subtree_sums
from spectheory.bounds.dual_scores import certified_upper_bound
from spectheory.bounds.lower_bounds import certified_lower_bound
from spectheory.errors import EnumerationTooLargeError, InfeasiblePointError, InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs import multi_path_optimum, single_path_optimum, solve, solve_exact
from spectheory.programs.compact_form import compact_form_program
from spectheory.programs.interval import interval
from spectheory.programs.interval.interior_point import ChordProgram
from spectheory.programs.interval.interval import CertifiedInterval, multi_path_interval

SHAPES = ((2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (2, 2), (3, 2))
SMALL = [
    (instances.random_rational([31, number], *SHAPES[number % len(SHAPES)]), 1 + number % 8)
    for number in range(48)
] + [(build(2), num_drafts) for build in instances.NAMED.values() for num_drafts in (2, 5)]
"""48 random exact pairs with zeros, ties and equal rows, K = 1..8, and every named instance."""


def small_enough(pair: ModelPair) -> bool:
    return pair.vocab_size**pair.draft_length <= 9


def proofs_hold(pair: ModelPair, num_drafts: int, best: CertifiedInterval) -> None:
    """Both ends follow from the published points alone, through the two bounding functions."""
    assert certified_lower_bound(pair, num_drafts, best.skewed_draft) == best.lower == best.value
    assert certified_upper_bound(pair, num_drafts, best.scores, best.slacks) == pytest.approx(
        best.upper, rel=1e-9
    )
    assert sum(float(level.sum()) for level in best.node_masses) == pytest.approx(best.lower, rel=1e-10)


# ------------------------------------------------------------------ against the exact optimum


@pytest.mark.parametrize("number", range(len(SMALL)))
def test_the_interval_contains_the_exact_optimum(number: int) -> None:
    """lower ≤ optimum of the antichain program ≤ upper, in rational arithmetic, and no wider than asked."""
    pair, num_drafts = SMALL[number]
    if not small_enough(pair):
        pair = pair.truncate(1)
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
    sum to at least ``lower``; the least draft prices that go with z give an exact bound of at most ``upper``.
    Masses a percent larger break a constraint."""
    pair, num_drafts = instances.random_rational([41, seed], 3, 3), 2 + seed % 4
    best = multi_path_interval(pair, num_drafts)
    masses = [np.array([Fraction(x) for x in level], dtype=object) for level in best.node_masses]
    for depth in range(3):
        assert (masses[depth + 1] <= (pair.target[depth] * masses[depth][:, None]).ravel()).all()
    violation, _ = most_violated_antichain(pair, masses, num_drafts)
    assert violation == 0
    assert sum(level.sum() for level in masses) >= Fraction(best.lower)

    z = [np.array([Fraction(price) for price in level], dtype=object) for level in best.slacks]
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
    """Block verification and its prices are optimal for K = 1, and for identical models at any K."""
    pair = instances.random_float(4, 3, 3)
    assert multi_path_interval(pair, 1).rounds == 0
    same = instances.random_float(4, 3, 3, agreement=1.0)
    best = multi_path_interval(same, 6)
    assert best.rounds == 0
    assert best.value == pytest.approx(4.0, rel=1e-12)


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


@pytest.mark.parametrize(("name", "draft_length", "num_drafts"), TINY_CASES)
def test_tiny_probabilities(name: str, draft_length: int, num_drafts: int) -> None:
    """Entries from 1e-6 to 1e-30: the interval holds the rational optimum, not that plus 1e-7."""
    assert_holds_the_optimum(ModelPair.context_free_pair(*TINY[name], draft_length), num_drafts)


def tiny_rows(rng: np.random.Generator, contexts: int, vocab_size: int) -> np.ndarray:
    exponents = rng.choice([0, 0, 1, 6, 9, 12, 20, 30], size=(contexts, vocab_size))
    weights = np.array([[Fraction(1, 10 ** int(e)) for e in row] for row in exponents], dtype=object)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("first", range(0, 60, 15))
def test_random_tiny_probabilities(first: int) -> None:
    """60 pairs with weights 10^-e, e up to 30, over their sum, a context of its own for every row."""
    for number in range(first, first + 15):
        rng = np.random.default_rng([71, number])
        V, L = ((2, 1), (3, 1), (2, 2), (4, 1))[number % 4]

        target = [tiny_rows(rng, V**depth, V) for depth in range(L + 1)]
        draft = [tiny_rows(rng, V**depth, V) for depth in range(L)]
        pair = ModelPair(tuple(target), tuple(draft), tuple("ABCD"[:V]))
        assert_holds_the_optimum(pair, (2, 8, 64)[number % 3])


def assert_holds_the_optimum(pair: ModelPair, num_drafts: int) -> None:
    best = multi_path_interval(pair, num_drafts, relative_gap=1e-8)
    exact = multi_path_optimum(pair, num_drafts).value
    assert Fraction(best.lower) <= exact <= Fraction(best.upper)
    assert best.relative_gap <= 1e-8
    assert not Fraction(best.lower) <= exact + Fraction(1, 10**7) <= Fraction(best.upper)
    proofs_hold(pair, num_drafts, best)


# ------------------------------------------------------------------ the two bounds


@pytest.mark.parametrize("seed", range(8))
def test_any_feasible_point_bounds_the_optimum(seed: int) -> None:
    """Mixtures of rankings from below and random prices from above: feasible, so never past the optimum."""
    pair, num_drafts = instances.random_rational([5, seed], 3, 2), 2 + seed % 3
    rng = np.random.default_rng(seed)
    exact = multi_path_optimum(pair, num_drafts).value
    draft = pair.to_float().draft_path_probs(2)
    mixture = np.zeros(9)
    for weight in rng.dirichlet(np.ones(4)):
        order = rng.permutation(9)  # ascending rank: the top of the ranking comes last
        cumulative = np.cumsum(draft[order])
        mixture[order] += weight * np.diff(cumulative**num_drafts, prepend=0.0)
    assert Fraction(certified_lower_bound(pair, num_drafts, mixture)) <= exact
    z = [np.zeros(1), rng.uniform(0, 2, 3), rng.uniform(0, 1, 9)]
    y = [np.ones(1), np.ones(3), np.maximum(1 - z[2], 0.0)]
    target = pair.to_float().target
    y[1] = np.maximum(1 + (target[1] * z[2].reshape(3, 3)).sum(axis=1) - z[1], 0.0)
    y[0] = 1 + (target[0] * z[1]).sum(axis=1)
    assert exact <= Fraction(certified_upper_bound(pair, num_drafts, y, z))


def test_an_infeasible_skewed_draft_is_rejected_with_its_witness() -> None:
    """The witness is a set of leaves with r(S) > f(q(S)), recomputed here."""
    pair = instances.random_float(2, 3, 3, concentration=0.5)
    best = multi_path_interval(pair, 3)
    draft = pair.draft_path_probs(3)
    leaf = int(np.argmax(best.skewed_draft / draft))
    wrong = 0.9 * best.skewed_draft
    wrong[leaf] += 0.1
    with pytest.raises(InfeasiblePointError, match="leaves") as caught:
        certified_lower_bound(pair, 3, wrong)
    numbers = [int(np.dot(context, (9, 3, 1))) for context in caught.value.witness]
    reachable = 1 - (1 - draft[numbers].sum()) ** 3
    assert wrong[numbers].sum() > reachable
    assert caught.value.violation == pytest.approx(wrong[numbers].sum() / reachable - 1, rel=1e-9)


def test_mass_on_an_undrafted_leaf_is_rejected() -> None:
    """q(b) = 0 and r(b) > 0 is infeasible whatever the size; r = 0 there is not."""
    pair = instances.disjoint_supports(1)
    with pytest.raises(InfeasiblePointError) as caught:
        certified_lower_bound(pair, 2, np.array([1e-3, 0.0, 0.0, 0.999]))
    assert caught.value.witness == ((0,),)
    assert certified_lower_bound(pair, 2, np.array([0.0, 0.0, 0.5, 0.5])) == pytest.approx(1.0)


def test_infeasible_prices_are_rejected_with_their_node() -> None:
    """Optimal prices pass; lowered at one node, negative, or of a wrong shape they do not."""
    pair = instances.random_float(3, 2, 4)
    best = multi_path_interval(pair, 2)
    y, z = [level.copy() for level in best.scores], [level.copy() for level in best.slacks]
    bound = certified_upper_bound(pair, 2, y, z)
    assert bound == pytest.approx(best.upper, rel=1e-9)
    node = int(np.argmax(y[4]))
    y[4][node] -= 1e-3
    with pytest.raises(InfeasiblePointError, match="expected at least") as caught:
        certified_upper_bound(pair, 2, y, z)
    assert caught.value.witness == (pair.context(4, node),)
    y[4][node] += 2e-3
    assert certified_upper_bound(pair, 2, y, z) > bound
    z[2][1] = -0.5
    with pytest.raises(InvalidInputError, match="at least 0"):
        certified_upper_bound(pair, 2, y, z)
    with pytest.raises(InvalidInputError, match="depths"):
        certified_upper_bound(pair, 2, y[:3], z)


def test_rows_that_do_not_quite_sum_to_one_widen_the_bounds() -> None:
    """Within the pair's tolerance q(a) and its leaves disagree; both bounds allow for that."""
    rows = np.array([0.5, 0.5]), np.array([0.25, 0.75 + 9e-10])
    loose = ModelPair.context_free_pair(list(rows[0]), list(rows[1]), 2)
    best = multi_path_interval(loose, 2, relative_gap=1e-7)
    assert best.lower < multi_path_optimum(loose, 2).value < best.upper
    assert best.upper - best.lower > 1e-9


def test_mismatch_covers_both_directions() -> None:
    """q(a) and the leaves below it differ by at most 1 + mismatch, whichever is larger; exactly, and for
    rows below 1 the factor is attained, where the product of 1 + deviation would not be enough."""
    for sums in ((0.9, 0.8), (1.1, 1.2), (0.9, 1.2)):
        draft = tuple(np.full((2**depth, 2), total / 2) for depth, total in enumerate(sums))
        target = tuple(np.full((2**depth, 2), 0.5) for depth in range(3))
        pair = ModelPair(target, draft, ("A", "B"), row_sum_tolerance=0.5)
        tree = ContextTree.of(pair)
        below = subtree_sums(tree.draft_probs[-1], 2, 2)
        for masses, leaves in zip(tree.draft_probs, below, strict=True):
            most = np.maximum(masses / leaves, leaves / masses).max()
            assert most <= (1 + tree.mismatch) * (1 + 1e-15)
        if max(sums) < 1:
            assert tree.draft_probs[0][0] / below[0][0] == pytest.approx(1 + tree.mismatch, rel=1e-12)
            assert 1 + tree.mismatch > 1.1 * 1.2


def test_draft_rows_without_mass_are_refused() -> None:
    """A tolerance of 1 lets a row of zeros into a pair; no factor makes up for it."""
    target = np.full((1, 2), 0.5), np.full((2, 2), 0.5)
    empty = ModelPair(target, (np.zeros((1, 2)),), ("A", "B"), row_sum_tolerance=1.0)
    with pytest.raises(InvalidInputError, match=r"depth 0 has a sum that differs from 1 by 1; .* normalise"):
        multi_path_interval(empty, 2)


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
    """Each names the argument."""
    with pytest.raises(InvalidInputError, match=message):
        multi_path_interval(**{"pair": instances.two_token(), "num_drafts": 2, **keywords})


def test_too_many_leaves_are_refused() -> None:
    """2^19 leaves would not fit the memory limit."""
    with pytest.raises(EnumerationTooLargeError, match="524288 leaves"):
        multi_path_interval(ModelPair.context_free_pair([0.5, 0.5], [0.4, 0.6], 19), 2)


# ------------------------------------------------------------------ the compact form


def test_compact_form_bounds_shrink_to_the_optimum() -> None:
    """inner ≤ optimum ≤ outer, monotone in nested points, and exact once every q(T) is a point."""
    for number in range(6):
        pair, num_drafts = instances.random_rational([9, number], 2, 2), 2 + number % 3
        exact = multi_path_optimum(pair, num_drafts).value
        last_inner, last_outer = -np.inf, np.inf
        for count in (2, 4, 8):
            points = np.arange(count + 1) / count
            inner = solve(compact_form_program(pair.to_float(), num_drafts, points, "inner")).value
            outer = solve(compact_form_program(pair.to_float(), num_drafts, points, "outer")).value
            assert last_inner - 1e-8 <= inner <= float(exact) + 1e-8
            assert last_outer + 1e-8 >= outer >= float(exact) - 1e-8
            last_inner, last_outer = inner, outer
        leaves = pair.draft_path_probs(2)
        every = {sum(leaves[i] for i in range(4) if bits >> i & 1) for bits in range(16)}
        for side in ("inner", "outer"):
            program = compact_form_program(pair, num_drafts, sorted(Fraction(u) for u in every), side)
            assert solve_exact(program).value == exact


def test_compact_form_agrees_with_the_interval_beyond_listed_antichains() -> None:
    """V = 3, L = 4 has more antichains than atoms; inner and outer enclose the interval."""
    pair = instances.random_float(6, 3, 4, concentration=0.7, agreement=0.3)
    best = multi_path_interval(pair, 3)
    points = np.linspace(0, 1, 13)
    inner = solve(compact_form_program(pair, 3, points, "inner"))
    outer = solve(compact_form_program(pair, 3, points, "outer"))
    assert inner.value - 1e-7 <= best.lower <= best.upper <= outer.upper
    assert 0 < outer.value - inner.value < 0.05
    assert inner.value < best.lower < best.upper < outer.value


def test_compact_form_refuses() -> None:
    """Points out of order or range, no end, a wrong side, floats for an exact pair, a large program."""
    pair = instances.two_token()
    for points, side, message in (
        (["0", "1", "1/2"], "outer", "increase"),
        (["0", "3/2"], "outer", "increase"),
        ([], "outer", "increase"),
        (["1/4", "1"], "inner", "start with 0"),
        (["0", "1"], "both", "side"),
        ([0.0, 1.0], "inner", "exact"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            compact_form_program(pair, 2, points, side)  # type: ignore[arg-type]
    with pytest.raises(EnumerationTooLargeError, match="points"):
        compact_form_program(pair, 2, ["0", "1/2", "1"], "outer", max_variables=20)


# ------------------------------------------------------------------ at scale, and early stops


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


def test_a_wider_gap_stops_sooner_and_contains_the_narrow_interval() -> None:
    """Both intervals hold the optimum, so they overlap; the loose one takes fewer rounds."""
    pair = instances.random_float(8, 4, 4, 0.5, 0.3)
    loose, tight = (multi_path_interval(pair, 3, relative_gap=gap) for gap in (1e-2, 1e-7))
    assert loose.rounds < tight.rounds
    assert loose.relative_gap <= 1e-2
    assert tight.relative_gap <= 1e-7
    assert max(loose.lower, tight.lower) <= min(loose.upper, tight.upper)


def test_a_time_limit_returns_a_valid_interval() -> None:
    """The first check already comes too late, so block verification and its prices remain."""
    pair = instances.random_float(1, 10, 3, 1.0, 0.5)
    best = multi_path_interval(pair, 4, time_limit=1e-9)
    assert best.status == "time limit"
    assert best.rounds == 0
    assert best.lower < 3.908 < best.upper
    proofs_hold(pair, 4, best)


def steps_that(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], None]) -> None:
    """Make every interior-point step call ``act`` with its number, 1, 2, .., before it moves."""
    numbers, step = itertools.count(1), ChordProgram.step

    def patched(program: ChordProgram) -> float:
        act(next(numbers))
        return step(program)

    monkeypatch.setattr(ChordProgram, "step", patched)


def test_a_time_limit_in_the_middle_of_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that moves one second per step, 6.5 s are seven steps: overrun by less than one step."""
    clock = [0.0]

    def tick(number: int) -> None:
        clock[0] = float(number)

    pair = instances.random_float(1, 10, 3, 1.0, 0.5)
    full = multi_path_interval(pair, 4)
    steps_that(monkeypatch, tick)
    monkeypatch.setattr(interval, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    best = multi_path_interval(pair, 4, time_limit=6.5)
    assert (best.status, best.rounds, best.seconds) == ("time limit", 7, 7.0)
    assert full.rounds > 7
    assert best.lower < full.lower <= full.upper < best.upper
    assert 1e-6 < best.relative_gap < 0.5
    proofs_hold(pair, 4, best)
    # the same limit ends nothing when the clock stands still
    clock[0] = 0.0
    monkeypatch.setattr(interval, "time", SimpleNamespace(monotonic=lambda: 0.0))
    assert multi_path_interval(pair, 4, time_limit=6.5).status == "optimal"


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """A real SIGINT to this process, which Python turns into KeyboardInterrupt."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, previous)


@pytest.mark.parametrize("last", [1, 6, 11])
def test_a_signal_within_a_step(
    monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None], last: int
) -> None:
    """SIGINT inside a step: the steps before it count, and both ends keep their proofs."""
    steps_that(monkeypatch, lambda number: ctrl_c() if number == last else None)
    pair = instances.random_float(1, 10, 3, 1.0, 0.5)
    best = multi_path_interval(pair, 4)
    assert (best.status, best.rounds) == ("interrupted", last - 1)
    assert best.lower < 3.90817 < best.upper
    proofs_hold(pair, 4, best)


@pytest.mark.parametrize("name", ["certified_bound_of_draft", "certified_bound_of_slacks"])
def test_a_signal_within_a_bound(
    monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None], name: str
) -> None:
    """SIGINT while a bound is computed: the one before it stands, with its own proof."""
    numbers, bound = itertools.count(1), getattr(interval, name)

    def patched(*arguments: object) -> object:
        found = bound(*arguments)
        if next(numbers) == 8:
            ctrl_c()
        return found

    monkeypatch.setattr(interval, name, patched)
    pair = instances.random_float(1, 10, 3, 1.0, 0.5)
    best = multi_path_interval(pair, 4)
    assert best.status == "interrupted"
    assert 0 < best.rounds < 8
    proofs_hold(pair, 4, best)


def test_a_signal_before_there_is_an_interval(
    monkeypatch: pytest.MonkeyPatch, ctrl_c: Callable[[], None]
) -> None:
    """While the tree is built there is nothing to return, and Ctrl-C is the caller's."""
    of = ContextTree.of

    def patched(pair: ModelPair) -> ContextTree:
        ctrl_c()
        return of(pair)

    monkeypatch.setattr(interval.ContextTree, "of", staticmethod(patched))
    with pytest.raises(KeyboardInterrupt):
        multi_path_interval(instances.two_token(), 2)


def test_ctrl_c_returns_the_best_interval() -> None:
    """KeyboardInterrupt out of the progress callback, as Ctrl-C raises it."""

    def interrupt(number: int, lower: float, upper: float) -> None:
        if number == 12:
            raise KeyboardInterrupt

    pair = instances.random_float(1, 10, 3, 1.0, 0.5)
    best = multi_path_interval(pair, 4, progress=interrupt)
    assert (best.status, best.rounds) == ("interrupted", 12)
    assert best.lower < 3.90817 < best.upper
    assert 1e-6 < best.relative_gap < 1
    proofs_hold(pair, 4, best)


def test_an_error_in_the_callback_is_not_swallowed() -> None:
    """Only Ctrl-C and the time limit end the search quietly."""

    def broken(number: int, lower: float, upper: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        multi_path_interval(instances.two_token(), 2, progress=broken)


def test_a_gap_below_rounding_stalls_with_a_valid_interval() -> None:
    """1e-15 is out of reach in float64: the search ends by itself and says so."""
    pair, num_drafts = instances.random_rational([31, 2], 2, 3), 3
    best = multi_path_interval(pair, num_drafts, relative_gap=1e-15)
    assert best.status in ("optimal", "stalled")
    exact = multi_path_optimum(pair, num_drafts).value
    assert Fraction(best.lower) <= exact <= Fraction(best.upper)
    assert best.relative_gap < 1e-9
