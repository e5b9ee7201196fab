"""The optimum over skewed drafts (greedy2026 Theorem 4.6), and which laws are skewed drafts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from spectheory.bounds.skewed_draft import SkewedDraft
from spectheory.contexts import all_contexts, count_nodes
from spectheory.errors import CertificationError, EnumerationTooLargeError, InvalidInputError
from spectheory.pair import ModelPair
from spectheory.programs.budgets import some_draft_probs
from spectheory.programs.solving.exact_solver import exact_solution, solve_exact
from spectheory.programs.solving.float_solver import MACHINE_EPSILON, solve
from spectheory.programs.solving.linear_program import ConstraintBlock, LinearProgram, Repair, ones
from spectheory.programs.solving.solution import Solution
from spectheory.validate import check_count, check_num_drafts

LEAF_SETS = "skewed draft"
MAX_LISTED_LEAVES = 12
"""Up to this many leaves, a program without chosen leaf sets lists all 2^M - 1 of them."""
MAX_LEAVES = 81
"""Generating leaf sets takes seconds here and converges slowly beyond."""

LeafSet = frozenset[int]


class Membership(NamedTuple):
    """Whether a law is a skewed draft, with the proof when it is not.

    Attributes:
        is_member: whether r(S) ≤ f(q(S)) for every set S of leaves.
        witness: leaf numbers of the most violated set, ascending; empty if there is none.
        excess: r(S) - f(q(S)) of it; 0 if there is none.
    """

    is_member: bool
    witness: tuple[int, ...]
    excess: Any


def is_skewed_draft(
    pair: ModelPair, leaf_law: np.ndarray, num_drafts: int, tolerance: float = 1e-12
) -> Membership:
    """Whether some path-selection rule over K i.i.d. drafts selects with this law.

    Source: greedy2026 Lemma 4.5, r(S) ≤ f(q(S)) for all sets S of leaves, f(u) = 1 - (1 - u)^K
    (Eq. 15 prints r(a_{1:L}) in the sum; it is r(a_{1:i})).  r(S) - f(q(S)) is convex in the two sums,
    so the largest is at a level set of r/q.  With M leaves, O(M log M):

    1. Sort the leaves by r/q, descending; leaves with q = 0 < r come first.
    2. Compare the cumulative r with f(cumulative q).

    A negative entry shows up as the set of all other leaves, which then holds more than 1.

    Args:
        pair: the models; only the draft is used.
        leaf_law: r, [V^L], in the pair's arithmetic.
        num_drafts: K.
        tolerance: in float64, the excess and the error of the sum that still count as 0.

    Raises:
        InvalidInputError: wrong shape, arithmetic or number of drafts, or entries that do not sum to 1.

    Example:
        >>> from fractions import Fraction
        >>> pair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], draft_length=1)
        >>> is_skewed_draft(pair, np.array([Fraction(1, 4), Fraction(3, 4)]), 2).is_member
        True
        >>> found = is_skewed_draft(pair, np.array([Fraction(1, 5), Fraction(4, 5)]), 2)
        >>> print(found.witness, found.excess)
        (1,) 1/20
    """
    num_drafts = check_num_drafts(num_drafts)
    law = np.asarray(leaf_law)
    draft_probs = pair.draft_path_probs(pair.draft_length)
    if law.shape != draft_probs.shape or (law.dtype == object) != pair.is_exact:
        raise InvalidInputError(
            f"leaf_law has shape {law.shape} and {law.dtype} entries; expected one per path, shape "
            f"{draft_probs.shape}, in the pair's {pair.arithmetic} arithmetic"
        )
    slack = 0 if pair.is_exact else tolerance
    if not abs(law.sum() - 1) <= slack:
        raise InvalidInputError(f"leaf_law must sum to 1, its sum is {law.sum()}")
    order, excesses = prefix_excesses(law, draft_probs, num_drafts)
    worst = int(np.argmax(excesses))
    if not excesses[worst] > slack:
        return Membership(True, (), excesses[worst] * 0)
    return Membership(False, tuple(sorted(order[: worst + 1].tolist())), excesses[worst])


def path_selection_program(
    pair: ModelPair, num_drafts: int, leaf_sets: Iterable[Collection[int]] | None = None
) -> LinearProgram:
    """The linear program of the best law of the selected path.

    Source: greedy2026 Theorem 4.6.  Variables: r(b) for leaves b ∈ V^L, and
    x(a) = min_{k ≤ |a|} p(a_{k+1:} | a_{1:k}) r(a_{1:k}), a ∈ V^{≤L}, as a chain of linear bounds.

        max  Σ_a x(a)                                                              (16)
        s.t. x(a) ≤ r(a) = Σ_{b below a} r(b)          for all a ∈ V^{≤L}          (13)
             x(a, t) ≤ p(t | a) x(a)                   for all a ∈ V^{<L}, t ∈ V   (87)
             Σ_b r(b) = 1
             Σ_{b∈S} r(b) ≤ 1 - (1 - Σ_{b∈S} q(b))^K   for all S ⊆ V^L             (17)

    Eq. 17 is printed without the sum on its left side.

    Args:
        pair: the models; an exact pair gives an exact program.
        num_drafts: K.
        leaf_sets: state (17) for these sets of leaf numbers only, a relaxation; all by default.

    Returns:
        The program; its variables are ("x", context) and ("r", leaf as a context).

    Raises:
        EnumerationTooLargeError: all sets of more than 12 leaves were asked for.

    Example:
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], draft_length=2)
        >>> path_selection_program(pair, 2).size
        (11, 29)
    """
    num_drafts = check_num_drafts(num_drafts)
    V, L, exact = pair.vocab_size, pair.draft_length, pair.is_exact
    nodes, leaves = count_nodes(V, L), V**L
    sets = _all_leaf_sets(leaves) if leaf_sets is None else [sorted(members) for members in leaf_sets]
    one = ones(1, exact)
    node_names = all_contexts(V, L)
    repair: Repair = partial(_feasible_point, pair=pair, num_drafts=num_drafts)
    return LinearProgram(
        name="path-selection LP",
        source="greedy2026 Theorem 4.6",
        direction="max",
        variables=(
            *(("x", context) for context in node_names),
            *(("r", context) for context in node_names[nodes - leaves :]),
        ),
        objective=np.concatenate([np.repeat(one, nodes), np.repeat(one - one, leaves)]),
        blocks=(
            _within_draft_block(pair),
            _chain_block(pair),
            ConstraintBlock(
                "total",
                "greedy2026 Eq. 13",
                "==",
                np.zeros(leaves, dtype=int),
                nodes + np.arange(leaves),
                np.repeat(one, leaves),
                one,
            ),
            _leaf_set_block(pair, num_drafts, sets),
        ),
        box=1.0,
        repair=repair,
    )


@dataclass(frozen=True, eq=False)
class PathSelection:
    """The best law of the selected path.

    Attributes:
        solution: of the program with the leaf sets that matter; its value is the optimum over all
            sets, because ``skewed_draft`` satisfies the others too.
        skewed_draft: r.
        leaf_sets: the sets that were stated, as leaf numbers.
    """

    solution: Solution
    skewed_draft: SkewedDraft
    leaf_sets: tuple[tuple[int, ...], ...]

    @property
    def value(self) -> Any:
        """The best block efficiency, tokens per target call."""
        return self.solution.value


def path_selection_optimum(
    pair: ModelPair,
    num_drafts: int,
    max_leaves: int = MAX_LEAVES,
    max_rounds: int = 500,
    tolerance: float = 1e-9,
) -> PathSelection:
    """The best law of the selected path over K i.i.d. drafts, by generating leaf sets.

    1. State the program with single leaves and the leaves below every context.
    2. Solve.  Trim r to what x needs, for the rest of it may lie anywhere; sort the leaves by r/q; add
       the violated level sets.  Repeat until there are none.
    3. Extend the trimmed r to a law: r(b) grows by min_{S ∋ b} f(q(S)) - r(S), leaf after leaf.  As
       f∘q is submodular the sum reaches f(1) = 1, and r ≥ trimmed r earns x still.
    4. For an exact pair do so in floats first, then in rationals: r is feasible exactly.

    The value is that of ``multi_path_optimum``, the program over antichains (Theorem 4.6).

    Args:
        pair: the models.
        num_drafts: K.
        max_leaves: refuse more leaves V^L; beyond the default the rounds become many.
        max_rounds: most rounds of step 2.
        tolerance: in float64, the excess of a leaf set that still counts as none.

    Returns:
        The optimum, exact for exact pairs.

    Raises:
        EnumerationTooLargeError: there are more leaves.
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
    program, solution, sets = _generate(pair.to_float(), num_drafts, sets, solve, max_rounds, tolerance)
    if pair.is_exact:
        program, solution, sets = _generate(pair, num_drafts, sets, solve_exact, max_rounds, 0)
        law = _extended(pair, _trimmed(pair, _leaf_law(pair, solution)), num_drafts)
        draft = SkewedDraft.from_leaf_law(pair, law)
        if not is_skewed_draft(pair, draft.leaf_law, num_drafts).is_member:
            raise CertificationError(f"{program.describe()}: the leaf law violates a leaf set exactly")
        point = np.concatenate([*draft.accepted_masses(pair), draft.leaf_law])
        solution = exact_solution(program, point, np.concatenate(list(solution.dual.values())))
    else:
        solution = solve(program)
        draft = SkewedDraft.from_leaf_law(pair, _leaf_law(pair, solution))
    return PathSelection(solution, draft, tuple(tuple(sorted(members)) for members in sets))


