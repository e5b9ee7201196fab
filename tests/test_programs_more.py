"""Transport at one position and over blocks, the unsimplified program, the dual, Lemmas 3 and 4.7.

Every program: exact, float and structured values agree, the optimality conditions hold, and they do
not hold for a dual that was moved.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np
import ot
import pytest
import sympy
import torch

from spectheory import instances
from spectheory.bounds.dual_scores import (
    ScoreChain,
    dual_objective,
    feasible_scores,
    level_set_weights,
    path_scores,
    sampled_upper_bound,
    upper_bound,
)
from spectheory.bounds.skewed_draft import SkewedDraft
from spectheory.drafts import DraftProcess, Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.errors import CertificationError, EnumerationTooLargeError, InvalidInputError, SolverError
from spectheory.pair import ModelPair
from spectheory.programs import (
    ConstraintBlock,
    LinearProgram,
    Solution,
    bernoulli_acceptance,
    check_solution,
    multi_path_optimum,
    multi_path_program,
    optimal_acceptance,
    otm_optimum,
    otm_program,
    single_path_optimum,
    single_path_program,
    solve,
    solve_exact,
    uniform_acceptance,
)
from spectheory.programs.block_transport import (
    block_transport_optimum,
    block_transport_program,
    block_transport_value,
)
from spectheory.programs.dual import (
    dual_optimum,
    dual_program,
    scores_of,
)
from spectheory.programs.one_position.closed_forms import bernoulli_closed_form, closed_form_symbols
from spectheory.programs.one_position.min_cut import min_cut_of_law, optimal_acceptance_curve
from spectheory.programs.one_position.otm import position_draft_law
from spectheory.programs.one_position.otm_bounds import equation_9, transport_bounds
from spectheory.programs.unsimplified import unsimplified_optimum, unsimplified_program

Law = dict[tuple[int, ...], Any]
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


def moved(solution: Solution, program: LinearProgram) -> Solution:
    """The same primal with one multiplier of the last block moved, that of the largest right-hand side."""
    block = program.blocks[-1]
    number = int(np.argmax(abs(block.rhs)))
    multipliers = solution.dual[block.name].copy()
    multipliers[number] = multipliers[number] + 1
    return dataclasses.replace(solution, dual={**solution.dual, block.name: multipliers})


def assert_solved(
    exact_program: LinearProgram, exact: Solution, float_program: LinearProgram, floating: Solution
) -> None:
    """Both values agree, both certify themselves, the float bounds hold, and a moved dual is rejected."""
    assert (exact.arithmetic, exact.status, exact.gap) == ("exact", "optimal", 0)
    assert floating.arithmetic == "float64"
    assert floating.value == pytest.approx(float(exact.value), abs=1e-9)
    assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)
    assert floating.upper - floating.lower < 1e-7
    for program, solution, tolerance in ((exact_program, exact, 0.0), (float_program, floating, 1e-8)):
        check_solution(program, solution, tolerance)
        with pytest.raises(CertificationError, match="residual"):
            check_solution(program, moved(solution, program), tolerance)


# ------------------------------------------------------ one position, any law of the drafts


def random_law(rng: np.random.Generator, vocab_size: int, num_drafts: int) -> Law:
    """Whole weights on some tuples, divided by their sum; correlated in every way."""
    tuples = list(product(range(vocab_size), repeat=num_drafts))
    weights = rng.integers(0, 4, len(tuples)) * (rng.random(len(tuples)) < 0.5)
    weights[rng.integers(len(tuples))] += 1
    total = int(weights.sum())
    return {x: Fraction(int(w), total) for x, w in zip(tuples, weights, strict=True) if w}


def laws() -> list[tuple[str, list[Fraction], Law]]:
    """210 (name, target, law): processes of the package and laws that are none of them."""
    found = []
    for number in range(35):
        V = 2 + number % 3
        pair = instances.random_rational(5_000 + number, V, 1)
        other = instances.random_rational(6_000 + number, V, 1)
        dense = instances.random_rational(7_000 + number, V, 1, zero_probability=0)
        target = list(pair.target[0][0])
        processes: list[tuple[ModelPair, DraftProcess]] = [
            (pair, Iid(2)),
            (pair, Iid(3)),
            (dense, WithoutReplacement((2,))),
            (pair, PerPath((pair, other))),
            (pair, PrefixTree((2,))),
        ]
        for model, process in processes:
            found.append(
                (f"{process.name}{process.num_drafts}-{number}", target, position_draft_law(model, process))
            )
        law = random_law(np.random.default_rng(number), V, 2)
        found.append((f"explicit-{number}", target, law))
    return found


LAWS = laws()


def cuts_by_hand(target: list[Fraction], law: Law) -> list[Fraction]:
    """target(H) + 1 - P(all drafts in H) for every H, one sum per set."""
    values = []
    for inside in product((False, True), repeat=len(target)):
        avoided = sum((prob for x, prob in law.items() if all(inside[t] for t in x)), start=Fraction(0))
        values.append(
            sum((p for p, i in zip(target, inside, strict=True) if i), start=Fraction(0)) + 1 - avoided
        )
    return values


@pytest.mark.parametrize(("name", "target", "law"), LAWS, ids=[name for name, _, _ in LAWS])
def test_min_cut_is_the_transport_optimum_for_any_law(name: str, target: list[Fraction], law: Law) -> None:
    """max P(Y ∈ S(X)) = min_H [target(H) + 1 - P(S(X) ⊆ H)], exactly."""
    exact = otm_optimum(target, draft_law=law)
    cut = min_cut_of_law(target, law)
    assert cut.value == 1 - exact.value == min(cuts_by_hand(target, law))
    inside = set(np.flatnonzero(cut.tokens).tolist())
    attained = (
        sum(target[i] for i in inside) + 1 - sum(prob for x, prob in law.items() if inside.issuperset(x))
    )
    assert attained == cut.value

    row, floats = np.array(target, dtype=float), {x: float(prob) for x, prob in law.items()}
    assert min_cut_of_law(row, floats).value == pytest.approx(float(cut.value), abs=1e-14)
    programs = otm_program(target, draft_law=law), otm_program(row, draft_law=floats)
    assert_solved(programs[0], exact, programs[1], otm_optimum(row, draft_law=floats))


@pytest.mark.parametrize("first", range(0, 210, 15))
def test_iid_law_is_the_product_program(first: int) -> None:
    """The law of Iid(K), spelled out, gives what the program of K i.i.d. drafts and the sorted cut give, and
    that program's exact and float points are optimal: 210 pairs, 15 per test."""
    for number in range(first, first + 15):
        pair, num_drafts = instances.random_rational(8_000 + number, 2 + number % 3, 1), 1 + number // 3 % 3
        target, draft = pair.target[0][0], pair.draft[0][0]
        law = position_draft_law(pair, Iid(num_drafts))
        exact = otm_optimum(target, draft, num_drafts)
        assert exact.value == otm_optimum(target, draft_law=law).value
        assert 1 - exact.value == optimal_acceptance(target, draft, num_drafts).value
        assert 1 - exact.value == min_cut_of_law(target, law).value
        rows = target.astype(float), draft.astype(float)
        programs = otm_program(target, draft, num_drafts), otm_program(*rows, num_drafts)
        assert_solved(programs[0], exact, programs[1], otm_optimum(*rows, num_drafts))
        cut = optimal_acceptance(*rows, num_drafts).value
        assert 1 - cut == pytest.approx(float(exact.value), abs=1e-14)


