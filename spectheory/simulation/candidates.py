"""Candidates of a plan: pairs of a verifier and drafts that it accepts, within a budget of target rows."""

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
"""Largest K of i.i.d. drafts on an enumerated pair: for more paths no exact law is small enough."""


class Candidate(NamedTuple):
    """A verifier, a draft process that it accepts, and L.

    The candidate ``PLAIN`` has no drafts: the target decodes alone, one token per call.
    """

    verifier: Verifier | None
    process: DraftProcess | None
    draft_length: int

    @property
    def name(self) -> str | None:
        return None if self.verifier is None else self.verifier.name

    @property
    def drafts(self) -> str:
        """The draft process as a command line option, or ``none``."""
        return "none" if self.process is None else self.process.text

    @property
    def num_drafts(self) -> int:
        return 0 if self.process is None else self.process.num_drafts

    @property
    def target_rows(self) -> int:
        """Number of drafted tokens that a call of the target scores; equal tokens count separately."""
        if self.process is None:
            return 0
        if isinstance(self.process, (ConfidenceTree, ShapedTree)):
            return self.process.num_nodes
        return int(self.process.draws(self.draft_length).sum())

    def cost(self, draft_cost: float, row_cost: float) -> float:
        """Cost of a call and its drafts, 1 + L c + N r with N = ``target_rows``.

        The unit is a call of the target that scores no drafts.  With r = 0 this is the computational model of
        spectr2023 §1, where K paths cost as much as one.  Verification is free.

        Args:
            draft_cost: c, the time to draft one token.
            row_cost: r, the time that each drafted token adds to a call of the target.
        """
        return 1 + self.draft_length * draft_cost + self.target_rows * row_cost


PLAIN = Candidate(None, None, 0)


def candidates_of_models(
    verifiers: Sequence[Verifier], target_rows: int, draft_length: int
) -> list[Candidate]:
    """List the candidates on language models: ``PLAIN``, then the others by ascending L.

    The drafts are i.i.d. paths, paths whose first tokens are drawn without replacement, and confidence trees.
    They have 1, 2, 4, .. paths or nodes and lengths 1, 2, 3, 4, 6, 8, ..
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
    """Yield the candidates on an enumerated pair except ``PLAIN``, each with the pair cut to its L.

    The drafts are i.i.d. paths, prefix trees and trees without replacement of all widths, the best fixed
    shapes of most likely tokens (``best_shapes``) and confidence trees.
    """
    for length in range(1, min(pair.draft_length, draft_length) + 1):
        part = pair.truncate(length)
        for candidate in takes(verifiers, _drafts_of_pair(part, target_rows), length):
            yield part, candidate


def takes(
    verifiers: Sequence[Verifier], processes: Iterator[DraftProcess], draft_length: int
) -> Iterator[Candidate]:
    """Yield a candidate for each process and each verifier that accepts it.

    A verifier that accepts all draft processes is tried only with deterministic processes.  If some verifiers
    are single-path verifiers, only these are tried with a single path.
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
    """Yield all draft processes of an enumerated pair with at most ``rows`` target rows."""
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
    """List numbers up to and including ``most``: ``start``, then doubled, as 4, 6, 8, 12 after 1, 2, 3."""
    found = list(start)
    while found[-1] < most:
        found.append(2 * found[1 - len(start)])
    return sorted({number for number in found if number < most} | ({most} if most else set()))


def _widths(rows: int, length: int) -> Iterator[tuple[int, ...]]:
    """Yield the widths of all trees of depth ``length`` with at most ``rows`` nodes."""
    if not length:
        yield ()
        return
    for width in range(1, rows // length + 1):
        for below in _widths(rows // width - 1, length - 1):
            yield width, *below
