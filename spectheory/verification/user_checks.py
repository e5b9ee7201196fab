"""Check that a user's verifier is a function of its inputs.

Each check evaluates the verifier on a sample of drafted tuples, and names the fault in one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import Array, first_true, namespace, take_token, zeros_like
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.exact_numbers import flint_if_exact, float_tolerance, is_exact
from spectheory.verification.evaluator import Evaluator, check_correction_rows, check_stop_probs
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import Problem
from spectheory.verification.sampler_runs import runs_a_sampler
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier

SAMPLED_TUPLES = 32
"""Faults show on any few tuples, or on batches of some size up to it; half would save a fifth of the time."""
REPEATS = 2
"""With the five other calls that are compared, a fair coin of every call falls alike once in 128 times."""
BESIDE_OTHERS = 8
"""So many tuples are asked about beside the same drafts of another model."""
ROUNDING = 64
"""Units in the last place of 1 that rounding may add to the probability of an output."""


def check_function_of_inputs(problem: Problem, tolerance: float) -> None:
    """``check_answers`` on a sample of the tuples of an enumerated pair."""
    check_answers(problem.verifier, sampled_drafts(problem), tolerance, of_pair=True)


def sampled_drafts(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Paths, target rows and draft rows of the ``sampled_leaves``."""
    _, paths, target_rows, draft_rows = Evaluator.of(problem, problem.process).tuples(sampled_leaves(problem))
    return paths, target_rows, draft_rows


def check_answers(
    verifier: Verifier, drafted: Sequence[Array], tolerance: float, *, of_pair: bool = False
) -> None:
    """Refuse a verifier whose answer for a tuple depends on anything but its own drafts and rows.

    The same tuples are asked about again; one alone, and all in another
    order in two batches, one of them twice, whose outcomes are all made before the first correction and whose
    corrections alternate; and in one batch with the rows of another model, as texts are in an engine.

    Args:
        verifier: the user's.
        drafted: paths [N, K, L], target rows [N, K, L+1, V] and draft rows [N, K, L, V], of numpy or torch.
        tolerance: in floats, the largest difference of two equal probabilities.
        of_pair: whether they are of an enumerated pair, on which rare drafts may miss a law by more.

    Raises:
        InvalidOutcomeError: the text names the fault and the drafts on which it shows.
    """
    (first,) = _answers(verifier, [drafted], tolerance, of_pair)

    def check(answer: _Answer, tuples: Any, fault: str) -> None:
        differs = _differs(first, answer, tuples, tolerance)
        if differs.any():
            drafts = drafted[0][tuples][int(first_true(differs))].tolist()
            raise InvalidOutcomeError(
                f"verifier {verifier.name!r} is not a function of its inputs: {fault} (drafts {drafts}); "
                "compute the law of a tuple from the arrays of its own call alone"
            )

    for _ in range(REPEATS):
        (again,) = _answers(verifier, [drafted], tolerance, of_pair)
        check(again, slice(None), "the same call gives different outcomes, from state or random numbers")
    count, xp = len(drafted[0]), namespace(drafted[0])
    order, middle = np.random.default_rng(1).permutation(count), (count + 1) // 2
    numbers = [order[:1], np.append(order[:1], order[:middle]), order[middle:]]
    parts = [xp.asarray(part, device=drafted[0].device) for part in numbers if len(part)]
    batches = [[array[part] for array in drafted] for part in parts]
    answers = _answers(verifier, batches, tolerance, of_pair)
    for part, answer in zip(parts, answers, strict=True):
        fault = f"its answer depends on the size, the order or the stops of its batch of {len(part)} tuples"
        check(answer, part, fault)
    if not runs_a_sampler(verifier):
        _check_beside_other_rows(verifier, drafted, first, tolerance, of_pair)


def _check_beside_other_rows(
    verifier: Verifier, drafted: Sequence[Array], first: _Answer, tolerance: float, of_pair: bool
) -> None:
    """Refuse a verifier whose answer depends on the rows of the other tuples of its batch, or of before."""
    paths, *rows = (array[:BESIDE_OTHERS] for array in drafted)
    others = [(2 * array + namespace(array).roll(array, 1, axis=-1)) / 3 for array in rows]
    fresh = verifier.anew() if isinstance(verifier, UserVerifier) else verifier
    try:
        (alone,) = _answers(fresh, [(paths, *others)], tolerance, of_pair)
    except InvalidInputError:  # it takes no other rows
        return
    batch = [namespace(paths).concat(pair) for pair in zip((paths, *others), (paths, *rows), strict=True)]
    (together,) = _answers(verifier, [batch], tolerance, of_pair)
    for answer, part in ((alone, slice(len(paths))), (first, slice(len(paths), None))):
        wanted = _Answer(*(array[: len(paths)] for array in answer))
        differs = _differs(together, wanted, part, tolerance)
        if differs.any():
            raise InvalidOutcomeError(
                f"verifier {verifier.name!r} is not a function of its inputs: its answer for one tuple of "
                "drafts depends on the rows of the other tuples of the batch, or of a call before (drafts "
                f"{paths[int(first_true(differs))].tolist()}); compute it from the rows of its own tuple"
            )


def joint_law(verifier: Verifier, drafted: Sequence[Array], tolerance: float) -> Array:
    """P(stop, token | drafts) for tuples of an enumerated pair, checked to be laws.  -> [N, K, L+1, V]"""
    (answer,) = _answers(verifier, [drafted], tolerance, of_pair=True)
    return answer.joint


