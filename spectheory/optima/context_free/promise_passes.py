"""One depth of the two dynamic programs of ``context_free_interval`` (theory.md Statement 5.33).

A *promise* h is the mass r(a) that a policy plans at a context a, divided by q(a); x is the accepted mass
divided by q(a).  Grids are increasing.  A value between two grid points is the mean of a random choice of
one of them.  So the loops compute the value of an actual policy for every order of the segments: a rounding
error in a comparison makes the bound looser, but not wrong.

Output arrays come last; the caller allocates them.
"""

import numpy as np

from spectheory.foundation.kernels.loops import compiled_loop

_compiled = compiled_loop()


@_compiled
def upper_hull(grid: np.ndarray, values: np.ndarray, first: int, vertices: np.ndarray) -> int:
    """Find the vertices of the least concave function above the points ``first``, ``first`` + 1, ..

    Args:
        grid, values: the points, [n].
        vertices: its first entries are overwritten with the indices of the vertices, [n].

    Returns:
        The number of vertices.
    """
    count = 0
    for k in range(first, len(grid)):
        while count >= 2:
            a, b = vertices[count - 2], vertices[count - 1]
            if (values[b] - values[a]) * (grid[k] - grid[b]) > (values[k] - values[b]) * (grid[b] - grid[a]):
                break
            count -= 1
        vertices[count] = k
        count += 1
    return count


@_compiled
def children_values(
    below: np.ndarray, grid: np.ndarray, offered: float, first: int, values: np.ndarray
) -> tuple[int, float]:
    """Write the value of a child at the promises h_k to ``values``, from index ``first`` on.

    The child accepts min(h_k, offered).  If h_k > ``offered``, it chooses randomly between the two grid
    points around ``offered``.

    Returns:
        The index of the lower grid point, and the probability of the upper grid point.
    """
    n = len(grid)
    low = min(int(np.searchsorted(grid, offered, side="right")) - 1, n - 2)
    share = min((offered - grid[low]) / (grid[low + 1] - grid[low]), 1.0)
    for k in range(first, n):
        if k <= low:
            values[k] = below[k, k]
        else:
            values[k] = (1.0 - share) * below[k, low] + share * below[k, low + 1]
    return low, share


@_compiled
def _prepare(
    below: np.ndarray, grid: np.ndarray, first: int, ratios: np.ndarray, accepted: float,
    values: np.ndarray, vertices: np.ndarray, counts: np.ndarray, lows: np.ndarray, shares: np.ndarray,
) -> None:  # fmt: skip
    for t in range(len(ratios)):
        lows[t], shares[t] = children_values(below, grid, ratios[t] * accepted, first, values[t])
        counts[t] = upper_hull(grid, values[t], first, vertices[t])


@_compiled
def _steepest(
    grid: np.ndarray, values: np.ndarray, vertices: np.ndarray, counts: np.ndarray, places: np.ndarray
) -> tuple[int, float]:
    """Find the token whose next hull segment is steepest, and the slope; token -1 if no segment is left."""
    best, steepest = -1, -np.inf
    for t in range(len(places)):
        if places[t] < counts[t] - 1:
            a, b = vertices[t, places[t]], vertices[t, places[t] + 1]
            slope = (values[t, b] - values[t, a]) / (grid[b] - grid[a])
            if slope > steepest:
                best, steepest = t, slope
    return best, steepest


@_compiled
def best_promises(
    below: np.ndarray, grid: np.ndarray, first: int, draft: np.ndarray, ratios: np.ndarray, here: np.ndarray
) -> None:
    """Write P_i(h, x) = x + max Σ_t q_t P_{i+1}(h_t, min(h_t, ρ_t x)) over Σ_t q_t h_t = h, on a grid h ≥ x.

    Args:
        below: P_{i+1}, [n, n] over h and x.
        grid: the grid points, starting with 0, [n].
        first: the index of the smallest promise h.
        draft, ratios: q_t > 0 and ρ_t = p_t/q_t, [T].
        here: overwritten with P_i, [n, n].
    """
    n, tokens = len(grid), len(draft)
    values, vertices = np.empty((tokens, n)), np.empty((tokens, n), dtype=np.int64)
    counts, places, lows = (
        np.empty(tokens, dtype=np.int64), np.empty(tokens, dtype=np.int64), np.empty(tokens, dtype=np.int64),
    )  # fmt: skip
    shares = np.empty(tokens)
    for j in range(n):
        _prepare(below, grid, first, ratios, grid[j], values, vertices, counts, lows, shares)
        places[:] = 0
        promise, value, k = grid[first], grid[j], first
        for t in range(tokens):
            value += draft[t] * values[t, first]
        here[first, j] = value
        k = first + 1
        while k < n:
            best, slope = _steepest(grid, values, vertices, counts, places)
            if best < 0:
                here[k, j] = value  # by rounding the segments end just below the last promise
                k += 1
                continue
            a, b = vertices[best, places[best]], vertices[best, places[best] + 1]
            end = promise + draft[best] * (grid[b] - grid[a])
            while k < n and grid[k] <= end:
                here[k, j] = value + slope * (grid[k] - promise)
                k += 1
            value += draft[best] * (values[best, b] - values[best, a])
            promise = end
            places[best] += 1


