"""Verifiers with traps for a search for a proof: each is ``token`` but for a case."""

import math
from collections.abc import Callable
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np

from spectheory.foundation.arrays import zeros_like
from spectheory.foundation.exact_numbers import to_fraction
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome


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


def matched(number: Any) -> bool:
    """Another path for rationals, by a pattern."""
    match number:
        case Fraction():
            return bool(number == ONE_NUMBER)
        case _:
            return False


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
    "float": each(lambda x: float(x) == 0.377),
    "int": each(lambda x: int(x * 1000) == 377),
    "numerator": each(lambda x: x.numerator == 377),
    "str": each(lambda x: str(x).endswith("377/1000")),
    "round": each(lambda x: round(x, 3) == ONE_NUMBER),
    "floor": each(lambda x: math.floor(x * 1000) == 377),
    "modulo": each(lambda x: (x * 1000) % 1 == 0 and x * 1000 == 377),
    "astype": Bent(lambda p, q: at_root(p).astype(float) == 0.377),
    "a caught float": caught(lambda x: 1 / (float(x) == 0.377)),
    "earlier calls": Counting(),
    "a set of rationals": each(lambda x: x in {ONE_NUMBER}),
    "a table of rationals": each(lambda x: {ONE_NUMBER: True}.get(x, False)),
    "the type at one number": each(lambda x: isinstance(x, Fraction) and x == ONE_NUMBER),
    "an abstract type at one number": each(lambda x: isinstance(x, Rational) and x == ONE_NUMBER),
    "a pattern at one number": each(matched),
    "a caught Fraction at one number": caught(lambda x: 1 / (Fraction(x) == ONE_NUMBER)),
    "a function of the package that asks for the type": caught(lambda x: 1 / (to_fraction(x) == ONE_NUMBER)),
}
"""Verifiers that a proof cannot follow: none is proved, and an error or an open region says so."""
