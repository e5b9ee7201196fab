"""The compact form: all antichain constraints of the multi-path program under finitely many lines.

Nothing in the package uses it.  It cross-checks ``multi_path_interval`` from both sides on trees whose
antichains cannot be listed, and is exact where every q(T) is a point.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from spectheory.arrays import hit_probability
from spectheory.bounds.context_tree import node_probs
from spectheory.contexts import all_contexts, count_nodes, parent_nodes
from spectheory.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs.budgets import mass_chain
from spectheory.programs.solving.linear_program import ConstraintBlock, LinearProgram, ones
from spectheory.rows import parse_probs
from spectheory.validate import check_num_drafts

Side = Literal["outer", "inner"]
MAX_VARIABLES = 500_000


def compact_form_program(
    pair: ModelPair,
    num_drafts: int,
    points: Sequence[Any] | np.ndarray,
    side: Side,
    max_variables: int = MAX_VARIABLES,
) -> LinearProgram:
    """A linear program of (nodes × lines) size that bounds the multi-path optimum from one side.

    Source: theory.md §5 (compact form).  Variables: node masses x(a) = D(a) p(a), and W_s(a) for every
    line α_s + s u: the most that Σ_{a'∈T} [x(a') - s q(a')] can be over antichains T at or below a.

        max  Σ_a x(a)
        s.t. x(∅) = 1,  x(a, t) ≤ p(t|a) x(a)                    (greedy2026 Eq. 11)
             W_s(a) ≥ x(a) - s q(a)        for all s, a          (the antichain {a})
             W_s(a) ≥ Σ_t W_s(a, t)        for all s, inner a    (antichains further down)
             W_s(∅) ≤ α_s,  W ≥ 0          for all s             (Eq. 12 under the line)

    ``outer``: the lines are the tangents of f(u) = 1 - (1 - u)^K at the points, so the optimum is at least
    the true one.  ``inner``: the lines extend the chords between neighbouring points, so it is at most
    the true one.  A line is exact for the antichains whose q(T) is a point.

    Args:
        pair: the models; an exact pair with exact points gives an exact program.
        num_drafts: K.
        points: increasing numbers in [0, 1]; for ``inner`` at least 0 and 1.
        side: ``"outer"`` or ``"inner"``.
        max_variables: refuse to state a larger program.

    Returns:
        The program; variables are labelled by the context for x, and (line number, context) for W.

    Raises:
        InvalidInputError: bad points, side or number of drafts.
        EnumerationTooLargeError: more variables than allowed.

    Example:
        >>> from spectheory.programs import solve_exact
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> points = ["0", "1/3", "2/3", "1"]  # every q(T)
        >>> programs = [compact_form_program(pair, 2, points, side) for side in ("inner", "outer")]
        >>> print(*(solve_exact(program).value for program in programs))
        17/9 17/9
    """
    num_drafts = check_num_drafts(num_drafts)
    slopes, offsets = _lines(_checked_points(pair, points, side), num_drafts, side)
    V, L = pair.vocab_size, pair.draft_length
    nodes, lines = count_nodes(V, L), len(slopes)
    if nodes * (lines + 1) > max_variables:
        raise EnumerationTooLargeError(
            f"{nodes} nodes and {lines} lines make {nodes * (lines + 1)} variables, the limit is "
            f"{max_variables}; use fewer points, multi_path_interval, or raise max_variables"
        )
    labels = all_contexts(V, L)
    one, zero = ones(nodes, pair.is_exact), ones(lines * nodes, pair.is_exact) * 0
    root = np.zeros(1, dtype=int)
    root_mass = ConstraintBlock("root mass", "greedy2026 Eq. 11", "==", root, root, one[:1], one[:1])
    chain = mass_chain(pair, "target matching", "greedy2026 Eq. 11")
    return LinearProgram(
        name=f"multi-path compact form, {side}",
        source="theory.md §5; greedy2026 Theorem 4.3",
        direction="max",
        variables=(*labels, *((number, label) for number in range(lines) for label in labels)),
        objective=np.concatenate([one, zero]),
        blocks=(root_mass, chain, *_line_blocks(pair, slopes, offsets)),
        box=1.0,  # x ≤ 1; W_s(a) ≤ W_s(∅) ≤ α_s ≤ f ≤ 1 at a tangent's or chord's left end
    )


def _line_blocks(pair: ModelPair, slopes: np.ndarray, offsets: np.ndarray) -> tuple[ConstraintBlock, ...]:
    """The three rows of W_s; its column for line s and node a is (s + 1) nodes + a."""
    V, exact, lines = pair.vocab_size, pair.is_exact, len(slopes)
    nodes, inner = count_nodes(V, pair.draft_length), count_nodes(V, pair.draft_length - 1)
    _, draft_probs = node_probs(pair)
    row = np.arange(lines * nodes)
    line, node = np.divmod(row, nodes)
    column, child = row + nodes, node > 0
    parents = line[child] * inner + parent_nodes(V, pair.draft_length)[node[child] - 1]
    one, inner_one = ones(lines * nodes, exact), ones(lines * inner, exact)
    alone = (row, column, one), (row, node, -one)
    below = (np.arange(lines * inner), column[node < inner], inner_one), (parents, column[child], -one[child])
    top, limit = (np.arange(lines), column[node == 0], ones(lines, exact)), -slopes[line] * draft_probs[node]
    return (
        ConstraintBlock.of_terms("one node", "theory.md §5", ">=", limit, *alone),
        ConstraintBlock.of_terms("antichains below", "theory.md §5", ">=", inner_one - inner_one, *below),
        ConstraintBlock.of_terms("line", "greedy2026 Eq. 12", "<=", offsets, top),
    )


def _checked_points(pair: ModelPair, points: Sequence[Any] | np.ndarray, side: Side) -> np.ndarray:
    if side not in ("outer", "inner"):
        raise InvalidInputError(f"side must be 'outer' or 'inner', got {side!r}")
    array = parse_probs(list(points))
    if (array.dtype == object) != pair.is_exact:
        if array.dtype != object:
            raise InvalidInputError("the pair is exact but the points are floats; give strings or Fractions")
        array = array.astype(float)
    inside = len(array) > 0 and array[0] >= 0 and array[-1] <= 1
    if not inside or any(low >= high for low, high in pairwise(array)):
        raise InvalidInputError(f"points must increase within [0, 1], got {[str(point) for point in array]}")
    if side == "inner" and (array[0] != 0 or array[-1] != 1):
        raise InvalidInputError(
            f"inner points must start with 0 and end with 1, got {array[0]} and {array[-1]}"
        )
    return array


def _lines(points: np.ndarray, num_drafts: int, side: Side) -> tuple[np.ndarray, np.ndarray]:
    """Slopes s and offsets α of the tangents at the points or of the chords between them."""
    values = hit_probability(points, num_drafts)
    if side == "outer":
        slopes = num_drafts * (1 - points) ** (num_drafts - 1)
        return slopes, values - slopes * points
    slopes = np.diff(values) / np.diff(points)
    return slopes, values[:-1] - slopes * points[:-1]
