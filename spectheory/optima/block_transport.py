"""The block transport problem: one drafted path coupled with a target path (block2024 Eq. 40-42)."""

from typing import Any

import numpy as np

from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.optima.one_position.optimal_transport import MAX_VARIABLES, coupling_repair
from spectheory.optima.solving.builder import ProgramBuilder
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import prefix_of_leaf
from spectheory.pairs.pair import ModelPair


def block_transport_program(pair: ModelPair) -> LinearProgram:
    """State the linear program of the coupling of a drafted and a target path with the longest common prefix.

    Source: block2024 Eq. 40-42 (γ there is our L, M_s the draft, M_b the target).
    Variables: the coupling π(x, y), x ∈ V^L the drafted path, y ∈ V^L the target's path.

        max  Σ_{x,y} π(x, y) β(x, y)                                               (40)
        s.t. Σ_y π(x, y) = q(x)   for all x ∈ V^L                                  (41)
             Σ_x π(x, y) = p(y)   for all y ∈ V^L                                  (42)
             π ≥ 0

    β is the length of the longest common prefix.  The paper prints the maximum over ℓ < γ.  We count γ if the
    whole blocks agree, as the sum over ℓ ≤ γ in Lemma 10 of the paper does.

    Args:
        pair: the models; an exact pair gives an exact program.

    Returns:
        The program; variables are labelled (draft path, target path).

    Raises:
        EnumerationTooLargeError: the number of variables V^{2L} is above 20 000.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> block_transport_program(pair).size
        (16, 8)
    """
    V, L = pair.vocab_size, pair.draft_length
    if V ** (2 * L) > MAX_VARIABLES:
        raise EnumerationTooLargeError(
            f"block transport over {V} tokens and draft length {L} has {V ** (2 * L)} variables, the limit "
            f"is {MAX_VARIABLES}; use block_transport_value, the closed form"
        )
    paths = [pair.context(L, number) for number in range(V**L)]
    numbers = np.arange(V**L)
    common = np.zeros((V**L, V**L), dtype=int)
    for depth in range(1, L + 1):
        prefix = prefix_of_leaf(numbers, depth, L, V)
        common += prefix[:, None] == prefix
    q, p = pair.draft_path_probs(L), pair.target_path_probs(L)
    model = ProgramBuilder("block transport LP", "block2024 Eq. 40")
    plan = model.variables([(x, y) for x in paths for y in paths]).reshape(V**L, V**L)
    model.maximise((plan * common).sum())
    model.add("draft marginal", plan.sum(axis=1) == q, "block2024 Eq. 41")
    model.add("target marginal", plan.sum(axis=0) == p, "block2024 Eq. 42")
    return model.program(box=1.0, repair=coupling_repair(q, p))


def block_transport_optimum(pair: ModelPair) -> Solution:
    """Compute the largest mean length of the common prefix of a drafted and a target path, with its coupling.

    It takes the argument of ``block_transport_program`` and raises the same errors.

    Returns:
        The solution.  ``value`` is E[β] in drafted tokens per block, exact for exact pairs.  The token after
        the accepted ones does not count.

    Raises:
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> print(block_transport_optimum(pair).value)
        4/3
    """
    return solve_in_its_arithmetic(block_transport_program(pair))


def block_transport_value(pair: ModelPair) -> Any:
    """Compute the optimal E[β] in closed form: Σ_{ℓ=1..L} Σ_{a ∈ V^ℓ} min{p(a), q(a)} (block2024 Lemma 10).

    It is exact for exact pairs.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=3)
        >>> print(block_transport_value(pair))
        50/27
    """
    depths = range(1, pair.draft_length + 1)
    return sum(
        np.minimum(pair.target_path_probs(depth), pair.draft_path_probs(depth)).sum() for depth in depths
    )
