"""Trees of drafts that the draft model determines: nothing is drawn at random."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count, check_num_drafts
from spectheory.pairs.contexts import Context, context_number, path_number
from spectheory.pairs.drafts.process import DraftTuples, ListedProcess
from spectheory.pairs.drafts.trees import Widths
from spectheory.pairs.pair import ModelPair


class Deterministic(ListedProcess):
    """Drafts that the draft model determines, without randomness.

    The law of a drafted token is a point mass, not the draft model's row.  A verifier that compares the
    target with the law of a drafted token needs this point mass.
    """

    @abstractmethod
    def paths(self, pair: ModelPair) -> Sequence[Context]:
        """List the K paths.  A path of fewer than L tokens ends early."""

    def listed(self, pair: ModelPair) -> DraftTuples:
        numbers = [path_number(path, pair.draft_length, pair.vocab_size) for path in self.paths(pair)]
        return DraftTuples(np.array([numbers]), pair.numbers.draft[0][:1, 0] * 0 + 1)

    def drafter(self, pair: ModelPair, path_index: int) -> ModelPair:
        """Return the pair whose draft rows are point masses on this path's tokens, elsewhere on token 0."""
        path, levels = self.paths(pair)[path_index], []
        for depth, level in enumerate(pair.draft):
            rows = np.zeros_like(level) + level[:1, :1] * 0
            rows[:, 0] += 1
            if depth < len(path):
                number = context_number(path[:depth], pair.vocab_size)
                rows[number, 0] -= 1
                rows[number, path[depth]] += 1
            levels.append(rows)
        return ModelPair(pair.target, tuple(levels), pair.vocab)


class RankedTree(Deterministic):
    """A tree of fixed shape: the token at a node has a fixed rank in the draft row of its parent.

    Equally likely tokens are ranked by token id, smaller ids first.
    """

    @abstractmethod
    def ranks(self, draft_length: int) -> np.ndarray:
        """Return the rank of every token of every path at its context, [K, L]; -1 after the end of a path.

        Raises:
            InvalidInputError: the tree does not fit the draft length.
        """

    def check(self, pair: ModelPair) -> None:
        self.check_size(pair.vocab_size, pair.draft_length)

    def check_size(self, vocab_size: int, draft_length: int) -> None:
        """Raise ``InvalidInputError`` if the tree is too wide or does not fit the draft length."""
        if (most := int(self.ranks(draft_length).max()) + 1) > vocab_size:
            raise InvalidInputError(
                f"a node cannot have {most} different next tokens out of {vocab_size}; use fewer"
            )

    def paths(self, pair: ModelPair) -> list[Context]:
        paths = []
        for ranks in self.ranks(pair.draft_length):
            path: Context = ()
            for depth, rank in enumerate(ranks[ranks >= 0]):
                row = pair.draft[depth][context_number(path, pair.vocab_size)]
                path = (*path, int(_likeliest(row)[rank]))
            paths.append(path)
        return paths


@dataclass(frozen=True)
class TopTree(RankedTree, Widths):
    """The children of a node at depth i are its ``widths[i]`` likeliest next tokens, in order (eagle2024).

    ``TopTree((1,) * L)`` is one greedy path.

    Example:
        >>> from spectheory import instances
        >>> process = TopTree((2, 1))
        >>> process.num_drafts, process.paths(instances.two_token(2))
        (2, [(0, 0), (1, 0)])
    """

    name: ClassVar[str] = "top_tree"

    def ranks(self, draft_length: int) -> np.ndarray:
        self.draws(draft_length)  # raises if the length does not fit
        return np.array(list(product(*map(range, self.widths))))


