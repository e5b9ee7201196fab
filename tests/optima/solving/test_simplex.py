"""The simplex method of HiGHS on a program that grows."""

from dataclasses import replace

import highspy
import numpy as np
import pytest

from program_support import toy
from spectheory import instances
from spectheory.foundation.errors import SolverError
from spectheory.optima.path_selection import path_selection_program
from spectheory.optima.solving.float_solver import solve
from spectheory.optima.solving.simplex import Simplex


def test_presolve_is_not_taken_at_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    read = highspy.Highs.getModelStatus

    def wrong_with_presolve(solver: highspy.Highs) -> object:
        presolved = solver.getOptionValue("presolve")[1] == "on"
        return highspy.HighsModelStatus.kInfeasible if presolved else read(solver)

    monkeypatch.setattr(highspy.Highs, "getModelStatus", wrong_with_presolve)
    assert Simplex().basis(toy("max", 1.0, [(1.0, "<=", 1.0)], exact=True)) == [0]


@pytest.mark.parametrize("seed", range(4))
def test_rows_added_to_a_warm_model_are_the_larger_program(seed: int) -> None:
    """The value is that of the program stated anew, at every step; partner: fewer rows are worth more."""
    pair = instances.random_rational(seed, 2, 3)
    everything = [[leaf] for leaf in range(8)] + [[0, 1], [2, 3, 4], [0, 5, 6, 7], [1, 2], [3, 6]]
    warm, values = Simplex(), []
    for count in (0, 3, 8, 9, 13):
        program = replace(path_selection_program(pair, 2, everything[:count]), repair=None)
        point, _ = warm.solve(program)
        values.append(float(program.objective.astype(float) @ point))
        assert values[-1] == pytest.approx(solve(program).value, abs=1e-9)
        A, senses, b, _ = program.matrices
        assert (A @ point <= b + 1e-9)[senses == "<="].all()
    assert (np.diff(values) < 1e-9).all()
    assert values[0] > values[-1] + 1e-3


def test_the_status_of_highs_is_read() -> None:
    """It is reported before any exact pivot, which would say (exact)."""
    with pytest.raises(SolverError, match=r"got infeasible$"):
        Simplex().basis(toy("max", 1.0, [(1.0, "<=", 1.0), (1.0, ">=", 2.0)], exact=True))
