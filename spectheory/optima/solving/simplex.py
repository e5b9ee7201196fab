"""The simplex method of HiGHS (highs2018) with warm starts, for a program that grows by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spectheory.foundation.errors import SolverError
from spectheory.optima.bounds.tolerances import SOLVER_TOLERANCE
from spectheory.optima.solving.linear_program import LinearProgram

if TYPE_CHECKING:
    import highspy


class Simplex:
    """A float solver with warm starts: after rows are added at the end, it starts from the last basis.

    It certifies nothing.  For certified bounds use ``solve`` or ``solve_exact``.
    """

    def __init__(self) -> None:
        import highspy

        self.solver = highspy.Highs()
        self.rows = 0
        options: dict[str, bool | int | float | str] = {
            "output_flag": False,
            "threads": 1,
            # the simplex method always ends in a basis, without a crossover step
            "solver": "simplex",
            "primal_feasibility_tolerance": SOLVER_TOLERANCE,
            "dual_feasibility_tolerance": SOLVER_TOLERANCE,
        }
        for name, value in options.items():
            self.solver.setOptionValue(name, value)

    def solve(self, program: LinearProgram) -> tuple[np.ndarray, np.ndarray]:
        """Return the optimal point [n] and the multipliers [m], rates of the optimum with the right side."""
        self._run(program)
        solution = self.solver.getSolution()
        return np.array(solution.col_value), np.array(solution.row_dual)

    def basis(self, program: LinearProgram) -> list[int]:
        """Solve, and return the basic variables: structural ones 0..n-1 and slacks n..n+m-1."""
        import highspy

        self._run(program)
        basis = self.solver.getBasis()
        basic = highspy.HighsBasisStatus.kBasic
        statuses = [*basis.col_status, *basis.row_status]
        return [variable for variable, status in enumerate(statuses) if status == basic]

    def _run(self, program: LinearProgram) -> None:
        """Solve with presolve.  If the status is not optimal, solve again without presolve.

        At tight tolerances HiGHS's presolve reports feasible transport programs with tiny marginals as
        infeasible, because it compares sums of its own rounded reductions.  The simplex method does not.
        """
        import highspy

        model = _model(program)
        if self.rows == 0:
            self.solver.passModel(model)
        else:
            starts, columns = model.a_matrix_.start_, model.a_matrix_.index_
            first = starts[self.rows]
            self.solver.addRows(
                model.num_row_ - self.rows,
                model.row_lower_[self.rows :],
                model.row_upper_[self.rows :],
                len(columns) - first,
                np.asarray(starts[self.rows : -1]) - first,
                columns[first:],
                model.a_matrix_.value_[first:],
            )
        self.rows = model.num_row_
        for presolve in ("on", "off"):
            self.solver.setOptionValue("presolve", presolve)
            self.solver.run()
            status = self.solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return
        text = self.solver.modelStatusToString(status).lower()
        raise SolverError(f"{program.describe()}: expected status optimal, got {text}")


def _model(program: LinearProgram) -> highspy.HighsLp:
    import highspy

    A, senses, b, c = program.matrices
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = program.size
    model.col_cost_ = c
    model.sense_ = highspy.ObjSense.kMaximize if program.direction == "max" else highspy.ObjSense.kMinimize
    model.col_lower_ = np.zeros(program.num_variables)
    model.col_upper_ = np.full(program.num_variables, highspy.kHighsInf)
    model.row_lower_ = np.where(senses == "<=", -highspy.kHighsInf, b)
    model.row_upper_ = np.where(senses == ">=", highspy.kHighsInf, b)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = A.indptr
    model.a_matrix_.index_ = A.indices
    model.a_matrix_.value_ = A.data
    return model