# ------------------------------------------------------------------------------- separation


def prefix_excesses(law: np.ndarray, draft_probs: np.ndarray, num_drafts: int) -> tuple[np.ndarray, Any]:
    """Leaves by r/q descending, and r(S) - f(q(S)) of every prefix S of that order, both [M]."""
    order = _by_ratio(law, draft_probs)
    excesses = law[order].cumsum() - some_draft_probs(draft_probs[order].cumsum(), num_drafts)
    return order, excesses


def _by_ratio(law: np.ndarray, draft_probs: np.ndarray) -> np.ndarray:
    """Leaf numbers by r/q descending; q = 0 counts as infinite for r > 0 and as last for r ≤ 0."""
    drafted = draft_probs > 0
    safe = np.where(drafted, draft_probs, draft_probs * 0 + 1)
    ratio = law / safe
    top = max(ratio.max(), 0) + 1
    bottom = min(ratio.min(), 0) - 1
    ratio = np.where(drafted, ratio, np.where(law > 0, top, bottom))
    return np.argsort(-ratio, kind="stable")


def _violated_sets(law: np.ndarray, pair: ModelPair, num_drafts: int, tolerance: float) -> list[LeafSet]:
    """The level sets whose excess is a local maximum above the tolerance."""
    order, excesses = prefix_excesses(law, pair.draft_path_probs(pair.draft_length), num_drafts)
    before = np.concatenate([excesses[:1] - 1, excesses[:-1]])
    after = np.concatenate([excesses[1:], excesses[-1:] - 1])
    peaks = np.flatnonzero((excesses > tolerance) & (excesses >= before) & (excesses > after))
    return [frozenset(order[: peak + 1].tolist()) for peak in peaks]


