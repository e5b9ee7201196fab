"""The optimisation problems of the papers, one per file, each stated once.

A program is stated as a ``LinearProgram`` and solved by ``solve`` (float64) or ``solve_exact``
(rationals); both return a ``Solution`` that carries its own proof, which ``check_solution`` checks.
"""

from spectheory.programs.antichain_separation import most_violated_antichain
from spectheory.programs.exact_solver import solve_exact, solve_exact_by_rows
from spectheory.programs.float_solver import certified_bounds, solve
from spectheory.programs.linear_program import ConstraintBlock, LinearProgram
from spectheory.programs.min_cut import (
    MinCut,
    bernoulli_acceptance,
    optimal_acceptance,
    uniform_acceptance,
)
from spectheory.programs.multi_path import (
    antichains,
    count_antichains,
    multi_path_optimum,
    multi_path_program,
)
from spectheory.programs.optimum import optimum
from spectheory.programs.otm import otm_optimum, otm_program
from spectheory.programs.single_path import single_path_optimum, single_path_program
from spectheory.programs.solution import (
    OptimalityResiduals,
    Solution,
    check_solution,
    optimality_residuals,
)

__all__ = [
    "ConstraintBlock",
    "LinearProgram",
    "MinCut",
    "OptimalityResiduals",
    "Solution",
    "antichains",
    "bernoulli_acceptance",
    "certified_bounds",
    "check_solution",
    "count_antichains",
    "most_violated_antichain",
    "multi_path_optimum",
    "multi_path_program",
    "optimal_acceptance",
    "optimality_residuals",
    "optimum",
    "otm_optimum",
    "otm_program",
    "single_path_optimum",
    "single_path_program",
    "solve",
    "solve_exact",
    "solve_exact_by_rows",
    "uniform_acceptance",
]
