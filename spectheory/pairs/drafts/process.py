"""The interface of draft processes: the law of K drafted paths."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import flint_if_exact, fractions_if_exact
from spectheory.pairs.contexts import Context, context_node, count_nodes, paths_to, rows_along
from spectheory.pairs.pair import ModelPair

SAMPLED_PROCESSES = frozenset({"iid", "prefix_tree", "without_replacement", "hub_tree", "per_path"})
"""The names of the processes whose first path follows the draft model."""
COUNTED_AT_ONCE = 10_000
"""The number of tuples per batch when they are enumerated."""
ALL_PROCESSES = SAMPLED_PROCESSES | {"top_tree", "shaped_tree", "confidence_tree"}
"""The names of all draft processes of the package."""


class _Any(frozenset[str]):
    """A set of names of draft processes that also contains every other name, such as names of users'."""

    def __contains__(self, name: object) -> bool:
        return True


ANY_PROCESS: frozenset[str] = _Any(ALL_PROCESSES)
"""``Verifier.draft_processes`` of verifiers that are lossless for every law of the drafts."""


class DraftTuples(NamedTuple):
    """A batch of K-tuples of paths: path numbers, [N, K], and the probabilities of the tuples, [N].

    A path of L tokens has its leaf number.  A path that ends early has -1 - n, where n is its last node,
    numbered breadth first (``contexts.paths_to``).
    """

    leaves: np.ndarray
    probs: np.ndarray


class DraftProcess(ABC):
    """The law of K drafted paths.

    A user's process is a subclass with ``name``, ``num_drafts`` and ``tuples``; docs/draft_processes.md
    has an example.

    Attributes:
        name: the name of the process, as in ``Verifier.draft_processes``.
        num_drafts: K.
    """

    name: ClassVar[str]
    num_drafts: int

    def check(self, pair: ModelPair) -> None:  # noqa: B027, a process may take every pair
        """Raise ``InvalidInputError`` if the process cannot draft from the pair.  The default accepts all."""

    def fits(self, pair: ModelPair) -> bool:
        """True if ``check`` accepts the pair."""
        try:
            self.check(pair)
        except InvalidInputError:
            return False
        return True

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> float:
        """Count the K-tuples with positive probability, or the multisets if ``as_multisets``.

        The result is an integer, or infinity for more than 10^300.  The default enumerates the tuples.
        """
        return sum(len(chunk.probs) for chunk in self.enumerate(pair, COUNTED_AT_ONCE))

    @abstractmethod
    def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        """Yield all K-tuples (or multisets) of positive probability, in batches of about ``size``."""

    def enumerate(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        """Yield ``tuples`` with probabilities in the number type of ``pair.numbers``."""
        for leaves, probs in self.tuples(pair, size, as_multisets):
            yield DraftTuples(leaves, flint_if_exact(probs))

    def _hits(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        """Compute ``hit_probabilities`` in the types of ``pair.numbers``.

        The default enumerates the tuples.
        """
        size, length = pair.vocab_size, pair.draft_length
        first = [count_nodes(size, depth - 1) for depth in range(length + 1)]
        one = pair.numbers.draft_path_probs[0][:1]
        total = np.repeat(one - one, len(members))
        for leaves, weights in self.enumerate(pair, COUNTED_AT_ONCE):
            prefixes, lengths = paths_to(leaves, length, size)
            for number, member in enumerate(members):
                on_path = member[prefixes + first] & (np.arange(length + 1) <= lengths[..., None])
                total[number] = total[number] + weights[on_path.any(axis=(1, 2))].sum()
        return total

    def hit_probabilities(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        """Compute P(some draft passes through T) for many antichains T at once, [sets].

        Args:
            pair: the models.
            members: booleans [sets, nodes], True for the nodes in T, breadth first (``contexts.py``).

        Raises:
            InvalidInputError: the process cannot draft from the pair.
        """
        self.check(pair)
        return fractions_if_exact(self._hits(pair, members))

    def hit_probability(self, pair: ModelPair, antichain: Collection[Context]) -> Any:
        """Compute P(some draft passes through the antichain), given as contexts (tuples of token ids).

        Example:
            >>> from spectheory import instances
            >>> from spectheory.pairs.drafts import Iid
            >>> print(Iid(2).hit_probability(instances.two_token(2), [(0,), (1, 1)]))
            77/81
        """
        members = np.zeros((1, count_nodes(pair.vocab_size, pair.draft_length)), dtype=bool)
        members[0, [context_node(context, pair.vocab_size) for context in antichain]] = True
        return self.hit_probabilities(pair, members)[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """The parameters that distinguish processes of the same name, except K."""
        return ()

    @property
    def text(self) -> str:
        """The process as written for ``--drafts``: the name and the shape, if any; for i.i.d. paths K.

        Example:
            >>> from spectheory.pairs.drafts import Iid, PrefixTree
            >>> Iid(2).text, PrefixTree((2, 1)).text
            ('iid:2', 'prefix_tree:2,1')
        """
        return f"{self.name}:{','.join(map(str, self.shape))}" if self.shape else self.name

    def drafter(self, pair: ModelPair, path_index: int) -> ModelPair:
        """Return the pair from whose draft rows path ``path_index`` is drawn."""
        return pair

    def to_float(self) -> DraftProcess:
        """Return the same process for float64 pairs."""
        return self

    def normalised(self) -> DraftProcess:
        """Return the same process with normalised rows, see ``ModelPair.normalised``."""
        return self

    def first_path(self) -> DraftProcess:
        """Return a process whose first path has the same law; if possible it drafts this path only."""
        return self

    def draws(self, draft_length: int) -> np.ndarray:
        """Mask [K, L]: True if path k draws its own token at depth i, False if it repeats an earlier draw."""
        return np.ones((self.num_drafts, draft_length), dtype=bool)


class OwnProcess(DraftProcess):
    """A process of the package.  It supplies ``enumerate``, in the number type of ``pair.numbers``."""

    @abstractmethod
    def enumerate(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        """Yield all K-tuples of positive probability in batches, with the numbers of ``pair.numbers``."""

    def tuples(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        for leaves, probs in self.enumerate(pair, size, as_multisets):
            yield DraftTuples(leaves, fractions_if_exact(probs))


class ListedProcess(OwnProcess):
    """A process with so few tuples that it lists all of them at once."""

    @abstractmethod
    def listed(self, pair: ModelPair) -> DraftTuples:
        """List all K-tuples of positive probability, with the numbers of ``pair.numbers``."""

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> int:
        return len(self.listed(pair).probs)

    def enumerate(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        leaves, probs = self.listed(pair)
        for start in range(0, len(probs), size):
            yield DraftTuples(leaves[start : start + size], probs[start : start + size])


def path_hits(pair: ModelPair, members: np.ndarray) -> np.ndarray:
    """Compute the probability that one path drawn from the draft passes through each antichain, [sets]."""
    probs = np.concatenate(pair.numbers.draft_path_probs)
    total = np.repeat(probs[:1] - probs[:1], len(members))
    for column, prob in zip(members.T, probs, strict=True):
        total[column] = total[column] + prob
    return total


def whole_paths(pair: ModelPair) -> Iterator[tuple[Context, Any, np.ndarray]]:
    """Yield the paths of L tokens that the draft draws, their probabilities and their draft rows, [L, V]."""
    depth, probs = pair.draft_length, pair.numbers.draft_path_probs[-1]
    prefixes, _ = paths_to(np.arange(len(probs)), depth, pair.vocab_size)
    for number in np.flatnonzero(probs > 0):
        yield pair.context(depth, int(number)), probs[number], rows_along(pair.draft, prefixes[number])
