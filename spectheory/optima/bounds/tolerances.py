"""The rounding allowance of certified floats, and the tolerances of bounds and programs.

Tolerances apply to float64.  For exact numbers the tolerance is 0.
"""

import math
from fractions import Fraction

# The distance from 1 to the next float64.
MACHINE_EPSILON = 2.0**-52

FEASIBILITY_TOLERANCE = 1e-9
"""Largest violation of a constraint that still counts as rounding.

For a skewed draft it is relative: r(S) may be (1 + tolerance) f(q(S)).  For scores and slacks it is absolute.
Certified bounds allow for the violation, so the tolerance decides only which points are refused."""

FLOAT32_ROW_SUM_TOLERANCE = 1e-4
"""Largest deviation from 1 of the sum of a row at one position, because models return float32 rows."""

TIE_TOLERANCE = 1e-12
"""Largest relative difference of two masses that count as equal."""

ROW_TOLERANCE = 1e-9
"""Row generation adds a constraint if a float point violates it by more than this."""

GAP_TOLERANCE = 1e-7
"""The largest |primal - dual objective| of a float solution, relative to max(1, |value|)."""

SOLVER_TOLERANCE = 1e-10
"""The primal and dual feasibility tolerance for HiGHS, the smallest that it accepts."""


def rounding_allowance(num_terms: int) -> float:
    """Compute 4 ε (N + 16), ε = 2^-52: a bound on the relative rounding error of a sum of N numbers ≥ 0.

    It also covers the rounding of the numbers themselves: path probabilities, f, products.
    """
    return 4 * MACHINE_EPSILON * (num_terms + 16)


def outward(value: Fraction) -> tuple[float, float]:
    """Return the largest float ≤ value and the smallest float ≥ value."""
    near = float(value)
    low = near if Fraction(near) <= value else math.nextafter(near, -math.inf)
    high = near if Fraction(near) >= value else math.nextafter(near, math.inf)
    return low, high
