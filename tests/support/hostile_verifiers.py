"""Hostile verifiers: what they are made of, those that write into arrays and those that keep state."""

import ctypes
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any

import numpy as np
import pytest
from flint import fmpq

from spectheory import Outcome, certify, instances, verifiers
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.pair import ModelPair
from spectheory.verification.defective import defects
from user_samplers import token_sampler

PAIR = instances.random_rational(7, 2, 2, zero_probability=0.0)
RIGHT, WRONG = verifiers["token"].outcome, defects["target_correction"].outcome
F = Fraction


class Made:
    """A user's object of the parts that a test gives it."""

    name = "made"

    def __init__(self, outcome: Any = WRONG, **others: Any) -> None:
        vars(self).update(others, outcome=outcome)


def verdicts(verifier: Any, pair: ModelPair = PAIR) -> list[bool]:
    found = [certify(verifier, pair, num_drafts, with_optimum=False) for num_drafts in (1, 2)]
    return [certificate.is_valid for certificate in found]


# ------------------------------------------------------------------ arrays that user code holds


def misplaced(*given: Any) -> Outcome:
    """Token verification of the first path whose stops are credited to the last: wrong for two paths."""
    right = RIGHT(*given)
    return Outcome(right.stop_probs[:, ::-1].copy(), lambda k, i: right.correction(k * 0, i))


def writing(write: Callable[..., Any], law: Any = misplaced) -> Made:
    """``write(path_index, length, stop_probs, *given)`` runs inside every correction."""

    def outcome(*given: Any) -> Outcome:
        wrong = law(*given)

        def correction(k: Any, i: Any) -> Any:
            rows = wrong.correction(k.copy(), i.copy())
            write(k, i, wrong.stop_probs, *given)
            return rows

        return replace(wrong, correction=correction)

    return Made(outcome)


def to_token(stops: Any, *given: Any) -> None:
    stops[...] = RIGHT(*given).stop_probs


def set_shape(array: Any) -> None:
    array.shape = (1, *array.shape)


def through_ctypes(array: Any) -> None:
    ctypes.memset(array.ctypes.data, 0, array.nbytes)


def through_memoryview(array: Any) -> None:
    memoryview(array).cast("B")[:8] = bytes(8)


WRITES = {
    "k *= 0": lambda k, i, s, *given: k.__imul__(0),
    "k[:] = 0": lambda k, i, s, *given: k.fill(0),
    "a view of k": lambda k, i, s, *given: np.copyto(k[:].reshape(-1), 0),
    "k by memoryview": lambda k, i, s, *given: through_memoryview(k + 0 is k or k[::1]) or k.__imul__(0),
    "k by ctypes": lambda k, i, s, *given: through_ctypes(k) or through_ctypes(i),
    "k gets an axis": lambda k, i, s, *given: set_shape(k),
    "length -= 1": lambda k, i, s, *given: i.__isub__(1),
    "length is sorted and shifted": lambda k, i, s, *given: i.sort() or i.__iadd__(1),
    "length read as bytes": lambda k, i, s, *given: setattr(i, "dtype", np.uint8),
    "stops are mended": lambda k, i, s, *given: to_token(s, *given),
    "stops are mirrored": lambda k, i, s, *given: np.copyto(s, s[:, ::-1].copy()),
    "the numbers of the stops": lambda k, i, s, *given: (
        [x.__init__(0) for x in s.flat if type(x) is fmpq] or [setattr(x, "_numerator", 7) for x in s.flat]
    ),
}
WRITING = {f"writes: {name}": (writing(write), "writes into its") for name, write in WRITES.items()}


def at_once(write: Callable[..., Any], law: Any = WRONG) -> Made:
    """``write(paths, target_rows, draft_rows)`` runs after the law was computed."""

    def outcome(*given: Any) -> Outcome:
        found = law(*given)
        rows = np.stack(
            [
                [
                    found.correction(np.full(len(given[0]), k), np.full(len(given[0]), i))
                    for i in range(given[1].shape[2])
                ]
                for k in range(given[1].shape[1])
            ]
        )
        write(*given)
        return Outcome.from_rows(found.stop_probs, np.moveaxis(rows, 2, 0))

    return Made(outcome)


INPUTS = {
    "target becomes draft": lambda p, t, d: np.copyto(t[:, :, :-1], d),
    "draft becomes target": lambda p, t, d: np.copyto(d, t[:, :, :-1]),
    "paths are zeros": lambda p, t, d: p.fill(0),
    "rows are rolled": lambda p, t, d: np.copyto(t, np.roll(t, 1, axis=-1)),
    "a number itself": lambda p, t, d: setattr(t.flat[0], "_numerator", 5),
    "a number without value": lambda p, t, d: delattr(t.flat[0], "_denominator"),
    "text among the rows": lambda p, t, d: t.reshape(-1).__setitem__(0, "1/3"),
    "rows lose an axis": lambda p, t, d: setattr(t, "shape", (-1,)),
}
WRITING |= {f"inputs: {name}": (at_once(w), "writes into its input") for name, w in INPUTS.items()}


