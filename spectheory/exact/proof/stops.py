"""What a verifier returns on all drafts of a face: functions, and rationals where the rows are rationals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from copyreg import dispatch_table
from dataclasses import replace
from operator import mul
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.proof.domain import FormalPair
from spectheory.exact.proof.formal_numbers import FormalRun, Number, Share
from spectheory.exact.proof.rational_functions import POSITIVE, ZERO, RationalFunction
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import Context, numbered_context
from spectheory.pairs.drafts import DraftProcess
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.verifier import UserVerifier, Verifier


def fresh(verifier: Verifier) -> Verifier:
    """A copy that has seen no call."""
    if isinstance(verifier, UserVerifier):
        return UserVerifier(deepcopy(verifier.user_object))
    return deepcopy(verifier)


def check_is_copied(verifier: Verifier) -> None:
    """Refuse a user's object that says itself how it is copied: copies are run in its place.

    Raises:
        InvalidOutcomeError: it does, or an object that it has.
    """
    waiting = [verifier.user_object] if isinstance(verifier, UserVerifier) else []
    seen: dict[int, Any] = {}
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if id(value) in seen or isinstance(value, (type, FunctionType, ModuleType)):
            continue
        seen[id(value)] = value
        if issubclass(kind, dict):
            waiting += [*value, *value.values()]
        elif issubclass(kind, (list, tuple, set, frozenset)):
            waiting += value
        if _is_of_a_library(kind):
            continue
        for base in kind.__mro__:
            hooks = [] if _is_of_a_library(base) else sorted(_OF_COPIES & {*vars(base)})
            own = [hook for hook in hooks if getattr(vars(base)[hook], "__module__", "") != "dataclasses"]
            if own or base in dispatch_table:
                raise InvalidOutcomeError(
                    f"verifier {verifier.name!r} cannot be followed: {base.__qualname__} says how it is "
                    f"copied ({', '.join(own) or 'copyreg'}), and a copy is run for every region; leave that "
                    "to Python"
                )
            slots = vars(base).get("__slots__", ())
            waiting += [getattr(value, name, None) for name in ([slots] if isinstance(slots, str) else slots)]
        waiting += getattr(value, "__dict__", {}).values()


_OF_COPIES = frozenset(
    {"__deepcopy__", "__copy__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__"}
    | {"__getnewargs__", "__getnewargs_ex__"}
)
_LIBRARIES = sys.stdlib_module_names | {"numpy", "torch", "flint", "spectheory"}


def _is_of_a_library(kind: type) -> bool:
    """Whether a class is the one that a library has under its name."""
    module = sys.modules.get(kind.__module__)
    is_there = getattr(module, kind.__qualname__, None) is kind
    return is_there and kind.__module__ != "__main__" and kind.__module__.partition(".")[0] in _LIBRARIES


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
    """The stops of a verifier on all tuples of a face, as functions.

    Args:
        verifier, process: the verifier and its drafts.
        pair: the face.
        run: of the verifier.
        drafting: the run that says which tuples there are; by default the same.
    """
    rows = pair.rows_in(run)
    drawn = rows if drafting is None else pair.rows_in(drafting)
    chunks = list(process.tuples(drawn, 1 << 20))  # type: ignore[arg-type]
    leaves = np.concatenate([chunk.leaves for chunk in chunks])
    weights = np.concatenate([chunk.probs for chunk in chunks])
    evaluator = Evaluator(verifier, tuple(rows.target), [tuple(rows.draft)] * process.num_drafts)

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

    together = asked(evaluator, slice(None))
    if isinstance(verifier, UserVerifier) and len(leaves) > 1:
        for number in range(len(leaves)):
            some = slice(number, number + 1)
            alone = asked(replace(evaluator, verifier=fresh(verifier)), some)
            for one, other in zip(alone[2:], together[2:], strict=True):
                for pairs in zip(one.flat, other[some].flat, strict=True):
                    if not run.has_sign(pairs[0] - pairs[1], ZERO):
                        raise InvalidOutcomeError(
                            f"verifier {verifier.name!r} computes something else on the drafts "
                            f"{leaves[number].tolist()} alone; it must not ask for the size of a batch"
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
