from .block_transport import block_transport_optimum as block_transport_optimum
from .block_transport import block_transport_program as block_transport_program
from .call_counts import fewest_calls as fewest_calls
from .call_counts import most_decoded_tokens as most_decoded_tokens
from .cutting_planes import multi_path_optimum as multi_path_optimum
from .interval.interval import multi_path_interval as multi_path_interval
from .lossy import lossy_optimum as lossy_optimum
from .lossy import lossy_program as lossy_program
from .multi_path import antichains as antichains
from .multi_path import multi_path_program as multi_path_program
from .multi_path import optimal_scores as optimal_scores
from .on_path import on_path_optimum as on_path_optimum
from .on_path import on_path_program as on_path_program
from .one_position.joint_cut import min_cut_of_nodes as min_cut_of_nodes
from .one_position.min_cut import min_cut_of_law as min_cut_of_law
from .one_position.min_cut import optimal_acceptance as optimal_acceptance
from .one_position.min_cut import optimal_acceptance_curve as optimal_acceptance_curve
from .one_position.optimal_transport import otm_optimum as otm_optimum
from .one_position.optimal_transport import otm_program as otm_program
from .one_position.ranking_plan import optimal_rankings as optimal_rankings
from .one_position.without_replacement import (
    optimal_acceptance_without_replacement as optimal_acceptance_without_replacement,
)
from .pair_optimum import optimum as optimum
from .path_selection import path_selection_optimum as path_selection_optimum
from .path_selection import path_selection_program as path_selection_program
from .single_path import single_path_optimum as single_path_optimum
from .single_path import single_path_program as single_path_program
from .solving.builder import ProgramBuilder as ProgramBuilder
from .solving.exact_solver import solve_exact as solve_exact
from .solving.float_solver import solve as solve
from .solving.linear_program import ConstraintBlock as ConstraintBlock
from .solving.linear_program import LinearProgram as LinearProgram
from .solving.solution import Solution as Solution
from .solving.solution import check_solution as check_solution