def _generate(
    pair: ModelPair,
    num_drafts: int,
    sets: list[LeafSet],
    solver: Callable[[LinearProgram], Solution],
    max_rounds: int,
    tolerance: float,
) -> tuple[LinearProgram, Solution, list[LeafSet]]:
    """The program with enough leaf sets, its solution before any repair, and the sets."""
    for _ in range(max_rounds):
        program = path_selection_program(pair, num_drafts, sets)
        solution = solver(replace(program, repair=None))
        law = _trimmed(pair, _leaf_law(pair, solution))
        known = set(sets)
        # A set that is stated is satisfied, but for rounding.
        new = [s for s in _violated_sets(law, pair, num_drafts, tolerance) if s not in known]
        if not new:
            return program, solution, sets
        sets = [*sets, *new]
    raise CertificationError(
        f"{program.describe()}: leaf sets were still violated after {max_rounds} rounds; raise max_rounds"
    )


def _trimmed(pair: ModelPair, law: np.ndarray) -> np.ndarray:
    """The part of r on the leaves that x needs below the root: r' ≤ r with r'(a) ≥ x(a), [V^L].

    From the leaves up; where the parts below a context fall short of x(a), its leaves take back the
    same share of what they have left.  An optimum leaves much of r free, and cuts on the free part
    would prove nothing.
    """
    masses = SkewedDraft.from_leaf_law(pair, law).accepted_masses(pair)
    kept = masses[-1]
    for mass in reversed(masses[1:-1]):
        below = kept.reshape(len(mass), -1)
        spare = law.reshape(len(mass), -1) - below
        lack, room = mass - below.sum(axis=1), spare.sum(axis=1)
        share = np.where(lack > 0, lack, lack - lack) / np.where(room > 0, room, room * 0 + 1)
        kept = (below + share[:, None] * spare).ravel()
    return kept


