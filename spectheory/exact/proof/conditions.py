"""What a lossless verifier must satisfy on a face: signs of functions that a run of the verifier returns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.proof.domain import FormalPair
from spectheory.exact.proof.formal_numbers import Number, Run, Share
from spectheory.exact.proof.rational_functions import POSITIVE, ZERO, RationalFunction
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import Context, context_number, numbered_context
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.verifier import UserVerifier, Verifier


class Condition(NamedTuple):
    """A function whose sign must be one of ``mask`` on all pairs, and what is wrong where it is not."""

    function: RationalFunction
    mask: int
    wrong: str


def fresh(verifier: Verifier) -> Verifier:
    """A copy that has seen no call."""
    if isinstance(verifier, UserVerifier):
        return UserVerifier(deepcopy(verifier.user_object))
    return deepcopy(verifier)


class Stops(NamedTuple):
    """The stops of all tuples: probabilities [N, K, L+1], and mass of the next token, [N, K, L+1, V] (0 at
    stops that are never made)."""

    probs: np.ndarray
    masses: np.ndarray


def stops_of(
    evaluator: Evaluator,
    leaves: np.ndarray,
    is_zero: Callable[[Any], bool],
    mass_of: Callable[[Any, Any], Any],
) -> Stops:
    """Ask a verifier for its stops and its correction rows on tuples of drafted paths.

    Args:
        evaluator: the verifier with its rows.
        leaves: [N, K].
        is_zero: whether a stop probability is 0.
        mass_of: the product of a stop probability and an entry of a correction row.

    Raises:
        InvalidOutcomeError: the verifier returned arrays of another shape.
    """
    tuples, verifier = evaluator.tuples(leaves), evaluator.verifier
    outcome = verifier.outcome(*tuples[1:])
    probs = outcome.stop_probs
    size, expected = tuples.target_rows.shape[-1], tuples.target_rows.shape[:-1]
    if getattr(probs, "shape", None) != expected:
        raise InvalidOutcomeError(
            f"verifier {verifier.name!r} returned stop_probs of another shape than [..., K, L+1] = {expected}"
        )
    made = np.frompyfunc(lambda prob: not is_zero(prob), 1, 1)(probs).astype(bool)
    masses = np.full((*expected, size), evaluator.zero, dtype=object)
    for depth in range(expected[-1]):
        # The r-th round takes from every tuple its r-th path with a stop, as the output law of a pair does.
        order = np.argsort(~made[:, :, depth], axis=1, kind="stable")
        for path_index in order.T[: int(made[:, :, depth].sum(axis=1).max())]:
            rows = outcome.correction(path_index, np.full(len(leaves), depth))
            if getattr(rows, "shape", None) != (len(leaves), size):
                raise InvalidOutcomeError(
                    f"verifier {verifier.name!r} returned correction rows of another shape than [..., V] = "
                    f"{(len(leaves), size)}"
                )
            for number, path in enumerate(path_index):
                if made[number, path, depth]:
                    prob = probs[number, path, depth]
                    masses[number, path, depth] = [mass_of(prob, entry) for entry in rows[number]]
    return Stops(probs, masses)


def formal_stops(
    verifier: Verifier, pair: FormalPair, run: Run, process: DraftProcess
) -> tuple[Stops, np.ndarray, np.ndarray]:
    """The stops of a verifier on all tuples of a face, with their leaves [N, K] and probabilities [N]."""
    rows = pair.rows_in(run)
    chunks = list(process.tuples(rows, 1 << 20))  # type: ignore[arg-type]
    leaves = np.concatenate([chunk.leaves for chunk in chunks])
    weights = np.concatenate([chunk.probs for chunk in chunks])
    evaluator = Evaluator(verifier, tuple(rows.target), [tuple(rows.draft)] * process.num_drafts)

    def mass_of(prob: Any, entry: Any) -> Number:
        function, number = _function(prob, run), entry
        if isinstance(entry, Share) and entry.is_open and _is_share_of_mass(entry, run):
            # If s / W is finite at W = 0, then s = 0 there and s w / W = 0, as without a division.
            rate = function / entry.total
            if all(run.is_never_zero(factor) for factor in rate.denominator_factors()):
                return Number(run, rate * entry.weight)
        return Number(run, function * _function(number, run))

    stops = stops_of(evaluator, leaves, lambda prob: _function(prob, run).is_zero, mass_of)
    return stops, leaves, weights


def _is_share_of_mass(entry: Share, run: Run) -> bool:
    return all(run.has_sign(weight, ZERO | POSITIVE) for weight in entry.weights)


def _function(value: Any, run: Run) -> RationalFunction:
    """An entry that a verifier returned as a function."""
    if isinstance(value, Number):
        return (value + 0)._function
    return (run.number(run.field.constant(0)) + value)._function


def conditions(
    pair: FormalPair, run: Run, stops: Stops, leaves: np.ndarray, weights: np.ndarray
) -> Iterator[Condition]:
    """The conditions of a law for every tuple, and the law identity for every output prefix.

    Let R(a, x) be the probability of the output (a, x), D(∅) = 1 and D(a, x) = D(a) p(x|a) - R(a, x).  The
    completed output has the law of the target if and only if D = 0 where no draft goes further.
    """
    field, size, length = pair.field, pair.vocab_size, pair.draft_length
    zero, one = field.constant(0), field.constant(1)
    reached = {(): [zero] * size} | {context: [zero] * size for context in pair.reached}
    seen: set[tuple[RationalFunction, int]] = set()

    def must(function: RationalFunction, mask: int, wrong: str) -> Iterator[Condition]:
        if (function, mask) not in seen and not (function.is_zero and mask & ZERO):
            seen.add((function, mask))
            yield Condition(function, mask, wrong)

    for number, tuple_of_leaves in enumerate(leaves):
        total = zero
        weight = _function(weights[number], run)
        for path, leaf in enumerate(tuple_of_leaves):
            tokens = numbered_context(int(leaf), length, size)
            for depth in range(length + 1):
                prob = _function(stops.probs[number, path, depth], run)
                if prob.is_zero:
                    continue
                total, left = total + prob, prob
                yield from must(prob, ZERO | POSITIVE, "a stop probability is negative")
                row = reached[tokens[:depth]]
                for token, entry in enumerate(stops.masses[number, path, depth]):
                    mass = _function(entry, run)
                    left = left - mass
                    yield from must(mass, ZERO | POSITIVE, "a correction row has a negative entry")
                    row[token] = row[token] + weight * mass
                yield from must(left, ZERO, "a correction row does not sum to 1")
        yield from must(total - one, ZERO, "stop probabilities do not sum to 1")
    left_over: dict[Context, RationalFunction] = {(): one}
    for context in pair.reached:
        target = pair.target[len(context)]
        probs = target[context_number(context, size)]
        for token in range(size):
            prefix = (*context, token)
            deviation = left_over[context] * probs[token] - reached[context][token]
            if prefix in reached:
                left_over[prefix] = deviation
            else:
                yield from must(deviation, ZERO, f"the output law is wrong at {prefix}")
