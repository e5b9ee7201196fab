"""Which verifier has a route: its frame is of this package, and the methods of the frame are the frame's own.

A route looks at no rule of an algorithm.  A verifier that overrides more than the steps of its frame has
none, and its law is enumerated.
"""

from collections.abc import Callable, Sequence
from inspect import getattr_static
from typing import NamedTuple

from spectheory.exact.laws.by_prefix import law_by_prefixes
from spectheory.exact.laws.outputs import Masses
from spectheory.pairs.drafts import DraftProcess, Iid, PerPath
from spectheory.verification.algorithms.one_path.prefix_tests import (
    PrefixTests,
    first_rejected,
    longest_accepted,
)
from spectheory.verification.resolve import Problem
from spectheory.verification.verifier import Verifier

_taken = True
"""Whether routes are taken; the tests switch them off."""


class Route(NamedTuple):
    """A way to a law.

    Attributes:
        work: the number of cases in which it calls the verifier, contexts times tuples of next tokens at one of them.
        law: computes it; ``InvalidOutcomeError`` where an answer is of no law.
    """

    work: int
    law: Callable[[], Masses]


def route_of(problem: Problem) -> Route | None:
    """The route of a verifier of this package; ``None`` if its law has to be enumerated."""
    if not _taken:
        return None
    return _by_prefix(problem.verifier, problem)


def _has_own(verifier: Verifier, frame: type, names: Sequence[str]) -> bool:
    """Whether these methods of a verifier are those of the frame."""
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
    return Route(
        int((reach[-1] != 0).sum()),
        lambda: law_by_prefixes(tests, pair.numbers.target, drafted.draft, reach),
    )


def _is_one_path(process: DraftProcess) -> bool:
    return type(process) in (Iid, PerPath) and process.num_drafts == 1
