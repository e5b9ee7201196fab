"""The grid of a plan: verifiers with the drafts that they take, within a budget of target rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.optima.tree_shapes import best_shapes, likeliest_acceptance
from spectheory.pairs.drafts import (
    ConfidenceTree,
    Deterministic,
    DraftProcess,
    Iid,
    PrefixTree,
    ShapedTree,
    WithoutReplacement,
)
from spectheory.pairs.drafts.process import ANY_PROCESS
from spectheory.pairs.pair import ModelPair
from spectheory.verification.verifier import Verifier

MOST_PATHS = 64
"""K of the largest i.i.d. drafts on an enumerated pair; the exact law of more is too large on any pair."""


class Candidate(NamedTuple):
    """A verifier with a draft process that it takes, and L.

    Without drafts, ``PLAIN``, the target decodes alone: a token per call.
    """

    verifier: Verifier | None
    process: DraftProcess | None
    draft_length: int

    @property
    def name(self) -> str | None:
        return None if self.verifier is None else self.verifier.name

    @property
    def drafts(self) -> str:
        """The drafts as an option takes them, or ``none``."""
        return "none" if self.process is None else self.process.text

    @property
    def num_drafts(self) -> int:
        return 0 if self.process is None else self.process.num_drafts

    @property
    def target_rows(self) -> int:
        """The drafted tokens that a call of the target scores; equal tokens of different draws count each."""
        if self.process is None:
            return 0
        if isinstance(self.process, (ConfidenceTree, ShapedTree)):
            return self.process.num_nodes
        return int(self.process.draws(self.draft_length).sum())

    def cost(self, draft_cost: float, row_cost: float) -> float:
        """Of a call and its drafts, 1 + L c + N r, in calls of the target that score no drafts.

        This is the computational model of spectr2023 §1, where r = 0: K paths cost as much as one.
        Verification is free.

        Args:
            draft_cost: c, the time of a drafted token, over that of a call that scores no drafts.
            row_cost: r, the time that one more drafted token adds to a call of the target.
        """
        return 1 + self.draft_length * draft_cost + self.target_rows * row_cost


PLAIN = Candidate(None, None, 0)


def candidates_of_models(
    verifiers: Sequence[Verifier], target_rows: int, draft_length: int
) -> list[Candidate]:
    """The candidates on language models, the shortest drafts first, after ``PLAIN``.

    They are i.i.d. paths, paths whose first tokens are drawn without replacement, and confidence trees, of 1,
    2, 4, .. paths or nodes and lengths 1, 2, 3, 4, 6, 8, ..
    """
    lengths = _spread(min(draft_length, target_rows), (1, 2, 3))
    return [PLAIN] + [
        candidate
        for length in lengths
        for candidate in takes(verifiers, _drafts_of_models(target_rows, length), length)
    ]


def candidates_of_pair(
    pair: ModelPair, verifiers: Sequence[Verifier], target_rows: int, draft_length: int
) -> Iterator[tuple[ModelPair, Candidate]]:
    """The candidates on an enumerated pair but ``PLAIN``, each with the pair of its draft length.

    They are i.i.d. paths, prefix trees and trees without replacement of all widths, the best fixed shapes of
    most likely tokens (``best_shapes``) and confidence trees.
    """
    for length in range(1, min(pair.draft_length, draft_length) + 1):
        part = pair.truncate(length)
        for candidate in takes(verifiers, _drafts_of_pair(part, target_rows), length):
            yield part, candidate


def takes(
    verifiers: Sequence[Verifier], processes: Iterator[DraftProcess], draft_length: int
) -> Iterator[Candidate]:
    """Every process with the verifiers that take it.

    A verifier that takes any drafts gets deterministic ones only.  If some verifiers are of one path, one
    path goes to these alone.
    """
    of_one_path = [verifier for verifier in verifiers if verifier.single_path]
    for process in processes:
        for verifier in of_one_path or verifiers if process == Iid(1) else verifiers:
            if verifier.single_path and process != Iid(1):
                continue
            if process.name not in verifier.draft_processes or draft_length > (
                verifier.max_draft_length or draft_length
            ):
                continue
            if verifier.draft_processes is ANY_PROCESS and not isinstance(process, Deterministic):
                continue
            yield Candidate(verifier, process, draft_length)


def _drafts_of_pair(pair: ModelPair, rows: int) -> Iterator[DraftProcess]:
    """All drafts of an enumerated pair within a number of rows."""
    length = pair.draft_length
    for drafts in range(1, min(rows // length, MOST_PATHS) + 1):
        yield Iid(drafts)
    for widths in _widths(rows, length):
        for process in (PrefixTree(widths), WithoutReplacement(widths)):
            branches = (
                set(widths[1:]) != {1} and length > 1 if process.name == "prefix_tree" else max(widths) > 1
            )
            if branches and process.fits(pair):
                yield process
    yield from dict.fromkeys(_shaped(pair, rows))
    for number in range(1, rows + 1):
        if (tree := ConfidenceTree(number)).fits(pair):
            yield tree


def _shaped(pair: ModelPair, rows: int) -> Iterator[ShapedTree]:
    try:
        found = best_shapes(likeliest_acceptance(pair, min(rows, pair.vocab_size)), rows)
    except EnumerationTooLargeError:
        return
    for value in found:
        if value.children and (tree := ShapedTree(value.children)).depth == pair.draft_length:
            yield tree


def _drafts_of_models(rows: int, length: int) -> Iterator[DraftProcess]:
    for drafts in _spread(rows // length, (1, 2)):
        yield Iid(drafts)
        if drafts > 1:
            yield WithoutReplacement((drafts, *[1] * (length - 1)))
    for nodes in _spread(rows, (1, 2)):
        if nodes >= length:
            yield ConfidenceTree(nodes)


def _spread(most: int, start: Sequence[int]) -> list[int]:
    """Numbers up to ``most``: those to start with, then each twice the last but one or the last."""
    found = list(start)
    while found[-1] < most:
        found.append(2 * found[1 - len(start)])
    return sorted({number for number in found if number < most} | ({most} if most else set()))


def _widths(rows: int, length: int) -> Iterator[tuple[int, ...]]:
    """The widths of all trees of a depth with at most so many nodes."""
    if not length:
        yield ()
        return
    for width in range(1, rows // length + 1):
        for below in _widths(rows // width - 1, length - 1):
            yield width, *below
