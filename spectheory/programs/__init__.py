"""The optimisation problems of the papers, one per file, each stated once.

A program is stated as a ``LinearProgram`` and solved by ``solve`` (float64) or ``solve_exact``
(rationals); both return a ``Solution`` that carries its own proof, which ``check_solution`` checks.
"""

from spectheory.programs.antichain_separation import most_violated_antichain
from spectheory.programs.at_scale import (
    InfeasiblePointError,
    IntervalSolution,
    compact_form_program,
    lower_bound_from_skewed_draft,
    multi_path_interval,
    upper_bound_from_prices,
)
from spectheory.programs.best_ranking import BestRanking, best_ranking, count_tree_rankings
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
from spectheory.programs.greedy_polymatroid import (
    RankingDecomposition,
    decompose_into_rankings,
    ranking_vertex,
)
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
from spectheory.programs.path_selection import (
    is_skewed_draft,
    path_selection_optimum,
    path_selection_program,
)
from spectheory.programs.single_path import single_path_optimum, single_path_program
from spectheory.programs.skewed_draft_bound import skewed_draft_bound, skewed_draft_objective
from spectheory.programs.solution import (
    OptimalityResiduals,
    Solution,
    check_solution,
    optimality_residuals,
)
from spectheory.programs.transport import Transport, transport_feasibility
from spectheory.programs.unsimplified import unsimplified_optimum, unsimplified_program

__all__ = [
    "BestRanking",
    "ConstraintBlock",
    "InfeasiblePointError",
    "IntervalSolution",
    "LinearProgram",
    "MinCut",
    "OptimalityResiduals",
    "RankingDecomposition",
    "Solution",
    "Transport",
    "TransportBounds",
    "antichains",
    "bernoulli_acceptance",
    "best_ranking",
    "block_transport_optimum",
    "block_transport_program",
    "block_transport_value",
    "certified_bounds",
    "check_solution",
    "compact_form_program",
    "count_antichains",
    "count_tree_rankings",
    "decompose_into_rankings",
    "dual_optimum",
    "dual_program",
    "feasible_scores",
    "is_skewed_draft",
    "lower_bound_from_skewed_draft",
    "min_cut_of_law",
    "most_violated_antichain",
    "multi_path_interval",
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
    "path_selection_optimum",
    "path_selection_program",
    "position_draft_law",
    "ranking_vertex",
    "sampled_upper_bound",
    "single_path_optimum",
    "single_path_program",
    "skewed_draft_bound",
    "skewed_draft_objective",
    "solve",
    "solve_exact",
    "solve_exact_by_rows",
    "transport_bounds",
    "transport_feasibility",
    "uniform_acceptance",
    "unsimplified_optimum",
    "unsimplified_program",
    "upper_bound_from_prices",
    "upper_bound_from_scores",
]