def first_failure(
    verifier: Verifier, drafted: Sequence[Array], tolerance: float
) -> tuple[list[list[int]], InvalidOutcomeError] | None:
    """The first tuple of drafts on which a verifier fails when it is asked about it alone, and the error.

    Args:
        verifier, drafted, tolerance: as in ``check_answers``.
    """
    for number in range(len(drafted[0])):
        try:
            _answers(verifier, [[array[number : number + 1] for array in drafted]], tolerance, of_pair=True)
        except InvalidOutcomeError as error:
            return drafted[0][number].tolist(), error
    return None


def sampled_leaves(problem: Problem, samples: int = SAMPLED_TUPLES) -> np.ndarray:
    """Leaf numbers of tuples that can be drafted, [N, K]: all of them if there are at most ``samples``.

    Of more i.i.d. tuples, half draw their paths from two leaves, because most faults show where prefixes are
    shared.  Of another process they are the first tuples of its list.
    """
    _, pair, process = problem
    if process.name != "iid" or process.count_tuples(pair) <= samples:
        return next(process.enumerate(pair, samples)).leaves
    rng = np.random.default_rng(0)
    support = np.flatnonzero(pair.numbers.draft_path_probs[pair.draft_length] > 0)
    free = rng.choice(support, (samples - samples // 2, process.num_drafts))
    handful = rng.choice(support, (samples // 2, 2))
    picked = rng.integers(0, 2, (samples // 2, process.num_drafts))
    return np.concatenate([free, np.take_along_axis(handful, picked, axis=1)])


class _Answer(NamedTuple):
    """The outcome of a verifier on N tuples of drafts.

    Attributes:
        stop_probs: [N, K, L+1].
        joint: the probability of a stop and of every correction there, [N, K, L+1, V].
    """

    stop_probs: Array
    joint: Array


def _slack(batch: Sequence[Array], tolerance: float, of_pair: bool) -> Array:
    """The error of a law that is allowed given each tuple of drafts, [N]; more for rare ones of a pair.

    Given drafts of probability P an error e moves the output by e P.  On texts of models all drafts are rare,
    and nothing is allowed for.
    """
    paths, _, draft_rows = batch
    xp = namespace(draft_rows)
    if not of_pair or is_exact(draft_rows):
        return xp.full((len(paths),), tolerance, dtype=xp.float64, device=paths.device)
    is_token = paths >= 0
    drafted = xp.where(is_token, take_token(draft_rows, xp.where(is_token, paths, 0)), 1)
    probs = xp.prod(xp.astype(drafted, xp.float64).reshape(len(paths), -1), axis=-1)
    least = ROUNDING * float(xp.finfo(draft_rows.dtype).eps)
    return xp.where(probs * tolerance < least, least / xp.where(probs > 0, probs, least), tolerance)


def _answers(
    verifier: Verifier, batches: Sequence[Sequence[Array]], tolerance: float, of_pair: bool
) -> list[_Answer]:
    """The outcomes of several batches, checked to be conditional laws.

    All outcomes are made before the first correction, and the batches are asked for corrections in turn, each
    time about another stop for every tuple.
    """
    outcomes = [verifier.outcome(*batch) for batch in batches]
    slacks = [_slack(batch, tolerance, of_pair) for batch in batches]
    answers = []
    for outcome, batch, slack in zip(outcomes, batches, slacks, strict=True):
        check_stop_probs(verifier, outcome, batch[0], slack)
        answers.append(_Answer(outcome.stop_probs, flint_if_exact(zeros_like(batch[1]))))
    for turn in zip_longest(*map(_made_stops, outcomes)):
        for stops, outcome, slack, answer in zip(turn, outcomes, slacks, answers, strict=True):
            if stops is None:
                continue
            rows, xp = outcome.correction(*stops), namespace(answer.joint)
            at = (xp.arange(len(rows), device=answer.joint.device), *stops)
            prob = outcome.stop_probs[at]
            made = prob != 0
            check_correction_rows(verifier, rows[made], prob[made], rows.shape[-1], slack[made])
            # Where the stop is not made the row may be anything, and not even a number to be multiplied.
            answer.joint[at] = xp.where(made[:, None], rows, zeros_like(rows)) * prob[:, None]
    return answers


def _made_stops(outcome: Outcome) -> Iterator[tuple[Array, Array]]:
    """Path indices and lengths [N] of one stop of every tuple, until all that are made have come."""
    probs = outcome.stop_probs
    xp, device, lengths = namespace(probs), probs.device, probs.shape[-1]
    flat = (probs != 0).reshape(len(probs), -1)
    made = flat.cpu().numpy() if hasattr(flat, "cpu") else np.asarray(flat, dtype=bool)
    order, tuples = np.argsort(~made, axis=1, kind="stable"), np.arange(len(made))
    for turn in range(made.sum(axis=1).max()):
        picked = order[tuples, (tuples + turn) % made.sum(axis=1)]
        yield tuple(xp.asarray(part, device=device) for part in (picked // lengths, picked % lengths))


def _differs(one: _Answer, other: _Answer, tuples: Any, tolerance: float) -> Array:
    """Mask of the given tuples of the first answer that differ from the other answer, bool [N of other]."""
    slack = float_tolerance(one.stop_probs, tolerance)
    # Written so that NaN, which fails every comparison, counts as a difference.
    same = [
        (abs(mine[tuples] - theirs) <= slack).reshape(len(theirs), -1).all(-1)
        for mine, theirs in zip(one, other, strict=True)
    ]
    return ~(same[0] & same[1])
