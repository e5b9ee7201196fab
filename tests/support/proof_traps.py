"""Verifiers with traps for a search for a proof: each is ``token`` but for a case."""

import contextlib
import copy
import math
import os
import pickle
import threading
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from numbers import Rational
from types import SimpleNamespace
from typing import Any

import numpy as np
from flint import fmpq, fmpz

from spectheory.foundation import arrays
from spectheory.foundation.arrays import zeros_like
from spectheory.foundation.exact_numbers import to_fraction
from spectheory.foundation.unique_rows import unique_row_indices
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome

CALLS: list[int] = []


class Bent:
    """``token``; where ``when`` holds it stops at once and emits the last token.

    Args:
        when: target rows [N, K, L+1, V] and draft rows [N, K, L, V] -> booleans [N].
    """

    def __init__(self, when: Callable[[Any, Any], Any]) -> None:
        self.when, self.calls = when, 0

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        self.calls += 1
        right = Token().outcome(paths, target_rows, draft_rows)
        bent = np.broadcast_to(np.asarray(self.when(target_rows, draft_rows), dtype=bool), paths.shape[:1])
        at_once = zeros_like(right.stop_probs)
        at_once[:, 0, 0] = at_once[:, 0, 0] + 1

        def correction(path_index: Any, length: Any) -> Any:
            row = right.correction(path_index, length)
            last = zeros_like(target_rows[:, 0, 0])
            last[:, -1] = last[:, -1] + 1
            return np.where(bent[:, None], last, row)

        return Outcome(np.where(bent[:, None, None], at_once, right.stop_probs), correction)


class Counting(Bent):
    """Right when first called."""

    def __init__(self) -> None:
        super().__init__(lambda target_rows, draft_rows: self.calls > 1)

    def __deepcopy__(self, memo: Any) -> "Counting":
        return Counting()


class CopiesRight(Bent):
    """What is followed is a copy, which is right."""

    def __deepcopy__(self, memo: Any) -> Bent:
        return Bent(lambda p, q: False)


class Forgetful:
    """Its copies forget what makes it wrong, as a class that says what it keeps may do by mistake."""

    is_bent = False

    def __init__(self) -> None:
        self.is_bent = True

    def __getstate__(self) -> dict[str, Any]:
        return {}

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        bent = Bent(lambda p, q: (at_root(p) == ONE_NUMBER) & self.is_bent)
        return bent.outcome(paths, target_rows, draft_rows)


class Keeper:
    """It has an object whose copy is another one."""

    def __init__(self) -> None:
        self.inner = [CopiesRight(lambda p, q: at_root(p) == ONE_NUMBER)]

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        return self.inner[0].outcome(paths, target_rows, draft_rows)


class Itself(Bent):
    """It is wrong itself, and its copies are right.

    Args:
        know: (this object) -> a function that says whether it is called by this object.
    """

    def __init__(self, know: Callable[[Any], Callable[[Any], bool]]) -> None:
        self.is_me = know(self)
        super().__init__(lambda p, q: (at_root(p) == ONE_NUMBER) & self.is_me(self))


def has_address(number: int, value: Any) -> bool:
    return id(value) == number


class ByHook(Bent):
    """Its copy is made by an attribute."""

    def __getattr__(self, name: str) -> Any:
        if name == "__deepcopy__":
            return lambda memo: Bent(lambda p, q: False)
        raise AttributeError(name)


def held(hold: Callable[[Any], Any], take: Callable[[Any], Any]) -> Any:
    """A verifier in an object of a library, whose copy is right."""

    class Holder:
        def __init__(self) -> None:
            self.held = hold(CopiesRight(lambda p, q: at_root(p) == ONE_NUMBER))

        def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
            return take(self.held).outcome(paths, target_rows, draft_rows)  # type: ignore[no-any-return]

    return Holder()


def in_an_array(value: Any) -> np.ndarray:
    array = np.empty(1, dtype=object)
    array[0] = value
    return array


class OddPart(int):
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


def with_odd_parts(number: Any) -> bool:
    """A rational whose numerator is of a subclass of int."""
    odd = Fraction(2)
    odd._numerator, odd._denominator = OddPart(2), OddPart(1)  # type: ignore[attr-defined]
    return bool((number - number) == odd) and bool(number == ONE_NUMBER)


