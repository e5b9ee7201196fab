"""Compute the law of a verifier that works position by position, from its rule at every context.

``PositionByPosition`` supplies the rule.  At a context the rule depends only on the drafts at this context.
So we need to know only their number.  If every path has its own draft model, we need to know which drafts
they are.
"""

from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.laws.outputs import ALLOWED, Masses, check_not_negative, emitted
from spectheory.foundation.arrays import divide_or_zero, normalise
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.exact_numbers import is_exact
from spectheory.foundation.unique_rows import unique_row_indices
from spectheory.pairs.contexts import is_first_with_prefix, shared_prefixes
from spectheory.pairs.drafts import DraftProcess, Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.positions import (
    Position,
    PositionByPosition,
    Step,
)
from spectheory.verification.evaluator import Tuples
from spectheory.verification.verifier import Verifier

ENTRIES_AT_ONCE = 400_000
"""Number of entries of rows in memory at a time: some MB of rationals."""
PROCESSES = (Iid, PrefixTree, WithoutReplacement, PerPath)

Places = tuple[int, ...]
"""Indices of the drafts at a context.  If all paths have one draft model, we use the first indices."""


class _Cases(NamedTuple):
    """N cases: a context, and the next tokens of the drafts at this context.

    Attributes:
        context: [N], index of the context.
        tokens: [N, K], next tokens of all K drafts.
        is_draft: [N, K], True if draft k is at the context.
        mass: [N], probability of the case.
    """

    context: np.ndarray
    tokens: np.ndarray
    is_draft: np.ndarray
    mass: np.ndarray


def law_by_positions(verifier: PositionByPosition, pair: ModelPair, process: DraftProcess) -> Masses:
    """Compute the law of ``verifier`` with drafts of a process in ``PROCESSES``.

    Raises:
        InvalidOutcomeError: an answer at some context is not a law.
    """
    target, size = pair.numbers.target, pair.vocab_size
    drafts = [process.drafter(pair, k).numbers.draft for k in range(process.num_drafts)]
    zero = target[0][0, 0] * 0
    reach: dict[Places, np.ndarray] = {_first_places(process): np.array([zero + 1])}
    masses, undefined = [], zero
    for depth in range(pair.draft_length):
        if not reach:  # nothing goes on
            masses.append(np.full(size ** (depth + 1), zero))
            continue
        draft = [rows[depth] for rows in drafts]
        found = [_cases(draft, mass, _drawing(process, depth, at), process) for at, mass in reach.items()]
        cases = _Cases(*map(np.concatenate, zip(*found, strict=True)))
        here, reach = np.full((size**depth, size), zero), {}
        parts = 1 + cases.tokens.size * size // ENTRIES_AT_ONCE
        for part in np.array_split(np.arange(len(cases.mass)), parts):
            few = _Cases(*(array[part] for array in cases))
            undefined = undefined + _step(verifier, target[depth], draft, few, process, here, reach)
        masses.append(here.ravel())
    whole = sum(reach.values(), np.full(size**pair.draft_length, zero))
    masses.append((whole[:, None] * target[-1]).ravel())
    return Masses(tuple(masses), undefined)


class OneTokenOutcomes(PositionByPosition):
    """The rule of a verifier that works position by position: its outcome on drafts of one token."""

    name, source = "one_token_outcomes", "another verifier"

    def __init__(self, verifier: Verifier) -> None:
        self.verifier = verifier

    def step(self, position: Position) -> Step:
        count, num_drafts = position.tokens.shape
        zero = position.target_rows[0, 0, 0] * 0
        leave, follow = np.full((count, 1), zero), np.full((count, num_drafts), zero)
        residual = np.full(position.target_rows.shape, zero)
        here = position.is_draft[:, 0]
        for number in np.unique(here.sum(axis=1)).tolist():
            cases = np.flatnonzero(here.sum(axis=1) == number)
            of_one = cases[:, None], np.nonzero(here[cases])[1].reshape(len(cases), number)
            rows = [
                np.repeat(part[cases, None], number, axis=1)
                for part in (position.target_rows, position.draft_rows)
            ]
            behind = np.concatenate(rows, axis=2)  # the row after the token has no part in its acceptance
            outcome = self.verifier.outcome(position.tokens[of_one][..., None], behind, rows[1])
            first = np.zeros(len(cases), dtype=np.int64)
            leave[cases, 0] = outcome.stop_probs[..., 0].sum(axis=1)
            follow[of_one] = outcome.stop_probs[..., 1]
            residual[cases, 0] = outcome.correction(first, first)
        return Step(leave, follow, None, residual)


