"""Check that a user's verifier is deterministic and that its flags are true.

Each check evaluates the verifier on a sample of drafted tuples, and names the fault in one line.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import Array, first_true, namespace, take_token, zeros_like
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError, NotJudgedError
from spectheory.foundation.exact_numbers import float_tolerance, is_exact
from spectheory.foundation.private_copies import PrivateCopy
from spectheory.pairs.contexts import numbered_context
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.verification.evaluator import Evaluator, check_correction_rows, check_stop_probs
from spectheory.verification.law_errors import tolerance_of
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import Problem
from spectheory.verification.sampler_runs import runs_a_sampler
from spectheory.verification.verifier import UserVerifier, Verifier

SAMPLED_TUPLES = 512
ASKED_ALONE = 4
FIRST_SIZES, BATCH_SIZES = 8, 32
"""A verifier's first check asks about batches of up to 8 tuples, of all sizes, and every later one about one
size up to 32: a suite about all of them."""
BESIDE_OTHERS = 8
"""So many tuples are asked about beside the same drafts of three other models: a batch of at most 32."""
ROUNDING = 64
"""Units in the last place of 1 that rounding may add to the probability of an output."""
REPEATS = 6
"""A call is made so many times more before a difference is put down to anything but random numbers."""
RANDOM = "the same call gives different outcomes, from internal state or random numbers"
TupleLaw = dict[tuple[int, int, int], Any]
"""(depth, number of the prefix, correction token) -> probability, given one tuple of drafts."""


def check_function_of_inputs(problem: Problem, leaves: np.ndarray, tolerance: float) -> Callable[[], None]:
    """``check_answers`` on tuples of an enumerated pair, given by their leaf numbers [N, K]."""
    drafted = Evaluator.of(problem, problem.process).tuples(leaves)[1:]
    # What ``bind`` prepared for a pair may know the rows of that pair only.
    is_of_pair = getattr(problem.verifier, "unbound", None) is not None
    for bound in getattr(problem.verifier, "on_models", ()):
        if isinstance(bound, UserVerifier):
            check_beside_other_rows(bound, drafted, tolerance, of_pair=True)
    return check_answers(problem.verifier, drafted, tolerance, takes_other_rows=not is_of_pair, of_pair=True)


def check_answers(
    verifier: Verifier,
    drafted: Sequence[Array],
    tolerance: float,
    *,
    takes_other_rows: bool = True,
    of_pair: bool = False,
) -> Callable[[], None]:
    """Refuse a verifier whose answer depends on anything but the drafted paths and the rows on them.

    The same tuples are evaluated several times.  Each evaluation reveals another fault:

    1. in the given arrays: writing into the inputs;
    2. in the same arrays again: internal state, or random numbers;
    3. with different stops in one call of ``correction``: dependence on the other stops;
    4. some alone, one beside itself, all in another order, in new arrays and two batches: dependence on
       other tuples of the batch.  All these outcomes are made first, and their corrections alternate, the
       last stop first: state that outcomes share;
    5. in that order, written into the given arrays: answers cached by the identity of an array;
    6. in batches of 1 to 8 tuples, and in later checks of one size up to 32: dependence on the size;
    7. beside the same drafts of other models, as in a batch of several texts: dependence on their rows.

    Args:
        verifier: the user's.
        drafted: paths [N, K, L], target rows [N, K, L+1, V] and draft rows [N, K, L, V], of numpy or torch.
        tolerance: in floats, the largest difference of two equal probabilities.
        takes_other_rows: whether the verifier takes rows of other models.
        of_pair: whether they are of an enumerated pair, on which rare drafts may miss a law by more.

    Returns:
        The second evaluation once more, to be called when the law was summed: an answer that changed later.

    Raises:
        InvalidOutcomeError: the text names the fault and the drafts on which it shows.
    """
    assert isinstance(verifier, UserVerifier)
    given = verifier.lend(*drafted)

    def answer(lent: Sequence[PrivateCopy]) -> _Answer:
        return _answers(verifier, [lent], tolerance, of_pair)[0]

    def check(answer: _Answer, tuples: Any, fault: str) -> None:
        differs = _differs(first, answer, tuples, tolerance)
        if differs.any():
            if fault != RANDOM:
                refuse_random()
            drafts = drafted[0][tuples][int(first_true(differs))].tolist()
            raise InvalidOutcomeError(
                f"verifier {verifier.name!r} is not a function of its inputs: {fault} (drafts {drafts}); "
                "compute the law from the arrays of the call alone"
            )

    def check_again(lent: Sequence[PrivateCopy] = given) -> None:
        check(answer(lent), slice(None), RANDOM)

    def refuse_random() -> None:
        for _ in range(REPEATS):
            check_again(verifier.lend(*drafted))

    first = answer(given)
    check_again()
    _check_mixed_stops(verifier, drafted, first, tolerance, refuse_random)
    count, xp = len(drafted[0]), namespace(drafted[0])
    shuffled = np.random.default_rng(1).permutation(count)
    order = np.empty_like(shuffled)
    order[shuffled] = np.roll(shuffled, 1)  # one cycle through all: of two or more, every tuple moves
    order = xp.asarray(order, device=drafted[0].device)
    middle = (count + 1) // 2
    parts = [slice(number, number + 1) for number in range(min(count, ASKED_ALONE))]
    parts += [xp.concat([order[:1], order]), *((order[:middle], order[middle:]) if count > 1 else ())]
    batches = [verifier.lend(*(array[part] for array in drafted)) for part in parts]
    for part, batch, found in zip(
        parts, batches, _answers(verifier, batches, tolerance, of_pair), strict=True
    ):
        if _differs(first, found, part, tolerance).any():
            fault = "its answer for one tuple of drafts depends on the other tuples of the batch"
            check(answer(verifier.lend(*(copy.ours for copy in batch))), part, fault)
            check(found, part, "an outcome changes when another one is made or used before its corrections")
    moved = verifier.lend(*(array[order] for array in drafted))
    for copy, content in zip(given, moved, strict=True):
        copy.overwrite(content.theirs)
    again = [copy.now_in(lent.theirs) for lent, copy in zip(given, moved, strict=True)]
    fault = "given other contents in the same array objects it repeats an old answer"
    check(answer(again), order, fault)
    for size in () if runs_a_sampler(verifier) else verifier.sizes_to_ask(FIRST_SIZES, BATCH_SIZES):
        part = xp.asarray(np.arange(size) % count, device=drafted[0].device)
        fault = f"its answer for one tuple of drafts depends on the size of its batch, here {size}"
        check(answer(verifier.lend(*(array[part] for array in drafted))), part, fault)
    if takes_other_rows:
        check_beside_other_rows(verifier, drafted, tolerance, of_pair)
    return lambda: check_again(verifier.lend(*drafted))


def check_beside_other_rows(
    verifier: UserVerifier, drafted: Sequence[Array], tolerance: float, of_pair: bool
) -> None:
    """Refuse a verifier whose answer depends on the rows of the other tuples of its batch, or of before.

    The same drafts have the rows of three other models: all of them are others, those behind the first
    token, or those of the draft model.  Each is asked about alone, of a verifier that was bound anew, and
    then all of them in one batch.
    """
    if runs_a_sampler(verifier):
        return
    paths, target_rows, draft_rows = (array[:BESIDE_OTHERS] for array in drafted)
    xp, count, alone = namespace(paths), len(paths), []
    for target, draft in (
        (target_rows, draft_rows),
        (_other_rows(target_rows), _other_rows(draft_rows)),
        (_other_rows(target_rows, 1), _other_rows(draft_rows, 1)),
        (target_rows, _other_rows(draft_rows)),
    ):
        try:
            fresh = verifier.bound_anew()
            if not isinstance(fresh, UserVerifier):  # a published one, which bind did not return before
                continue
            (answer,) = _answers(fresh, [fresh.lend(paths, target, draft)], tolerance, of_pair)
        except InvalidInputError:  # it takes no other rows: what it says of those of the pair is judged
            continue
        alone.append((target, draft, answer))
    if not alone:
        return
    targets, drafts, answers = zip(*alone, strict=True)
    batch = verifier.lend(xp.concat([paths] * len(alone)), xp.concat(targets), xp.concat(drafts))
    (together,) = _answers(verifier, [batch], tolerance, of_pair)
    for number, answer in enumerate(answers):
        differs = _differs(together, answer, slice(number * count, (number + 1) * count), tolerance)
        if differs.any():
            raise InvalidOutcomeError(
                f"verifier {verifier.name!r} is not a function of its inputs: its answer for one tuple of "
                "drafts depends on the rows of the other tuples of the batch, or of a call before (drafts "
                f"{paths[int(first_true(differs))].tolist()}); compute it from the rows of its own tuple"
            )


def _other_rows(rows: Array, depth: int = 0) -> Array:
    """Rows [N, K, depths, V] of another model from a depth on; what has mass keeps some."""
    mixed = (2 * rows + namespace(rows).roll(rows, 1, axis=-1)) / 3
    return namespace(rows).concat([rows[..., :depth, :], mixed[..., depth:, :]], axis=-2)


class BatchSizes:
    """Compares a user's answers, stops and corrections, to a batch and to its halves, once for every size.

    ``check_answers`` asks about a few tuples.  A verifier that looks at the size of its batch answers
    otherwise on the batches of a run.
    """

    def __init__(self, verifier: Verifier, tolerance: float | None = None) -> None:
        self._asked = isinstance(verifier, UserVerifier) and not runs_a_sampler(verifier)
        self._verifier, self._tolerance, self._seen, self._fault = verifier, tolerance, {0, 1}, ""

    def compare(self, outcome: Outcome, drafted: Sequence[Array]) -> None:
        """``outcome`` is the answer to these paths, target rows and draft rows."""
        count = len(drafted[0])
        if not self._asked or count in self._seen:
            return
        self._seen.add(count)
        middle, tolerance = (count + 1) // 2, tolerance_of(drafted[1], self._tolerance)
        xp, device = namespace(drafted[0]), drafted[0].device
        for part in (slice(None, middle), slice(middle, None)):
            other = self._verifier.outcome(*(array[part] for array in drafted))
            same = (abs(outcome.stop_probs[part] - other.stop_probs) <= tolerance).all(-1).all(-1)
            for stops in _made_stops(outcome):
                rows = outcome.correction(*stops)[part]
                found = other.correction(*(number[part] for number in stops))
                probs = outcome.stop_probs[xp.arange(count, device=device), *stops][part]
                # A stop that is not made may have any row, and not even a number to be multiplied.
                near = abs(rows - found) * probs[:, None] <= tolerance
                same = same & xp.where(probs[:, None] > 0, near, True).all(-1)
            if not same.all():
                drafts = drafted[0][part][int(first_true(~same))].tolist()
                self._fault = (
                    f"its answer for one tuple of drafts depends on the size of its batch, {count} or "
                    f"{len(same)} (drafts {drafts}); compute the law of a tuple from its own arrays"
                )

    def refuse(self) -> None:
        """Raise ``InvalidOutcomeError`` if a half had another answer."""
        if self._fault:
            raise InvalidOutcomeError(
                f"verifier {self._verifier.name!r} is not a function of its inputs: {self._fault}"
            )


def _check_mixed_stops(
    verifier: Verifier,
    drafted: Sequence[Array],
    first: _Answer,
    tolerance: float,
    refuse_random: Callable[[], None],
) -> None:
    """Refuse a correction whose row for one stop depends on the other stops of the call.

    In the other checks all tuples of a call have the same stop.  Here the stops differ, and every stop that
    is made is asked about twice.
    """
    outcome = verifier.outcome(*drafted)
    slack = float_tolerance(first.stop_probs, tolerance)
    if not (abs(outcome.stop_probs - first.stop_probs) <= slack).all():
        refuse_random()
        raise InvalidOutcomeError(f"verifier {verifier.name!r} is not a function of its inputs: {RANDOM}")
    for stops in 2 * list(_made_stops(outcome)):
        rows = outcome.correction(*stops)
        for path_index, length in set(zip(*(numbers.tolist() for numbers in stops), strict=True)):
            if (path_index, length) not in first.joint:  # made within the tolerance of floats
                continue
            here = (stops[0] == path_index) & (stops[1] == length)
            found = rows[here] * outcome.stop_probs[here, path_index, length][:, None]
            wrong = ~(abs(found - first.joint[path_index, length][here]) <= slack).all(-1)
            if wrong.any():
                refuse_random()
                drafts = drafted[0][here][int(first_true(wrong))].tolist()
                raise InvalidOutcomeError(
                    f"verifier {verifier.name!r} is not a function of its inputs: its correction for one "
                    f"stop depends on the other stops it is asked about in the same call (drafts {drafts}, "
                    f"path {path_index}, length {length}); compute a row from its own path index and length"
                )


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


def first_failure(
    verifier: UserVerifier, drafted: Sequence[Array], tolerance: float
) -> tuple[list[list[int]], InvalidOutcomeError] | None:
    """The first tuple of drafts on which a verifier fails when it is asked about it alone, and the error.

    Args:
        verifier, drafted, tolerance: as in ``check_answers``.
    """
    for number in range(len(drafted[0])):
        one = verifier.lend(*(array[number : number + 1] for array in drafted))
        try:
            _answers(verifier, [one], tolerance, of_pair=True)
        except InvalidOutcomeError as error:
            return drafted[0][number].tolist(), error
    return None


def check_same_law(
    problem: Problem, masses: Sequence[np.ndarray], again: Sequence[np.ndarray], tolerance: float
) -> None:
    """Refuse a verifier whose output law R differs between two enumerations of all tuples."""
    slack = float_tolerance(problem.pair, tolerance)
    if not all((abs(one - other) <= slack).all() for one, other in zip(masses, again, strict=True)):
        raise InvalidOutcomeError(
            f"verifier {problem.verifier.name!r} is not a function of its inputs: its law changes when the "
            "same drafts come in another order and in other batches; compute it from the arrays of the call "
            "alone"
        )


def check_declarations(problem: Problem, leaves: np.ndarray, tolerance: float) -> None:
    """Refuse a verifier whose ``single_path`` or ``exchangeable`` a sample of tuples contradicts.

    Raises:
        NotJudgedError: the text names the declaration and the drafts that contradict it.
    """
    verifier, pair, process = problem

    def laws(process: DraftProcess, leaves: np.ndarray) -> list[TupleLaw]:
        return _laws(Evaluator.of(problem, process), leaves, tolerance)

    whole = laws(process, leaves)

    def check(declared: str, others: list[TupleLaw], found: Callable[[int], str]) -> None:
        number = _first_difference(whole, others, float_tolerance(pair, tolerance))
        if number is not None:
            raise NotJudgedError(
                f"verifier {verifier.name!r} declares {declared} = True, but its law for the drafts "
                f"{_paths(pair, leaves[number])} {found(number)}; leave the declaration out"
            )

    if verifier.single_path:
        alone = laws(process.first_path(), leaves[:, :1])
        check("single_path", alone, lambda number: "is not its law for the first of them alone")
    if verifier.exchangeable:
        rng = np.random.default_rng(2)
        orders = rng.permuted(np.tile(np.arange(process.num_drafts), (len(leaves), 1)), axis=1)
        permuted = laws(process, np.take_along_axis(leaves, orders, axis=1))
        check(
            "exchangeable",
            permuted,
            lambda number: f"changes when they come in the order {orders[number].tolist()}",
        )


def sampled_leaves(problem: Problem, samples: int = SAMPLED_TUPLES) -> np.ndarray:
    """Leaf numbers of tuples that can be drafted, [N, K]: all of them if there are at most ``samples``.

    Of more i.i.d. tuples, half draw their paths from two leaves, because most faults show where prefixes are
    shared.  Of another process they are the first tuples of its list.
    """
    _, pair, process = problem
    if process.name != "iid" or process.count_tuples(pair) <= samples:
        return next(process.tuples(pair, samples)).leaves
    rng = np.random.default_rng(0)
    support = np.flatnonzero(pair.draft_path_probs(pair.draft_length) > 0)
    free = rng.choice(support, (samples - samples // 2, process.num_drafts))
    handful = rng.choice(support, (samples // 2, 2))
    picked = rng.integers(0, 2, (samples // 2, process.num_drafts))
    return np.concatenate([free, np.take_along_axis(handful, picked, axis=1)])


class _Answer(NamedTuple):
    """The outcome of a verifier on N tuples of drafts.

    Attributes:
        stop_probs: [N, K, L+1].
        joint: (path, length) of the stops that are made -> probability of it and of every correction, [N, V].
    """

    stop_probs: Array
    joint: dict[tuple[int, int], Array]


def _slack(lent: Sequence[PrivateCopy], tolerance: float, of_pair: bool) -> Array:
    """By how much an answer may miss a law given each tuple of drafts, [N]; more for rare ones of a pair.

    Given drafts of probability P an error e moves the output by e P.  On texts of models all drafts are rare,
    and nothing is allowed for.
    """
    paths, draft_rows = lent[0].ours, lent[2].ours
    xp = namespace(draft_rows)
    if not of_pair or is_exact(draft_rows):
        return xp.full((len(paths),), tolerance, dtype=xp.float64, device=paths.device)
    is_token = paths >= 0
    drafted = xp.where(is_token, take_token(draft_rows, xp.where(is_token, paths, 0)), 1)
    probs = xp.prod(xp.astype(drafted, xp.float64).reshape(len(paths), -1), axis=-1)
    least = ROUNDING * float(xp.finfo(draft_rows.dtype).eps)
    return xp.where(probs * tolerance < least, least / xp.where(probs > 0, probs, least), tolerance)


def _answers(
    verifier: UserVerifier, batches: Sequence[Sequence[PrivateCopy]], tolerance: float, of_pair: bool
) -> list[_Answer]:
    """The outcomes of several batches, checked to be conditional laws.

    All outcomes are made before the first correction.  Those of several batches are asked in turn, the last
    stop first.
    """
    outcomes = [verifier.ask(lent) for lent in batches]
    slacks = [_slack(lent, tolerance, of_pair) for lent in batches]
    for outcome, lent, slack in zip(outcomes, batches, slacks, strict=True):
        check_stop_probs(verifier, outcome, lent[0].ours, slack)
    answers = [_Answer(outcome.stop_probs, {}) for outcome in outcomes]
    stops = list(np.ndindex(*outcomes[0].stop_probs.shape[1:]))
    for stop in stops if len(batches) == 1 else reversed(stops):
        for outcome, lent, slack, answer in zip(outcomes, batches, slacks, answers, strict=True):
            paths, target_rows = lent[0].ours, lent[1].ours
            prob, xp = outcome.stop_probs[:, *stop], namespace(paths)
            made = prob != 0
            if not made.any():
                continue
            rows = outcome.correction(
                *(xp.zeros((len(paths),), dtype=xp.int64, device=paths.device) + n for n in stop)
            )
            check_correction_rows(verifier, rows[made], prob[made], target_rows.shape[-1], slack[made])
            # Where the stop is not made the row may be anything, and not even a number to be multiplied.
            rows = namespace(rows).where(made[:, None], rows, zeros_like(prob)[:, None])
            answer.joint[stop] = rows * prob[:, None]
    for lent in batches:
        verifier.check_unchanged(lent)
    return answers


def _differs(one: _Answer, other: _Answer, tuples: Any, tolerance: float) -> Array:
    """Which of the given tuples of the first answer differ from the other answer, bool [N of other]."""
    stop_probs = one.stop_probs[tuples]
    slack = float_tolerance(stop_probs, tolerance)
    # Written so that NaN, which fails every comparison, counts as a difference.  A stop that only one of
    # them makes shows in the stop probabilities.
    same = (abs(stop_probs - other.stop_probs) <= slack).all(-1).all(-1)
    for stop in one.joint.keys() & other.joint.keys():
        same = same & (abs(one.joint[stop][tuples] - other.joint[stop]) <= slack).all(-1)
    return ~same


def _laws(evaluator: Evaluator, leaves: np.ndarray, tolerance: float) -> list[TupleLaw]:
    """The law of the output given each tuple of drafts, whichever path a shared prefix is credited to."""
    tuples = evaluator.tuples(leaves)
    assert isinstance(evaluator.verifier, UserVerifier)
    answer = _answers(evaluator.verifier, [evaluator.verifier.lend(*tuples[1:])], tolerance, of_pair=True)[0]
    laws: list[TupleLaw] = [defaultdict(lambda: evaluator.zero) for _ in leaves]
    for (path_index, length), joint in answer.joint.items():
        for number in np.flatnonzero(answer.stop_probs[:, path_index, length] != 0):
            prefix = int(tuples.prefixes[number, path_index, length])
            for token, prob in enumerate(joint[number]):
                laws[number][length, prefix, token] += prob
    return laws


def _first_difference(laws: list[TupleLaw], others: list[TupleLaw], tolerance: float) -> int | None:
    for number, (law, other) in enumerate(zip(laws, others, strict=True)):
        if any(abs(law[key] - other[key]) > tolerance for key in (*law, *other)):
            return number
    return None


def _paths(pair: ModelPair, leaves: np.ndarray) -> list[tuple[int, ...]]:
    return [numbered_context(int(leaf), pair.draft_length, pair.vocab_size) for leaf in leaves]