def told(works: Callable[[Any], Any]) -> Bent:
    """Wrong at one number, where a function of it raises a TypeError, as it does for rationals."""

    def is_told(number: Any) -> bool:
        try:
            works(number)
        except TypeError:
            return bool(number == ONE_NUMBER)
        return False

    return each(is_told)


class NoBonus(Bent):
    """The token after an accepted path is the first one: the bonus row is never read."""

    def __init__(self) -> None:
        super().__init__(lambda p, q: False)

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)

        def correction(path_index: Any, length: Any) -> Any:
            row = right.correction(path_index, length)
            first = zeros_like(row)
            first[:, 0] = first[:, 0] + 1
            return np.where((length == draft_rows.shape[-2])[:, None], first, row)

        return Outcome(right.stop_probs, correction)


class UndefinedAtTies(Bent):
    """Every draft is rejected with probability 1/2 at least, and the residual follows: 0/0 where p = q.

    Of two tokens the residual lies on the one that is drafted too rarely, which it then emits all the same.
    """

    def __init__(self) -> None:
        super().__init__(lambda p, q: False)

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = super().outcome(paths, target_rows, draft_rows)
        kept = np.take_along_axis(target_rows[:, 0, 0] - draft_rows[:, 0, 0], paths[:, 0], axis=-1)[:, 0] >= 0
        half = right.stop_probs * 0 + Fraction(1, 2)
        return Outcome(np.where(kept[:, None, None], half, right.stop_probs), right.correction)


class Compensated:
    """The law of the output is right; the stop probabilities or the rows are not laws.

    Args:
        of: (ratio p/q of the drafted token, right stop) -> (stop, factor of the correction row); ``None`` for
            the target's row.
    """

    def __init__(self, of: Callable[[Any], tuple[Any, Any]]) -> None:
        self.of = of

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        right = Token().outcome(paths, target_rows, draft_rows)
        ratio = np.take_along_axis(target_rows[:, 0, 0], paths[:, 0], axis=-1) / np.take_along_axis(
            draft_rows[:, 0, 0], paths[:, 0], axis=-1
        )
        stop, share = self.of((ratio[:, 0], right.stop_probs[:, 0, 0]))
        accepted = right.stop_probs[:, 0, 1] if share is not None else ratio[:, 0]
        probs = np.stack([stop, accepted], axis=-1)[:, None]

        def correction(path_index: Any, length: Any) -> Any:
            row = right.correction(path_index, length)
            at_root = (length == 0)[:, None]
            if share is None:
                return np.where(at_root, target_rows[:, 0, 0], row)
            return np.where(at_root, row * share, row)

        return Outcome(probs, correction)


def at_root(target_rows: Any) -> Any:
    """p of the first token at the root, [N]."""
    return target_rows[:, 0, 0, 0]


def each(function: Callable[[Any], bool]) -> Bent:
    """Bent where a function of one number says so."""
    return Bent(lambda p, q: [function(x) for x in at_root(p)])


def caught(function: Callable[[Any], Any], kind: type[BaseException] = Exception) -> Bent:
    """Bent where a function of one number works: right for numbers that refuse it."""

    def works(number: Any) -> bool:
        try:
            function(number)
        except kind:
            return False
        return True

    return each(works)


ONE_NUMBER = Fraction(377, 1000)
"""At which a trap is set that no point of a search is likely to be at."""


def in_a_thread(number: Any) -> bool:
    """The refusal is raised where nobody waits for it."""
    found: list[bool] = []
    with contextlib.suppress(BaseException):
        thread = threading.Thread(target=lambda: found.append(_is_near(number)))
        thread.start()
        thread.join()
    return any(found)


def in_a_generator(number: Any) -> bool:
    """The refusal is raised in a generator that swallows it."""

    def tries() -> Any:
        with contextlib.suppress(BaseException):
            yield _is_near(number)

    return any(tries())


def _is_near(number: Any) -> bool:
    with contextlib.suppress(BaseException):
        return float(number) == 0.377
    return False


def matched(number: Any) -> bool:
    """Another path for rationals, by a pattern."""
    match number:
        case Fraction():
            return bool(number == ONE_NUMBER)
        case _:
            return False


class OddFraction(Fraction):
    """A true rational leaves the comparison with it to this class."""

    def __eq__(self, other: object) -> Any:
        return Fraction.__eq__(ONE_NUMBER, other)

    __hash__ = Fraction.__hash__