def outcomes_by_positions(rule: PositionByPosition, tuples: Tuples) -> np.ndarray:
    """Compute P(stop, token | drafts) of N tuples of i.i.d. drafts from the rule.  -> [N, K, L+1, V]"""
    _, tokens, target_rows, draft_rows = tuples
    shared, holds = shared_prefixes(tokens), is_first_with_prefix(tokens)
    joint, length = target_rows * 0, tokens.shape[-1]
    reach = joint[..., 0].copy()
    reach[:, 0, 0] = reach[:, 0, 0] + 1
    for depth in range(length):
        case, path = np.nonzero(holds[..., depth] & (reach[..., depth] != 0))
        if not case.size:
            break
        stands = shared[case, path, :, depth]
        order = np.argsort(
            ~stands, axis=1, kind="stable"
        )  # as in the route, those that stand here come first
        drafts, are_drafts = (np.take_along_axis(part, order, 1) for part in (tokens[case, :, depth], stands))
        rows = target_rows[case, path, depth][:, None], draft_rows[case, path, depth][:, None]
        step = rule.step(Position(drafts, *rows, are_drafts[:, None], lambda _, row=rows[1]: row))  # type: ignore[misc]
        residual = step.residual
        if residual is None:
            residual = rule.residual(rows[0][:, 0], rows[1][:, 0], step.note[:, 0])[:, None]  # type: ignore[index]
        stop = reach[case, path, depth] * step.leave[:, 0]
        joint[case, path, depth] = stop[:, None] * normalise(residual[:, 0])
        follow = np.empty_like(step.follow)
        np.put_along_axis(follow, order, step.follow, 1)
        for number in range(tokens.shape[1]):
            goes_on = stands[:, number] & holds[case, number, depth + 1]
            to = case[goes_on], number, depth + 1
            reach[to] = reach[case, path, depth][goes_on] * follow[goes_on, number]
    joint[..., -1, :] = reach[..., -1, None] * target_rows[..., -1, :]
    return joint


