"""Draft processes: how K paths are drawn from the draft model.

A process gives the law of the K-tuple of drafted paths, by enumeration, and the probability that
some draft passes through an antichain, by recursion over the tree.  Verifiers state the processes
they are valid for; on any other they are refused, not silently run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, islice, permutations, product
from math import comb, factorial, inf, log10, prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spectheory.arrays import hit_probability
from spectheory.contexts import Context, context_node, count_nodes, split_by_depth
from spectheory.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.exact_numbers import fractions_if_exact
from spectheory.pair import ModelPair
from spectheory.validate import check_count, check_num_drafts, is_whole

MAX_PATHS_OF_A_TREE = 100_000
ALL_PROCESSES = frozenset({"iid", "prefix_tree", "without_replacement", "per_path"})
"""The names of all draft processes."""


class DraftTuples(NamedTuple):
    """Some of the K-tuples a process can draw.

    Attributes:
        leaves: [N, K], the number of each drafted path among the V^L paths.
        probs: [N], the probability of each tuple, in the arithmetic of the pair.
    """

    leaves: np.ndarray
    probs: np.ndarray


class DraftProcess(ABC):
    """The law of K drafted paths.

    Attributes:
        name: what verifiers call the process.
        num_drafts: K.
    """

    name: ClassVar[str]
    num_drafts: int

    @abstractmethod
    def check(self, pair: ModelPair) -> None:
        """Refuse a pair the process cannot draft from (``InvalidInputError``)."""

    @abstractmethod
    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> float:
        """How many K-tuples have positive probability (or multisets, where order has no influence).

        A whole number; infinity stands for more than 10^300.
        """

    @abstractmethod
    def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        """All K-tuples of positive probability, at most about ``size`` at a time."""

    @abstractmethod
    def _hits(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        """``hit_probabilities`` in the numbers to compute with (``ModelPair.numbers``)."""

    def hit_probabilities(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        """P(some draft passes through T) for many antichains T at once, [sets].

        Args:
            pair: the models.
            members: booleans [sets, nodes], the nodes breadth first (``contexts.py``).

        Raises:
            InvalidInputError: the process cannot draft from the pair.
        """
        self.check(pair)
        return fractions_if_exact(self._hits(pair, members))

    def hit_probability(self, pair: ModelPair, antichain: Collection[Context]) -> Any:
        """P(some draft passes through the antichain), contexts as tuples of token ids.

        Example:
            >>> from spectheory import instances
            >>> print(Iid(2).hit_probability(instances.two_token(2), [(0,), (1, 1)]))
            77/81
        """
        members = np.zeros((1, count_nodes(pair.vocab_size, pair.draft_length)), dtype=bool)
        members[0, [context_node(context, pair.vocab_size) for context in antichain]] = True
        return self.hit_probabilities(pair, members)[0]

    def draft_levels(self, pair: ModelPair, path_index: int) -> tuple[np.ndarray, ...]:
        """The rows path ``path_index`` is drafted from: ``draft_levels[i]`` is [V^i, V]."""
        return pair.draft

    def draft_numbers(self, pair: ModelPair, path_index: int) -> tuple[np.ndarray, ...]:
        """``draft_levels`` in the numbers to compute with (``ModelPair.numbers``)."""
        return pair.numbers.draft

    def to_float(self) -> DraftProcess:
        """The same process for float64 pairs."""
        return self

    def normalised(self) -> DraftProcess:
        """The same process with normalised rows, see ``ModelPair.normalised``."""
        return self

    def first_path(self) -> DraftProcess:
        """The law of the first path alone; it follows the draft model in every process."""
        return Iid(1)

    def draws(self, draft_length: int) -> np.ndarray:
        """Whether path k draws its own token at depth i, or repeats an earlier path's.  [K, L]"""
        return np.ones((self.num_drafts, draft_length), dtype=bool)