class OddWhole(int):
    """Equal to a rational by its numerator and denominator, and 2 otherwise."""

    numerator, denominator = 377, 1000  # type: ignore[assignment]


def by_hand(number: Any) -> bool:
    """A method of ``Fraction`` that declines shows what a number is; then comes what would have followed."""
    found = False
    for method, operand in ((ONE_NUMBER.__sub__, number), (lambda x: ONE_NUMBER - x, number)):
        found = found or method(operand) is not NotImplemented
    return found and bool(number == ONE_NUMBER)


def in_a_copy_of_the_process(number: Any) -> bool:
    """Nobody sees what a copy of the process compares."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os._exit(7 if number == ONE_NUMBER else 0)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def named_as(file: str) -> Callable[[Any], bool]:
    """A function that asks for the type, and says that it stands in another file."""
    names: dict[str, Any] = {"Fraction": Fraction, "ONE_NUMBER": ONE_NUMBER}
    text = "def function(x):\n return isinstance(x, Fraction) and x == ONE_NUMBER"
    exec(compile(text, file, "exec"), names)
    return names["function"]  # type: ignore[no-any-return]


def alone_at_one_pair(p: Any, q: Any) -> Any:
    """A single tuple, at one pair: a replay of single tuples elsewhere sees nothing."""
    if len(p) != 1:
        return False
    return (at_root(p) == ONE_NUMBER) & (2 * q[:, 0, 0, 0] == 1)


def doubled(number: Any) -> bool:
    """Whether a function of the package takes two rows for one."""
    rows = np.array([[number], [ONE_NUMBER]], dtype=object)
    return len(unique_row_indices(rows)[0]) == 1


def _count_global(p: Any, q: Any) -> bool:
    CALLS.append(1)
    return isinstance(at_root(p)[0], Fraction) and len(CALLS) > 5


WRONG_SOMEWHERE: dict[str, tuple[Any, int]] = {
    "at a tie": (Bent(lambda p, q: p[:, 0, 0, 0] == q[:, 0, 0, 0]), 1),
    "at a zero of the target": (Bent(lambda p, q: p[:, 0, 0, 1] == 0), 1),
    "at a zero of the draft": (Bent(lambda p, q: q[:, 0, 0, 1] == 0), 1),
    "where both have a zero": (Bent(lambda p, q: (p[:, 0, 0, 1] == 0) & (q[:, 0, 0, 0] == 1)), 1),
    "at one target row": (each(lambda x: x == Fraction(1, 3)), 1),
    "at one pair": (Bent(lambda p, q: (7 * p[:, 0, 0, 0] == 2) & (11 * q[:, 0, 0, 0] == 5)), 1),
    "on a curve": (Bent(lambda p, q: p[:, 0, 0, 0] * q[:, 0, 0, 0] * 6 == 1), 1),
    "in a thin strip": (Bent(lambda p, q: abs(1000 * (p[:, 0, 0, 0] - q[:, 0, 0, 0]) - 1) * 1000 < 1), 1),
    "where q is far below p": (
        Bent(
            lambda p, q: (
                (1000 * q[:, 0, 0, 0] < p[:, 0, 0, 0])
                & (p[:, 0, 1, 0] > q[:, 0, 1, 0])
                & (1000 * p[:, 0, 1, 0] < 1001 * q[:, 0, 1, 0])
            )
        ),
        2,
    ),
    "stops below zero": (Compensated(lambda found: (1 - found[0], None)), 1),
    "halved stops, doubled rows": (Compensated(lambda found: (found[1] / 2, 2)), 1),
    "without bonus rows": (NoBonus(), 1),
    "undefined at a tie": (UndefinedAtTies(), 1),
}
"""Name -> the verifier, and the draft length at which it is wrong somewhere: all are refuted."""


ESCAPES: dict[str, Any] = {
    "float": each(lambda x: float(x) == 0.625),
    "int": each(lambda x: int(x * 1000) == 377),
    "numerator": each(lambda x: x.numerator == 377),
    "limit_denominator": each(lambda x: x.limit_denominator(10) != x),
    "as_integer_ratio": each(lambda x: x.as_integer_ratio()[1] == 377),
    "str": each(lambda x: str(x).endswith("/377")),
    "repr": each(lambda x: "377" in repr(x)),
    "format": each(lambda x: f"{x}".endswith("/377")),
    "round": each(lambda x: round(x, 3) == Fraction(377, 1000)),
    "floor": each(lambda x: math.floor(x * 1000) == 377),
    "modulo": each(lambda x: (x * 1000) % 1 == 0 and x * 1000 == 377),
    "pickle": each(lambda x: b"377" in pickle.dumps(x)),
    "astype": Bent(lambda p, q: at_root(p).astype(float) == 0.625),
    "a float beside it": Bent(lambda p, q: at_root(p) == 0.625),
    "a caught float": caught(lambda x: 1 / (float(x) - 0.5)),
    "a caught base exception": caught(float, BaseException),
    "a caught attribute": caught(lambda x: x.denominator),
    "a missing hash": caught(lambda x: {x: 1}, TypeError),
    "the type": each(lambda x: isinstance(x, Fraction)),
    "the type of a sum": each(lambda x: type(+x + 0) is Fraction),
    "a single tuple": Bent(lambda p, q: len(p) == 1),
    "earlier calls": Counting(),
    "earlier calls of the module": Bent(_count_global),
    "a copy": each(lambda x: type(copy.copy(x)) is Fraction),
    "a set of rationals": each(lambda x: x in {ONE_NUMBER}),
    "a table of rationals": each(lambda x: {ONE_NUMBER: True}.get(x, False)),
    "counted values": each(lambda x: len(Counter([x, ONE_NUMBER])) == 1),
    "duplicate rows": each(doubled),
    "the type at one number": each(lambda x: isinstance(x, Fraction) and x == ONE_NUMBER),
    "an abstract type at one number": each(lambda x: isinstance(x, Rational) and x == ONE_NUMBER),
    "a pattern at one number": each(matched),
    "a caught Fraction at one number": caught(lambda x: 1 / (Fraction(x) == ONE_NUMBER)),
    "a float in a thread": each(in_a_thread),
    "a float in a generator": each(in_a_generator),
    "an irrational row": each(lambda x: 2 * x * x == 1),
    "a method that declines": each(lambda x: ONE_NUMBER.__eq__(x) is True),
    "a method that declines, and the operation": each(by_hand),
    "a function of numpy that asks for the type": each(lambda x: np.isscalar(x) and x == ONE_NUMBER),
    "isinstance called by numpy": Bent(
        lambda p, q: np.vectorize(isinstance, [bool])(at_root(p), Fraction) & (at_root(p) == ONE_NUMBER)
    ),
    "a function of the package that asks for the type": caught(lambda x: 1 / (to_fraction(x) == ONE_NUMBER)),
    "a class of rationals": each(lambda x: x == OddFraction(2)),
    "a class of whole numbers": each(lambda x: x == OddWhole(2)),
    "a copy of the process": each(in_a_copy_of_the_process),
    "code with numpy's file name": each(named_as(np.__file__)),
    "code with the package's file name": each(named_as(arrays.__file__)),
    "a copy that is right": CopiesRight(lambda p, q: at_root(p) == ONE_NUMBER),
    "a copy that forgets": Forgetful(),
    "a copy of a part": Keeper(),
    "a single tuple at one pair": Bent(alone_at_one_pair),
    "its own address": Itself(lambda me: partial(has_address, id(me))),
    "a function that has it": Itself(lambda me: lambda it: it is me),
    "a copy by an attribute": ByHook(lambda p, q: at_root(p) == ONE_NUMBER),
    "a copy of a part in a namespace": held(lambda it: SimpleNamespace(it=it), lambda has: has.it),
    "a copy of a part in an array": held(in_an_array, lambda has: has[0]),
    "a copy of a part of a function": held(lambda it: partial(int, it), lambda has: has.args[0]),
    "a rational with parts of another class": each(with_odd_parts),
    "rationals of another library": told(lambda x: x + fmpq(0)),
    "whole numbers of another library": told(lambda x: x < fmpz(1)),
    "whole numbers of numpy": each(lambda x: x ** np.int64(8) != x**8),
    "below a number that no float has": each(lambda x: 0 < x < Fraction(1, 10**400)),
}
"""Verifiers that a proof cannot follow: none is proved, and an error or an open region says so."""
