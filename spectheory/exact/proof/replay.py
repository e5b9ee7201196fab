"""A region's point on true rationals: the verifier must return there what it returned on formal numbers."""

from __future__ import annotations

import numpy as np
from flint import fmpq

from spectheory.exact.proof.domain import FormalPair
from spectheory.exact.proof.points import Point
from spectheory.exact.proof.stops import Stops, fresh, stops_of
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.foundation.exact_numbers import to_flint, to_fractions
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.user import UserVerifier
from spectheory.verification.user_checks import check_answers
from spectheory.verification.verifier import Verifier


def replay(
    verifier: Verifier,
    pair: FormalPair,
    point: Point,
    process: DraftProcess,
    formal: Stops,
) -> None:
    """Run a verifier at a point, on all tuples at once and on each alone, and compare.

    A user's verifier must be a function of its inputs there, as ``certify`` asks.

    Raises:
        InvalidOutcomeError: another stop or another correction row.
    """
    of_user = isinstance(verifier, UserVerifier) and not isinstance(verifier.user_object, Verifier)

    def numbers(level: np.ndarray) -> np.ndarray:
        values = np.empty_like(level)
        values.ravel()[:] = [fmpq(0) if f is None else f.at(point) for f in level.ravel()]
        return to_fractions(values) if of_user else values

    target, draft = tuple(map(numbers, pair.target)), tuple(map(numbers, pair.draft))
    wanted = [_values(array, point) for array in formal[2:]]
    evaluator = Evaluator(fresh(verifier), target, [draft] * process.num_drafts)
    leaves, weights = formal[:2]
    if isinstance(verifier, UserVerifier):
        check_answers(evaluator.verifier, evaluator.tuples(leaves)[1:], 0)
    together = slice(None)
    for some in (together, *(slice(n, n + 1) for n in range(len(leaves)))):
        found = stops_of(evaluator, leaves[some], weights[some])
        try:
            same = all((to_flint(x) == y[some]).all() for x, y in zip(found[2:], wanted, strict=True))
        except TypeError:  # a float
            same = False
        if not same:
            tuples = (
                "all tuples of drafts at once"
                if some is together
                else f"the drafts {leaves[some][0].tolist()} alone"
            )
            raise InvalidOutcomeError(
                f"verifier {verifier.name!r} computes something else on rationals than on formal numbers, on "
                f"{tuples}; it must not ask for the type of a number, the size of a batch or earlier calls"
            )


def _values(array: np.ndarray, point: Point) -> np.ndarray:
    return np.frompyfunc(lambda function: function.at(point), 1, 1)(array)
