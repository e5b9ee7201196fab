"""The programs: golden values, exact against float, certificates that hold and that must fail."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch

from spectheory import instances
from spectheory.bounds.antichain_hulls import most_violated_antichain
from spectheory.drafts import PrefixTree
from spectheory.errors import CertificationError, EnumerationTooLargeError, InvalidInputError, SolverError
from spectheory.law import output_law
from spectheory.pair import ModelPair
from spectheory.programs import (
    CertifiedInterval,
    ConstraintBlock,
    LinearProgram,
    Solution,
    antichains,
    bernoulli_acceptance,
    certified_bounds,
    check_solution,
    count_antichains,
    multi_path_optimum,
    multi_path_program,
    optimal_acceptance,
    optimality_residuals,
    optimum,
    otm_optimum,
    otm_program,
    single_path_optimum,
    single_path_program,
    solve,
    solve_exact,
    solve_exact_by_rows,
    uniform_acceptance,
)
from spectheory.programs.solving.exact_basis import ExactBasis, optimise, standard_form

TWO_TOKENS = (["1/3", "2/3"], ["2/3", "1/3"])
THREE_TOKENS = (["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])


def random_row(rng: np.random.Generator, size: int) -> list[Fraction]:
    """Small whole weights, so that zeros and ties are frequent."""
    weights = rng.integers(0, 5, size)
    if not weights.any():
        weights[rng.integers(size)] = 1
    return [Fraction(int(weight), int(weights.sum())) for weight in weights]


def random_pair(rng: np.random.Generator, vocab_size: int, draft_length: int) -> ModelPair:
    """An exact pair whose rows depend on the context; some rows of both models are the same."""

    def levels(count: int) -> list[np.ndarray]:
        rows = [[random_row(rng, vocab_size) for _ in range(vocab_size**i)] for i in range(count)]
        return [np.array(level, dtype=object) for level in rows]

    target, draft = levels(draft_length + 1), levels(draft_length)
    for depth, level in enumerate(draft):
        same = rng.random(len(level)) < 0.2
        level[same] = target[depth][same]
    return ModelPair(tuple(target), tuple(draft), tuple(str(i) for i in range(vocab_size)))


SHAPES = [(2, 1), (2, 2), (3, 1), (3, 2), (2, 3), (4, 1)]
PAIRS = [random_pair(np.random.default_rng([7, i]), *SHAPES[i % len(SHAPES)]) for i in range(204)]


def block_verification_value(pair: ModelPair) -> Fraction:
    """Σ_a w(a) q(a) with w(a) q(a) = min{q(a), p(a_i | a_{1:i-1}) w q(a_{1:i-1})}, w(∅) = 1."""
    masses, total = pair.draft_path_probs(0), Fraction(1)
    for depth in range(1, pair.draft_length + 1):
        proposed = (masses[:, None] * pair.target[depth - 1]).ravel()
        masses = np.minimum(pair.draft_path_probs(depth), proposed)
        total += masses.sum()
    return total


def perturbed(solution: Solution) -> Solution:
    """The same primal with one multiplier of the last block moved."""
    name = list(solution.dual)[-1]
    moved = solution.dual[name].copy()
    moved[0] = moved[0] + 1
    return dataclasses.replace(solution, dual={**solution.dual, name: moved})


# ------------------------------------------------------------------ golden values


@pytest.mark.parametrize(
    ("draft_length", "value"),
    [(1, "5/3"), (2, "20/9"), (3, "8/3"), (4, "247/81"), (8, "26945/6561")],
)
def test_single_path_two_tokens(draft_length: int, value: str) -> None:
    """theory.md §4: E[τ] of block verification is 11/9, 5/3, 166/81, 20384/6561 at L = 2, 3, 4, 8."""
    solution = optimum(ModelPair.context_free_pair(*TWO_TOKENS, draft_length))
    assert solution.value == Fraction(value)
    assert solution.method == "single-path LP"
    assert Fraction(solution.lower) <= solution.value <= Fraction(solution.upper)
    assert solution.upper - solution.lower <= 1e-15
    assert (solution.status, solution.gap, solution.arithmetic) == ("optimal", 0, "exact")


@pytest.mark.parametrize(("draft_length", "value"), [(1, "17/9"), (2, "212/81"), (3, "2350/729")])
def test_multi_path_two_tokens(draft_length: int, value: str) -> None:
    """greedy_multipath reaches 17/9 and 212/81 (theory.md §5), so the optimum cannot be less."""
    solution = optimum(ModelPair.context_free_pair(*TWO_TOKENS, draft_length), num_drafts=2)
    assert solution.value == Fraction(value)
    assert solution.method == "multi-path antichain LP"


@pytest.mark.parametrize(
    ("rows", "values"),
    [(TWO_TOKENS, ["2/3", "8/9", "1", "1"]), (THREE_TOKENS, ["2/3", "29/36", "199/216", "1"])],
)
def test_min_cut_reference_values(rows: tuple[list[str], list[str]], values: list[str]) -> None:
    """theory.md §3, α_1..α_4."""
    found = [optimal_acceptance(*rows, num_drafts).value for num_drafts in (1, 2, 3, 4)]
    assert found == [Fraction(value) for value in values]


# --------------------------------------------------- exact against float, certificates


def assert_consistent(exact: Solution, floating: Solution) -> None:
    assert exact.arithmetic == "exact"
    assert floating.arithmetic == "float64"
    assert floating.value == pytest.approx(float(exact.value), abs=1e-9)
    assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)
    assert floating.lower <= floating.value <= floating.upper
    assert floating.upper - floating.lower < 1e-9
    assert Fraction(exact.lower) <= exact.value <= Fraction(exact.upper)


def assert_certified(program: LinearProgram, solution: Solution, tolerance: float) -> None:
    check_solution(program, solution, tolerance)
    with pytest.raises(CertificationError, match="residual"):
        check_solution(program, perturbed(solution), tolerance)
    value = dataclasses.replace(solution, value=solution.value + 1)
    with pytest.raises(CertificationError, match="value"):
        check_solution(program, value, tolerance)


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_random_pairs(number: int) -> None:
    """Exact = float, KKT holds and a perturbed dual does not, single path = block verification."""
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


def test_a_wrong_primal_is_rejected() -> None:
    """A feasible but not optimal point fails complementary slackness or the gap."""
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 2)
    program, solution = single_path_program(pair), single_path_optimum(pair)
    lowered = {label: value if not label else value - value for label, value in solution.primal.items()}
    wrong = dataclasses.replace(solution, primal=lowered, value=Fraction(1))
    assert optimality_residuals(program, wrong).primal == 0
    with pytest.raises(CertificationError):
        check_solution(program, wrong)
    with pytest.raises(InvalidInputError, match="other variables or blocks"):
        check_solution(multi_path_program(ModelPair.context_free_pair(*TWO_TOKENS, 1), 2), solution)


def test_bounds_hold_for_bad_multipliers_and_points() -> None:
    """Any multipliers bound the optimum from above, any repaired point from below."""
    rng = np.random.default_rng(3)
    for pair in PAIRS[:60]:
        program = multi_path_program(pair.to_float(), 2)
        best = multi_path_optimum(pair, 2).value
        point = program.repair(program, rng.normal(0.5, 0.5, program.num_variables))
        lower, upper = certified_bounds(program, point, rng.normal(0.2, 0.5, program.num_constraints))
        assert Fraction(lower) <= best <= Fraction(upper)


def test_tiny_probabilities_are_solved_by_exact_pivots() -> None:
    """HiGHS drops coefficients below 1e-9; the rational pivots put them back."""
    tiny = Fraction(1, 10**14)
    rng = np.random.default_rng(11)
    for _ in range(20):
        rows = []
        for _ in range(2):
            weights = [Fraction(int(w)) * (tiny if rng.random() < 0.5 else 1) for w in rng.integers(1, 9, 3)]
            rows.append([weight / sum(weights) for weight in weights])
        pair = ModelPair.context_free_pair(rows[0], rows[1], draft_length=2)
        assert single_path_optimum(pair).value == block_verification_value(pair)
        exact, floating = multi_path_optimum(pair, 2), multi_path_optimum(pair.to_float(), 2)
        assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)


def test_exact_simplex_from_the_slack_basis() -> None:
    """The pivots alone, without HiGHS, reach the same optimum; too few of them are refused."""
    for pair in PAIRS[:12]:
        for program in (single_path_program(pair), otm_program(pair.target[0][0], pair.draft[0][0], 2)):
            form = standard_form(program)
            slacks = ExactBasis(form, range(program.num_variables, sum(program.size)))
            basis, pivots = optimise(slacks, max_pivots=10_000)
            value = sum(form.cost[v] * x for v, x in basis.solve(form.rhs).items())
            assert Fraction(str(form.direction * value)) == solve_exact(program).value
            assert pivots > 0
            with pytest.raises(CertificationError, match="raise max_pivots"):
                optimise(slacks, max_pivots=0)


# ------------------------------------------------------------- solvers that must refuse


def toy(direction: str, objective: float, rows: list[tuple[float, str, float]], exact: bool) -> LinearProgram:
    def numbers(values: list[float]) -> np.ndarray:
        return np.array([Fraction(v) for v in values], dtype=object) if exact else np.array(values, float)

    zero = np.zeros(1, int)
    blocks = tuple(
        ConstraintBlock(f"row {i}", "-", sense, zero, zero, numbers([coefficient]), numbers([rhs]))
        for i, (coefficient, sense, rhs) in enumerate(rows)
    )
    return LinearProgram("toy", "-", direction, ("x",), numbers([objective]), blocks)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([(1.0, "<=", 1.0), (1.0, ">=", 2.0)], "infeasible"),
        ([(1.0, ">=", 2.0)], "unbounded"),
    ],
)
def test_infeasible_and_unbounded_raise(
    rows: list[tuple[float, str, float]], status: str, exact: bool
) -> None:
    program = toy("max", 1.0, rows, exact)
    with pytest.raises(SolverError, match=rf"toy \(1 variables, {len(rows)} constraints\).*{status}"):
        solve_exact(program) if exact else solve(program)


@pytest.mark.parametrize(
    ("rows", "status"),
    [
        ([(1.0, "<=", 1.0), (1.0, ">=", 2.0)], "infeasible"),
        ([(1.0, "==", 1.0), (1.0, "==", 2.0)], "infeasible"),
        ([(1.0, ">=", 2.0)], "unbounded"),
    ],
)
def test_exact_pivots_recognise_infeasible_and_unbounded(
    rows: list[tuple[float, str, float]], status: str
) -> None:
    form = standard_form(toy("max", 1.0, rows, exact=True))
    with pytest.raises(SolverError, match=status):
        optimise(ExactBasis(form, range(1, 1 + len(rows))), max_pivots=10)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("direction", ["max", "min"])
@pytest.mark.parametrize("sense", ["<=", ">=", "=="])
def test_multiplier_signs(direction: str, sense: str, exact: bool) -> None:
    """The multiplier is the rate of the optimum with the right-hand side, in every direction and sense."""
    objective = {"max": {"<=": 2.0, ">=": -2.0, "==": 2.0}, "min": {"<=": -2.0, ">=": 2.0, "==": 2.0}}
    program = toy(direction, objective[direction][sense], [(1.0, sense, 3.0)], exact)
    solution = solve_exact(program) if exact else solve(program)
    assert solution.value == pytest.approx(3 * objective[direction][sense])
    assert float(solution.dual["row 0"][0]) == pytest.approx(objective[direction][sense])
    check_solution(program, solution, 0 if exact else 1e-9)


def test_a_gap_above_the_tolerance_is_refused() -> None:
    program = single_path_program(ModelPair.context_free_pair(*TWO_TOKENS, 2).to_float())
    with pytest.raises(SolverError, match="differ by"):
        solve(program, gap_tolerance=-1.0)


def test_solve_exact_refuses_floats_and_statements_refuse_nonsense() -> None:
    with pytest.raises(InvalidInputError, match="holds floats"):
        solve_exact(toy("max", 1.0, [(1.0, "<=", 1.0)], exact=False))
    with pytest.raises(InvalidInputError, match="sense must be"):
        toy("max", 1.0, [(1.0, "<", 1.0)], exact=False)
    with pytest.raises(InvalidInputError, match="direction must be"):
        toy("up", 1.0, [(1.0, "<=", 1.0)], exact=False)
    program = toy("max", 1.0, [(1.0, "<=", 1.0)], exact=True)
    with pytest.raises(InvalidInputError, match="mixed"):
        dataclasses.replace(program, objective=np.ones(1))
    with pytest.raises(InvalidInputError, match="no block"):
        program.block("nothing")


def test_cvxpy_problem_is_the_stated_program() -> None:
    program = multi_path_program(ModelPair.context_free_pair(*TWO_TOKENS, 2), 2)
    stated = program.to_cvxpy()
    assert list(stated.constraints) == [block.name for block in program.blocks]
    assert [c.size for c in stated.problem.constraints] == [block.size for block in program.blocks]
    assert [block.equation for block in program.blocks] == [
        "greedy2026 Eq. 11",
        "greedy2026 Eq. 11",
        "greedy2026 Eq. 12",
    ]
    A, senses, b, c = program.matrices
    assert A.shape == (program.num_constraints, program.num_variables)
    assert len(senses) == len(b) == program.num_constraints
    assert len(c) == program.num_variables


# ------------------------------------------------------------------------ antichains


@pytest.mark.parametrize(
    ("vocab_size", "counts"), [(2, [2, 5, 26, 677, 458_330]), (3, [2, 9, 730, 389_017_001])]
)
def test_antichain_counts(vocab_size: int, counts: list[int]) -> None:
    """theory.md Statement 5.1: N_0 = 2 and N_L = 1 + N_{L-1}^V."""
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


def test_row_generation_finds_the_same_optimum() -> None:
    for pair in PAIRS[3:60:6]:  # V = 3, L = 2
        program = multi_path_program(pair, 2)
        solution = solve_exact_by_rows(program, "prefix matching", range(13), rows_per_round=5)
        assert solution.value == solve_exact(program).value
        check_solution(program, solution)
    with pytest.raises(CertificationError, match="raise max_rounds"):
        solve_exact_by_rows(program, "prefix matching", range(13), max_rounds=0)


def test_many_antichains_exact_by_row_generation() -> None:
    """83 521 antichains (V = 4, L = 2), certified against every one of them."""
    rows = (["1/2", "1/4", "1/6", "1/12"], ["1/12", "1/6", "1/4", "1/2"])
    pair = ModelPair.context_free_pair(*rows, 2)
    exact, floating = optimum(pair, 2), optimum(pair.to_float(), 2)
    assert exact.value == Fraction(799, 384)
    assert len(exact.dual["prefix matching"]) == 83_521
    assert Fraction(floating.lower) <= exact.value <= Fraction(floating.upper)


@pytest.mark.parametrize(("vocab_size", "draft_length"), [(2, 2), (2, 3), (3, 2)])
@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_separation_against_enumeration(vocab_size: int, draft_length: int, num_drafts: int) -> None:
    """The hulls find the largest violation over all antichains, on arbitrary and on feasible masses."""
    rng = np.random.default_rng([vocab_size, draft_length, num_drafts])
    members = antichains(vocab_size, draft_length)
    for trial in range(12):
        pair = random_pair(rng, vocab_size, draft_length)
        scale = (1, 4, 20)[trial % 3]
        masses = [
            np.array([Fraction(int(w), 20 * scale) for w in rng.integers(0, 8, vocab_size**i)], dtype=object)
            for i in range(draft_length + 1)
        ]
        assert_separates(pair, masses, num_drafts, members)
    solution = multi_path_optimum(pair, num_drafts)
    budgets = np.array(list(solution.primal.values()), dtype=object)
    starts = np.cumsum([vocab_size**i for i in range(draft_length)])
    feasible = np.split(budgets * single_path_program(pair).objective, starts)
    assert most_violated_antichain(pair, feasible, num_drafts)[0] == 0
    assert_separates(pair, [2 * level for level in feasible], num_drafts, members)


def assert_separates(pair: ModelPair, masses: list[np.ndarray], num_drafts: int, members: np.ndarray) -> None:
    depths = range(pair.draft_length + 1)
    mass = np.concatenate(masses)
    draft = np.concatenate([pair.draft_path_probs(i) for i in depths])
    counted = members.astype(object)
    best = max(counted @ mass - 1 + (1 - counted @ draft) ** num_drafts)
    violation, found = most_violated_antichain(pair, masses, num_drafts)
    assert isinstance(violation, Fraction)
    assert violation == best
    labels = list(single_path_program(pair).variables)
    chosen = np.isin(np.arange(len(labels)), [labels.index(context) for context in found])
    assert (members == chosen).all(axis=1).any()
    assert mass[chosen].sum() - 1 + (1 - draft[chosen].sum()) ** num_drafts == best
    floats, _ = most_violated_antichain(pair.to_float(), [m.astype(float) for m in masses], num_drafts)
    assert floats == pytest.approx(float(best), abs=1e-12)


def test_separation_refuses_wrong_masses() -> None:
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 1)
    with pytest.raises(InvalidInputError, match="1 depths; expected 2"):
        most_violated_antichain(pair, [np.ones(1)], 2)
    with pytest.raises(InvalidInputError, match="shape"):
        most_violated_antichain(pair.to_float(), [np.ones(1), np.ones(3)], 2)
    with pytest.raises(InvalidInputError, match="one kind"):
        most_violated_antichain(pair, [np.ones(1), np.ones(2)], 2)


# -------------------------------------------------------------------- one position


@pytest.mark.parametrize("vocab_size", [2, 3, 4])
@pytest.mark.parametrize("num_drafts", [1, 2, 3])
def test_min_cut_is_the_transport_optimum(vocab_size: int, num_drafts: int) -> None:
    """α_K = min_H [p(H) + 1 - q(H)^K] = 1 - optimum of spectr2023 Eq. 4, exactly, and H attains it."""
    rng = np.random.default_rng([vocab_size, num_drafts])
    for _ in range(6):
        target, draft = random_row(rng, vocab_size), random_row(rng, vocab_size)
        solution = otm_optimum(target, draft, num_drafts)
        value, tokens = optimal_acceptance(target, draft, num_drafts)
        assert value == 1 - solution.value
        inside = np.flatnonzero(tokens)
        assert sum(target[i] for i in inside) + 1 - sum(draft[i] for i in inside) ** num_drafts == value
        subsets = [np.flatnonzero([n >> i & 1 for i in range(vocab_size)]) for n in range(2**vocab_size)]
        cuts = [sum(target[i] for i in s) + 1 - sum(draft[i] for i in s) ** num_drafts for s in subsets]
        assert value == min(cuts)
        floats = [np.array(row, dtype=float) for row in (target, draft)]
        assert optimal_acceptance(*floats, num_drafts).value == pytest.approx(float(value), abs=1e-14)
        floating = otm_optimum(*floats, num_drafts)
        assert Fraction(floating.lower) <= solution.value <= Fraction(floating.upper)
        assert floating.upper - floating.lower < 1e-9


def test_transport_solution_is_certified() -> None:
    program = otm_program(*THREE_TOKENS, 2)
    assert program.size == (27, 12)
    assert_certified(program, otm_optimum(*THREE_TOKENS, 2), 0)
    floats = [[1 / 2, 1 / 3, 1 / 6], [1 / 6, 1 / 3, 1 / 2]]
    assert_certified(otm_program(*floats, 2), otm_optimum(*floats, 2), 1e-9)


def test_min_cut_is_batched_on_numpy_and_torch() -> None:
    rng = np.random.default_rng(0)
    target, draft = (rng.dirichlet(np.ones(30), size=(2, 3)) for _ in range(2))
    draft[..., 5:] = 0  # tokens that cannot be drafted
    draft /= draft.sum(axis=-1, keepdims=True)
    value, tokens = optimal_acceptance(target, draft, 3)
    on_torch = optimal_acceptance(torch.tensor(target), torch.tensor(draft), 3)
    assert value.shape == (2, 3)
    np.testing.assert_allclose(on_torch.value.numpy(), value, atol=1e-15)
    np.testing.assert_array_equal(on_torch.tokens.numpy(), tokens)
    alone = [[optimal_acceptance(target[i, j], draft[i, j], 3).value for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(value, alone, atol=0)
    np.testing.assert_allclose((target * tokens).sum(-1) + 1 - (draft * tokens).sum(-1) ** 3, value)
    exact = np.array([[random_row(rng, 4) for _ in range(2)] for _ in range(2)], dtype=object)
    assert optimal_acceptance(exact[0], exact[1], 2).value.shape == (2,)


def test_closed_forms() -> None:
    """Bernoulli and uniform rows (theory.md Statement 3.8) against the min cut."""
    for num_drafts in (1, 2, 3, 4):
        for b, c in [(Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 10), Fraction(1, 2)), (0, 1)]:
            cut = optimal_acceptance(
                [Fraction(c), 1 - Fraction(c)], [Fraction(b), 1 - Fraction(b)], num_drafts
            )
            assert bernoulli_acceptance(b, c, num_drafts) == cut.value
        uniform = optimal_acceptance(["1/2", "1/2", 0, 0], ["1/4"] * 4, num_drafts).value
        assert uniform_acceptance(2, num_drafts) == uniform_acceptance(Fraction(2), num_drafts) == uniform


# ----------------------------------------------------------------------------- limits


@pytest.mark.parametrize("num_drafts", [0, -1, 1.5, True, "2"])
def test_num_drafts_is_a_whole_number(num_drafts: object) -> None:
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 1)
    message = f"^num_drafts must be a whole number of at least 1, got {num_drafts!r}$"
    with pytest.raises(InvalidInputError, match=message):
        optimum(pair, num_drafts)
    with pytest.raises(InvalidInputError, match=message):
        optimal_acceptance(*TWO_TOKENS, num_drafts)


def test_too_large_programs_are_refused() -> None:
    with pytest.raises(EnumerationTooLargeError, match=r"458329 non-empty antichains, the limit is 100000;"):
        multi_path_optimum(ModelPair.context_free_pair(*TWO_TOKENS, 4), 2)
    with pytest.raises(EnumerationTooLargeError, match=r"458329 non-empty antichains"):
        optimum(ModelPair.context_free_pair(*TWO_TOKENS, 4), process=PrefixTree((2, 1, 1, 1)))
    with pytest.raises(EnumerationTooLargeError, match="about 1e"):
        antichains(4, 5)
    with pytest.raises(EnumerationTooLargeError, match=r"2047 nodes.*pair.to_float\(\)"):
        single_path_optimum(ModelPair.context_free_pair(*TWO_TOKENS, 10))
    with pytest.raises(EnumerationTooLargeError, match="use optimal_acceptance"):
        otm_program(*TWO_TOKENS, num_drafts=20)


@pytest.mark.parametrize("num_drafts", [1, 2])
def test_beyond_the_exact_programs_the_optimum_is_an_interval(num_drafts: int) -> None:
    """V = 2, L = 10: a certified float interval; on one path the exact efficiency of block lies in it."""
    pair = ModelPair.context_free_pair(*TWO_TOKENS, 10)
    best = optimum(pair, num_drafts)
    assert isinstance(best, CertifiedInterval)
    assert best.lower <= best.value <= best.upper <= best.lower * (1 + 1e-6)
    block = output_law("block", pair).block_efficiency
    assert best.lower <= block <= best.upper if num_drafts == 1 else block < best.lower


def test_where_the_float_program_fails_the_interval_answers() -> None:
    """HiGHS's primal and dual differ by 3e-7 here; one position, so the min cut knows the value."""
    rows = (
        [0.047619047619047616, 0.47619047619047616, 0.47619047619047616],
        [9.9999890000121e-07, 0.9999989000012101, 9.9999890000121e-08],
    )
    pair = ModelPair.context_free_pair(*rows, 1)
    with pytest.raises(SolverError, match="differ by"):
        multi_path_optimum(pair, 8)
    best = optimum(pair, 8)
    assert best.lower <= 1 + optimal_acceptance(*rows, 8).value <= best.upper
    assert best.upper - best.lower < 1e-5


