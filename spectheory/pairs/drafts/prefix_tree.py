"""Trees whose nodes draw their next tokens independently."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, ClassVar

import numpy as np

from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts.trees import Tree


@dataclass(frozen=True)
class PrefixTree(Tree):
    """Every node at depth i draws k_{i+1} next tokens independently (spectr2023 App. D, Alg. 4).

    Line 5 of Alg. 4 prints the target model, but drafts come from the draft model.
    ``PrefixTree((K, 1, ..))`` is ``Iid(K)``.

    Example:
        >>> from spectheory import instances
        >>> PrefixTree((2, 2)).num_drafts, PrefixTree((2, 2)).count_tuples(instances.two_token(2))
        (4, 64)
    """

    name: ClassVar[str] = "prefix_tree"

    @staticmethod
    def _count_children(row: np.ndarray, counts: Sequence[int], width: int) -> int:
        return int(sum(counts)) ** width

    @staticmethod
    def _children(row: np.ndarray, support: Sequence[int], width: int) -> Iterator[tuple[Context, Any]]:
        for tokens in product(support, repeat=width):
            yield tokens, prod(row[token] for token in tokens)
