"""The optimum of on-path verifiers, which see only the rows of both models along the drafted paths.

For one path these rows suffice: block verification is optimal (theory.md Statement 4.2).  For several paths
they do not suffice (theory.md Statement 5.17).  A family of pairs proves it: an on-path verifier must treat
two pairs alike if they have the same rows along the drafts.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import comb, prod
from typing import Any

import numpy as np

from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.validation import check_num_drafts
from spectheory.optima.solving.builder import ProgramBuilder
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import Context, context_number, count_orders, numbered_context
from spectheory.pairs.pair import ModelPair, check_pair

# An exact solution of this size takes minutes.  The number of variables grows with V^(L K).
MAX_VARIABLES = 20_000


def on_path_program(pairs: Sequence[ModelPair], num_drafts: int) -> LinearProgram:
    """State the program that maximises an on-path verifier's sum of block efficiencies over several pairs.

    Source: theory.md Statement 5.17.  Drafts X are multisets of K leaves, which suffice for i.i.d. drafts.
    Variables: the conditional law k(b | X, rows) of the output b given the drafts and the rows along them.
    An output b is a prefix of a draft with one more token.  With P_m(X) the probability of the drafts under
    pair m and R_m(b) = Σ_X P_m(X) k(b | X, rows of m along X),

        max  Σ_m Σ_b |b| R_m(b)
        s.t. Σ_b k(b | X, rows) = 1                                        for all drafts and rows
             Σ_i R_m(c_{1:i}) p_m(c_{i+1:} | c_{1:i}) = p_m(c)             for all m and c ∈ V^{L+1}

    Args:
        pairs: the family, of one vocabulary size and one draft length; exact pairs give an exact program.
        num_drafts: K.

    Returns:
        The program.  Its variables are (drafts, index of the rows along them, output).

    Raises:
        InvalidInputError: there is no pair, or the pairs differ in shape or arithmetic.
        EnumerationTooLargeError: there are more than 20 000 variables.

    Example:
        >>> from spectheory import instances
        >>> on_path_program([instances.two_token(1)], 2).size
        (14, 7)
    """
    num_drafts = check_num_drafts(num_drafts)
    size, length, exact = _common_shape(pairs)
    if comb(size**length + num_drafts - 1, num_drafts) * size > MAX_VARIABLES:
        raise _too_large(pairs, num_drafts)
    model = ProgramBuilder("on-path LP", "theory.md Statement 5.17")
    kind, num_paths = object if exact else float, size ** (length + 1)
    seen: dict[Any, int] = {}
    laws: dict[Any, Any] = {}
    efficiency: Any = 0
    completed, count = [], 0
    for pair in pairs:
        leaf_probs, rows_along = pair.draft_path_probs(length), _rows_along(pair)
        paths = np.zeros(num_paths, dtype=kind)
        for leaves in combinations_with_replacement(range(size**length), num_drafts):
            prob = prod(leaf_probs[leaf] for leaf in leaves) * count_orders(leaves)
            if not prob > 0:
                continue
            drafts = tuple(numbered_context(leaf, length, size) for leaf in leaves)
            outputs = list(_outputs(drafts, size))
            law = drafts, seen.setdefault(tuple(rows_along[leaf] for leaf in leaves), len(seen))
            if law not in laws:
                count += len(outputs)
                if count > MAX_VARIABLES:
                    raise _too_large(pairs, num_drafts)
                laws[law] = model.variables([(*law, output) for output in outputs])
            shares = np.zeros((num_paths, len(outputs)), dtype=kind)
            for column, output in enumerate(outputs):
                for path, share in _completed(pair, output):
                    shares[path, column] = share
            efficiency = efficiency + prob * (laws[law] * list(map(len, outputs))).sum()
            paths = paths + prob * (shares @ laws[law])
        completed.append(paths)
    target = np.concatenate([pair.target_path_probs(length + 1) for pair in pairs])
    model.maximise(efficiency)
    model.add("conditional laws", np.stack([k.sum() for k in laws.values()]) == 1, "theory.md Statement 5.17")
    model.add("lossless on every pair", np.concatenate(completed) == target, "theory.md Statement 1.1")
    return model.program(box=1.0)


def on_path_optimum(pairs: Sequence[ModelPair], num_drafts: int) -> Solution:
    """Compute the largest sum of block efficiencies of one on-path verifier over several pairs.

    It takes the arguments of ``on_path_program`` and raises the same errors.

    Returns:
        The solution (tokens per target call, summed over the pairs), exact for exact pairs.

    Raises:
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> from spectheory import instances
        >>> print(on_path_optimum([instances.two_token(1)], 2).value)
        17/9
    """
    return solve_in_its_arithmetic(on_path_program(pairs, num_drafts))


def _common_shape(pairs: Sequence[ModelPair]) -> tuple[int, int, bool]:
    """Return (V, L, True if exact), which all pairs must share."""
    shapes = {(pair.vocab_size, pair.draft_length, pair.is_exact) for pair in map(check_pair, pairs)}
    if len(shapes) != 1:
        raise InvalidInputError(
            f"the pairs must be one or more of one vocabulary size, draft length and arithmetic; got {shapes}"
        )
    return shapes.pop()


def _too_large(pairs: Sequence[ModelPair], num_drafts: int) -> EnumerationTooLargeError:
    return EnumerationTooLargeError(
        f"{len(pairs)} pairs of {pairs[0].vocab_size} tokens and draft length {pairs[0].draft_length} with "
        f"{num_drafts} drafts need more than {MAX_VARIABLES} variables; use fewer or smaller pairs, or fewer "
        "drafts"
    )


def _rows_along(pair: ModelPair) -> list[Any]:
    """List, for every leaf, the rows of both models on the path to it, as hashable tuples."""
    length, size = pair.draft_length, pair.vocab_size
    found = []
    for leaf in range(size**length):
        path = numbered_context(leaf, length, size)
        numbers = [context_number(path[:depth], size) for depth in range(length + 1)]
        sides = (zip(pair.target, numbers, strict=True), zip(pair.draft, numbers[:-1], strict=True))
        found.append(tuple(tuple(level[number]) for side in sides for level, number in side))
    return found


def _outputs(drafts: tuple[Context, ...], size: int) -> Iterator[Context]:
    prefixes = {path[:depth] for path in drafts for depth in range(len(path) + 1)}
    for prefix in sorted(prefixes):
        for token in range(size):
            yield *prefix, token


def _completed(pair: ModelPair, output: Context) -> Iterator[tuple[int, Fraction | float]]:
    """Yield (number, probability) of every path of L+1 tokens that an output and target tokens can form."""
    reached = [(context_number(output, pair.vocab_size), pair.target[0][0, 0] * 0 + 1)]
    for depth in range(len(output), pair.draft_length + 1):
        reached = [
            (number * pair.vocab_size + token, share * prob)
            for number, share in reached
            for token, prob in enumerate(pair.target[depth][number])
            if prob > 0
        ]
    yield from reached