def test_one_path_on_a_large_tree() -> None:
    """V = 10, L = 5: 111 111 nodes; the interval on one path holds block verification's efficiency."""
    pair = instances.random_float(1, 10, 5, 0.3, 0.5)
    best = optimum(pair, 1)
    assert best.lower <= output_law("block", pair).block_efficiency <= best.upper


def test_bad_rows_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="sum to 1"):
        optimal_acceptance([0.5, 0.6], [0.5, 0.5], 2)
    with pytest.raises(InvalidInputError, match="sum to 1"):
        optimal_acceptance([0.5, float("nan")], [0.5, 0.5], 2)
    with pytest.raises(InvalidInputError, match="shape"):
        optimal_acceptance([1.0], [0.5, 0.5], 2)
    with pytest.raises(InvalidInputError, match="use one kind"):
        optimal_acceptance(["1/2", "1/2"], [0.5, 0.5], 2)
    with pytest.raises(InvalidInputError, match="draft_head"):
        bernoulli_acceptance(2, 0, 1)
    with pytest.raises(InvalidInputError, match="ratio"):
        uniform_acceptance(0.5, 1)


def test_importing_the_programs_is_light() -> None:
    heavy = "('cvxpy', 'torch', 'highspy')"
    code = f"import sys, spectheory.programs; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
