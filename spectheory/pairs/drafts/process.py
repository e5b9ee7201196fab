"""The interface of draft processes: the law of K paths drawn from the draft model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.pairs.contexts import Context, context_node, count_nodes
from spectheory.pairs.pair import ModelPair

ALL_PROCESSES = frozenset({"iid", "prefix_tree", "without_replacement", "per_path"})
"""The names of all draft processes."""


class DraftTuples(NamedTuple):
    """Some K-tuples: the numbers of their paths among the V^L, [N, K], and their probabilities, [N]."""

    leaves: np.ndarray
    probs: np.ndarray


class DraftProcess(ABC):
    """The law of K drafted paths.

    Attributes:
        name: of the process, as in ``Verifier.draft_processes``.
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
            >>> from spectheory.pairs.drafts import Iid
            >>> print(Iid(2).hit_probability(instances.two_token(2), [(0,), (1, 1)]))
            77/81
        """
        members = np.zeros((1, count_nodes(pair.vocab_size, pair.draft_length)), dtype=bool)
        members[0, [context_node(context, pair.vocab_size) for context in antichain]] = True
        return self.hit_probabilities(pair, members)[0]

    def drafter(self, pair: ModelPair, path_index: int) -> ModelPair:
        """The pair whose draft rows path ``path_index`` is drawn from."""
        return pair

    def to_float(self) -> DraftProcess:
        """The same process for float64 pairs."""
        return self

    def normalised(self) -> DraftProcess:
        """The same process with normalised rows, see ``ModelPair.normalised``."""
        return self

    @abstractmethod
    def first_path(self) -> DraftProcess:
        """The law of the first path alone."""

    def draws(self, draft_length: int) -> np.ndarray:
        """Whether path k draws its own token at depth i, or repeats an earlier path's.  [K, L]"""
        return np.ones((self.num_drafts, draft_length), dtype=bool)


def path_hits(pair: ModelPair, members: np.ndarray) -> np.ndarray:
    """The probability that one path drawn from the draft passes through each antichain, [sets]."""
    probs = np.concatenate(pair.numbers.draft_path_probs)
    total = np.repeat(probs[:1] - probs[:1], len(members))
    for column, prob in zip(members.T, probs, strict=True):
        total[column] = total[column] + prob
    return total
