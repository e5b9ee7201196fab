"""Choose the route for a verifier: a way to its law that uses the steps of its base class.

A route reads only the steps that a base class documents, such as ``PrefixTests``.  If a verifier overrides
other methods, it has no route, and we enumerate its law.
"""

from collections.abc import Callable, Sequence
from inspect import getattr_static
from typing import NamedTuple

import numpy as np

from spectheory.exact.laws.by_position import (
    PROCESSES,
    OneTokenOutcomes,
    law_by_positions,
    outcomes_by_positions,
    work_by_positions,
)
from spectheory.exact.laws.by_prefix import law_by_prefixes, outcomes_by_prefixes
from spectheory.exact.laws.by_selection import law_by_selection
from spectheory.exact.laws.by_trial import law_by_trials, work_by_trials
from spectheory.exact.laws.outputs import Masses
from spectheory.foundation.exact_numbers import float_tolerance
from spectheory.pairs.drafts import DraftProcess, Iid, PerPath
from spectheory.verification.algorithms.one_path.prefix_tests import (
    PrefixTests,
    first_rejected,
    longest_accepted,
)
from spectheory.verification.algorithms.path_selection.leaf_rankings import LeafRankings
from spectheory.verification.algorithms.path_selection.scored import ScoredSelection
from spectheory.verification.algorithms.path_selection.selection import PathSelection
from spectheory.verification.algorithms.position_by_position.positions import PositionByPosition
from spectheory.verification.algorithms.traversal import Traversal
from spectheory.verification.evaluator import Evaluator, Tuples
from spectheory.verification.resolve import Problem
from spectheory.verification.user import UserVerifier
from spectheory.verification.user_checks import joint_law, sampled_leaves
from spectheory.verification.verifier import Verifier

_taken = True
"""Whether routes are taken; the tests switch them off."""
_worth = {True: 1, False: 8}
"""More tuples of drafts than so many times the work are worth several calls, in rationals and in floats."""
MOST_DRAFTS = 62
"""Sets of drafts are numbered by int64."""


LISTED_OF_USERS = 50_000
"""Up to this number of tuples of drafts we enumerate the law of a user's verifier."""
COMPARED = 64
"""Number of tuples on which we compare the outcome of a user's verifier with its steps."""


class Route(NamedTuple):
    """A way to compute a law.

    Attributes:
        work: number of answers that we need from the verifier: contexts times tuples of next tokens at each.
        law: computes the law.  If it cannot, it returns ``None`` or raises ``InvalidOutcomeError``.
        outcomes: P(stop, token | drafts) of N tuples by the same steps, [N, K, L+1, V].
    """

    work: int
    law: Callable[[], Masses | None]
    outcomes: Callable[[Tuples], np.ndarray] | None = None


def route_of(problem: Problem) -> Route | None:
    """Find the route of a verifier.  ``None`` if its law has to be enumerated."""
    if not _taken:
        return None
    if isinstance(problem.verifier, UserVerifier):
        return _of_user(problem.verifier, problem)
    of_several = (_by_position, _by_selection, _by_trial)
    for find in (_by_prefix, *(of_several if problem.process.num_drafts <= MOST_DRAFTS else ())):
        route = find(problem.verifier, problem)
        if route is not None:
            return route
    return None


def _of_user(verifier: UserVerifier, problem: Problem) -> Route | None:
    """Find the route of a user's verifier: only for i.i.d. drafts with too many tuples to enumerate."""
    process, own = problem.process, verifier.user_object
    if type(process) is not Iid or process.count_tuples(problem.pair) <= LISTED_OF_USERS:
        return None
    if process.num_drafts > MOST_DRAFTS:
        return None
    if isinstance(own, Verifier):
        found = _by_prefix(own, problem) or _by_position(own, problem)
        if found is not None:
            return found
    says = getattr(own, "by_position", False) is True
    return _by_position(OneTokenOutcomes(verifier), problem) if says else None