@dataclass(frozen=True)
class ShapedTree(RankedTree):
    """A tree of any fixed shape (sequoia2024): the children of a node are its likeliest next tokens.

    The paths end at the leaves.  Some leaves may have fewer than L tokens.

    Attributes:
        children: the number of children of every node, breadth first from the root.  Nodes that are not
            listed have no children.

    Example:
        >>> from spectheory import instances
        >>> process = ShapedTree((2, 1))
        >>> process.num_nodes, process.paths(instances.two_token(2))
        (3, [(1,), (0, 0)])
    """

    children: tuple[int, ...]
    name: ClassVar[str] = "shaped_tree"

    def __post_init__(self) -> None:
        for node, number in enumerate(self.children):
            check_count("a number of children", number, at_least=int(node == 0))
            if node > sum(self.children[:node]):
                raise InvalidInputError(f"children {list(self.children)} are of more nodes than there are")
        if not self.children:
            raise InvalidInputError("a tree of drafts needs a number of children, got none")

    @property
    def nodes(self) -> list[tuple[int, ...]]:
        """The ranks on the way to every node except the root, breadth first."""
        found: list[tuple[int, ...]] = [()]
        for node, number in enumerate(self.children):
            found += [(*found[node], rank) for rank in range(number)]
        return found[1:]

    @property
    def num_nodes(self) -> int:
        """The number of tokens that the target scores."""
        return len(self.nodes)

    @property
    def depth(self) -> int:
        return max(map(len, self.nodes))

    @property
    def _leaves(self) -> list[tuple[int, ...]]:
        inner = {node[:-1] for node in self.nodes}
        return [node for node in self.nodes if node not in inner]

    @property
    def num_drafts(self) -> int:  # type: ignore[override]
        return len(self._leaves)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.children

    def ranks(self, draft_length: int) -> np.ndarray:
        if self.depth > draft_length:
            raise InvalidInputError(
                f"the tree is {self.depth} tokens deep, more than the draft length {draft_length}"
            )
        return np.array([leaf + (-1,) * (draft_length - len(leaf)) for leaf in self._leaves])


@dataclass(frozen=True)
class ConfidenceTree(Deterministic):
    """The n likeliest nodes of the draft model's tree, of any shape (eagletwo2024).

    A node's confidence is the product of the draft probabilities on the way to it.  Path k ends at the k-th
    likeliest node.  Equally likely nodes are in breadth-first order, so that every node follows its parent.
    If a path ends before L tokens, the token -1 fills it up, and the rows after its end have no meaning
    (docs/draft_processes.md).

    Attributes:
        num_nodes: n = K, the number of tokens that the target scores.
        beam: number of nodes expanded at a depth, and of next tokens of each node.  With ``None`` it is n,
            which is enough to find the n likeliest nodes of the whole tree.

    Example:
        >>> from spectheory import instances
        >>> ConfidenceTree(4).paths(instances.two_token(2))
        [(0,), (0, 0), (1,), (0, 1)]
    """

    num_nodes: int
    beam: int | None = None
    name: ClassVar[str] = "confidence_tree"

    def __post_init__(self) -> None:
        check_num_drafts(self.num_nodes)
        if self.beam is not None:
            check_count("beam", self.beam)

    @property
    def num_drafts(self) -> int:  # type: ignore[override]
        return self.num_nodes

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.num_nodes,) if self.beam is None else (self.num_nodes, self.beam)

    @property
    def width(self) -> int:
        """The number of nodes that are expanded at a depth, and of next tokens of each expanded node."""
        return self.num_nodes if self.beam is None else self.beam

    def check(self, pair: ModelPair) -> None:
        self.check_size(pair.vocab_size, pair.draft_length)

    def check_size(self, vocab_size: int, draft_length: int) -> None:
        """Raise ``InvalidInputError`` if the tree has fewer than ``num_nodes`` nodes."""
        expanded = nodes = 0
        for _ in range(draft_length):
            layer = (expanded or 1) * min(self.width, vocab_size)
            nodes, expanded = nodes + layer, min(self.width, layer)
        if nodes < self.num_nodes:
            raise InvalidInputError(
                f"with {vocab_size} tokens, draft length {draft_length} and beam {self.width} there are "
                f"{nodes} nodes, and {self.num_nodes} were asked for"
            )

    def paths(self, pair: ModelPair) -> list[Context]:
        found: list[tuple[Context, object]] = []
        expanded: list[tuple[Context, object]] = [((), 1)]
        for level in pair.draft:
            layer = [
                ((*path, int(token)), prob * row[token])
                for path, prob in expanded
                for row in [level[context_number(path, pair.vocab_size)]]
                for token in sorted(_likeliest(row)[: self.width])
            ]
            found += layer
            expanded = sorted(_first(layer, self.width))
        return [path for path, _ in _first(found, self.num_nodes)]


def _first(nodes: Sequence, number: int) -> list:
    """Return the ``number`` likeliest nodes, in descending order.  Ties keep the order of ``nodes``."""
    return sorted(nodes, key=lambda node: -node[1])[:number]


def _likeliest(row: np.ndarray) -> np.ndarray:
    return np.argsort(-row, kind="stable")