def _extended(pair: ModelPair, law: np.ndarray, num_drafts: int) -> np.ndarray:
    """A law ≥ r that satisfies every leaf set if r does, [V^L]."""
    draft_probs = pair.draft_path_probs(pair.draft_length)
    law = law.copy()
    for leaf in np.flatnonzero(draft_probs > 0):
        order = _by_ratio(law, draft_probs)
        order = np.concatenate([[leaf], order[order != leaf]])
        room = some_draft_probs(draft_probs[order].cumsum(), num_drafts) - law[order].cumsum()
        law[leaf] = law[leaf] + max(room.min(), room[0] * 0)
    return law


def _leaf_law(pair: ModelPair, solution: Solution) -> np.ndarray:
    nodes = count_nodes(pair.vocab_size, pair.draft_length)
    values = list(solution.primal.values())[nodes:]
    law = np.empty(len(values), dtype=pair.target[0].dtype)
    law[:] = values
    return law


# ------------------------------------------------------------------------------- statement


def _all_leaf_sets(leaves: int) -> list[Collection[int]]:
    if leaves > MAX_LISTED_LEAVES:
        raise EnumerationTooLargeError(
            f"{leaves} leaves have 2^{leaves} - 1 sets, listed up to {MAX_LISTED_LEAVES} leaves; "
            "give leaf_sets, or use path_selection_optimum, which generates the ones that matter"
        )
    sizes = range(1, leaves + 1)
    return list(chain.from_iterable(combinations(range(leaves), size) for size in sizes))


def _starting_sets(pair: ModelPair) -> list[LeafSet]:
    """The leaves below every context but the root."""
    V, L = pair.vocab_size, pair.draft_length
    below = {
        frozenset(range(number * V ** (L - depth), (number + 1) * V ** (L - depth)))
        for depth in range(1, L + 1)
        for number in range(V**depth)
    }
    return sorted(below, key=lambda members: (len(members), min(members)))


