"""The allowance for rounding of certified floats, and the tolerances of bounds and programs.

Tolerances are for float64.  Exact numbers are held to 0.
"""

import math
from fractions import Fraction

# The distance from 1 to the next float64.
MACHINE_EPSILON = 2.0**-52

FEASIBILITY_TOLERANCE = 1e-9
"""How far a point may break a constraint and still count as feasible up to rounding.

For a skewed draft it is relative: r(S) may be (1 + tolerance) f(q(S)).  For scores and slacks it is absolute.
Certified bounds make up for the excess, so the tolerance decides only which points are refused."""

FLOAT32_ROW_SUM_TOLERANCE = 1e-4
"""How far the sum of a row at one position may be from 1, for the rows of models in float32."""

TIE_TOLERANCE = 1e-12
"""How far apart, relatively, two masses may be and still count as equal."""

ROW_TOLERANCE = 1e-9
"""By how much a float point must break a constraint for row generation to add the constraint."""

GAP_TOLERANCE = 1e-7
"""The largest |primal - dual objective| of a float solution, relative to max(1, |value|)."""

SOLVER_TOLERANCE = 1e-10
"""The primal and dual feasibility tolerance of HiGHS, the least that it accepts."""


def rounding_allowance(num_terms: int) -> float:
    """4 ε (N + 16), ε = 2^-52: a relative error that covers the rounding of sums of N nonnegative numbers.

    It leaves room for the rounding of the numbers themselves: path probabilities, f, products.
    """
    return 4 * MACHINE_EPSILON * (num_terms + 16)


def outward(value: Fraction) -> tuple[float, float]:
    """The nearest floats around a rational from below and from above."""
    near = float(value)
    low = near if Fraction(near) <= value else math.nextafter(near, -math.inf)
    high = near if Fraction(near) >= value else math.nextafter(near, math.inf)
    return low, high
