"""Exact simplex pivots on their own."""

from __future__ import annotations

from fractions import Fraction

import pytest

from program_support import PAIRS, toy
from spectheory.errors import CertificationError, SolverError
from spectheory.programs import otm_program, single_path_program, solve_exact
from spectheory.programs.solving.exact_basis import ExactBasis, optimise, standard_form


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
