"""The multi-path optimum on trees far beyond the reach of listed antichains."""

from spectheory.programs.at_scale.bounds import (
    InfeasiblePointError,
    lower_bound_from_skewed_draft,
    upper_bound_from_prices,
)
from spectheory.programs.at_scale.compact_form import compact_form_program
from spectheory.programs.at_scale.interval import IntervalSolution, multi_path_interval

__all__ = [
    "InfeasiblePointError",
    "IntervalSolution",
    "compact_form_program",
    "lower_bound_from_skewed_draft",
    "multi_path_interval",
    "upper_bound_from_prices",
]
