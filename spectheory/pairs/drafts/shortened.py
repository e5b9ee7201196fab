"""Drafts that a length rule shortens: how many of the drafted tokens are verified."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import float_tolerance, to_flint
from spectheory.foundation.validation import is_whole
from spectheory.pairs.contexts import Context, path_to, paths_to, rows_along
from spectheory.pairs.drafts.defect import draft_defect
from spectheory.pairs.drafts.iid import Iid, draft_process
from spectheory.pairs.drafts.kept import AdaptiveDrafts, Paths
from spectheory.pairs.drafts.per_path import PerPath
from spectheory.pairs.drafts.process import COUNTED_AT_ONCE, DraftProcess
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import parse_rows

LengthRule = Callable[[Any, Any], Any]
"""rule(tokens, rows) -> a length from 0 to L, K lengths, or a law of them: length(s) -> probability."""


@dataclass(frozen=True, eq=False)
class Shortened(AdaptiveDrafts):
    """Whole paths are drafted, and a length rule decides how many tokens of each are verified.

    The rule is called with all drafted tokens and with the draft rows along them.  It may ignore what it
    should not read.  ``length_flags`` says which tokens it reads, and ``draft_defect`` whether this matters.

    Attributes:
        drafts: K, for independent paths, or ``PerPath``.  With K paths the verifier is called once on all of
            them, or they are K requests of a batch (``exact.batches``).
        rule: ``rule(tokens, rows)``.  With K = 1, ``tokens`` is one path and ``rows`` its draft rows [L, V];
            otherwise both are tuples of K.  It returns a length, with several paths the common length or K
            lengths, or a law of them: a mapping to probabilities.

    Raises:
        InvalidInputError: the rule returns no length from 0 to L, or the paths are not independent.

    Example:
        >>> from spectheory import ModelPair, certify
        >>> pair = ModelPair.context_free_pair(["1/2", "1/2"], ["9/10", "1/10"], 1)
        >>> drop_unlikely = Shortened(1, lambda tokens, rows: int(rows[0][tokens[0]] > 1 / 2))
        >>> print(certify("token", pair, drop_unlikely).total_variation)
        1/20
    """

    drafts: int | DraftProcess
    rule: LengthRule
    name: ClassVar[str] = "shortened"

    def __post_init__(self) -> None:
        process = draft_process(self.drafts)
        if type(process) not in (Iid, PerPath):
            raise InvalidInputError(
                f"a length rule shortens independent paths, not {process.name}; use a number of drafts, "
                "PerPath, or KeptDrafts with the law of the kept tokens"
            )
        object.__setattr__(self, "drafts", process)

    @property
    def num_drafts(self) -> int:  # type: ignore[override]
        return self.base().num_drafts

    def base(self) -> DraftProcess:
        return draft_process(self.drafts)

    def drafter(self, pair: ModelPair, path_index: int) -> ModelPair:
        return self.base().drafter(pair, path_index)

    def lengths(self, pair: ModelPair) -> Iterator[tuple[Paths, Any, dict[tuple[int, ...], Any]]]:
        """Yield (K whole paths, their probability, the law of their K lengths)."""
        process, drafts = self.base(), range(self.num_drafts)
        for leaves, probs in process.enumerate(pair, COUNTED_AT_ONCE):
            prefixes, _ = paths_to(leaves, pair.draft_length, pair.vocab_size)
            rows = [rows_along(process.drafter(pair, k).draft, prefixes[:, k]) for k in drafts]
            for number, prob in enumerate(probs):
                paths = tuple(
                    path_to(int(leaf), pair.draft_length, pair.vocab_size) for leaf in leaves[number]
                )
                along = tuple(each[number] for each in rows)
                given = (paths[0], along[0]) if len(paths) == 1 else (paths, along)
                yield paths, prob, self._law(self.rule(*given), pair)

    def kept_law(self, pair: ModelPair) -> dict[Paths, Any]:
        law: dict[Paths, Any] = {}
        for paths, prob, lengths in self.lengths(pair):
            for kept, share in lengths.items():
                key = tuple(path[:number] for path, number in zip(paths, kept, strict=True))
                law[key] = law.get(key, 0) + prob * share
        return {paths: prob for paths, prob in law.items() if prob > 0}

    def _law(self, answer: Any, pair: ModelPair) -> dict[tuple[int, ...], Any]:
        """Check what a rule returned, and write it as a law of K lengths."""
        answer = tuple(answer) if isinstance(answer, list) else answer
        given = answer if isinstance(answer, Mapping) else {answer: 1}
        shares = parse_rows({"lengths": list(given.values())})["lengths"]
        shares = to_flint(shares) if pair.is_exact else shares.astype(float)
        law: dict[tuple[int, ...], Any] = {}
        for length, share in zip(given, shares, strict=True):
            lengths = (length,) * self.num_drafts if is_whole(length) else tuple(length)
            if len(lengths) != self.num_drafts or any(
                not is_whole(each) or not 0 <= each <= pair.draft_length for each in lengths
            ):
                raise InvalidInputError(
                    f"a length rule returned {length!r}; expected a number of tokens from 0 to "
                    f"{pair.draft_length}, or {self.num_drafts} of them"
                )
            law[lengths] = law.get(lengths, 0) + share
        if abs(shares.sum() - 1) > float_tolerance(pair, 1e-9):
            raise InvalidInputError(f"the law of a length sums to {shares.sum()}, not 1")
        return {lengths: share for lengths, share in law.items() if share > 0}


class LengthFlags(NamedTuple):
    """Which tokens a length rule reads, found by enumeration (theory.md §8).

    Attributes:
        predictable: for every path by itself, whether token i is verified depends on its tokens before i.
            The other paths count as coins.
        pseudo_stopping: the draft defect is 0 for the rows that the tokens were drawn from.
        stopping_point: the lengths are decided by the kept tokens of all paths together.
    """

    predictable: bool
    pseudo_stopping: bool
    stopping_point: bool


def length_flags(process: Shortened, pair: ModelPair) -> LengthFlags:
    """Find by enumeration which tokens a length rule reads.

    Example:
        >>> from spectheory import instances
        >>> length_flags(Shortened(1, lambda tokens, rows: 1 + (tokens[0] == 0)), instances.two_token(2))
        LengthFlags(predictable=True, pseudo_stopping=True, stopping_point=True)
    """
    is_right = bool(draft_defect(process, pair))
    return LengthFlags(_is_predictable(process, pair), is_right, is_stopping_point(process, pair))


def is_stopping_point(process: Shortened, pair: ModelPair) -> bool:
    """Whether the kept tokens of all paths together decide the lengths (theory.md Statement 8.7)."""
    drawn = [(paths, law) for paths, prob, law in process.lengths(pair) if prob > 0]
    every = {lengths for _, law in drawn for lengths in law}
    ends: dict[Any, list[Any]] = {}
    for paths, law in drawn:
        for lengths in every:
            kept = tuple(path[:number] for path, number in zip(paths, lengths, strict=True))
            ends.setdefault((lengths, kept), []).append(law.get(lengths, 0))
    return not _vary(ends, pair)


def _vary(values: Mapping[Any, list[Any]], pair: ModelPair) -> bool:
    """Whether a probability differs between drafts that share a key."""
    return any(max(each) - min(each) > float_tolerance(pair, 1e-9) for each in values.values())


def _is_predictable(process: Shortened, pair: ModelPair) -> bool:
    """Whether P(N >= i | own path) depends on the first i - 1 tokens of the path, for every path."""
    drawn = [entry for entry in process.lengths(pair) if entry[1] > 0]
    for number in range(process.num_drafts):
        mass: dict[Context, Any] = {}
        reached: dict[tuple[Context, int], Any] = {}
        for paths, prob, law in drawn:
            own = paths[number]
            mass[own] = mass.get(own, 0) + prob
            for lengths, share in law.items():
                for i in range(1, lengths[number] + 1):
                    reached[own, i] = reached.get((own, i), 0) + prob * share
        ends: dict[tuple[Context, int], list[Any]] = {}
        for own, total in mass.items():
            for i in range(1, pair.draft_length + 1):
                ends.setdefault((own[: i - 1], i), []).append(reached.get((own, i), total * 0) / total)
        if _vary(ends, pair):
            return False
    return True
