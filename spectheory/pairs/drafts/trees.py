"""Trees of drafts with a width at every depth."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.foundation.validation import check_count
from spectheory.pairs.contexts import Context, split_by_depth
from spectheory.pairs.drafts.iid import Iid
from spectheory.pairs.drafts.process import DraftTuples, OwnProcess
from spectheory.pairs.pair import ModelPair

MAX_PATHS_OF_A_TREE = 100_000


@dataclass(frozen=True)
class Widths(OwnProcess):
    """Every node at depth i has ``widths[i]`` next tokens.  K is the product of the widths."""

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check that the widths are positive integers, one per depth, and give not too many paths."""
        widths = self.widths
        if not isinstance(widths, tuple):
            raise InvalidInputError(f"widths must be a tuple of whole numbers, one per depth, got {widths!r}")
        for width in widths:
            check_count("a width of the tree", width)
        if prod(widths) > MAX_PATHS_OF_A_TREE:
            raise EnumerationTooLargeError(
                f"a tree of widths {list(widths)} has {prod(widths)} paths, the limit is "
                f"{MAX_PATHS_OF_A_TREE}; use smaller widths"
            )
        if not widths:
            raise InvalidInputError("a tree of drafts needs one width per drafted token, got none")

    @property
    def num_drafts(self) -> int:  # type: ignore[override]
        return prod(self.widths)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.widths

    def check(self, pair: ModelPair) -> None:
        self.draws(pair.draft_length)  # raises if the length does not fit

    def draws(self, draft_length: int) -> np.ndarray:
        """Mask [K, L]: True if path k has its own token at depth i, False if it shares an earlier path's."""
        widths = self.widths
        if draft_length != len(widths):
            raise InvalidInputError(
                f"the tree has {count_text(len(widths), 'width')}, {list(widths)}; expected one "
                f"per drafted token, {draft_length}"
            )
        number = np.arange(prod(widths))
        leaves_below = [prod(widths[depth + 1 :]) for depth in range(draft_length)]
        return np.stack([number % below == 0 for below in leaves_below], axis=1)


@dataclass(frozen=True)
class Tree(Widths):
    """Paths that form a tree: every node draws its next tokens."""

    def first_path(self) -> Iid:
        return Iid(1)

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> int:
        counts = np.ones(pair.vocab_size**pair.draft_length, dtype=object)
        for depth in reversed(range(pair.draft_length)):
            rows = pair.numbers.draft[depth]
            children = counts.reshape(-1, pair.vocab_size) * (rows > 0)
            counts = np.array(
                [
                    self._count_children(row, list(below), self.widths[depth])
                    for row, below in zip(rows, children, strict=True)
                ]
            )
        return int(counts[0])

    def enumerate(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        leaves, probs = self._below(pair, 0, 0)
        for start in range(0, len(leaves), size):
            yield DraftTuples(leaves[start : start + size], probs[start : start + size])

    def _below(self, pair: ModelPair, depth: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        """List all ways to draw the subtree below one node: (leaves [N, leaves below], probs [N])."""
        draft = pair.numbers.draft
        one = draft[0][:1, 0] * 0 + 1
        if depth == pair.draft_length:
            return np.array([[number]]), one
        row = draft[depth][number]
        below = {
            int(token): self._below(pair, depth + 1, number * pair.vocab_size + int(token))
            for token in np.flatnonzero(row > 0)
        }
        parts = []
        for tokens, prob in self._children(row, list(below), self.widths[depth]):
            leaves, probs = np.zeros((1, 0), dtype=np.int64), one * prob
            for token in tokens:
                more, more_probs = below[token]
                leaves = np.concatenate(
                    [np.repeat(leaves, len(more), axis=0), np.tile(more, (len(leaves), 1))], axis=1
                )
                probs = (probs[:, None] * more_probs).ravel()
            parts.append((leaves, probs))
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _hits(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        """Compute hit probabilities from the leaves up.

        The drafts below a node miss T if the node is not in T and the drafts below each drawn token miss T.
        """
        blocked = split_by_depth(members.T, pair.vocab_size, pair.draft_length)  # by depth, [V^depth, sets]
        one = pair.numbers.draft_path_probs[0]
        avoided = np.where(blocked[-1], one - one, one)
        for depth in reversed(range(pair.draft_length)):
            below = avoided.reshape(-1, pair.vocab_size, len(members))
            avoided = np.array(
                [
                    sum(
                        prob * prod(children[token] for token in tokens)
                        for tokens, prob in self._children(
                            row, list(np.flatnonzero(row > 0)), self.widths[depth]
                        )
                    )
                    for row, children in zip(pair.numbers.draft[depth], below, strict=True)
                ]
            )
            avoided = np.where(blocked[depth], one - one, avoided)
        return 1 - avoided[0]

    @staticmethod
    @abstractmethod
    def _count_children(row: np.ndarray, counts: Sequence[int], width: int) -> int:
        """Count the ways to draw ``width`` children if child x has ``counts[x]`` ways below it."""

    @staticmethod
    @abstractmethod
    def _children(row: np.ndarray, support: Sequence[int], width: int) -> Iterator[tuple[Context, Any]]:
        """Yield (the drawn tokens in order, their probability)."""
