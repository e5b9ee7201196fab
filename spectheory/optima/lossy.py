"""How much block efficiency a deviation from the target can buy: the front that no verifier passes."""

from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.budgets import PREFIX_MATCHING
from spectheory.optima.multi_path import antichains, hit_probs
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.optima.solving.linear_program import ConstraintBlock, LinearProgram, ones
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import all_contexts, count_nodes, parent_nodes, prefix_of_leaf
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.drafts.iid import draft_process
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import parse_entry

# The program also has a variable per output and per completed path, so it is solved for fewer antichains.
MAX_ANTICHAINS = 1_000
SOURCE = "theory.md Statement 5.22"


def lossy_program(
    pair: ModelPair,
    total_variation: Any,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
) -> LinearProgram:
    """The linear program of the largest block efficiency at a given distance from the target.

    Source: theory.md Statement 5.22.  At ε = 0 it is the program of greedy2026 Lemma A.5 over output laws,
    which is Theorem 4.3 before its simplification.  Variables: the output law R(b), 1 ≤ |b| ≤ L+1, and for
    every path c of V^{L+1} the excess e(c) of the completed output over the target.

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
    pair, process = pair.normalised(), draft_process(drafts).normalised()
    variables = all_contexts(pair.vocab_size, pair.draft_length + 1)[1:]
    count, paths = len(variables), np.arange(pair.vocab_size ** (pair.draft_length + 1))
    one, none = ones(count, pair.is_exact), ones(len(paths), pair.is_exact) * 0
    members = antichains(pair.vocab_size, pair.draft_length, max_antichains)[1:]
    limits = hit_probs(pair, members, process)
    zero, columns = np.zeros(count, dtype=int), np.arange(count)
    return LinearProgram(
        name="lossy multi-path LP",
        source=SOURCE,
        direction="max",
        variables=(*variables, *(("excess", int(path)) for path in paths)),
        objective=np.concatenate([one * [len(context) for context in variables], none]),
        blocks=(
            ConstraintBlock("law", "greedy2026 Lemma A.5", "==", zero, columns, one, one[:1]),
            _target_matching(pair, count + paths),
            ConstraintBlock(
                "total variation", SOURCE, "<=", 0 * paths, count + paths, none + 1, one[:1] * budget
            ),
            _prefix_matching(pair, members, limits),
        ),
        box=1.0,
    )


def lossy_optimum(
    pair: ModelPair,
    total_variation: Any,
    drafts: int | DraftProcess = 1,
    max_antichains: int = MAX_ANTICHAINS,
) -> Solution:
    """The largest block efficiency of any verifier within a total variation ε of the target, per call.

    It is ``optimum`` at ε = 0, concave in ε, and L + 1 where every draft may be accepted.  The verifier that
    attains it may look at all rows of the pair.

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
    if exact and isinstance(total_variation, float):
        raise InvalidInputError(
            f"an exact pair takes an exact total_variation, got {total_variation!r}; write it as a fraction"
        )
    try:
        value = Fraction(parse_entry(total_variation))
    except (InvalidInputError, ValueError, OverflowError) as error:
        raise InvalidInputError(f"total_variation must be a number, got {total_variation!r}") from error
    if not 0 <= value <= 1:
        raise InvalidInputError(f"total_variation must lie in [0, 1], got {total_variation!r}")
    return value if exact else float(value)


def _target_matching(pair: ModelPair, excess: np.ndarray) -> ConstraintBlock:
    """Σ_i R(c_{1:i}) p(c_{i+1:} | c_{1:i}) - e(c) ≤ p(c), one row per path of V^{L+1}."""
    V, L = pair.vocab_size, pair.draft_length
    path = np.arange(V ** (L + 1))
    terms = [(path, excess, -ones(len(path), pair.is_exact))]
    continuation = ones(len(path), pair.is_exact)  # p(a_{length+1:L+1} | a_{1:length})
    for length in reversed(range(1, L + 2)):
        prefix = prefix_of_leaf(path, length, L + 1, V)
        present = continuation != 0
        column = count_nodes(V, length - 1) - 1 + prefix  # the root is not a variable
        terms.append((path[present], column[present], continuation[present]))
        continuation = continuation * pair.target[length - 1].ravel()[prefix]
    rhs = pair.target_path_probs(L + 1)
    return ConstraintBlock.of_terms("excess", SOURCE, "<=", rhs, *terms)


def _prefix_matching(pair: ModelPair, members: np.ndarray, limits: np.ndarray) -> ConstraintBlock:
    """(39): all output sequences strictly below a member of the antichain."""
    V = pair.vocab_size
    below = np.zeros((len(members), 1 + V * members.shape[1]), dtype=bool)
    for child, parent in enumerate(parent_nodes(V, pair.draft_length + 1), start=1):
        below[:, child] = members[:, parent] | below[:, parent]
    rows, columns = np.nonzero(below[:, 1:])
    one = ones(len(rows), pair.is_exact)
    return ConstraintBlock(PREFIX_MATCHING, "greedy2026 Eq. 39", "<=", rows, columns, one, limits)