def test_known_laws() -> None:
    """Two distinct drafts of two tokens are both; K copies of one draft are worth one draft."""
    pair = instances.two_token(1)
    everything = position_draft_law(pair, WithoutReplacement((2,)))
    assert otm_optimum(["1/3", "2/3"], draft_law=everything).value == 0
    copies = {(x, x, x): draft for x, draft in enumerate(pair.draft[0][0])}
    assert 1 - otm_optimum(["1/3", "2/3"], draft_law=copies).value == Fraction(2, 3)
    # P(both drafts in H) is not a function of the sums over H: distinct drafts beat independent ones
    pair = instances.three_token_reversed(1)
    distinct = min_cut_of_law(pair.target[0][0], position_draft_law(pair, WithoutReplacement((2,)))).value
    assert distinct > optimal_acceptance(pair.target[0][0], pair.draft[0][0], 2).value == Fraction(29, 36)


@pytest.mark.parametrize(("vocab_size", "num_drafts"), [(4, 3), (5, 3), (10, 2)])
def test_tiny_marginals_are_not_called_infeasible(vocab_size: int, num_drafts: int) -> None:
    """Rows with entries down to 1e-12: the program is feasible, and its value is the min cut."""
    for seed in range(70):
        rng = np.random.default_rng(seed)
        rows = rng.dirichlet(np.full(vocab_size, 0.2)) * np.exp(rng.normal(size=(2, vocab_size)))
        target, draft = rows / rows.sum(axis=1, keepdims=True)
        solved = 1 - otm_optimum(target, draft, num_drafts).value
        assert solved == pytest.approx(optimal_acceptance(target, draft, num_drafts).value, abs=1e-9)


