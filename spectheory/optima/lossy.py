"""The largest block efficiency of a verifier whose output may deviate from the target distribution."""

from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.budgets import PREFIX_MATCHING
from spectheory.optima.multi_path import antichains, hit_probs
from spectheory.optima.solving.builder import ProgramBuilder
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import all_contexts, parent_nodes
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import parse_parameter

# The program also has a variable per output and per completed path, so it allows fewer antichains.
MAX_ANTICHAINS = 1_000
SOURCE = "theory.md Statement 5.22"


def lossy_program(
    pair: ModelPair,
    total_variation: Any,
    drafts: int | DraftProcess = 1,
) -> LinearProgram:
    """State the linear program of the largest block efficiency at a given distance from the target.

    Source: theory.md Statement 5.22.  At ε = 0 it is the program of greedy2026 Lemma A.5 over output laws,
    which the paper simplifies to Theorem 4.3.  Variables: the output law R(b), 1 ≤ |b| ≤ L+1, and for every
    path c of V^{L+1} the excess e(c) of the completed output over the target.  Target tokens complete b to
    L+1 tokens.

        max  Σ_b |b| R(b)
        s.t. Σ_b R(b) = 1
             Σ_i R(c_{1:i}) p(c_{i+1:} | c_{1:i}) - e(c) ≤ p(c)            for all c ∈ V^{L+1}
             Σ_c e(c) ≤ ε
             Σ_{a∈T} Σ_{b below a} R(b) ≤ P(some draft passes through T)   for all antichains T
             R, e ≥ 0

    Args:
        pair: the models; an exact pair gives an exact program.
        total_variation: ε in [0, 1], the largest allowed total variation distance between the completed
            output and p, the target on V^{L+1}.  An exact pair needs a Fraction, an integer or a string.
        drafts: as in ``multi_path_program``.

    Raises:
        InvalidInputError: ε is not in [0, 1], or a float for an exact pair.
        EnumerationTooLargeError: there are more than 1 000 antichains.

    Example:
        >>> from spectheory import instances
        >>> lossy_program(instances.two_token(1), "1/10", 2).size
        (10, 10)
    """
    budget = _budget(total_variation, pair.is_exact)
    pair, process = pair.normalised(), draft_process(drafts).normalised()
    V, L = pair.vocab_size, pair.draft_length
    members = antichains(V, L, MAX_ANTICHAINS)[1:]
    outputs = all_contexts(V, L + 1)[1:]
    model = ProgramBuilder("lossy multi-path LP", SOURCE)
    R = model.variables(outputs)
    e = model.variables([("excess", path) for path in range(V ** (L + 1))])
    levels = np.split(R, np.cumsum([V**depth for depth in range(1, L + 1)]))
    completed: Any = levels[0]
    for rows, longer in zip(pair.target[1:], levels[1:], strict=True):
        completed = np.repeat(completed, V) * rows.ravel() + longer
    model.maximise((R * [len(context) for context in outputs]).sum())
    model.add("law", R.sum() == 1, "greedy2026 Lemma A.5")
    model.add("excess", completed - e <= pair.target_path_probs(L + 1), SOURCE)
    model.add("total variation", e.sum() <= budget, SOURCE)
    limits = hit_probs(pair, members, process)
    model.add(PREFIX_MATCHING, _below(members, V, L) @ R <= limits, "greedy2026 Eq. 39")
    return model.program(box=1.0)


def lossy_optimum(
    pair: ModelPair,
    total_variation: Any,
    drafts: int | DraftProcess = 1,
) -> Solution:
    """Compute the largest block efficiency within total variation ε of the target in every call.

    It equals ``optimum`` at ε = 0, is concave in ε, and reaches L + 1 when ε allows to accept every draft.
    The verifier that attains it may read all rows of the pair.

    It takes the arguments of ``lossy_program`` and raises the same errors.

    Returns:
        The solution (tokens per target call), exact for exact pairs.

    Raises:
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> from spectheory import instances
        >>> print(*(lossy_optimum(instances.two_token(1), e).value for e in ("0", "1/10", "1/3", "1")))
        5/3 53/30 2 2
    """
    return solve_in_its_arithmetic(lossy_program(pair, total_variation, drafts))


def _budget(total_variation: Any, exact: bool) -> Any:
    if exact and isinstance(total_variation, float):
        raise InvalidInputError(
            f"an exact pair takes an exact total_variation, got {total_variation!r}; write it as a fraction"
        )
    value = parse_parameter("total_variation", total_variation, 0, 1)
    return Fraction(value) if exact else float(value)


def _below(members: np.ndarray, vocab_size: int, draft_length: int) -> np.ndarray:
    """Mask of the outputs that strictly extend a member of each antichain, [sets, outputs]."""
    below = np.zeros((len(members), 1 + vocab_size * members.shape[1]), dtype=bool)
    for child, parent in enumerate(parent_nodes(vocab_size, draft_length + 1), start=1):
        below[:, child] = members[:, parent] | below[:, parent]
    return below[:, 1:]