@_compiled
def kept_promises(
    below: np.ndarray, grid: np.ndarray, first: int, draft: np.ndarray, ratios: np.ndarray, mass: np.ndarray,
    after: np.ndarray,
) -> None:  # fmt: skip
    """Compute the law of (h, x) at the next depth under the policy of ``best_promises``.

    At a context a, h is the promise and x the accepted mass, both divided by q(a).

    Args:
        below, grid, first, draft, ratios: as in ``best_promises``.
        mass: the law at this depth, [n, n].
        after: zeros on entry; the law at the next depth is added, [n, n].
    """
    n, tokens = len(grid), len(draft)
    values, vertices = np.empty((tokens, n)), np.empty((tokens, n), dtype=np.int64)
    counts, places, lows = (
        np.empty(tokens, dtype=np.int64), np.empty(tokens, dtype=np.int64), np.empty(tokens, dtype=np.int64),
    )  # fmt: skip
    shares = np.empty(tokens)
    for j in range(n):
        if not mass[:, j].any():
            continue
        _prepare(below, grid, first, ratios, grid[j], values, vertices, counts, lows, shares)
        places[:] = 0
        promise, k = grid[first], first
        while k < n:
            best, _ = _steepest(grid, values, vertices, counts, places)
            if best < 0:
                end = np.inf
            else:
                a, b = vertices[best, places[best]], vertices[best, places[best] + 1]
                end = promise + draft[best] * (grid[b] - grid[a])
            while k < n and grid[k] <= end:
                if mass[k, j] > 0.0:
                    for t in range(tokens):
                        part = (grid[k] - promise) / (end - promise) if t == best else 0.0
                        for side in range(2):
                            weight = mass[k, j] * draft[t] * (part if side else 1.0 - part)
                            if weight > 0.0:
                                vertex = vertices[t, places[t] + side]
                                if vertex <= lows[t]:
                                    after[vertex, vertex] += weight
                                else:
                                    after[vertex, lows[t]] += weight * (1.0 - shares[t])
                                    after[vertex, lows[t] + 1] += weight * shares[t]
                k += 1
            if best < 0:
                break
            promise = end
            places[best] += 1


@_compiled
def best_scores(
    below: np.ndarray, draft: np.ndarray, target: np.ndarray, unit: int, steepest: float, here: np.ndarray
) -> None:
    """Write F_i(c, ζ) = min Σ_t q_t F_{i+1}(c + y, ζ_t) over y ≥ 0, ζ_t ≥ 0, 1 + Σ_t p_t ζ_t ≤ y + ζ.

    Args:
        below: F_{i+1} at c = 0, 1/unit, .. and ζ = 0, 1/unit, .., [C, Z].
        draft, target: q_t > 0 and p_t, [T].
        unit: number of grid points per unit of c and ζ.
        steepest: a bound on the slope of F in c.
        here: overwritten with F_i, [C, Z'].
    """
    (scores, slacks), wide, tokens, step = below.shape, here.shape[1], len(draft), 1.0 / unit
    vertices, places = np.empty(slacks, dtype=np.int64), np.empty(tokens, dtype=np.int64)
    spread = np.empty((scores, wide))
    for row in range(scores):
        of_row, out, count = below[row], spread[row], 0
        for k in range(slacks):  # the largest convex function below the points
            while count >= 2:
                a, b = vertices[count - 2], vertices[count - 1]
                if (of_row[b] - of_row[a]) * (k - b) < (of_row[k] - of_row[b]) * (b - a):
                    break
                count -= 1
            vertices[count] = k
            count += 1
        places[:] = 0
        value, spent, k = 0.0, 0.0, 0
        for t in range(tokens):
            value += draft[t] * of_row[0]
        while k < wide:
            best, slope = -1, 0.0
            for t in range(tokens):
                if places[t] < count - 1:
                    a, b = vertices[places[t]], vertices[places[t] + 1]
                    cost = target[t] * (b - a) * step
                    gain = draft[t] * (of_row[b] - of_row[a])
                    # a token that the target never emits costs nothing
                    here_slope = (-np.inf if gain < 0.0 else 0.0) if cost == 0.0 else gain / cost
                    if here_slope < slope:
                        best, slope = t, here_slope
            if best < 0:
                out[k:] = value
                break
            a, b = vertices[places[best]], vertices[places[best] + 1]
            end = spent + target[best] * (b - a) * step
            while k < wide and k * step < end:
                out[k] = value + slope * (k * step - spent)
                k += 1
            value += draft[best] * (of_row[b] - of_row[a])
            spent = end
            places[best] += 1
    # choose y: the least value further along a diagonal, where c and the spent amount grow equally
    for row in range(scores - 1, -1, -1):
        for k in range(wide - 1, -1, -1):
            if row + 1 < scores:
                further = spread[row + 1, min(k + 1, wide - 1)]
            else:
                further = spread[row, min(k + 1, wide - 1)] + steepest * step
            spread[row, k] = min(spread[row, k], further)
    for row in range(scores):
        for k in range(wide):
            if k >= unit:
                here[row, k] = spread[row, k - unit]
            else:
                at = row + unit - k
                beyond = max(at - scores + 1, 0)
                here[row, k] = spread[at - beyond, 0] + steepest * step * beyond
