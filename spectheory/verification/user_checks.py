"""Check that a user's verifier is a function of its inputs.

Each check evaluates the verifier on a sample of drafted tuples and reports a fault in one line.
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
"""The most tuples of a check.  Faults show on few tuples; half as many would save a fifth of the time."""
REPEATS = 2
"""Repeats of the first call.  Five other calls are compared too, so 1 in 128 verifiers that toss a fair coin
in each call passes."""
BESIDE_OTHERS = 8
"""Number of tuples that are checked in one batch with the same drafts of another model."""
ROUNDING = 64
"""Units in the last place of 1 that rounding may add to the probability of an output."""


def check_function_of_inputs(problem: Problem, tolerance: float) -> None:
    """Run ``check_answers`` on a sample of the tuples of an enumerated pair."""
    check_answers(problem.verifier, sampled_drafts(problem), tolerance, of_pair=True)


def sampled_drafts(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the paths, target rows and draft rows of the ``sampled_leaves``."""
    _, paths, target_rows, draft_rows = Evaluator.of(problem, problem.process).tuples(sampled_leaves(problem))
    return paths, target_rows, draft_rows


def check_answers(
    verifier: Verifier, drafted: Sequence[Array], tolerance: float, *, of_pair: bool = False
) -> None:
    """Check that a verifier's answer for a tuple depends on the tuple's own drafts and rows only.

    We call the verifier on the tuples again and compare the answers:

    - the same batch, ``REPEATS`` times;
    - one tuple alone, and all tuples in another order in two batches, one tuple twice.  All outcomes are
      computed before the first correction row, and the correction requests alternate between the batches;
    - one batch with rows of another model, as an engine batches unrelated texts.

    Args:
        verifier: the user's verifier.
        drafted: paths [N, K, L], target rows [N, K, L+1, V] and draft rows [N, K, L, V], in numpy or torch.
        tolerance: for floats, the largest difference at which two probabilities count as equal.
        of_pair: True if the tuples come from an enumerated pair.  Then answers for rare drafts may differ
            from a law by more than the tolerance.

    Raises:
        InvalidOutcomeError: the check failed; the message states the fault and the drafts that show it.
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
    """Check that an answer does not depend on rows of other tuples, in the same batch or an earlier call."""
    paths, *rows = (array[:BESIDE_OTHERS] for array in drafted)
    others = [(2 * array + namespace(array).roll(array, 1, axis=-1)) / 3 for array in rows]
    fresh = verifier.anew() if isinstance(verifier, UserVerifier) else verifier
    try:
        (alone,) = _answers(fresh, [(paths, *others)], tolerance, of_pair)
    except InvalidInputError:  # the verifier refuses the rows of another model
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
    """Compute P(stop, token | drafts) for tuples of a pair, checked to be laws.  -> [N, K, L+1, V]"""
    (answer,) = _answers(verifier, [drafted], tolerance, of_pair=True)
    return answer.joint


def first_failure(
    verifier: Verifier, drafted: Sequence[Array], tolerance: float
) -> tuple[list[list[int]], InvalidOutcomeError] | None:
    """Find the first tuple of drafts on which a verifier fails if called on this tuple alone, and the error.

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
    """Pick leaf numbers of tuples that can be drafted, [N, K].

    If there are at most ``samples`` tuples, we take all.  If there are more i.i.d. tuples, half of the sample
    draws its paths from two leaves, because most faults show where paths share prefixes.  For other processes
    we take the first tuples that they enumerate.
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
        joint: the joint probability of each stop and each correction token there, [N, K, L+1, V].
    """

    stop_probs: Array
    joint: Array


def _slack(batch: Sequence[Array], tolerance: float, of_pair: bool) -> Array:
    """Compute the error that a law may have given each tuple of drafts, [N].

    Given drafts of probability P, an error e changes the output law by e P.  So on an enumerated pair rare
    drafts may have a larger error.  On texts from models all drafts are rare, and the tolerance stays.
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
    """Call the verifier on several batches, and check that its stop probabilities and rows are laws.

    We call ``outcome`` on all batches first.  We then compute correction rows in turns.  In each turn, every
    batch gets one call, at one stop per tuple.  Each turn uses new stops, until all possible stops are
    covered.
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
            # At a stop of probability 0 the row may be anything, even NaN, so it is not multiplied.
            answer.joint[at] = xp.where(made[:, None], rows, zeros_like(rows)) * prob[:, None]
    return answers


def _made_stops(outcome: Outcome) -> Iterator[tuple[Array, Array]]:
    """Yield one stop of each tuple, (path indices [N], lengths [N]), until every possible stop has come."""
    probs = outcome.stop_probs
    xp, device, lengths = namespace(probs), probs.device, probs.shape[-1]
    flat = (probs != 0).reshape(len(probs), -1)
    made = flat.cpu().numpy() if hasattr(flat, "cpu") else np.asarray(flat, dtype=bool)
    order, tuples = np.argsort(~made, axis=1, kind="stable"), np.arange(len(made))
    for turn in range(made.sum(axis=1).max()):
        picked = order[tuples, (tuples + turn) % made.sum(axis=1)]
        yield tuple(xp.asarray(part, device=device) for part in (picked // lengths, picked % lengths))


def _differs(one: _Answer, other: _Answer, tuples: Any, tolerance: float) -> Array:
    """Mask of the tuples in which two answers differ by more than the tolerance.

    Row n of ``other`` is compared with row n of ``one[tuples]``.  Returns [N], N = number of tuples in
    ``other``.
    """
    slack = float_tolerance(one.stop_probs, tolerance)
    # NaN fails every comparison, so with the negation it counts as a difference.
    same = [
        (abs(mine[tuples] - theirs) <= slack).reshape(len(theirs), -1).all(-1)
        for mine, theirs in zip(one, other, strict=True)
    ]
    return ~(same[0] & same[1])