def work_by_positions(pair: ModelPair, process: DraftProcess) -> int:
    """Compute an upper bound on the number of pairs of a context and the next tokens of its drafts."""
    size, entered, work = pair.vocab_size, len(_first_places(process)), 0
    for depth in range(pair.draft_length):
        most = len(_drawing(process, depth, tuple(range(entered))))
        if depth == 0 or type(process) is WithoutReplacement:
            tuples = size**most
        elif type(process) is PerPath:
            tuples = (1 + size) ** most - 1  # of every set of drafts
        else:
            tuples = sum(size ** (most // entered * n) for n in range(1, entered + 1))
        work += size**depth * tuples
        entered = 1 if type(process) is WithoutReplacement else most
    return work


def _first_places(process: DraftProcess) -> Places:
    return tuple(range(process.num_drafts)) if type(process) in (Iid, PerPath) else (0,)


def _drawing(process: DraftProcess, depth: int, entered: Places) -> Places:
    """List the indices of the drafts at a context.

    On a tree each of the n nodes at the context draws w tokens, its width, so there are n w drafts.
    """
    widths = getattr(process, "widths", None)
    return entered if widths is None else tuple(range(len(entered) * widths[depth]))


def _cases(draft: list[np.ndarray], mass: np.ndarray, places: Places, process: DraftProcess) -> _Cases:
    """List the cases at all contexts, for drafts ``places`` that reach the contexts with ``mass``.

    Args:
        draft: the rows of every draft, [contexts, V].
        mass: [contexts].
        places: indices of the drafts.
        process: the draft process.
    """
    vocabulary, are_distinct = range(draft[0].shape[1]), type(process) is WithoutReplacement
    number = len(places)
    tuples = permutations(vocabulary, number) if are_distinct else product(vocabulary, repeat=number)
    drawn = np.array(list(tuples))
    contexts = np.flatnonzero(mass != 0)
    probs = np.repeat(mass[contexts][:, None], len(drawn), axis=1)
    for turn, place in enumerate(places):
        row = draft[place][contexts]
        probs = probs * row[:, drawn[:, turn]]
        if are_distinct and turn:
            probs = divide_or_zero(probs, _left(row, drawn[:, :turn]))
    context, which = np.nonzero(probs != 0)
    tokens = np.zeros((len(context), len(draft)), dtype=np.int64)
    is_draft = np.zeros((len(context), len(draft)), dtype=bool)
    tokens[:, list(places)], is_draft[:, list(places)] = drawn[which], True
    return _Cases(contexts[context], tokens, is_draft, probs[context, which])


def _left(rows: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Compute the mass of the tokens that were not drawn.  [C, V], [T, n] -> [C, T]

    We sum these tokens, because 1 minus the other sum would cancel if little mass is left.
    """
    vocabulary = np.arange(rows.shape[1])
    return np.stack([rows[:, ~np.isin(vocabulary, taken)].sum(axis=1) for taken in drawn], axis=1)


def _step(
    verifier: PositionByPosition,
    target: np.ndarray,
    draft: list[np.ndarray],
    cases: _Cases,
    process: DraftProcess,
    here: np.ndarray,
    below: dict[Places, np.ndarray],
) -> Any:
    """Apply the rule in some cases.  Add outputs to ``here``, and masses one token further to ``below``.

    Both arguments are changed in place.

    Returns:
        The mass of undefined outputs.
    """
    context, tokens, is_draft, mass = cases
    zero, size = mass[0] * 0, target.shape[1]
    own = is_draft.argmax(axis=1)  # the first draft there

    def rows_of(place: int) -> np.ndarray:
        return draft[place][context][:, None]

    draft_rows = rows_of(0) if type(process) is not PerPath else np.stack(draft)[own, context][:, None]
    position = Position(tokens, target[context][:, None], draft_rows, is_draft[:, None], rows_of)
    step = verifier.step(position)
    leave, follow = step.leave[:, 0], np.where(is_draft, step.follow, zero)
    check_not_negative(leave, "the probability of no draft")
    check_not_negative(follow, "the probability of a draft")
    together = (tokens[:, :, None] == tokens[:, None, :]) & is_draft[:, :, None] & is_draft[:, None, :]
    first = is_draft & (together.argmax(axis=2) == np.arange(len(draft)))
    total = leave + np.where(first, follow, zero).sum(axis=1)
    if not (total == 1 if is_exact(total) else abs(total - 1) <= ALLOWED).all():
        raise InvalidOutcomeError("the probabilities of the next token do not sum to 1 at a context")

    case, place = np.nonzero(first & (follow != 0))
    flow, child = mass[case] * follow[case, place], context[case] * size + tokens[case, place]
    standing = together[case, place]
    sets = standing @ (1 << np.arange(len(draft))) if type(process) is PerPath else standing.sum(axis=1)
    for number in np.unique(sets).tolist():
        of_set = np.flatnonzero(sets == number)
        places = np.flatnonzero(standing[of_set[0]]) if type(process) is PerPath else np.arange(number)
        into = below.setdefault(tuple(places.tolist()), np.full(target.size, zero))
        np.add.at(into, child[of_set], flow[of_set])

    stop = mass * leave
    made = np.flatnonzero(stop != 0)
    if not made.size:
        return zero
    at, sums = context[made], stop[made]
    if step.note is None:
        assert step.residual is not None
        rows = step.residual[made, 0]
    else:
        kept, which = unique_row_indices(at[:, None], step.note[made])
        sums = np.full(len(kept), zero)
        np.add.at(sums, which, stop[made])
        at = at[kept]
        rows = verifier.residual(target[at], draft_rows[made[kept], 0], step.note[made[kept], 0])
    masses, missing = emitted(sums, rows, rows.sum(axis=1))
    np.add.at(here, at, masses)
    return missing
