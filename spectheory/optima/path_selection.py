"""The optimum over skewed drafts: laws of the path selected among K drafts (greedy2026 Theorem 4.6)."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations
from typing import Any

import numpy as np

from spectheory.foundation.arrays import divide_or_zero, hit_probability, normalise, positive_part
from spectheory.foundation.errors import CertificationError, EnumerationTooLargeError
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_count, check_num_drafts
from spectheory.optima.bounds.level_sets import LevelSets
from spectheory.optima.bounds.skewed_draft import SkewedDraft, grown_law, is_skewed_draft
from spectheory.optima.bounds.tolerances import ROW_TOLERANCE, rounding_allowance
from spectheory.optima.solving.builder import ProgramBuilder
from spectheory.optima.solving.exact_basis import as_objects
from spectheory.optima.solving.exact_solver import exact_solution, solve_exact_after
from spectheory.optima.solving.float_solver import float_solution
from spectheory.optima.solving.linear_program import LinearProgram, Repair
from spectheory.optima.solving.simplex import Simplex
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import all_contexts, count_nodes, leaves_below, parent_nodes
from spectheory.pairs.pair import ModelPair

LEAF_SETS = "skewed draft"
MAX_LISTED_LEAVES = 12
"""Largest number M of leaves of which all 2^M - 1 non-empty sets are listed."""
MAX_LEAVES = 81
"""Largest number of leaves by default: generating leaf sets takes seconds.  More leaves converge slowly."""

LeafSet = frozenset[int]


def path_selection_program(
    pair: ModelPair, num_drafts: int, leaf_sets: Iterable[Collection[int]] | None = None
) -> LinearProgram:
    """State the linear program of the best law of the selected path.

    Source: greedy2026 Theorem 4.6.  Variables: r(b) for leaves b ∈ V^L, and
    x(a) = min_{k ≤ |a|} p(a_{k+1:} | a_{1:k}) r(a_{1:k}), a ∈ V^{≤L}, as a chain of linear bounds.

        max  Σ_a x(a)                                                              (16)
        s.t. x(a) ≤ r(a) = Σ_{b below a} r(b)          for all a ∈ V^{≤L}          (13)
             x(a, t) ≤ p(t | a) x(a)                   for all a ∈ V^{<L}, t ∈ V   (87)
             Σ_b r(b) = 1
             Σ_{b∈S} r(b) ≤ 1 - (1 - Σ_{b∈S} q(b))^K   for all S ⊆ V^L             (17)

    The paper prints Eq. 17 without the sum on its left side.

    Args:
        pair: the models; an exact pair gives an exact program.
        num_drafts: K.
        leaf_sets: sets of leaf numbers for which (17) is stated, a relaxation.  By default all sets.

    Returns:
        The program; its variables are ("x", context) and ("r", leaf as a context).

    Raises:
        EnumerationTooLargeError: ``leaf_sets`` is None, and there are more than 12 leaves.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> path_selection_program(pair, 2).size
        (11, 29)
    """
    num_drafts = check_num_drafts(num_drafts)
    V, L = pair.vocab_size, pair.draft_length
    nodes, leaves = count_nodes(V, L), V**L
    sets = _all_leaf_sets(leaves) if leaf_sets is None else [sorted(members) for members in leaf_sets]
    members = np.zeros((len(sets), leaves), dtype=bool)
    for number, leaf_set in enumerate(sets):
        members[number, list(leaf_set)] = True
    q, contexts = pair.draft_path_probs(L), all_contexts(V, L)
    conditionals = np.concatenate([rows.ravel() for rows in pair.target[:-1]])
    model = ProgramBuilder("path-selection LP", "greedy2026 Theorem 4.6")
    x = model.variables([("x", context) for context in contexts])
    r = model.variables([("r", context) for context in contexts[nodes - leaves :]])
    below = np.concatenate([r.reshape(V**depth, -1).sum(axis=1) for depth in range(L + 1)])
    model.maximise(x.sum())
    model.add("within the draft", x <= below, "greedy2026 Eqs. 13, 16")
    model.add("chain of minima", x[1:] <= conditionals * x[parent_nodes(V, L)], "greedy2026 Eqs. 16, 87")
    model.add("total", r.sum() == 1, "greedy2026 Eq. 13")
    model.add(LEAF_SETS, members @ r <= hit_probability(members @ q, num_drafts), "greedy2026 Eq. 17")
    repair: Repair = partial(_feasible_point, pair=pair, num_drafts=num_drafts)
    return model.program(box=1.0, repair=repair)


@dataclass(frozen=True, eq=False)
class SelectionOptimum:
    """The best law of the selected path.

    Attributes:
        solution: solution of the program with the constraints of ``leaf_sets`` only.  Its value is the
            optimum over all sets, because ``skewed_draft`` satisfies the other constraints too.
        skewed_draft: r, the law of the selected path.
        leaf_sets: the leaf sets in the program, as leaf numbers.
    """

    solution: Solution
    skewed_draft: SkewedDraft
    leaf_sets: tuple[tuple[int, ...], ...]

    def __bool__(self) -> bool:
        raise no_verdict(self, ".value")

    @property
    def value(self) -> Any:
        """The best block efficiency, tokens per target call."""
        return self.solution.value


def path_selection_optimum(
    pair: ModelPair,
    num_drafts: int,
    max_leaves: int = MAX_LEAVES,
    max_rounds: int = 500,
) -> SelectionOptimum:
    """Compute the best law of the selected path over K i.i.d. drafts, by generating leaf sets.

    1. State the program with the leaves below every context.
    2. Solve.  Trim r to the part that x needs (``_trimmed``), sort the leaves by r/q, and add the violated
       level sets.  Repeat until none is violated.
    3. Extend the trimmed r to a law that satisfies the constraint of every leaf set.
    4. For an exact pair do steps 1 and 2 in floats, then repeat step 2 in rationals, so that r is exact.

    The value equals ``multi_path_optimum``, the program over antichains (Theorem 4.6).

    Args:
        pair: the models.
        num_drafts: K.
        max_leaves: largest number V^L of leaves; more than the default need many rounds.
        max_rounds: the largest number of rounds of step 2.

    Returns:
        The optimum, exact for exact pairs.

    Raises:
        EnumerationTooLargeError: there are more than ``max_leaves`` leaves.
        SolverError, CertificationError: no optimal solution was reached.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=1)
        >>> best = path_selection_optimum(pair, 2)
        >>> print(best.value, best.skewed_draft.leaf_law)
        17/9 [Fraction(4, 9) Fraction(5, 9)]
    """
    num_drafts, max_rounds = check_num_drafts(num_drafts), check_count("max_rounds", max_rounds)
    leaves = pair.vocab_size**pair.draft_length
    if leaves > max_leaves:
        raise EnumerationTooLargeError(
            f"{pair.vocab_size} tokens and draft length {pair.draft_length} have {leaves} leaves, the limit "
            f"is {max_leaves}; truncate the pair, restrict its tokens, or raise max_leaves"
        )
    sets = _starting_sets(pair)
    simplex = Simplex()
    program, point, sets = _generate(
        pair.to_float(), num_drafts, sets, lambda stated: simplex.solve(stated)[0], max_rounds, ROW_TOLERANCE
    )
    if pair.is_exact:
        exactly = _Exactly()
        program, point, sets = _generate(pair, num_drafts, sets, exactly.point, max_rounds, 0)
        law = _extended(pair, _trimmed(pair, _leaf_law(pair, point)), num_drafts)
        draft = SkewedDraft.summed(pair, law)
        if not is_skewed_draft(pair, draft.leaf_law, num_drafts).is_member:
            raise CertificationError(f"{program.describe()}: the leaf law violates a leaf set exactly")
        point = np.concatenate([*draft.accepted_masses(pair), draft.leaf_law])
        solution = exact_solution(program, point, exactly.multipliers)
    else:
        solution = float_solution(program, *simplex.solve(program))
        draft = SkewedDraft.summed(pair, _leaf_law(pair, np.array(list(solution.primal.values()))))
    return SelectionOptimum(solution, draft, tuple(tuple(sorted(members)) for members in sets))


def _violated_sets(law: np.ndarray, pair: ModelPair, num_drafts: int, tolerance: float) -> list[LeafSet]:
    """List the level sets S of r/q whose violation of (17) is a local maximum above the tolerance."""
    sets = LevelSets.of(law, pair.draft_path_probs(pair.draft_length), num_drafts)
    excesses = sets.excesses
    before = np.concatenate([excesses[:1] - 1, excesses[:-1]])
    after = np.concatenate([excesses[1:], excesses[-1:] - 1])
    peaks = np.flatnonzero((excesses > tolerance) & (excesses >= before) & (excesses > after))
    return [frozenset(sets.order[: peak + 1].tolist()) for peak in peaks]


def _generate(
    pair: ModelPair,
    num_drafts: int,
    sets: list[LeafSet],
    optimal_point: Callable[[LinearProgram], np.ndarray],
    max_rounds: int,
    tolerance: float,
) -> tuple[LinearProgram, np.ndarray, list[LeafSet]]:
    """Solve the program and add violated leaf sets, until no leaf set is violated.

    Returns:
        The program, its optimal point before any repair, and its leaf sets.
    """
    for _ in range(max_rounds):
        program = path_selection_program(pair, num_drafts, sets)
        point = optimal_point(program)
        law = _trimmed(pair, _leaf_law(pair, point))
        known = set(sets)
        # the point satisfies the stated sets up to rounding
        new = [s for s in _violated_sets(law, pair, num_drafts, tolerance) if s not in known]
        if not new:
            return program, point, sets
        sets = [*sets, *new]
    raise CertificationError(
        f"{program.describe()}: leaf sets were still violated after {max_rounds} rounds; raise max_rounds"
    )


class _Exactly:
    """Exact solutions of a growing program.  Each solve starts from the basis of the previous one."""

    def __init__(self) -> None:
        self.basis: list[int] | None = None
        self.multipliers = np.zeros(0, dtype=object)

    def point(self, program: LinearProgram) -> np.ndarray:
        solution, self.basis = solve_exact_after(replace(program, repair=None), self.basis)
        self.multipliers = np.concatenate(list(solution.dual.values()))
        return as_objects(list(solution.primal.values()))


def _trimmed(pair: ModelPair, law: np.ndarray) -> np.ndarray:
    """Compute the part r' of r that x needs, [V^L]: r' ≤ r on the leaves, r'(a) ≥ x(a) except at the root.

    An optimum may put the unneeded mass r - r' anywhere.  So a leaf set that only this mass violates need not
    be added.  We start from r' = x on the leaves and go up the tree.  If the leaves below a context hold less
    than x(a), every leaf takes back the same share of the mass r - r' that it gave up.
    """
    masses = SkewedDraft.summed(pair, law).accepted_masses(pair)
    kept = masses[-1]
    for mass in reversed(masses[1:-1]):
        below = kept.reshape(len(mass), -1)
        given_up = law.reshape(len(mass), -1) - below
        missing, available = positive_part(mass - below.sum(axis=1)), positive_part(given_up.sum(axis=1))
        kept = (below + divide_or_zero(missing, available)[:, None] * given_up).ravel()
    return kept


def _extended(pair: ModelPair, law: np.ndarray, num_drafts: int) -> np.ndarray:
    """Grow r to a law of sum 1, [V^L].  If r satisfies (17) for every leaf set, so does the law."""
    return grown_law(law, pair.draft_path_probs(pair.draft_length), num_drafts)


def _leaf_law(pair: ModelPair, point: np.ndarray) -> np.ndarray:
    return point[count_nodes(pair.vocab_size, pair.draft_length) :]


def _all_leaf_sets(leaves: int) -> list[Collection[int]]:
    if leaves > MAX_LISTED_LEAVES:
        raise EnumerationTooLargeError(
            f"{leaves} leaves have 2^{leaves} - 1 sets, listed up to {MAX_LISTED_LEAVES} leaves; "
            "give leaf_sets, or use path_selection_optimum, which generates the ones that matter"
        )
    sizes = range(1, leaves + 1)
    return list(chain.from_iterable(combinations(range(leaves), size) for size in sizes))


def _starting_sets(pair: ModelPair) -> list[LeafSet]:
    V, L = pair.vocab_size, pair.draft_length
    below = {
        frozenset(leaves_below(number, depth, V, L))
        for depth in range(1, L + 1)
        for number in range(V**depth)
    }
    return sorted(below, key=lambda members: (len(members), min(members)))


def _feasible_point(
    program: LinearProgram, point: np.ndarray, pair: ModelPair, num_drafts: int
) -> np.ndarray:
    """Repair a point: a law r near the given one that satisfies (17) for every leaf set, and its x.

    1. Set r to 0 where it is negative or q = 0, trim and extend it, and divide by its sum.
    2. Move r towards q, which satisfies (17) for every set, as far as the most violated set needs.  An excess
       within the rounding allowance of a set's limit is ignored.
    3. Below the root set x(a) = min(r(a), p x(parent)), reduced by the rounding allowance.
    """
    draft_probs = pair.draft_path_probs(pair.draft_length)
    rounding = rounding_allowance(program.num_variables)
    law = np.where(draft_probs > 0, positive_part(point[-len(draft_probs) :]), 0.0)
    law = _extended(pair, _trimmed(pair, law), num_drafts)
    law = normalise(law)
    for _ in range(100):
        sets = LevelSets.of(law, draft_probs, num_drafts)
        worst = sets.excesses > rounding * sets.limits
        if not worst.any():
            break
        excesses = sets.excesses[worst]
        room = positive_part(sets.limits - sets.draft_masses)[worst]
        share = float(np.max(excesses / (excesses + room)))
        law = (1 - share) * law + share * draft_probs
    masses = np.concatenate(SkewedDraft.summed(pair, law).accepted_masses(pair))
    masses[1:] *= 1 - rounding
    return np.concatenate([masses, law])
