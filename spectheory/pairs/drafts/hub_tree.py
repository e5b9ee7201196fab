"""Trees with at most two next tokens at a node.  If there are two, one is the hub, the likeliest token."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts.without_replacement import DistinctTree


@dataclass(frozen=True)
class HubTree(DistinctTree):
    """A node's children are its hub (its likeliest token) and another token (SpecHub, arXiv 2411.05289).

    The first child is drawn from the draft row.  If it is not the hub, the second is the hub.  Otherwise the
    second is drawn from the row without the hub.  theory.md Statement 3.12 gives the largest acceptance.

    Attributes:
        widths: 1 or 2 at every depth.  A node with one next token draws it from the draft row.

    Example:
        >>> from spectheory import ModelPair, optimum
        >>> rows = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
        >>> pair = ModelPair.context_free_pair(*rows, 1)
        >>> print(optimum(pair, HubTree((2,))).value)
        11/6
    """

    name: ClassVar[str] = "hub_tree"

    def __post_init__(self) -> None:
        super().__post_init__()
        if max(self.widths) > 2:
            raise InvalidInputError(
                f"a node of a hub_tree has 1 or 2 next tokens, got widths {list(self.widths)}"
            )

    @staticmethod
    def _count_children(row: np.ndarray, counts: Sequence[int], width: int) -> int:
        hub, total = int(np.argmax(row)), int(sum(counts))
        return total if width == 1 else 2 * int(counts[hub]) * (total - int(counts[hub]))

    @staticmethod
    def _children(row: np.ndarray, support: Sequence[int], width: int) -> Iterator[tuple[Context, Any]]:
        hub = int(np.argmax(row))
        for token in support:
            if width == 1:
                yield (token,), row[token]
            elif token != hub:
                yield (token, hub), row[token]
                yield (hub, token), row[hub] * row[token] / np.delete(row, hub).sum()