@dataclass(frozen=True)
class Iid(DraftProcess):
    """K paths drawn independently from the draft model (spectr2023 Eq. 7).

    Example:
        >>> from spectheory import instances
        >>> Iid(2).count_tuples(instances.two_token(2))
        16
    """

    num_drafts: int
    name: ClassVar[str] = "iid"

    def __post_init__(self) -> None:
        check_num_drafts(self.num_drafts)

    def check(self, pair: ModelPair) -> None:
        """Every pair can be drafted from."""

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> float:
        leaves = int((pair.numbers.draft_path_probs[-1] > 0).sum())
        if (
            min(leaves - 1, self.num_drafts) * log10(leaves + self.num_drafts) > 300
            if as_multisets
            else (self.num_drafts * log10(leaves) > 300)
        ):
            return inf
        return (
            comb(leaves + self.num_drafts - 1, self.num_drafts) if as_multisets else leaves**self.num_drafts
        )

    def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        path_probs = pair.draft_path_probs(pair.draft_length)
        support = np.flatnonzero(path_probs > 0)
        chunks = _multisets if as_multisets else _all_tuples
        for positions, orders in chunks(len(support), self.num_drafts, size):
            leaves = support[positions]
            yield DraftTuples(leaves, path_probs[leaves].prod(axis=1) * orders)

    def _hits(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        """f of the antichain's draft mass, f(u) = 1 - (1 - u)^K."""
        return hit_probability(_path_hits(pair, members), self.num_drafts)


@dataclass(frozen=True)
class PerPath(DraftProcess):
    """K independent paths, each from a draft model of its own (spectr2023, footnote 8).

    Attributes:
        models: one pair per path; of each only the draft is used, with the shape of the pair that
            is certified.  Where language models draft, these models or what stands for them: they draw
            the paths, and nothing is enumerated.

    Example:
        >>> from spectheory import instances
        >>> pair = instances.bernoulli("1/4", "1/2")
        >>> process = PerPath((pair, instances.bernoulli("3/4", "1/2")))
        >>> print(process.hit_probability(pair, [(1,)]))
        13/16
    """

    models: tuple[Any, ...]
    name: ClassVar[str] = "per_path"

    def __post_init__(self) -> None:
        check_num_drafts(len(self.models))

    @property
    def num_drafts(self) -> int:  # type: ignore[override]
        """K, one path per model."""
        return len(self.models)

    def check(self, pair: ModelPair) -> None:
        for number, model in enumerate(self._enumerated()):
            same = (model.vocab_size, model.draft_length) == (pair.vocab_size, pair.draft_length)
            if not same or model.is_exact != pair.is_exact:
                raise InvalidInputError(
                    f"draft model {number} has {model.vocab_size} tokens, draft length "
                    f"{model.draft_length} and {model.arithmetic} entries; expected {pair.vocab_size}, "
                    f"{pair.draft_length} and {pair.arithmetic} as in the pair"
                )

    def to_float(self) -> PerPath:
        """The same process with float64 models."""
        return PerPath(tuple(model.to_float() for model in self._enumerated()))

    def normalised(self) -> PerPath:
        """The same process with models whose rows sum to 1."""
        return PerPath(tuple(model.normalised() for model in self._enumerated()))

    def _enumerated(self) -> tuple[ModelPair, ...]:
        for number, model in enumerate(self.models):
            if not isinstance(model, ModelPair):
                raise InvalidInputError(
                    f"draft model {number} is no enumerated pair; give one ModelPair per path"
                )
        return self.models

    def first_path(self) -> PerPath:
        """The first path follows the first model."""
        return PerPath(self.models[:1])

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> int:
        return prod(int((model.draft_path_probs(pair.draft_length) > 0).sum()) for model in self.models)

    def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        probs = [model.draft_path_probs(pair.draft_length) for model in self.models]
        supports = [np.flatnonzero(path_probs > 0) for path_probs in probs]
        for start in range(0, self.count_tuples(pair), size):
            rest = np.arange(start, min(start + size, self.count_tuples(pair)))
            columns = []
            for support in supports:
                rest, digit = np.divmod(rest, len(support))
                columns.append(support[digit])
            joint = prod(path_probs[column] for path_probs, column in zip(probs, columns, strict=True))
            yield DraftTuples(np.stack(columns, axis=1), np.asarray(joint))

    def _hits(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        return 1 - np.asarray(prod(1 - _path_hits(model, members) for model in self.models))

    def draft_levels(self, pair: ModelPair, path_index: int) -> tuple[np.ndarray, ...]:
        return self.models[path_index].draft

    def draft_numbers(self, pair: ModelPair, path_index: int) -> tuple[np.ndarray, ...]:
        return self.models[path_index].numbers.draft


@dataclass(frozen=True)
class _Tree(DraftProcess):
    """Paths that branch: every node at depth i draws ``widths[i]`` next tokens; K = product."""

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.widths, tuple):
            raise InvalidInputError(
                f"widths must be a tuple of whole numbers, one per depth, got {self.widths!r}"
            )
        for width in self.widths:
            check_count("a width of the tree", width)
        if prod(self.widths) > MAX_PATHS_OF_A_TREE:
            raise EnumerationTooLargeError(
                f"a tree of widths {list(self.widths)} has {prod(self.widths)} paths, the limit is "
                f"{MAX_PATHS_OF_A_TREE}; use smaller widths"
            )
        if not self.widths:
            raise InvalidInputError("a tree of drafts needs one width per drafted token, got none")

    @property
    def num_drafts(self) -> int:  # type: ignore[override]
        """K, the product of the widths."""
        return prod(self.widths)

    def check(self, pair: ModelPair) -> None:
        if len(self.widths) != pair.draft_length:
            raise InvalidInputError(
                f"the tree has {len(self.widths)} widths {list(self.widths)}; expected one per drafted "
                f"token, {pair.draft_length}"
            )

    def draws(self, draft_length: int) -> np.ndarray:
        if draft_length != len(self.widths):
            raise InvalidInputError(
                f"the tree has {len(self.widths)} widths {list(self.widths)}, got draft length {draft_length}"
            )
        number = np.arange(self.num_drafts)
        leaves_below = [prod(self.widths[depth + 1 :]) for depth in range(draft_length)]
        return np.stack([number % below == 0 for below in leaves_below], axis=1)

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> int:
        """By recursion over contexts; the numbers of tuples below a node multiply and add up."""
        counts = np.ones(pair.vocab_size**pair.draft_length, dtype=object)
        for depth in reversed(range(pair.draft_length)):
            children = counts.reshape(-1, pair.vocab_size) * (pair.draft[depth] > 0)
            counts = np.array([self._count_children(list(row), self.widths[depth]) for row in children])
        return int(counts[0])

    def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        leaves, probs = self._below(pair, 0, 0)
        for start in range(0, len(leaves), size):
            yield DraftTuples(leaves[start : start + size], probs[start : start + size])

    def _below(self, pair: ModelPair, depth: int, number: int) -> tuple[np.ndarray, np.ndarray]:
        """All ways to draw the subtree below one node: (leaves [N, leaves below], probs [N])."""
        one = pair.draft[0][:1, 0] * 0 + 1
        if depth == pair.draft_length:
            return np.array([[number]]), one
        row = pair.draft[depth][number]
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
        """From the leaves up: a node is avoided if it is no member and all its draws are avoided."""
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
    def _count_children(counts: Sequence[int], width: int) -> int:
        """How many ways to draw ``width`` children when child x has ``counts[x]`` ways below it."""

    @staticmethod
    @abstractmethod
    def _children(row: np.ndarray, support: Sequence[int], width: int) -> Iterator[tuple[Context, Any]]:
        """(the tokens drawn, in order; their probability)."""


@dataclass(frozen=True)
class PrefixTree(_Tree):
    """Every node at depth i draws k_{i+1} next tokens independently (spectr2023 App. D, Alg. 4).

    Line 5 there prints the target model; drafts come from the draft model.  ``PrefixTree((K, 1, ..))``
    is ``Iid(K)``.

    Example:
        >>> from spectheory import instances
        >>> PrefixTree((2, 2)).num_drafts, PrefixTree((2, 2)).count_tuples(instances.two_token(2))
        (4, 64)
    """

    name: ClassVar[str] = "prefix_tree"

    @staticmethod
    def _count_children(counts: Sequence[int], width: int) -> int:
        return int(sum(counts)) ** width

    @staticmethod
    def _children(row: np.ndarray, support: Sequence[int], width: int) -> Iterator[tuple[Context, Any]]:
        for tokens in product(support, repeat=width):
            yield tokens, prod(row[token] for token in tokens)


@dataclass(frozen=True)
class WithoutReplacement(_Tree):
    """Every node at depth i draws k_{i+1} *distinct* next tokens, one after the other.

    The j-th is drawn from the draft row without the tokens drawn before it, renormalised.

    Example:
        >>> from spectheory import instances
        >>> print(WithoutReplacement((2,)).hit_probability(instances.two_token(1), [(0,)]))
        1
    """

    name: ClassVar[str] = "without_replacement"

    def check(self, pair: ModelPair) -> None:
        super().check(pair)
        for depth, width in enumerate(self.widths):
            smallest = int((pair.draft[depth] > 0).sum(axis=1).min())
            if smallest < width:
                raise InvalidInputError(
                    f"cannot draw {width} distinct tokens at depth {depth}: some draft row has only "
                    f"{smallest} tokens with mass; use smaller widths"
                )

    @staticmethod
    def _count_children(counts: Sequence[int], width: int) -> int:
        # width! times the elementary symmetric polynomial of the counts.
        symmetric = [1] + [0] * width
        for count in counts:
            for degree in range(width, 0, -1):
                symmetric[degree] += symmetric[degree - 1] * int(count)
        return symmetric[width] * factorial(width)

    @staticmethod
    def _children(row: np.ndarray, support: Sequence[int], width: int) -> Iterator[tuple[Context, Any]]:
        for tokens in permutations(support, width):
            prob, left = row[tokens[0]] * 0 + 1, row.sum()
            for token in tokens:
                prob, left = prob * row[token] / left, left - row[token]
            yield tokens, prob


def draft_process(drafts: int | DraftProcess) -> DraftProcess:
    """The draft process that an argument ``drafts`` stands for.

    Args:
        drafts: K, for K paths drawn independently from the draft model, or a draft process.

    Raises:
        InvalidInputError: neither a whole number of at least 1 nor a draft process.

    Example:
        >>> draft_process(2), draft_process(PrefixTree((2, 2)))
        (Iid(num_drafts=2), PrefixTree(widths=(2, 2)))
    """
    if isinstance(drafts, DraftProcess):
        return drafts
    if not is_whole(drafts) or drafts < 1:
        raise InvalidInputError(
            "drafts must be a whole number of at least 1 or a draft process such as "
            f"PrefixTree((2, 2)), got {drafts!r}"
        )
    return Iid(int(drafts))


def _path_hits(pair: ModelPair, members: np.ndarray) -> np.ndarray:
    """The probability that one path drawn from the draft passes through each antichain, [sets]."""
    probs = np.concatenate(pair.numbers.draft_path_probs)
    total = np.repeat(probs[:1] - probs[:1], len(members))
    for column, prob in zip(members.T, probs, strict=True):
        total[column] = total[column] + prob
    return total


def _all_tuples(leaves: int, num_drafts: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(positions [N, K], 1): every tuple on its own."""
    count = leaves**num_drafts
    for start in range(0, count, size):
        numbers = np.arange(start, min(start + size, count))
        digits = [numbers // leaves**k % leaves for k in range(num_drafts)]
        yield np.stack(digits, axis=1), np.ones(len(numbers), dtype=np.int64)


def _multisets(leaves: int, num_drafts: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(positions [N, K] ascending, in how many orders each can be drawn)."""
    multisets = combinations_with_replacement(range(leaves), num_drafts)
    while batch := list(islice(multisets, size)):
        orders = [_orders(multiset) for multiset in batch]
        yield np.array(batch), np.array(orders)


def _orders(multiset: tuple[int, ...]) -> int:
    counts = [multiset.count(value) for value in set(multiset)]
    return factorial(len(multiset)) // prod(factorial(count) for count in counts)
