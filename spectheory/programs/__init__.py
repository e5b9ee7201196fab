"""The optimisation problems of the papers, one per file, each stated once.

A program is stated as a ``LinearProgram`` and solved by ``solve`` (float64) or ``solve_exact``
(rationals); both return a ``Solution`` that carries its own proof, which ``check_solution`` checks.
"""

from spectheory.programs.antichain_separation import most_violated_antichain
from spectheory.programs.block_transport import (
    block_transport_optimum,
    block_transport_program,
    block_transport_value,
)
from spectheory.programs.dual import (
    dual_optimum,
    dual_program,
    feasible_scores,
    sampled_upper_bound,
    upper_bound_from_scores,
)
from spectheory.programs.exact_solver import solve_exact, solve_exact_by_rows
from spectheory.programs.float_solver import certified_bounds, solve
from spectheory.programs.linear_program import ConstraintBlock, LinearProgram
from spectheory.programs.min_cut import (
    MinCut,
    bernoulli_acceptance,
    min_cut_of_law,
    optimal_acceptance,
    optimal_acceptance_curve,
    uniform_acceptance,
)
from spectheory.programs.multi_path import (
    antichains,
    count_antichains,
    multi_path_optimum,
    multi_path_program,
)
from spectheory.programs.optimum import optimum
from spectheory.programs.otm import (
    otm_optimum,
    otm_optimum_of_law,
    otm_program,
    otm_program_of_law,
    position_draft_law,
)
from spectheory.programs.otm_bounds import TransportBounds, transport_bounds
from spectheory.programs.single_path import single_path_optimum, single_path_program
from spectheory.programs.skewed_draft_bound import skewed_draft_bound, skewed_draft_objective
from spectheory.programs.solution import (
    OptimalityResiduals,
    Solution,
    check_solution,
    optimality_residuals,
)
from spectheory.programs.unsimplified import unsimplified_optimum, unsimplified_program

__all__ = [
    "ConstraintBlock",
    "LinearProgram",
    "MinCut",
    "OptimalityResiduals",
    "Solution",
    "TransportBounds",
    "antichains",
    "bernoulli_acceptance",
    "block_transport_optimum",
    "block_transport_program",
    "block_transport_value",
    "certified_bounds",
    "check_solution",
    "count_antichains",
    "dual_optimum",
    "dual_program",
    "feasible_scores",
    "min_cut_of_law",
    "most_violated_antichain",
    "multi_path_optimum",
    "multi_path_program",
    "optimal_acceptance",
    "optimal_acceptance_curve",
    "optimality_residuals",
    "optimum",
    "otm_optimum",
    "otm_optimum_of_law",
    "otm_program",
    "otm_program_of_law",
    "position_draft_law",
    "sampled_upper_bound",
    "single_path_optimum",
    "single_path_program",
    "skewed_draft_bound",
    "skewed_draft_objective",
    "solve",
    "solve_exact",
    "solve_exact_by_rows",
    "transport_bounds",
    "uniform_acceptance",
    "unsimplified_optimum",
    "unsimplified_program",
    "upper_bound_from_scores",
]
