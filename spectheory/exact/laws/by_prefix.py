"""Compute the law of a verifier that tests prefixes of one path, from its steps at every context.

``PrefixTests`` supplies the steps.  A test reads only its prefix.  So we need to know only the mass of the
paths that reach each context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.laws.outputs import Masses, check_not_negative, emitted
from spectheory.foundation.arrays import divide_or_zero, normalise, ones_like
from spectheory.optima.bounds.context_tree import Levels, sum_over_children
from spectheory.verification.algorithms.one_path.prefix_tests import PrefixTests, first_rejected
from spectheory.verification.correction_rows import CorrectionRows


class TestedContexts(NamedTuple):
    """The answers of the steps at the contexts of one depth.

    Attributes:
        reached: [V^depth], True at the C contexts that paths reach; a slice if paths reach all contexts.
        accept: h, [V^depth]; 1 at the root, 0 where no path passes.
        reject: 1 - h, [V^depth].
        rows: correction rows, [C, V], not normalised.
        totals: the sums of the rows, [C]; ``None`` if the rows are laws.
    """

    reached: Any
    accept: np.ndarray
    reject: np.ndarray
    rows: np.ndarray
    totals: np.ndarray | None


def tested_contexts(
    tests: PrefixTests, target: Sequence[np.ndarray], draft: Sequence[np.ndarray], reach: Levels
) -> list[TestedContexts]:
    """Run the steps at all contexts, by depth 0..L.  Arguments as in ``law_by_prefixes``."""
    size, found = target[0].shape[1], []
    weight, reached = ones_like(reach[0]), [_reached(mass) for mass in reach]
    for depth, (mass, here) in enumerate(zip(reach, reached, strict=True)):
        p = target[depth][here]
        if depth == len(draft):
            answers = tests.last(weight), tests.bonus(p)
            is_law = type(tests).bonus is PrefixTests.bonus  # p itself
            totals = None if is_law else answers[1].sum(axis=1)
        else:
            q = draft[depth][here]
            rows = tests.residual(weight, _rows_at(p, q))
            totals = rows.sum(axis=1)
            left = totals if _mass_is_that_of_rows(tests) else tests.residual_mass(weight, p, q)
            answers = tests.acceptance(weight, left) if depth else weight, rows
            goes_on = reached[depth + 1]
            if not isinstance(goes_on, slice):
                goes_on = goes_on.reshape(-1, size)[here].ravel()
            ratio = divide_or_zero(p, q).ravel()
            weight = tests.longer(np.repeat(weight, size)[goes_on], ratio[goes_on])
        accept = mass * 0
        accept[here] = answers[0]
        found.append(TestedContexts(here, accept, 1 - accept, answers[1], totals))
    return found


def law_by_prefixes(
    tests: PrefixTests, target: Sequence[np.ndarray], draft: Sequence[np.ndarray], reach: Levels
) -> Masses:
    """Compute the law of ``tests`` on one path.

    Args:
        tests: the verifier.
        target: target rows by depth 0..L, [V^depth, V].
        draft: the draft rows that the verifier gets, by depth 0..L-1, [V^depth, V].
        reach: the probability that the path starts with each context, by depth 0..L, [V^depth].

    Raises:
        InvalidOutcomeError: an answer at some context is not a law.
    """
    contexts = tested_contexts(tests, target, draft, reach)
    for found in contexts:
        check_not_negative(found.accept, "an acceptance")
        check_not_negative(found.reject, "a rejection")
    zero = reach[0][0] * 0
    stops_of = _first_rejected if type(tests).order is first_rejected else _longest_accepted
    masses, undefined = [], zero
    for stop, found in zip(stops_of(contexts, reach), contexts, strict=True):
        mass, missing = emitted(stop[found.reached], found.rows, found.totals)
        if not isinstance(found.reached, slice):
            every = np.full((len(stop), target[0].shape[1]), zero)
            every[found.reached] = mass
            mass = every
        masses.append(mass.ravel())
        undefined = undefined + missing
    return Masses(tuple(masses), undefined)


def outcomes_by_prefixes(
    tests: PrefixTests, target: Sequence[np.ndarray], draft: Sequence[np.ndarray], prefixes: np.ndarray
) -> np.ndarray:
    """Compute P(stop, token | path) of N paths, given by prefix numbers.  [N, L+1] -> [N, L+1, V]"""
    zero, size = target[0][0, 0] * 0, target[0].shape[1]
    reach = [np.full(size**depth, zero) for depth in range(prefixes.shape[1])]
    for depth, level in enumerate(reach):
        level[prefixes[:, depth]] = zero + 1
    contexts = tested_contexts(tests, target, draft, reach)
    accept = [found.accept[prefixes[:, depth]] for depth, found in enumerate(contexts)]
    stops = type(tests).order(np.stack(accept[1:], axis=1))
    rows = []
    for depth, found in enumerate(contexts):
        every = np.full((len(found.accept), size), zero)
        every[found.reached] = normalise(found.rows)
        rows.append(every[prefixes[:, depth]])
    return np.asarray(stops[..., None] * np.stack(rows, axis=1))


def _reached(mass: np.ndarray) -> Any:
    made = mass != 0
    return slice(None) if made.all() else made


def _rows_at(target: np.ndarray, draft: np.ndarray) -> CorrectionRows:
    """Build correction rows at C contexts: each is the root of a path of one token, and rows are views."""
    root = np.array(0)
    paths = np.broadcast_to(target[:, None, None], (len(target), 1, 2, target.shape[1]))
    return CorrectionRows(paths, draft[:, None, None], root, root)


def _mass_is_that_of_rows(tests: PrefixTests) -> bool:
    """Whether S is the sum of the residual.  It is if the verifier overrides neither method."""
    kind = type(tests)
    return kind.residual is PrefixTests.residual and kind.residual_mass is PrefixTests.residual_mass


def _longest_accepted(contexts: list[TestedContexts], reach: Levels) -> Levels:
    """Compute P(stop) at every context, from the leaves up: all longer prefixes must be rejected."""
    stops, left = [], reach[-1]
    for found in reversed(contexts[1:]):
        stops.append(left * found.accept)
        left = sum_over_children(left * found.reject, found.rows.shape[1])
    return [left, *stops[::-1]]


def _first_rejected(contexts: list[TestedContexts], reach: Levels) -> Levels:
    """Compute P(stop) at every context, from the root down: all prefixes so far must be accepted."""
    stops, kept = [], contexts[0].accept
    for mass, found in zip(reach[1:], contexts[1:], strict=True):
        size = found.rows.shape[1]
        stops.append(kept * sum_over_children(mass * found.reject, size))
        kept = np.repeat(kept, size) * found.accept
    return [*stops, kept * reach[-1]]
