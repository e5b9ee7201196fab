"""The draft defect: how far the drafts are from the law of the rows that are handed over with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spectheory.foundation.documents import decimal_text, number_text
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.exact_numbers import SUM_TOLERANCE, Number, float_tolerance, plain_number
from spectheory.foundation.results import LOSSLESS, NOT_LOSSLESS
from spectheory.pairs.contexts import context_number, context_text
from spectheory.pairs.drafts.iid import Iid, draft_process
from spectheory.pairs.drafts.kept import AdaptiveDrafts, DisclosedDrafts, HandedRows, Paths
from spectheory.pairs.drafts.per_path import PerPath
from spectheory.pairs.drafts.process import DraftProcess
from spectheory.pairs.pair import ModelPair

NO_TOKEN = -1
"""The outcome of a row that sums to less than 1, with the missing probability."""
MAX_TUPLES_OF_PATHS = 200_000
"""The most K-tuples of whole paths of which a completed law is computed: some seconds in rationals."""


@dataclass(frozen=True)
class DraftDefect:
    """The draft defect δ of a process on a pair (theory.md Statement 8.1), without any verifier.

    Attributes:
        total_variation: δ, the total variation between the completed draft and the law of the handed rows.
        path: token names of the smallest counterexample: K prefixes of the completed draft whose probability
            is wrong.  Empty if δ = 0.
        probability: probability that the completed draft starts with ``path``.  It is also the probability
            that the output of token verification does, if the target's rows are those handed over.
        expected: the probability by the handed rows.
        basis: ``"rationals"`` or ``"float64"``.
    """

    total_variation: Number
    path: tuple[tuple[str, ...], ...]
    probability: Number | None
    expected: Number | None
    basis: str

    @property
    def verdict(self) -> str:
        """``"lossless"`` if every coherent verifier is lossless on these drafts for every target."""
        return NOT_LOSSLESS if self.path else LOSSLESS

    def __bool__(self) -> bool:
        return self.verdict == LOSSLESS

    def in_words(self) -> str:
        """Write the result as a sentence."""
        if not self.path:
            return "rows handed over are the law of the drafts"
        assert self.probability is not None
        assert self.expected is not None
        words = " and ".join(f"({' '.join(map(repr, path))})" for path in self.path)
        return (
            "rows handed over are not the law of the drafts "
            f"(δ = {number_text(self.total_variation, decimal=False)}): other targets are lossy; completed "
            f"drafts start with {words} with probability {decimal_text(self.probability)}, the rows give "
            f"{decimal_text(self.expected)}"
        )


def draft_defect(process: int | DraftProcess, pair: ModelPair) -> DraftDefect:
    """Compute how far drafts are from the law of the rows handed over with them (theory.md Statement 8.1).

    The kept tokens are completed to L tokens by the rows.  δ is the total variation to the law of the rows.
    If δ = 0, every coherent verifier is lossless for every target.  Otherwise token and block verification
    are lossy on every pair with a positive target, and their defect is δ if the target equals the rows.

    Args:
        process: ``Shortened``, ``KeptDrafts``, ``DisclosedDrafts`` or another process of independent paths.
        pair: the models.  The target is not read.

    Raises:
        InvalidInputError: one text has two rows, a row that is reached has a sum above 1, or the paths are
            not independent.
        EnumerationTooLargeError: there are too many K-tuples of paths.

    Example:
        >>> from spectheory import ModelPair
        >>> from spectheory.pairs.drafts import Shortened
        >>> pair = ModelPair.context_free_pair(["9/10", "1/10"], ["9/10", "1/10"], 1)
        >>> found = draft_defect(Shortened(1, lambda tokens, rows: int(tokens[0] == 0)), pair)
        >>> print(found.total_variation, found.path, found.probability)
        9/100 (('0',),) 99/100
    """
    drafts = draft_process(process)
    drafts.check(pair)
    if isinstance(drafts, DisclosedDrafts):
        drafts = drafts.as_kept(pair)
    if not isinstance(drafts, AdaptiveDrafts):
        if type(drafts) not in (Iid, PerPath):
            raise InvalidInputError(f"draft_defect takes independent paths, not {drafts.name}")
        zero = plain_number(pair.numbers.draft[0][0, 0] * 0)
        return DraftDefect(zero, (), None, None, _basis(pair))
    if pair.vocab_size ** (pair.draft_length * drafts.num_drafts) > MAX_TUPLES_OF_PATHS:
        raise EnumerationTooLargeError(
            f"{pair.vocab_size}^{pair.draft_length * drafts.num_drafts} tuples of paths exceed "
            f"{MAX_TUPLES_OF_PATHS}; use a shorter draft length, fewer paths or fewer tokens"
        )
    rows = [drafts.drafter(pair, number) for number in range(drafts.num_drafts)]
    _check_rows(drafts, pair, rows)
    completed = completed_law(drafts.kept_law(pair), rows)
    handed = completed_law({((),) * drafts.num_drafts: 1}, rows)
    delta = sum(abs(completed.get(paths, 0) - handed.get(paths, 0)) for paths in {*completed, *handed}) / 2
    if delta <= float_tolerance(pair, SUM_TOLERANCE):
        return DraftDefect(plain_number(delta), (), None, None, _basis(pair))
    worst, probability, expected = _smallest(completed, handed, pair)
    named = tuple(tuple("⊥" if token == NO_TOKEN else pair.vocab[token] for token in path) for path in worst)
    numbers = plain_number(probability), plain_number(expected)
    return DraftDefect(plain_number(delta), named, *numbers, _basis(pair))


def completed_law(kept: dict[Paths, Any], rows: list[ModelPair]) -> dict[Paths, Any]:
    """Complete every path to L tokens by the rows of its model.  K paths -> probability

    Where a row sums to less than 1, the rest of the path is ``NO_TOKEN`` with the missing probability.
    """
    size, length = rows[0].vocab_size, rows[0].draft_length
    law = dict(kept)
    for number, model in enumerate(rows):
        for _ in range(length):
            longer: dict[Paths, Any] = {}
            for paths, prob in law.items():
                path = paths[number]
                if len(path) == length:
                    longer[paths] = longer.get(paths, 0) + prob
                    continue
                row = model.numbers.draft[len(path)][context_number(path, size)]
                missing = 1 - row.sum() if isinstance(model, HandedRows) else 0
                ends: list[tuple[Any, Any]] = [((*path, token), row[token]) for token in range(size)]
                ends.append(((*path, *[NO_TOKEN] * (length - len(path))), missing))
                for end, share in ends:
                    if share > 0:
                        key = (*paths[:number], end, *paths[number + 1 :])
                        longer[key] = longer.get(key, 0) + prob * share
            law = longer
    return law


def _smallest(
    completed: dict[Paths, Any], handed: dict[Paths, Any], pair: ModelPair
) -> tuple[Paths, Any, Any]:
    """Find the K prefixes of the smallest depth whose probability is wrong, and of these the worst."""
    slack = float_tolerance(pair, SUM_TOLERANCE)
    for depth in range(1, pair.draft_length + 1):
        sums: dict[Paths, list[Any]] = {}
        for place, law in enumerate((completed, handed)):
            for paths, prob in law.items():
                key = tuple(path[:depth] for path in paths)
                sums.setdefault(key, [0, 0])[place] += prob
        worst = max(sums, key=lambda key: abs(sums[key][0] - sums[key][1]))
        if abs(sums[worst][0] - sums[worst][1]) > slack:
            return worst, *sums[worst]
    raise AssertionError("the laws differ at the full length")  # pragma: no cover


def _check_rows(process: AdaptiveDrafts, pair: ModelPair, rows: list[ModelPair]) -> None:
    """Refuse a row with a sum above 1: no law of drafts has such rows."""
    for model in rows:
        if not isinstance(model, HandedRows):
            continue
        slack = float_tolerance(pair, SUM_TOLERANCE)
        for depth, level in enumerate(model.draft):
            for number, total in enumerate(level.sum(axis=1)):
                if total > 1 + slack:
                    text = context_text(pair.context(depth, number))
                    raise InvalidInputError(f"the row handed over at '{text}' sums to {total}: it is no law")


def _basis(pair: ModelPair) -> str:
    return "rationals" if pair.is_exact else "float64"
