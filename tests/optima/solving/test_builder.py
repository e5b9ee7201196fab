"""Programs written constraint by constraint are the programs that the package states row by row."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import to_flint
from spectheory.optima import (
    LinearProgram,
    ProgramBuilder,
    multi_path_program,
    single_path_program,
    solve,
    solve_exact,
)
from spectheory.optima.bounds.context_tree import node_probs
from spectheory.optima.multi_path import antichains, hit_probs
from spectheory.pairs.contexts import all_contexts, parent_nodes
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair

PAIRS = {
    "exact": instances.two_token(2),
    "float": instances.random_float(0, 3, 2),
    "one position": instances.random_float(1, 4, 1),
}


MATCHING = "prefix matching"


def budgets(pair: ModelPair, limit: Callable[[ProgramBuilder, Any], None]) -> LinearProgram:
    """max Σ D p with target matching, and the constraint on the masses D p that ``limit`` adds."""
    V, L = pair.vocab_size, pair.draft_length
    model = ProgramBuilder("by hand")
    D = model.variables(all_contexts(V, L))
    model.maximise(sum(D * node_probs(pair)[0]))
    model.add("root budget", D[0] == 1)
    model.add("monotone budgets", D[parent_nodes(V, L)] >= D[1:])
    limit(model, D * node_probs(pair)[0])
    return model.program(box=1.0)


def entries(program: LinearProgram) -> list[Any]:
    A, senses, b, c = program.matrices
    numbers = [*(block.rhs.tolist() for block in program.blocks), program.objective.tolist()]
    names = [block.name for block in program.blocks]
    return [program.variables, program.direction, names, senses.tolist(), A.toarray().tolist(), b, c, numbers]


def assert_same(built: LinearProgram, stated: LinearProgram) -> None:
    for here, there in zip(entries(built), entries(stated), strict=True):
        np.testing.assert_array_equal(np.array(here, dtype=object), np.array(there, dtype=object))
    assert built.arithmetic == stated.arithmetic


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_one_path(pair: ModelPair) -> None:
    _, draft = node_probs(pair)
    built = budgets(pair, lambda model, masses: model.add(MATCHING, masses <= draft))
    assert_same(built, single_path_program(pair))
    other = budgets(pair, lambda model, masses: model.add(MATCHING, masses <= draft / 2))
    with pytest.raises(AssertionError):
        assert_same(other, single_path_program(pair))


@pytest.mark.parametrize("pair", [PAIRS["exact"], PAIRS["one position"]], ids=["exact", "float"])
def test_antichains(pair: ModelPair) -> None:
    """A matrix of sets, and sums over one set after the other, state the same rows."""
    members = antichains(pair.vocab_size, pair.draft_length)[1:]
    hits, stated = hit_probs(pair, members, Iid(2)), multi_path_program(pair, 2)

    def one_by_one(model: ProgramBuilder, masses: Any) -> None:
        model.add(MATCHING, np.stack([sum(masses[chosen]) for chosen in members]) <= hits)

    assert_same(budgets(pair, lambda model, masses: model.add(MATCHING, members @ masses <= hits)), stated)
    assert_same(budgets(pair, one_by_one), stated)


HALF = Fraction(1, 2)
MATRIX = np.array([[1, 0, 2], [0, HALF, 0]])
FORMS: dict[str, Callable[[Any], Any]] = {
    "sums": lambda x: x.reshape(2, 3).sum(axis=0) - x[3:],
    "all": lambda x: np.array([x.sum() - 1]) if type(x) is np.ndarray else x.sum() - 1,
    "matrix": lambda x: MATRIX @ (HALF * x[:3] - 1) + x[4],
    "broadcast": lambda x: (3 - x.reshape(2, 3)) * np.array([[2], [HALF]]) + x[:3],
    "indexed": lambda x: -x[[0, 0, 5]] + np.concatenate([x[:1], x[1:3]]) * np.array([True, False, True]),
    "one row": lambda x: np.array([1, 0, HALF]) @ x[:3] + x[3:4],
    "quotient": lambda x: x[:3] / 2 - x[3:] / HALF,
    "numpy first": lambda x: np.arange(6) - np.arange(6) * x,
}


@pytest.mark.parametrize("name", FORMS)
def test_expressions_are_what_numpy_computes(name: str) -> None:
    """At a point, a form of the variables has the value that the same form of numbers has."""
    model = ProgramBuilder("forms")
    x, form = model.variables(range(6)), FORMS[name]
    model.maximise(x[0])
    model.add("form", form(x) >= 0)
    block = model.program().block("form")
    point = np.array([Fraction(n * n - 3, n + 1) for n in range(6)])
    wanted = to_flint(np.ravel(form(point)))
    assert (block.activity(to_flint(point)) - to_flint(block.rhs)).tolist() == wanted.tolist()
    assert (block.activity(to_flint(point + 1)) - to_flint(block.rhs)).tolist() != wanted.tolist()


def test_what_is_no_program_is_refused() -> None:
    model = ProgramBuilder("wrong")
    x = model.variables(["x", "y"])
    with pytest.raises(InvalidInputError, match="two variables are labelled 'y'"):
        model.variables(["y"])
    with pytest.raises(InvalidInputError, match="not linear"):
        x * x
    with pytest.raises(InvalidInputError, match="add each"):
        model.add("chain", 0 <= x[0] <= 1)
    with pytest.raises(InvalidInputError, match="compare expressions"):
        model.add("none", x + 1)
    with pytest.raises(InvalidInputError, match="no < or >"):
        model.add("strict", x < 1)
    with pytest.raises(InvalidInputError, match=r"shape \(2,\) with an array of shape \(3,\)"):
        model.add("shapes", x <= np.ones(3))
    model.add("limit", x <= 1)
    with pytest.raises(InvalidInputError, match="two constraints are named 'limit'"):
        model.add("limit", x <= 2)
    for objective, says in (
        (None, "as the objective"),
        (x, "as the objective"),
        (x[0] + 1, "constant 1"),
        (2, "got 2"),
    ):
        if objective is not None:
            model.minimise(objective)
        with pytest.raises(InvalidInputError, match=says):
            model.program()
    model.minimise(x[0] + x[1])
    assert solve_exact(model.program()).value == 0


def test_both_sides_of_a_comparison() -> None:
    """max x with 3 >= 2 x, and min x with 3 <= 2 x, whichever side numpy's numbers are on."""
    for bound in (3, np.array([3]), Fraction(3), np.float64(3)):
        for direction in ("max", "min"):
            model = ProgramBuilder("sides")
            x = model.variables(["x"])
            (model.maximise if direction == "max" else model.minimise)(x.sum())
            model.add("bound", bound >= 2 * x if direction == "max" else bound <= 2 * x)
            program = model.program()
            assert program.is_exact == (not isinstance(bound, np.float64))
            assert (solve_exact if program.is_exact else solve)(program).value == pytest.approx(1.5)


def test_one_float_makes_the_program_float64() -> None:
    model = ProgramBuilder("mixed")
    x, y = model.variables("xy")
    model.maximise(x * HALF)
    assert model.program().arithmetic == "exact"
    model.add("limit", y <= 0.5)
    assert model.program().arithmetic == "float64"