# --------------------------------------------------------------------------- state across calls


def switching(calls: int, before: Any, after: Any) -> Made:
    """One law for so many calls, then another."""
    number = count()
    return Made(lambda *given: (before if next(number) < calls else after)(*given))


def stateful() -> Made:
    """Keeps its rows on itself: the last outcome that was made answers for all."""
    self = Made()

    def outcome(*given: Any) -> Outcome:
        self.last = RIGHT(*given)
        return Outcome(self.last.stop_probs, lambda k, i: self.last.correction(k[: len(k)], i))

    self.outcome = outcome
    return self


def counting(right_calls: Any) -> Made:
    """A correction that is right at some of its calls only."""

    def outcome(*given: Any) -> Outcome:
        number, right, wrong = count(), RIGHT(*given), WRONG(*given)
        return Outcome(
            right.stop_probs, lambda *stop: (right if right_calls(next(number)) else wrong).correction(*stop)
        )

    return Made(outcome)


def by_stop(is_right: Any) -> Made:
    """Right or wrong by what the correction is asked about."""

    def outcome(*given: Any) -> Outcome:
        right, wrong = RIGHT(*given), WRONG(*given)
        return Outcome(
            right.stop_probs, lambda *stop: (right if is_right(*stop) else wrong).correction(*stop)
        )

    return Made(outcome)


def once_only() -> Made:
    """A correction that is wrong where it was asked the same before."""

    def outcome(*given: Any) -> Outcome:
        right, wrong, asked = RIGHT(*given), WRONG(*given), set[bytes]()

        def correction(k: Any, i: Any) -> Any:
            stop = k.tobytes() + i.tobytes()
            law = wrong if stop in asked else right
            asked.add(stop)
            return law.correction(k, i)

        return Outcome(right.stop_probs, correction)

    return Made(outcome)


def shares_a_buffer() -> Made:
    """All outcomes keep their rows in one array."""
    buffer = np.full((64, 3, 2), F(0))

    def outcome(*given: Any) -> Outcome:
        right, number = RIGHT(*given), np.arange(len(given[0]))
        for length in range(3):
            buffer[number, length] = right.correction(0 * number, 0 * number + length)
        return Outcome(right.stop_probs, lambda k, i: buffer[number, i])

    return Made(outcome)


FAULT = "not a function of its inputs"
STATE: dict[str, tuple[Any, str]] = {
    **{f"wrong for {n} calls": (switching(n, WRONG, RIGHT), FAULT) for n in (1, 2, 5, 9, 10, 11)},
    **{f"right for {n} calls": (switching(n, RIGHT, WRONG), FAULT) for n in (1, 3, 4, 8, 9, 10, 11)},
    "the last outcome answers for all": (stateful(), ""),
    "first call of a correction wrong": (counting(lambda n: n > 0), FAULT),
    "first call of a correction right": (counting(lambda n: n == 0), ""),
    "every other call right": (counting(lambda n: n % 2), ""),
    "right when all stops agree": (by_stop(lambda k, i: (i == i[0]).all()), FAULT),
    "right when stops differ": (by_stop(lambda k, i: len(i) < 2 or (i != i[0]).any()), ""),
    "right in batches": (by_stop(lambda k, i: len(i) > 1), FAULT),
    "right alone": (by_stop(lambda k, i: len(i) == 1), FAULT),
    "coins that it draws itself": (Made(lambda *given: (RIGHT, WRONG)[random.random() < 0.5](*given)), FAULT),
    "right when it is asked once": (once_only(), FAULT),
    "one buffer of rows": (shares_a_buffer(), ""),
}


def unlock(level: Any, value: Any) -> None:
    level.flags.writeable = True
    level[...] = value


def copied_draft(pair: ModelPair) -> None:
    for target, draft in zip(pair.target, pair.draft, strict=False):
        unlock(target, draft.copy())
    for target, draft in zip(pair.numbers.target, pair.numbers.draft, strict=False):
        unlock(target, draft.copy())


def in_floats(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> Any:
    return token_sampler(paths, target_rows.astype(float), draft_rows.astype(float), generator)


def check_hostile(verifier: Any, says: str) -> None:
    """An error of one line that says what was found, or NOT lossless for one draft or for two."""
    if says:
        with pytest.raises(InvalidInputError, match=says) as caught:
            verdicts(verifier)
        assert "\n" not in str(caught.value)
        return
    with suppress(InvalidInputError):
        assert not all(verdicts(verifier))