def test_network_simplex_agrees() -> None:
    """POT's network simplex on the cost 1{y ∉ S(x)} and HiGHS on spectr2023 Eq. 4."""
    rng = np.random.default_rng(5)
    for V, num_drafts in ((2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (10, 2)):
        target, draft = rng.dirichlet(np.ones(V), size=2)
        drafts = list(product(range(V), repeat=num_drafts))
        joint = np.array([prod(draft[t] for t in x) for x in drafts])
        cost = np.array([[float(y not in x) for y in range(V)] for x in drafts])
        simplex = ot.emd2(joint / joint.sum(), target, cost)
        assert otm_optimum(target, draft, num_drafts).value == pytest.approx(simplex, abs=1e-9)
        # membership in the first draft only is a different, worse problem
        first = np.array([[float(y != x[0]) for y in range(V)] for x in drafts])
        if num_drafts > 1:
            assert ot.emd2(joint / joint.sum(), target, first) > simplex + 1e-3


def test_curve_is_the_single_cuts() -> None:
    """One sort for all K gives the values and sets of one call per K: rationals, floats, batches, torch."""
    pair = instances.random_rational(3, 5, 1)
    floats = np.random.default_rng(1).dirichlet(np.ones(40), size=(2, 3))
    rows: list[tuple[Any, Any]] = [
        (pair.target[0][0], pair.draft[0][0]),
        (floats[0], floats[1]),
        (torch.tensor(floats[0]), torch.tensor(floats[1])),
    ]
    for target, draft in rows:
        curve = optimal_acceptance_curve(target, draft, 6)
        assert len(curve) == 6
        for num_drafts, cut in enumerate(curve, start=1):
            alone = optimal_acceptance(target, draft, num_drafts)
            np.testing.assert_array_equal(cut.tokens, alone.tokens)
            np.testing.assert_array_equal(cut.value, alone.value)
    with pytest.raises(InvalidInputError, match="num_drafts"):
        optimal_acceptance_curve(["1"], ["1"], 0)


# ------------------------------------------------------------------------ spectr2023 Lemma 3


def equation_9_by_hand(
    target: list[Fraction], draft: list[Fraction], num_drafts: int, inside: tuple[bool, ...]
) -> Fraction:
    """spectr2023 Eq. 9 in braces, over all V^K ordered tuples."""
    total = Fraction(0)
    for y, chosen in enumerate(inside):
        if chosen:
            total += min(target[y], 1 - (1 - draft[y]) ** num_drafts)
    for x in product(range(len(target)), repeat=num_drafts):
        outside = sum((target[y] for y in set(x) if not inside[y]), start=Fraction(0))
        total += min(prod((draft[t] for t in x), start=Fraction(1)), outside)
    return total


def grid_rows(vocab_size: int, weight: int) -> list[list[Fraction]]:
    """All rows with whole weights 0..``weight`` over their sum, each once."""
    weights = [w for w in product(range(weight + 1), repeat=vocab_size) if any(w)]
    return [list(row) for row in sorted({tuple(Fraction(x, sum(w)) for x in w) for w in weights})]


@pytest.mark.parametrize(("vocab_size", "weight", "num_drafts"), [(2, 4, 1), (2, 4, 2), (2, 4, 3), (3, 2, 2)])
def test_lemma_3_on_a_grid(vocab_size: int, weight: int, num_drafts: int) -> None:
    """(1 - (1 - 1/K)^K) ᾱ ≤ α ≤ ᾱ on every pair of grid rows, and ᾱ = α on every one of them."""
    factor = 1 - Fraction(num_drafts - 1, num_drafts) ** num_drafts
    rows = grid_rows(vocab_size, weight)
    for target, draft in product(rows, rows):
        bounds = transport_bounds(target, draft, num_drafts)
        best = optimal_acceptance(target, draft, num_drafts).value
        assert bounds.lower == factor * bounds.upper <= best == bounds.upper


def test_lemma_3_by_hand() -> None:
    """Every Ω_0 gives a number between α_K and the cut at Ω_0; the minimum and its set agree."""
    for number in range(200):
        V, num_drafts = 2 + number % 3, 1 + number % 4
        pair = instances.random_rational(9_000 + number, V, 1)
        target, draft = list(pair.target[0][0]), list(pair.draft[0][0])
        best = 1 - otm_optimum(target, draft, num_drafts).value
        bounds = transport_bounds(target, draft, num_drafts)
        values = {}
        for inside in product((False, True), repeat=V):
            values[inside] = equation_9_by_hand(target, draft, num_drafts, inside)
            tokens = np.array(inside)
            assert values[inside] == equation_9(pair.target[0][0], pair.draft[0][0], num_drafts, tokens)
            cut = sum(pair.target[0][0][tokens]) + 1 - sum(pair.draft[0][0][tokens]) ** num_drafts
            assert best <= values[inside] <= cut
        assert min(values.values()) == values[tuple(bounds.tokens.tolist())] == bounds.upper == best
        assert bounds.lower == (1 - (1 - Fraction(1, num_drafts)) ** num_drafts) * best
        floats = transport_bounds(pair.target[0][0].astype(float), pair.draft[0][0].astype(float), num_drafts)
        assert floats.upper == pytest.approx(float(bounds.upper), abs=1e-14)


def test_a_set_that_does_not_minimise_is_strictly_above() -> None:
    """The minimum in Eq. 9 matters: two tokens, K = 2, Ω_0 = {B} gives 1 where α_2 = 8/9."""
    target, draft = (np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)[::step] for step in (1, -1))
    assert equation_9(target, draft, 2, np.array([False, True])) > Fraction(8, 9)
    with pytest.raises(EnumerationTooLargeError, match=r"3 drafts over 30 tokens .* use optimal_acceptance"):
        transport_bounds([Fraction(1, 30)] * 30, [Fraction(1, 30)] * 30, 3)


# -------------------------------------------------------------------------- closed forms