def follows_steps(problem: Problem, route: Route, tolerance: float) -> bool:
    """Whether the outcomes of a user's verifier agree with its steps, on a sample of tuples."""
    leaves = sampled_leaves(problem, COMPARED)
    tuples = Evaluator.of(problem, problem.process).tuples(leaves)
    assert route.outcomes is not None
    found = joint_law(problem.verifier, tuples[1:], tolerance)
    slack = float_tolerance(found, tolerance)
    return bool((abs(found - route.outcomes(tuples)) <= slack).all())


def _has_own(verifier: Verifier, frame: type, names: Sequence[str]) -> bool:
    """Whether the verifier inherits these methods from the base class ``frame`` unchanged."""
    return isinstance(verifier, frame) and all(
        getattr_static(verifier, name) is getattr_static(frame, name) for name in names
    )


def _by_prefix(tests: Verifier, problem: Problem) -> Route | None:
    if not _has_own(tests, PrefixTests, ("outcome", "ratios", "weights", "stops")):
        return None
    assert isinstance(tests, PrefixTests)
    pair, path = problem.pair, problem.process.first_path()
    if type(tests).order not in (first_rejected, longest_accepted) or not _is_one_path(path):
        return None
    drafted = path.drafter(pair, 0).numbers
    reach = list(drafted.draft_path_probs)
    models = pair.numbers.target, drafted.draft

    def outcomes(tuples: Tuples) -> np.ndarray:
        joint = tuples.target_rows * 0
        joint[:, 0] = outcomes_by_prefixes(tests, *models, tuples.prefixes[:, 0])
        return joint

    return Route(int((reach[-1] != 0).sum()), lambda: law_by_prefixes(tests, *models, reach), outcomes)


def _by_position(rule: Verifier, problem: Problem) -> Route | None:
    _, pair, process = problem
    if not isinstance(rule, PositionByPosition) or type(process) not in PROCESSES:
        return None
    if not isinstance(rule, OneTokenOutcomes) and not all(
        _is_of(rule, name) for name in ("outcome", "step", "draws")
    ):
        return None
    work = work_by_positions(pair, process)
    if process.count_tuples(pair) <= _worth[pair.is_exact] * work:
        return None

    def law() -> Masses:
        if not _has_own(rule, PositionByPosition, ("outcome",)):  # it may refuse the rows
            rule.outcome(*Evaluator.of(problem, process).tuples(sampled_leaves(problem, 1)[:1])[1:])
        return law_by_positions(rule, pair, process)

    return Route(work, law, lambda tuples: outcomes_by_positions(rule, tuples))


def _by_selection(selection: Verifier, problem: Problem) -> Route | None:
    _, pair, process = problem
    if not _has_own(selection, PathSelection, ("outcome",)) or type(process) is not Iid:
        return None
    assert isinstance(selection, PathSelection)
    for kind in (ScoredSelection, LeafRankings):  # whose selection is known by more than its winners
        if isinstance(selection, kind) and not _has_own(selection, kind, ("select",)):
            return None
    work = pair.vocab_size ** (pair.draft_length + 1)
    tuples = process.count_tuples(pair, selection.exchangeable)
    if process.num_drafts > 1 and tuples <= 4 * _worth[pair.is_exact] * work:
        return None
    return Route(work, lambda: law_by_selection(selection, problem))


def _by_trial(traversal: Verifier, problem: Problem) -> Route | None:
    _, pair, process = problem
    if not _has_own(traversal, Traversal, ("outcome", "draws")) or type(process) is not Iid:
        return None
    K = process.num_drafts
    return Route(work_by_trials(pair, K), lambda: law_by_trials(pair, K))


FRAMES = ("spectheory.verification.verifier", "spectheory.verification.algorithms.position_by_position.")


def _is_of(verifier: Verifier, name: str) -> bool:
    """Whether the method comes from a base class, or from an algorithm of its folder that only extends it."""
    return getattr(getattr_static(verifier, name), "__module__", "").startswith(FRAMES)


def _is_one_path(process: DraftProcess) -> bool:
    return type(process) in (Iid, PerPath) and process.num_drafts == 1