def _within_draft_block(pair: ModelPair) -> ConstraintBlock:
    """x(a) - Σ_{b below a} r(b) ≤ 0."""
    V, L, exact = pair.vocab_size, pair.draft_length, pair.is_exact
    nodes, leaves = count_nodes(V, L), V**L
    starts = [count_nodes(V, depth) - V**depth for depth in range(L + 1)]
    ancestors = [starts[depth] + np.arange(leaves) // V ** (L - depth) for depth in range(L + 1)]
    leaf_columns = nodes + np.tile(np.arange(leaves), L + 1)
    return ConstraintBlock(
        name="within the draft",
        equation="greedy2026 Eqs. 13, 16",
        sense="<=",
        rows=np.concatenate([np.arange(nodes), *ancestors]),
        columns=np.concatenate([np.arange(nodes), leaf_columns]),
        coefficients=np.concatenate([ones(nodes, exact), -ones(len(leaf_columns), exact)]),
        rhs=ones(nodes, exact) * 0,
    )


def _chain_block(pair: ModelPair) -> ConstraintBlock:
    """x(a, t) - p(t | a) x(a) ≤ 0."""
    V, exact = pair.vocab_size, pair.is_exact
    child = np.arange(1, count_nodes(V, pair.draft_length))
    conditionals = np.concatenate([level.ravel() for level in pair.target[:-1]])
    return ConstraintBlock(
        name="chain of minima",
        equation="greedy2026 Eqs. 16, 87",
        sense="<=",
        rows=np.concatenate([child - 1, child - 1]),
        columns=np.concatenate([child, (child - 1) // V]),
        coefficients=np.concatenate([ones(len(child), exact), -conditionals]),
        rhs=ones(len(child), exact) * 0,
    )


def _leaf_set_block(pair: ModelPair, num_drafts: int, sets: list[Any]) -> ConstraintBlock:
    """Σ_{b∈S} r(b) ≤ f(q(S))."""
    nodes = count_nodes(pair.vocab_size, pair.draft_length)
    probs = pair.draft_path_probs(pair.draft_length)
    masses = np.empty(len(sets), dtype=probs.dtype)
    masses[:] = [probs[list(members)].sum() for members in sets]
    rows = np.repeat(np.arange(len(sets)), [len(members) for members in sets])
    columns = nodes + np.array([leaf for members in sets for leaf in members], dtype=int)
    return ConstraintBlock(
        name=LEAF_SETS,
        equation="greedy2026 Eq. 17",
        sense="<=",
        rows=rows,
        columns=columns,
        coefficients=ones(len(rows), pair.is_exact),
        rhs=some_draft_probs(masses, num_drafts),
    )


def _feasible_point(
    program: LinearProgram, point: np.ndarray, pair: ModelPair, num_drafts: int
) -> np.ndarray:
    """A law that satisfies every leaf set, stated or not, next to one that nearly does, and its x.

    1. r without negative entries, and 0 where q = 0, trimmed and extended, divided by its sum.
    2. r moves towards q, which satisfies every set, by just the share that the worst set needs;
       an excess of 4 ε (variables + 16) of a set's limit is rounding.
    3. x(a) = min(r(a), p x(parent)) below the root, times 1 minus that rounding.
    """
    draft_probs = pair.draft_path_probs(pair.draft_length)
    rounding = 4 * MACHINE_EPSILON * (program.num_variables + 16)
    law = np.where(draft_probs > 0, np.maximum(point[-len(draft_probs) :], 0.0), 0.0)
    law = _extended(pair, _trimmed(pair, law), num_drafts)
    law = law / law.sum()
    for _ in range(100):
        order, excesses = prefix_excesses(law, draft_probs, num_drafts)
        masses = draft_probs[order].cumsum()
        limits = some_draft_probs(masses, num_drafts)
        worst = excesses > rounding * limits
        if not worst.any():
            break
        room = np.maximum(limits - masses, 0.0)[worst]
        share = float(np.max(excesses[worst] / (excesses[worst] + room)))
        law = (1 - share) * law + share * draft_probs
    masses = np.concatenate(SkewedDraft.from_leaf_law(pair, law).accepted_masses(pair))
    masses[1:] *= 1 - rounding
    return np.concatenate([masses, law])
