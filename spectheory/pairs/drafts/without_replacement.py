"""Trees whose nodes draw distinct next tokens."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts.trees import Tree
from spectheory.pairs.pair import ModelPair


@dataclass(frozen=True)
class DistinctTree(Tree):
    """A tree in which the next tokens of a node are distinct."""

    def check(self, pair: ModelPair) -> None:
        super().check(pair)
        for depth, width in enumerate(self.widths):
            smallest = int((pair.draft[depth] > 0).sum(axis=1).min())
            if smallest < width:
                raise InvalidInputError(
                    f"cannot draw {width} distinct tokens at depth {depth}: some draft row has only "
                    f"{smallest} tokens with mass; use smaller widths"
                )


@dataclass(frozen=True)
class WithoutReplacement(DistinctTree):
    """Every node at depth i draws k_{i+1} *distinct* next tokens, one after the other.

    The j-th is drawn from the draft row without the tokens drawn before it, renormalised.

    Example:
        >>> from spectheory import instances
        >>> print(WithoutReplacement((2,)).hit_probability(instances.two_token(1), [(0,)]))
        1
    """

    name: ClassVar[str] = "without_replacement"

    @staticmethod
    def _count_children(row: np.ndarray, counts: Sequence[int], width: int) -> int:
        # width! times the elementary symmetric polynomial of degree width in the counts.
        symmetric = [1] + [0] * width
        for count in counts:
            for degree in range(width, 0, -1):
                symmetric[degree] += symmetric[degree - 1] * int(count)
        return symmetric[width] * factorial(width)

    @staticmethod
    def _children(row: np.ndarray, support: Sequence[int], width: int) -> Iterator[tuple[Context, Any]]:
        for tokens in permutations(support, width):
            prob = row[tokens[0]] * 0 + 1
            for place, token in enumerate(tokens):  # sum the rest: 1 - sum would cancel if little is left
                prob = prob * row[token] / np.delete(row, tokens[:place]).sum()
            yield tokens, prob
