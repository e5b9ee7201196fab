"""How much block efficiency a deviation from the target can buy: the front that no verifier passes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.drafts import DraftProcess
from spectheory.errors import InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs.solving.exact_solver import solve_in_its_arithmetic
from spectheory.programs.solving.linear_program import ConstraintBlock, LinearProgram, ones
from spectheory.programs.solving.solution import Solution
from spectheory.programs.unsimplified import MAX_ANTICHAINS, TARGET_MATCHING, unsimplified_program


def lossy_program(
    pair: ModelPair,
    total_variation: Any,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
) -> LinearProgram:
    """The linear program of the largest block efficiency at a given distance from the target.

    Source: theory.md Statement 5.22.  Variables: the output law R(b), 1 ≤ |b| ≤ L+1, and for every path c of
    V^{L+1} the excess e(c) of the completed output over the target.

        max  Σ_b |b| R(b)
        s.t. Σ_b R(b) = 1
             Σ_i R(c_{1:i}) p(c_{i+1:} | c_{1:i}) - e(c) ≤ p(c)            for all c ∈ V^{L+1}
             Σ_c e(c) ≤ ε
             Σ_{a∈T} Σ_{b below a} R(b) ≤ P(some draft passes through T)   for all antichains T
             R, e ≥ 0

    Args:
        pair: the models; an exact pair gives an exact program.
        total_variation: ε, the largest total variation between the completed output and p_{L+1}, in [0, 1];
            exact for an exact pair: a fraction or a string.
        drafts, max_antichains: as in ``multi_path_program``.

    Raises:
        InvalidInputError: ε is not in [0, 1], or a float for an exact pair.
        EnumerationTooLargeError: there are more antichains.

    Example:
        >>> from spectheory import instances
        >>> lossy_program(instances.two_token(1), "1/10", 2).size
        (10, 10)
    """
    budget = _budget(total_variation, pair.is_exact)
    lossless = unsimplified_program(pair, drafts, max_antichains)
    matching = lossless.block(TARGET_MATCHING)
    paths, count = np.arange(matching.size), lossless.num_variables
    one = ones(matching.size, pair.is_exact)
    within = ConstraintBlock.of_terms(
        "excess", "theory.md Statement 5.22", "<=", matching.rhs,
        (matching.rows, matching.columns, matching.coefficients), (paths, count + paths, -one),
    )  # fmt: skip
    total = ConstraintBlock(
        "total variation", "theory.md Statement 5.22", "<=", 0 * paths, count + paths, one, one[:1] * budget
    )
    law, _, prefixes = lossless.blocks
    return replace(
        lossless,
        name="lossy multi-path LP",
        source="theory.md Statement 5.22",
        variables=(*lossless.variables, *(("excess", int(path)) for path in paths)),
        objective=np.concatenate([lossless.objective, one * 0]),
        blocks=(law, within, total, prefixes),
        repair=None,
    )


def lossy_optimum(
    pair: ModelPair,
    total_variation: Any,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
) -> Solution:
    """The largest block efficiency of any verifier within a total variation ε of the target, per call.

    At ε = 0 it is ``optimum``.  It is concave in ε and grows to L + 1, for which every draft is accepted.
    The verifier that attains it may look at all rows of the pair.

    Args and errors are those of ``lossy_program``.

    Returns:
        The solution (tokens per target call), exact for exact pairs.

    Raises:
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> from spectheory import instances
        >>> print(*(lossy_optimum(instances.two_token(1), e).value for e in ("0", "1/10", "1/3", "1")))
        5/3 53/30 2 2
    """
    program = lossy_program(pair, total_variation, drafts, max_antichains)
    return solve_in_its_arithmetic(program)


def _budget(total_variation: Any, exact: bool) -> Any:
    """ε in the arithmetic of the pair."""
    if exact and isinstance(total_variation, float):
        raise InvalidInputError(
            f"an exact pair takes an exact total_variation, got {total_variation!r}; write it as a fraction"
        )
    try:
        value = Fraction(total_variation)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"total_variation must be a number, got {total_variation!r}") from error
    if not 0 <= value <= 1:
        raise InvalidInputError(f"total_variation must lie in [0, 1], got {total_variation!r}")
    return value if exact else float(value)
