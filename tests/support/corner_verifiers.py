"""Verifiers that are token verification but for one corner, where they accept every drafted token."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from spectheory.exact.suite_cases import SuiteCase
from spectheory.foundation.arrays import namespace, take_token
from spectheory.verification.algorithms import verifiers
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier


class Corner(NamedTuple):
    """What a verifier sees: paths [N, K, L], p and q of the drafted tokens [N, K, L], and the target rows."""

    paths: Any
    target: Any
    draft: Any
    rows: Any

    @property
    def shape(self) -> tuple[int, int, int]:
        """V, L and K."""
        return (self.rows.shape[-1], *self.paths.shape[:-3:-1])

    @property
    def library(self) -> str:
        return "numpy" if isinstance(self.rows, np.ndarray) else "torch"

    @property
    def precision(self) -> str:
        return str(self.rows.dtype).removeprefix("torch.")

    def some(self, entries: Any) -> Any:
        """Whether some entry is true, by tuple of drafts."""
        return namespace(entries).any(entries.reshape(len(entries), -1), axis=-1)

    def splits(self, ways: int, depth: int) -> Any:
        """Whether the first paths share their first tokens and split in so many ways at a depth."""
        first = self.paths[:, :ways]
        if first.shape[1] < ways or first.shape[2] <= depth:
            return False
        here, xp = first[..., depth], namespace(first)
        equal = here[:, :, None] == here[:, None, :]
        apart = xp.sum(xp.astype(equal, xp.int64), axis=(-2, -1)) == ways
        before = first[..., :depth] == first[:, :1, :depth]
        return apart & ~self.some(~before) if depth else apart


class WrongWhere(Verifier):
    """Accepts every token of the first path where a condition holds."""

    source = "a test"

    def __init__(self, name: str, where: Callable[[Corner], Any], exact: bool = True) -> None:
        self.name, self.where, self.exact = name, where, exact  # type: ignore[misc]

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        proper, xp = verifiers["token"].outcome(paths, target_rows, draft_rows), namespace(target_rows)
        seen = [take_token(rows, paths) for rows in (target_rows[..., :-1, :], draft_rows)]
        wrong = self.where(Corner(paths, *seen, target_rows))
        accepted = 0 * proper.stop_probs
        accepted[..., 0, -1] = accepted[..., 0, -1] + 1
        mask = xp.zeros((len(paths),), dtype=xp.bool) | wrong
        return Outcome(xp.where(mask[:, None, None], accepted, proper.stop_probs), proper.correction)


class Truncated(WrongWhere):
    """Drops the rarest token of a correction row with more than so many tokens."""

    def __init__(self, name: str, kept: int) -> None:
        super().__init__(name, lambda corner: False)
        self.kept = kept

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        proper = super().outcome(paths, target_rows, draft_rows)

        def correction(*stop: Any) -> Any:
            rows, xp = proper.correction(*stop), namespace(target_rows)
            positive = xp.where(rows > 0, rows, 0 * rows + 2)
            rarest = (rows == xp.min(positive, axis=-1)[..., None]) & (rows > 0)
            many = xp.sum(xp.astype(rows > 0, xp.int64), axis=-1) > self.kept
            left = xp.where(rarest & many[..., None], 0 * rows, rows)
            total = xp.sum(left, axis=-1)[..., None]
            return xp.where(total > 0, left / xp.where(total > 0, total, total + 1), rows)

        return Outcome(proper.stop_probs, correction)


class OnlyOnPairs(WrongWhere):
    """``bind`` returns token verification for an enumerated pair and a wrong verifier for language models."""

    def bind(self, process: Any, pair: Any = None) -> Any:
        return self if pair is None else verifiers["token"]


def of_shape(*shape: int) -> tuple[Callable[[Corner], Any], Callable[[SuiteCase], bool]]:
    """The condition of one (V, L, K), and the cases that have it."""
    return (
        lambda corner: corner.shape == shape,
        lambda case: (
            shape
            == (
                case.pair.vocab_size,
                case.pair.draft_length,
                case.process.num_drafts,
            )
        ),
    )


def small(case: SuiteCase) -> bool:
    return case.process.count_tuples(case.pair) <= 27


def split(ways: int, depth: int, *shape: int) -> tuple[Callable[[Corner], Any], Callable[[SuiteCase], bool]]:
    """The condition that the first paths split, and the cases of one shape."""
    return lambda corner: corner.splits(ways, depth), of_shape(*shape)[1]


def _small(where: Callable[[Corner], Any]) -> tuple[Callable[[Corner], Any], Callable[[SuiteCase], bool]]:
    return where, small


WRONG_SOMEWHERE: dict[str, tuple[Callable[[Corner], Any], Callable[[SuiteCase], bool]]] = {
    "float64 of numpy": _small(lambda c: (c.library, c.precision) == ("numpy", "float64")),
    "float32 of numpy": _small(lambda c: (c.library, c.precision) == ("numpy", "float32")),
    "float64 of torch": _small(lambda c: (c.library, c.precision) == ("torch", "float64")),
    "float32 of torch": _small(lambda c: (c.library, c.precision) == ("torch", "float32")),
    "torch": _small(lambda c: c.library == "torch"),
    "float32": _small(lambda c: c.precision == "float32"),
    "floats": _small(lambda c: c.precision != "object"),
    "rationals": _small(lambda c: c.precision == "object"),
    "floats and V = 4": _small(lambda c: c.precision != "object" and c.shape[0] == 4),
    "torch and two drafts": _small(lambda c: c.library == "torch" and c.shape[2] == 2),
    **{
        f"(V, L, K) = {shape}": of_shape(*shape)
        for shape in (
            (3, 2, 3),
            (3, 2, 4),
            (3, 4, 2),
            (4, 2, 3),
            (4, 3, 2),
            (5, 2, 2),
            (6, 2, 2),
            (2, 4, 3),
            (2, 3, 4),
            (6, 1, 4),
            (5, 4, 1),
            (6, 4, 1),
        )
    },
    "three ways at the root": split(3, 0, 3, 1, 3),
    "three ways below one token": split(3, 1, 3, 2, 3),
    "three ways below one token, four drafts": split(3, 1, 3, 2, 4),
    "three ways below one token, four tokens": split(3, 1, 4, 2, 3),
    "four ways at the root": split(4, 0, 4, 1, 4),
    "two ways below two tokens": split(2, 2, 4, 3, 2),
    "q below 1e-9": _small(lambda c: c.some(c.draft * 10**9 < 1)),
    "q below 1e-12": _small(lambda c: c.some(c.draft * 10**12 < 1)),
    "q below 1e-8 where p = 0": _small(lambda c: c.some((c.draft * 10**8 < 1) & (c.target == 0))),
    "p below 1e-10": _small(lambda c: c.some((c.target * 10**10 < 1) & (c.target > 0))),
    "q is 1": _small(lambda c: c.some(c.draft == 1)),
    "p is 0 after an accepted token": _small(lambda c: c.some(c.target[..., 1:] == 0)),
    "p from 0.28 to 0.29": _small(lambda c: c.some((c.target * 100 > 28) & (c.target * 100 < 29))),
    "q is 2 p": _small(lambda c: c.some(c.draft == 2 * c.target)),
    "four tokens with target mass": _small(lambda c: (c.rows[:, 0, 0] > 0).sum(-1) == 4),
}
"""Name -> where it is wrong, and the cases of the suite that it is asked on."""

EXCLUDED: dict[str, tuple[Callable[[Corner], Any], str]] = {
    "seven tokens": (lambda c: c.shape[0] > 6, "(V, L, K) = (2-"),
    "five drafted tokens": (lambda c: c.shape[1] > 4, "(V, L, K) = (2-"),
    "five drafts": (lambda c: c.shape[2] > 4, "(V, L, K) = (2-"),
    "float16": (lambda c: "float16" in c.precision, "again in float64 ("),
    "torch, unasked": (lambda c: c.library == "torch", "refused or left out: torch float64, torch float32"),
}
"""Name -> where it is wrong, and the words of the quick headline that exclude it."""