def test_bernoulli_expressions_at_rational_points() -> None:
    """Substituted symbol by symbol, Eq. 10 and its three pieces are the optimum of the linear program."""
    b, c, _, K = closed_form_symbols()
    points = [Fraction(0), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(2, 3), Fraction(1)]
    pieces = set()
    for draft_head, target_head, num_drafts in product(points, points, (1, 2, 3)):
        at = {b: sympy.Rational(str(draft_head)), c: sympy.Rational(str(target_head))}
        program = otm_optimum([1 - target_head, target_head], [1 - draft_head, draft_head], num_drafts)
        best = sympy.Rational(str(1 - program.value))
        assert bernoulli_closed_form().subs({**at, K: num_drafts}) == best
        assert bernoulli_closed_form(num_drafts).subs(at) == best
        assert bernoulli_acceptance(b, c, K).subs({**at, K: num_drafts}) == best
        assert sympy.Rational(str(bernoulli_acceptance(draft_head, target_head, num_drafts))) == best
        conditions = [condition.subs(at) for _, condition in bernoulli_closed_form(num_drafts).args]
        pieces.add(conditions.index(True))
    assert pieces == {0, 1, 2}
    swapped = bernoulli_closed_form(2).subs(
        {b: sympy.Rational(1, 10), c: sympy.Rational(1, 2)}, simultaneous=True
    )
    assert swapped != bernoulli_closed_form(2).subs({c: sympy.Rational(1, 10), b: sympy.Rational(1, 2)})


def test_bernoulli_pieces_are_equation_10_identically() -> None:
    """On each piece the two minima are decided, and what is left is the same polynomial."""
    b, c, _, _ = closed_form_symbols()
    for num_drafts in (1, 2, 3, 4, 5):
        closed = bernoulli_closed_form(num_drafts)
        decided = [  # (min(c, 1 - (1-b)^K), min(1 - c, 1 - b^K)) on the three pieces
            c + (1 - b**num_drafts),
            (1 - (1 - b) ** num_drafts) + (1 - c),
            c + (1 - c),
        ]
        assert len(closed.args) == len(decided)
        for (expression, _), expected in zip(closed.args, decided, strict=True):
            assert sympy.expand(expression - expected) == 0


def test_uniform_expression_at_rational_points() -> None:
    """1 - (1 - 1/r)^K is the optimum of the linear program of U(d) against U(d/r)."""
    _, _, r, K = closed_form_symbols()
    for support, ratio in ((2, 1), (2, 2), (3, 3), (4, 2), (4, 4)):
        pair = instances.uniform(support, ratio)
        for num_drafts in (1, 2, 3):
            program = otm_optimum(pair.target[0][0], pair.draft[0][0], num_drafts)
            best = sympy.Rational(str(1 - program.value))
            assert uniform_acceptance(r, K).subs({r: ratio, K: num_drafts}) == best
            assert uniform_acceptance(r, num_drafts).subs(r, ratio) == best
            assert sympy.Rational(str(uniform_acceptance(ratio, num_drafts))) == best
    assert uniform_acceptance(r, 3).subs(r, 2) != uniform_acceptance(r, 2).subs(r, 2)
    b, c, _, _ = closed_form_symbols()
    for function, arguments in (
        (bernoulli_closed_form, ()),
        (bernoulli_acceptance, (b, c)),
        (uniform_acceptance, (r,)),
    ):
        with pytest.raises(InvalidInputError, match="num_drafts"):
            function(*arguments, 0)


# ----------------------------------------------------------------------- block transport


@pytest.mark.parametrize(("draft_length", "value"), [(1, "2/3"), (2, "4/3"), (3, "50/27"), (4, "64/27")])
def test_block_transport_two_tokens(draft_length: int, value: str) -> None:
    """E[τ] of greedy block verification on the two-token example (theory.md §4)."""
    pair = instances.two_token(draft_length)
    assert block_transport_value(pair) == Fraction(value)
    if draft_length <= 3:
        assert block_transport_optimum(pair).value == Fraction(value)


@pytest.mark.parametrize("number", range(len(ALL_PAIRS)))
def test_block_transport_is_its_closed_form(number: int) -> None:
    """max E[β] = Σ_ℓ Σ_a min{p(a), q(a)} (block2024 Lemma 10 and Theorem 3)."""
    pair = ALL_PAIRS[number]
    exact, floating = block_transport_optimum(pair), block_transport_optimum(pair.to_float())
    assert exact.value == block_transport_value(pair)
    assert block_transport_value(pair.to_float()) == pytest.approx(float(exact.value), abs=1e-12)
    assert_solved(block_transport_program(pair), exact, block_transport_program(pair.to_float()), floating)
    # any valid verifier of one path is a coupling too
    assert single_path_optimum(pair).value - 1 <= exact.value


# ----------------------------------------------------------------- unsimplified program


@pytest.mark.parametrize("number", range(len(ALL_PAIRS)))
def test_unsimplified_program_is_the_antichain_program(number: int) -> None:
    """Lemma A.5 and Theorem 4.3 have one optimum, and the law gives budgets and is zero where p is."""
    pair, num_drafts = ALL_PAIRS[number], 1 + number % 3
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
            probs = [pair.target_path_probs(len(a))[_number(pair, a)] for a in prefixes]
            assert sum(exact.primal[a] / p for a, p in zip(prefixes, probs, strict=True)) == 1


def _number(pair: ModelPair, context: tuple[int, ...]) -> int:
    return sum(token * pair.vocab_size**i for i, token in enumerate(reversed(context)))


