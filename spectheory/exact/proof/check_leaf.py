"""The checker at a leaf: verifiers run on the rows of a face, and must return laws."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.proof.check_numbers import (
    NEGATIVE,
    POSITIVE,
    ZERO,
    Answers,
    Normalised,
    Quotient,
    reject,
)
from spectheory.pairs.drafts import DraftProcess
from spectheory.pairs.pair import PairNumbers
from spectheory.verification.user import UserVerifier
from spectheory.verification.verifier import Verifier


class FaceRows:
    """The rows of a face: arrays [V^depth, V] of polynomials, and zeros where no drafted path goes.

    With ``beyond`` there are rows at every context of a depth below L.

    Attributes:
        levels: those of the target as "p" and of the draft as "q", by depth.
        reached: the contexts that drafted paths reach.
        probabilities: the entries that are not 0 throughout, each with the letter of its model;
            p for those of the draft that may be 0, where no drafted path goes.
    """

    def __init__(
        self, ring: Any, size: int, length: int, supports: dict[Any, Any], beyond: bool = False
    ) -> None:
        variables = dict(zip(ring.names(), ring.gens(), strict=True))
        self.reached = {(): True} | {(*context, x): True for context in supports for x in supports[context]}
        self.probabilities: list[tuple[str, Any]] = []
        self.levels: dict[str, list[np.ndarray]] = {"p": [], "q": []}
        for letter, depths in (("p", length + 1), ("q", length)):
            for depth in range(depths):
                level = np.empty((size**depth, size), dtype=object)
                for number, context in enumerate(product(range(size), repeat=depth)):
                    drawn = tuple(range(size)) if letter == "p" else supports.get(context, ())
                    if context not in self.reached:
                        drawn = tuple(range(size)) if beyond and depth < length else ()
                    rest = ring.constant(1)
                    for token in range(size):
                        entry = ring.constant(0)
                        if drawn and token == drawn[-1]:
                            entry = rest
                        elif token in drawn:
                            entry = variables[f"{letter}{''.join(f'_{x}' for x in context)}_{token}"]
                            rest = rest - entry
                        level[number, token] = entry
                        if token in drawn:
                            self.probabilities.append((letter if context in self.reached else "p", entry))
                self.levels[letter].append(level)


class _View(NamedTuple):
    """What a draft process reads of a pair."""

    target: list[np.ndarray]
    draft: list[np.ndarray]
    vocab_size: int
    draft_length: int

    @property
    def numbers(self) -> PairNumbers:
        return PairNumbers(tuple(self.target), tuple(self.draft))


class Law(NamedTuple):
    """What a verifier returned on all tuples of a face.

    Attributes:
        leaves: of every tuple.
        weights: the probability of every tuple.
        outputs: of every tuple, accepted prefix -> probability of the output with each next token.
        block_efficiency: E[τ+1].
    """

    leaves: list[tuple[int, ...]]
    weights: list[Quotient]
    outputs: list[dict[tuple[int, ...], list[Quotient]]]
    block_efficiency: Quotient


def numbers_of(face: FaceRows, answers: Answers) -> dict[str, list[np.ndarray]]:
    """The rows of a face as numbers, by depth."""
    make = np.frompyfunc(answers.quotient, 1, 1)
    return {letter: [make(level) for level in levels] for letter, levels in face.levels.items()}


def law_at_leaf(
    original: Verifier, process: DraftProcess, levels: dict[str, list[np.ndarray]], answers: Answers
) -> Law:
    """Run a verifier, and reject the proof unless what it returns is a law for every tuple."""
    length, size = len(levels["q"]), levels["p"][0].shape[1]
    drawn = levels
    if answers.of_drafts is not answers:
        again = np.frompyfunc(lambda entry: Quotient(answers.of_drafts, *entry.parts), 1, 1)
        drawn = {letter: list(map(again, levels[letter])) for letter in levels}
    view = _View(drawn["p"], drawn["q"], size, length)
    chunks = list(process.enumerate(view, 1 << 20))  # type: ignore[arg-type]
    leaves = np.concatenate([chunk.leaves for chunk in chunks])
    zero = answers.quotient(answers.ring.constant(0))
    nothing = answers.of_drafts.quotient(answers.ring.constant(0))
    weights = [Quotient(answers, *(nothing + weight).parts) for chunk in chunks for weight in chunk.probs]
    prefixes = np.stack([leaves // size ** (length - depth) for depth in range(length + 1)], axis=-1)
    target = np.stack([levels["p"][d][prefixes[..., d]] for d in range(length + 1)], axis=-2)
    draft = np.stack([levels["q"][d][prefixes[..., d]] for d in range(length)], axis=-2)
    drafted = prefixes[..., 1:] % size, target, draft
    answers.with_flint = not isinstance(original, UserVerifier) or issubclass(
        type(original.user_object), Verifier
    )
    stops, found = _asked(_copy(original), drafted, answers, zero)
    outputs: list[dict[tuple[int, ...], list[Quotient]]] = [{} for _ in leaves]
    totals, mean = [zero] * len(leaves), zero
    given = [
        frozenset(tuple(map(int, t[:d])) for t in some for d in range(1, length + 1))
        for some in prefixes[..., 1:] % size
    ]
    if isinstance(original, UserVerifier):  # itself, and on each tuple alone
        again = [(original, slice(None))]
        again += [(_copy(original), slice(n, n + 1)) for n in range(len(leaves)) if len(leaves) > 1]
        for verifier, part in again:
            other_stops, others = _asked(verifier, [array[part] for array in drafted], answers, zero)
            for number, some in list(enumerate(given))[part]:
                here = number - (part.start or 0)
                pairs = list(zip(other_stops[here].flat, stops[number].flat, strict=True))
                for (tuple_number, *place), masses in others.items():
                    if tuple_number == here:
                        pairs += zip(masses, found.get((number, *place), masses), strict=True)
                for one, other in pairs:
                    answers.must(zero + one - other, ZERO, some)
    for (number, path, depth), masses in found.items():
        stop = zero + stops[number, path, depth]
        for entry in (stop, *masses):
            answers.must(entry, ZERO | POSITIVE, given[number])
        answers.must(stop - sum(masses, zero), ZERO, given[number])
        totals[number] = totals[number] + stop
        mean = mean + weights[number] * stop * (depth + 1)
        context = tuple(int(x) for x in prefixes[number, path, 1 : depth + 1] % size)
        old = outputs[number].get(context, [zero] * size)
        outputs[number][context] = [a + b for a, b in zip(old, masses, strict=True)]
    for total, some in zip(totals, given, strict=True):
        answers.must(total - 1, ZERO, some)
    return Law([tuple(map(int, some)) for some in leaves], weights, outputs, mean)


def _copy(verifier: Verifier) -> Verifier:
    return deepcopy(verifier)


def _asked(
    verifier: Verifier, drafted: Sequence[np.ndarray], answers: Answers, zero: Quotient
) -> tuple[np.ndarray, dict[tuple[int, int, int], list[Quotient]]]:
    """The stops of a verifier; (tuple, path, depth) -> the masses of the tokens behind a stop."""
    paths, target, _ = drafted
    outcome = verifier.outcome(*drafted)
    stops, masses = outcome.stop_probs, dict[tuple[int, int, int], list[Quotient]]()
    if stops.shape != target.shape[:-1]:
        reject("the stop probabilities have another shape")
    made = np.frompyfunc(lambda stop: not (zero + stop).is_nothing, 1, 1)(stops).astype(bool)
    for depth in range(target.shape[-2]):
        order = np.argsort(~made[:, :, depth], axis=1, kind="stable")
        for chosen in order.T[: made[:, :, depth].sum(axis=1).max()]:
            rows = outcome.correction(chosen, np.full(len(paths), depth))
            if rows.shape != (len(paths), target.shape[-1]):
                reject("correction rows have another shape")
            for number, path in enumerate(chosen.tolist()):
                if made[number, path, depth]:
                    stop = zero + stops[number, path, depth]
                    masses[number, path, depth] = [
                        _mass(answers, stop, entry, zero) for entry in rows[number]
                    ]
    return stops, masses


def _mass(answers: Answers, stop: Quotient, entry: Any, zero: Quotient) -> Quotient:
    """stop × entry; of an entry w/W that was never used, without asking whether W = 0.

    That is right where stop/W has no pole at W = 0 and no weight of the row is negative.  Then stop = 0 and
    w = 0 there, and the products with w/W and with w are both 0.
    """
    unused = type(entry) is Normalised and entry.used is None
    if unused and not any(answers.signs(*weight.parts) & NEGATIVE for weight in entry.row):
        rate = entry.rate_of(stop)
        if answers.is_never_zero(rate.parts[1]):
            return rate * entry.weight
    return stop * (zero + entry)
