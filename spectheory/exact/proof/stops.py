"""What a verifier returns on all drafts of a face: functions, and rationals where the rows are rationals."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.proof.domain import FormalPair
from spectheory.exact.proof.formal_numbers import FormalRun, Number, Share
from spectheory.exact.proof.rational_functions import POSITIVE, ZERO, RationalFunction
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import Context, numbered_context
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier


def fresh(verifier: Verifier) -> Verifier:
    """A copy that has seen no call."""
    return deepcopy(verifier)


class Stops(NamedTuple):
    """The stops of N tuples.

    Attributes:
        leaves: the paths, [N, K].
        weights: the probability of each tuple, [N].
        probs: of the stops, [N, K, L+1].
        masses: of the next token, [N, K, L+1, V]; 0 at stops that are never made.
    """

    leaves: np.ndarray
    weights: np.ndarray
    probs: np.ndarray
    masses: np.ndarray

    def outputs(self, vocab_size: int) -> list[dict[Context, list[Any]]]:
        """Of every tuple, accepted prefix -> probability of the output with each next token."""
        found = []
        length = self.probs.shape[2] - 1
        for leaves, masses in zip(self.leaves, self.masses, strict=True):
            output: dict[Context, list[Any]] = {}
            for leaf, rows in zip(leaves, masses, strict=True):
                path = numbered_context(int(leaf), length, vocab_size)
                for depth, row in enumerate(rows):
                    old = output.get(path[:depth])
                    new = list(row) if old is None else [a + b for a, b in zip(old, row, strict=True)]
                    output[path[:depth]] = new
            found.append(output)
        return found


def stops_of(
    evaluator: Evaluator,
    leaves: np.ndarray,
    weights: np.ndarray,
    is_zero: Callable[[Any], bool] = lambda prob: prob == 0,
    mass_of: Callable[[Any, Any], Any] = mul,
) -> Stops:
    """Ask a verifier for its stops and its correction rows on tuples of drafted paths.

    Args:
        evaluator: the verifier with its rows.
        leaves, weights: the tuples, [N, K], and their probabilities, [N].
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
    return Stops(leaves, weights, probs, masses)


def formal_stops(
    verifier: Verifier,
    pair: FormalPair,
    run: FormalRun,
    process: DraftProcess,
    drafting: FormalRun | None = None,
) -> Stops:
    """The stops of a copy of a verifier on all tuples of a face, as functions.

    A user's verifier must return the same itself, and on each tuple alone.

    Args:
        verifier, process: the verifier and its drafts.
        pair: the face.
        run: of the verifier.
        drafting: the run that says which tuples there are; by default the same.
    """
    rows = pair.rows_in(run)
    drawn = rows if drafting is None else pair.rows_in(drafting)
    chunks = list(process.enumerate(drawn, 1 << 20))  # type: ignore[arg-type]
    leaves = np.concatenate([chunk.leaves for chunk in chunks])
    weights = np.concatenate([chunk.probs for chunk in chunks])
    evaluator = Evaluator(fresh(verifier), tuple(rows.target), [tuple(rows.draft)] * process.num_drafts)

    def mass_of(prob: Any, entry: Any) -> RationalFunction:
        function = function_of(prob, run)
        if type(entry) is Share and entry.is_open and _is_share_of_mass(entry, run):
            # If s / W is finite at W = 0, then s = 0 there and s w / W = 0, as without a division.
            rate = function / entry.total
            if all(run.is_never_zero(factor) for factor in rate.denominator_factors()):
                return rate * entry.weight
        return function * function_of(entry, run)

    functions = np.frompyfunc(lambda value: function_of(value, run), 1, 1)

    def asked(evaluator: Evaluator, some: slice) -> Stops:
        tuples = leaves[some], weights[some]
        stops = stops_of(evaluator, *tuples, lambda prob: function_of(prob, run).is_zero, mass_of)
        return Stops(leaves[some], *map(functions, stops[1:]))

    if not isinstance(verifier, UserVerifier):
        return asked(evaluator, slice(None))
    run.with_flint = issubclass(type(verifier.user_object), Verifier)
    together = asked(replace(evaluator, verifier=fresh(verifier)), slice(None))
    again: list[tuple[Verifier, slice, str]] = [(verifier, slice(None), "when it is not a copy of itself")]
    again += [
        (fresh(verifier), slice(number, number + 1), f"on the drafts {leaf.tolist()} alone")
        for number, leaf in enumerate(leaves)
        if len(leaves) > 1
    ]
    for one, some, when in again:
        found = asked(replace(evaluator, verifier=one), some)
        for mine, others in zip(found[2:], together[2:], strict=True):
            for pair_of in zip(mine.flat, others[some].flat, strict=True):
                if not run.has_sign(pair_of[0] - pair_of[1], ZERO):
                    raise InvalidOutcomeError(
                        f"verifier {verifier.name!r} computes something else {when}; it must not ask for the "
                        "size of a batch, or which object it is"
                    )
    return together


def _is_share_of_mass(entry: Share, run: FormalRun) -> bool:
    return all(run.has_sign(weight, ZERO | POSITIVE) for weight in entry.weights)


def function_of(value: Any, run: FormalRun) -> RationalFunction:
    """An entry that a verifier returned as a function."""
    if type(value) is RationalFunction:
        return value
    if type(value) in (Number, Share):
        return (value + 0)._function
    return (run.number(run.field.constant(0)) + value)._function