def test_unsimplified_program_and_dual_for_other_processes() -> None:
    """Trees of drafts and drafts without replacement change the right-hand sides only."""
    for number in range(24):
        pair = instances.random_rational(100 + number, 2, 2, zero_probability=0)
        for process in (PrefixTree((2, 2)), WithoutReplacement((2, 1)), PerPath((pair, pair))):
            best = multi_path_optimum(pair, process=process).value
            assert unsimplified_optimum(pair, process=process).value == best
            assert dual_optimum(pair, process=process).value == best


# --------------------------------------------------------------------------------- dual

DUAL_PAIRS = ALL_PAIRS + [instances.random_rational(4_500 + i, 2, 3) for i in range(4)]


def random_scores(rng: np.random.Generator, pair: ModelPair) -> list[np.ndarray]:
    """Feasible scores: arbitrary numbers, clipped from the leaves up."""
    scores = []
    for depth in range(pair.draft_length + 1):
        numbers = rng.integers(-2, 14, pair.vocab_size**depth)
        scores.append(np.array([Fraction(int(n), 8) for n in numbers], dtype=object))
    return feasible_scores(pair, scores)


def maximum_by_hand(pair: ModelPair, num_drafts: int, scores: list[np.ndarray]) -> Fraction:
    """E[max_k c(X^(k))] over all K-tuples of paths, the path scores summed path by path."""
    L = pair.draft_length
    paths = list(product(range(pair.vocab_size), repeat=L))
    score = {p: sum(scores[i][_number(pair, p[:i])] for i in range(L + 1)) for p in paths}
    prob = {p: prod(pair.draft[i][_number(pair, p[:i])][p[i]] for i in range(L)) for p in paths}
    tuples = product(paths, repeat=num_drafts)
    return sum(prod(prob[p] for p in drafts) * max(score[p] for p in drafts) for drafts in tuples)


@pytest.mark.parametrize("number", range(len(DUAL_PAIRS)))
def test_dual_program_is_tight(number: int) -> None:
    """Strong duality with Theorem 4.3: equal optima, and the scores alone give the value again."""
    pair, num_drafts = DUAL_PAIRS[number], 1 + number % 3
    exact, primal = dual_optimum(pair, num_drafts), multi_path_optimum(pair, num_drafts)
    assert exact.value == primal.value
    scores = scores_of(pair, exact)
    assert upper_bound(pair, num_drafts, scores) == primal.value
    floats = pair.to_float()
    programs = dual_program(pair, num_drafts), dual_program(floats, num_drafts)
    floating = dual_optimum(floats, num_drafts)
    assert_solved(programs[0], exact, programs[1], floating)
    bound = upper_bound(floats, num_drafts, scores_of(floats, floating))
    assert bound == pytest.approx(float(primal.value), abs=1e-8)


def slackness(
    pair: ModelPair, num_drafts: int, budgets: Solution, scores: list[np.ndarray]
) -> list[Fraction]:
    """The products that vanish at optimal points: z(a) times the fall of the mass at a, and
    λ(T) times the slack of (12) at T."""
    depths = range(pair.draft_length + 1)
    mass = {
        (a := pair.context(depth, index)): budgets.primal[a] * prob
        for depth in depths
        for index, prob in enumerate(pair.target_path_probs(depth))
    }
    products, slack = [], None
    for depth in reversed(depths):
        most = np.array([Fraction(1)] * pair.vocab_size**depth, dtype=object)
        if slack is not None:
            most = most + (pair.target[depth] * slack.reshape(-1, pair.vocab_size)).sum(axis=1)
        slack = most - scores[depth]
        for index, z in enumerate(slack if depth else []):
            a = pair.context(depth, index)
            conditional = pair.target[depth - 1].ravel()[index]
            products.append(z * (conditional * mass[a[:-1]] - mass[a]))
    for antichain, weight in level_set_weights(pair, scores).items():
        drafted = sum(pair.draft_path_probs(len(a))[_number(pair, a)] for a in antichain)
        limit = 1 - (1 - drafted) ** num_drafts
        products.append(weight * (limit - sum(mass[a] for a in antichain)))
    return products


@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_complementary_slackness_with_the_primal(num_drafts: int) -> None:
    """All products are ≥ 0, they add up to bound minus value, and vanish exactly at the optimum."""
    rng = np.random.default_rng(num_drafts)
    strict = 0
    for pair in ALL_PAIRS:
        budgets = multi_path_optimum(pair, num_drafts)
        best = scores_of(pair, dual_optimum(pair, num_drafts))
        assert set(slackness(pair, num_drafts, budgets, best)) <= {0}
        other = random_scores(rng, pair)
        products = slackness(pair, num_drafts, budgets, other)
        bound = dual_objective(pair, num_drafts, other)
        assert min(products) >= 0
        assert sum(products) == bound - budgets.value
        strict += bound > budgets.value
    assert strict > 40


def test_any_feasible_scores_bound_the_optimum() -> None:
    """Weak duality; the Choquet integral is the mean maximum over K-tuples and the level-set sum."""
    rng = np.random.default_rng(17)
    for number, pair in enumerate(DUAL_PAIRS):
        num_drafts = 1 + number % 3
        scores = random_scores(rng, pair)
        bound = dual_objective(pair, num_drafts, scores)
        assert upper_bound(pair, num_drafts, scores) == min(bound, pair.draft_length + 1)
        assert isinstance(bound, Fraction)
        assert bound == maximum_by_hand(pair, num_drafts, scores)
        assert bound >= multi_path_optimum(pair, num_drafts).value
        total = Fraction(0)
        for antichain, weight in level_set_weights(pair, scores).items():
            drafted = sum(pair.draft_path_probs(len(a))[_number(pair, a)] for a in antichain)
            total += weight * (1 - (1 - drafted) ** num_drafts)
        assert total == bound
        floats = [level.astype(float) for level in scores]
        assert dual_objective(pair.to_float(), num_drafts, floats) == pytest.approx(float(bound))
        kept = feasible_scores(pair, scores)
        assert all((a == b).all() for a, b in zip(kept, scores, strict=True))


def test_infeasible_scores_are_refused_with_the_violated_condition() -> None:
    pair = instances.two_token(2)
    best = scores_of(pair, dual_optimum(pair, 2))

    def changed(depth: int, index: int, by: Any) -> list[np.ndarray]:
        scores = [level.copy() for level in best]
        scores[depth][index] += by
        return scores

    tiny = Fraction(1, 10**30)
    for scores, text in (
        (changed(0, 0, tiny), r"z\(∅\) = 1 \+ .* = 0, got y\(∅\) = .*, expected"),
        (changed(0, 0, -tiny), r"z\(∅\) = 1"),
        (changed(2, 3, 2), r"z\(a\) = 1 \+ Σ_x p\(x\|a\) z\(a,x\) - y\(a\) >= 0, got .* at \w+ \(1, 1\)"),
        (changed(1, 0, -9), r"y\(a\) >= 0, got .* at context \(0,\)"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            upper_bound(pair, 2, scores)
    floats = pair.to_float()
    nearly = [level.astype(float) + 1e-13 for level in best]
    assert upper_bound(floats, 2, nearly) == pytest.approx(212 / 81, abs=1e-11)
    with pytest.raises(InvalidInputError, match="not feasible"):
        upper_bound(floats, 2, [level + 1e-3 for level in nearly])
    with pytest.raises(InvalidInputError, match="not feasible"):
        upper_bound(floats, 2, [level * float("nan") for level in nearly])
    with pytest.raises(InvalidInputError, match="2 depths; expected 3"):
        upper_bound(pair, 2, best[:2])
    with pytest.raises(InvalidInputError, match="shape"):
        upper_bound(pair, 2, [best[0], best[0], best[0]])
    with pytest.raises(InvalidInputError, match="use one kind"):
        upper_bound(pair, 2, nearly)
    with pytest.raises(InvalidInputError, match="num_drafts"):
        upper_bound(pair, 0, best)


def test_a_moved_score_is_no_longer_optimal() -> None:
    """Scores 1 everywhere are feasible and bound by L + 1, strictly above the optimum 212/81."""
    pair = instances.two_token(2)
    ones = [np.array([Fraction(1)] * 2**depth, dtype=object) for depth in range(3)]
    assert upper_bound(pair, 2, ones) == 3
    assert any(slackness(pair, 2, multi_path_optimum(pair, 2), ones))


def test_bound_from_sampled_drafts() -> None:
    """The bound lies in the 99.9 % interval of the mean largest score over sampled drafts (seed 2)."""
    rng = np.random.default_rng(2)
    for pair, num_drafts in ((instances.two_token(3), 2), (instances.sticky_chain(2), 3), (TREE_PAIRS[5], 2)):
        scores = random_scores(rng, pair)
        bound = float(dual_objective(pair, num_drafts, scores))
        probs = pair.draft_path_probs(pair.draft_length).astype(float)
        leaves = rng.choice(len(probs), size=(20_000, num_drafts), p=probs)
        estimate = sampled_upper_bound(path_scores(pair, scores), leaves, confidence=0.999)
        assert estimate.low <= bound <= estimate.high
        assert estimate.samples == 20_000
        assert estimate.high - estimate.low == pytest.approx(2 * 3.2905 * estimate.standard_error, rel=1e-3)
    # one draft fewer is another number, and the interval tells them apart
    pair = instances.two_token(3)
    scores = scores_of(pair, dual_optimum(pair, 2))
    leaves = rng.choice(8, size=(20_000, 1), p=pair.draft_path_probs(3).astype(float))
    assert sampled_upper_bound(path_scores(pair, scores), leaves).high < float(
        multi_path_optimum(pair, 2).value
    )
    with pytest.raises(InvalidInputError, match=r"expected \(N, K\)"):
        sampled_upper_bound(np.ones(2), np.array([0, 1]))
    with pytest.raises(InvalidInputError, match=r"outside 0\.\.1"):
        sampled_upper_bound(np.ones(2), np.array([[0, 2], [1, 1]]))
    with pytest.raises(InvalidInputError, match="confidence"):
        sampled_upper_bound(np.ones(2), np.array([[0, 1], [1, 1]]), confidence=1.0)


# --------------------------------------------------------------------- skewed drafts, Lemma 4.7


def ranking_draft(pair: ModelPair, order: tuple[int, ...], num_drafts: int) -> np.ndarray:
    """The law of the highest-ranked of K drafts: F_i^K - F_{i-1}^K (greedy2026 Eq. 19, corrected)."""
    probs, found, below = pair.draft_path_probs(pair.draft_length), {}, Fraction(0)
    for leaf in order:
        found[leaf] = (below + probs[leaf]) ** num_drafts - below**num_drafts
        below += probs[leaf]
    return np.array([found[leaf] for leaf in range(len(probs))], dtype=object)


def objective_by_hand(pair: ModelPair, skewed: np.ndarray) -> Fraction:
    """greedy2026 Eq. 16 with every minimum written out."""
    V, L = pair.vocab_size, pair.draft_length

    def r(a: tuple[int, ...]) -> Fraction:
        width = V ** (L - len(a))
        start = _number(pair, a) * width
        return sum(skewed[start : start + width], start=Fraction(0))

    def p(a: tuple[int, ...], k: int) -> Fraction:
        return prod((pair.target[i][_number(pair, a[:i])][a[i]] for i in range(k, len(a))), start=Fraction(1))

    nodes = [a for depth in range(L + 1) for a in product(range(V), repeat=depth)]
    return sum((min(p(a, k) * r(a[:k]) for k in range(len(a) + 1)) for a in nodes), start=Fraction(0))


def test_lemma_4_7_bounds_the_objective_of_rankings() -> None:
    """(L+1) min r/p ≤ Eq. 16 ≤ the multi-path optimum, for random rankings; with the largest r/p it fails."""
    rng = np.random.default_rng(23)
    positive = wrong = 0
    for number, pair in enumerate(ALL_PAIRS):
        num_drafts = 1 + number % 3
        best = multi_path_optimum(pair, num_drafts).value
        leaves = pair.vocab_size**pair.draft_length
        for _ in range(3):
            skewed = ranking_draft(pair, tuple(rng.permutation(leaves).tolist()), num_drafts)
            draft = SkewedDraft.from_leaf_law(pair, skewed)
            objective, bound = draft.block_efficiency(pair), draft.lower_bound(pair)
            assert objective == objective_by_hand(pair, skewed)
            assert bound <= objective <= best
            positive += bound > 0
            present = pair.target_path_probs(pair.draft_length) > 0
            largest = max(skewed[present] / pair.target_path_probs(pair.draft_length)[present])
            wrong += (pair.draft_length + 1) * largest > objective
            floats = SkewedDraft.from_leaf_law(pair.to_float(), skewed.astype(float))
            assert floats.lower_bound(pair.to_float()) == pytest.approx(float(bound))
            assert floats.block_efficiency(pair.to_float()) == pytest.approx(float(objective))
    assert positive > 40
    assert wrong > 40


def test_lemma_4_7_is_attained_by_the_target_itself() -> None:
    """r = p gives L + 1 on both sides; r ≠ p gives less."""
    for pair in ALL_PAIRS:
        target = pair.target_path_probs(pair.draft_length)
        skewed = SkewedDraft.from_leaf_law(pair, target)
        both = skewed.block_efficiency(pair), skewed.lower_bound(pair)
        assert both == (pair.draft_length + 1, pair.draft_length + 1)
        draft = pair.draft_path_probs(pair.draft_length)
        if (draft != target).any():
            skewed = SkewedDraft.from_leaf_law(pair, draft)
            assert skewed.lower_bound(pair) < pair.draft_length + 1
            assert skewed.block_efficiency(pair) == single_path_optimum(pair).value


def test_best_ranking_of_a_small_pair_attains_the_optimum() -> None:
    """Two-token example, K = 2, L = 1, 2: the best ranking reaches 17/9 and 212/81 (theory.md §5)."""
    for draft_length, value in ((1, "17/9"), (2, "212/81")):
        pair = instances.two_token(draft_length)
        orders = permutations(range(2**draft_length))
        drafts = [SkewedDraft.from_leaf_law(pair, ranking_draft(pair, order, 2)) for order in orders]
        objectives = [draft.block_efficiency(pair) for draft in drafts]
        assert max(objectives) == Fraction(value)
        assert min(objectives) < Fraction(value)


def test_skewed_drafts_that_are_none_are_refused() -> None:
    pair = instances.two_token(1)
    for law, text in (
        (["1/2", "1/3"], "sum to 1"),
        (["3/2", "-1/2"], "at least 0"),
        (["1"], r"expected \(2,\)"),
        ([0.5, 0.5], "use one kind"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            SkewedDraft.from_leaf_law(pair, law)


# -------------------------------------------------------------------------------- errors

Statement = Callable[[ModelPair], LinearProgram]
STATEMENTS: dict[str, Statement] = {
    "single-path LP": single_path_program,
    "multi-path antichain LP": lambda pair: multi_path_program(pair, 2),
    "unsimplified multi-path LP": lambda pair: unsimplified_program(pair, 2),
    "dual of the multi-path antichain LP": lambda pair: dual_program(pair, 2),
    "block transport LP": block_transport_program,
    "optimal transport LP": lambda pair: otm_program(pair.target[0][0], pair.draft[0][0], 2),
}


def solved(program: LinearProgram) -> Solution:
    return solve_exact(program) if program.is_exact else solve(program)


def with_block(program: LinearProgram, sense: str, rhs: int, keep: bool) -> LinearProgram:
    """The program with x_0 (sense) rhs added, or with that constraint alone."""
    one = program.objective[:1] * 0 + 1
    zero = np.zeros(1, int)
    block = ConstraintBlock("extra", "-", sense, zero, zero, one, one * rhs)  # type: ignore[arg-type]
    return dataclasses.replace(program, blocks=(*program.blocks, block) if keep else (block,), repair=None)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("name", list(STATEMENTS))
def test_errors_name_the_program_and_its_size(name: str, exact: bool) -> None:
    """Infeasible, unbounded and not optimal enough: the error names program, size and status."""
    pair = instances.two_token(1) if exact else instances.two_token(1).to_float()
    program = STATEMENTS[name](pair)
    assert program.name == name

    infeasible = with_block(program, ">=", 100, keep=True)
    n, m = infeasible.size
    with pytest.raises(SolverError, match=rf"{name} \({n} variables, {m} constraints\).*infeasible"):
        solved(infeasible)

    rising = program.objective * 0 + (1 if program.direction == "max" else -1)
    unbounded = dataclasses.replace(with_block(program, ">=", 0, keep=False), objective=rising)
    with pytest.raises(SolverError, match=rf"{name} \({n} variables, 1 constraints\).*unbounded"):
        solved(unbounded)

    n, m = program.size
    if exact:
        with pytest.raises(InvalidInputError, match=rf"{name} \({n} variables.* holds floats"):
            solve_exact(STATEMENTS[name](pair.to_float()))
    else:
        with pytest.raises(SolverError, match=rf"{name} \({n} variables, {m} constraints\).*differ by"):
            solve(program, gap_tolerance=-1.0)


def test_too_large_programs_are_refused_with_advice() -> None:
    large = instances.two_token(4)
    for optimum in (multi_path_optimum, unsimplified_optimum, dual_optimum):
        with pytest.raises(EnumerationTooLargeError, match=r"458329 non-empty antichains, the limit is \d+;"):
            optimum(large, 2)
    with pytest.raises(EnumerationTooLargeError, match=r"65536 variables, .* block_transport_value"):
        block_transport_optimum(instances.two_token(8))
    with pytest.raises(EnumerationTooLargeError, match=r"6 variables, the limit is 5; use min_cut_of_law"):
        otm_program(["1/2", "1/4", "1/4"], draft_law={(0, 1): "1/2", (1, 2): "1/2"}, max_variables=5)
    with pytest.raises(
        EnumerationTooLargeError, match=r"20 tokens has 2\^20 sets, .* use optimal_acceptance"
    ):
        min_cut_of_law([Fraction(1, 20)] * 20, {(0, 1): Fraction(1)})
    with pytest.raises(EnumerationTooLargeError, match="use optimal_acceptance"):
        otm_program(["1/2", "1/2"], ["1/2", "1/2"], num_drafts=20)
    with pytest.raises(EnumerationTooLargeError, match=r"tree of \d+ nodes"):
        single_path_optimum(instances.two_token(10))
    for optimum in (multi_path_optimum, unsimplified_optimum, dual_optimum):
        with pytest.raises(InvalidInputError, match="num_drafts"):
            optimum(instances.two_token(1), 0)


def test_draft_laws_that_are_none_are_refused() -> None:
    row = ["1/2", "1/2"]
    for law, text in (
        ({(0,): "1/2", (0, 1): "1/2"}, r"lengths \[1, 2\]"),
        ({}, "lengths"),
        ({(): "1"}, "lengths"),
        ({(0, 2): "1"}, r"drafts \(0, 2\) are not token ids in 0\.\.1"),
        ({(0, 1): "1/2"}, "sum to 1, got 1/2"),
        ({(0, 1): "3/2", (1, 1): "-1/2"}, "≥ 0"),
        ({(0, 1): 1.0}, "use one kind"),
    ):
        with pytest.raises(InvalidInputError, match=text):
            min_cut_of_law(row, law)
        for function in (otm_program, otm_optimum):
            with pytest.raises(InvalidInputError, match=text):
                function(row, draft_law=law)
    with pytest.raises(InvalidInputError, match="one numpy row"):
        min_cut_of_law(np.full((2, 2), 0.5), {(0,): 1.0})
    with pytest.raises(InvalidInputError, match="draft length 1, the pair has 2"):
        position_draft_law(instances.two_token(2), Iid(2))
    with pytest.raises(InvalidInputError, match="distinct tokens"):
        position_draft_law(instances.two_token(1), WithoutReplacement((3,)))


def test_expected_maximum_of_ties_and_single_draws() -> None:
    """K = 1 is the mean; equal values are worth that value for every K."""
    values = np.array([Fraction(2), Fraction(1), Fraction(2)], dtype=object)
    probs = np.array([Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)], dtype=object)
    assert ScoreChain.of(values, probs).expected_maximum(1) == Fraction(7, 4)
    assert ScoreChain.of(values, probs).expected_maximum(2) == 2 - Fraction(1, 16)
    assert ScoreChain.of(values * 0 + 3, probs).expected_maximum(5) == 3
