"""K independent paths of one draft model: the process for ``drafts=K``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement, islice
from math import comb, inf, log10
from typing import ClassVar

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_num_drafts, is_whole
from spectheory.pairs.contexts import count_orders
from spectheory.pairs.drafts.process import DraftProcess, DraftTuples, OwnProcess, path_hits
from spectheory.pairs.drafts.users import UserProcess, is_of_the_package
from spectheory.pairs.pair import ModelPair


@dataclass(frozen=True)
class Iid(OwnProcess):
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

    @property
    def text(self) -> str:
        return f"{self.name}:{self.num_drafts}"

    def check(self, pair: ModelPair) -> None:
        """Accept every pair: i.i.d. paths can be drafted from any pair."""

    def count_tuples(self, pair: ModelPair, as_multisets: bool = False) -> float:
        leaves, drafts = int((pair.numbers.draft_path_probs[-1] > 0).sum()), self.num_drafts
        if as_multisets:
            digits = min(leaves - 1, drafts) * log10(leaves + drafts)
            return inf if digits > 300 else comb(leaves + drafts - 1, drafts)
        return inf if drafts * log10(leaves) > 300 else leaves**drafts

    def first_path(self) -> Iid:
        return Iid(1)

    def enumerate(self, pair: ModelPair, size: int, as_multisets: bool = False) -> Iterator[DraftTuples]:
        path_probs = pair.numbers.draft_path_probs[pair.draft_length]
        support = np.flatnonzero(path_probs > 0)
        chunks = _multisets if as_multisets else _all_tuples
        for positions, orders in chunks(len(support), self.num_drafts, size):
            leaves = support[positions]
            yield DraftTuples(leaves, path_probs[leaves].prod(axis=1) * orders.astype(path_probs.dtype))

    def _hits(self, pair: ModelPair, members: np.ndarray) -> np.ndarray:
        return hit_probability(path_hits(pair, members), self.num_drafts)


def draft_process(drafts: int | DraftProcess) -> DraftProcess:
    """Convert an argument ``drafts`` to a draft process.

    Args:
        drafts: K, for K paths drawn independently from the draft model, or a draft process.

    Raises:
        InvalidInputError: ``drafts`` is neither an integer of at least 1 nor a draft process, or a user's
            process has the name of a process of the package.

    Example:
        >>> from spectheory.pairs.drafts import PrefixTree
        >>> draft_process(2), draft_process(PrefixTree((2, 2)))
        (Iid(num_drafts=2), PrefixTree(widths=(2, 2)))
    """
    if isinstance(drafts, DraftProcess):
        return drafts if is_of_the_package(drafts) else UserProcess(drafts)
    if not is_whole(drafts) or drafts < 1:
        raise InvalidInputError(
            "drafts must be a whole number of at least 1 or a draft process such as "
            f"PrefixTree((2, 2)), got {drafts!r}"
        )
    return Iid(int(drafts))


def _all_tuples(leaves: int, num_drafts: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the K-tuples of leaves in batches: (leaf indices [N, K], ones [N])."""
    count = leaves**num_drafts
    for start in range(0, count, size):
        numbers = np.arange(start, min(start + size, count))
        digits = [numbers // leaves**k % leaves for k in range(num_drafts)]
        yield np.stack(digits, axis=1), np.ones(len(numbers), dtype=np.int64)


def _multisets(leaves: int, num_drafts: int, size: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the multisets of K leaves in batches: (leaf indices [N, K], ascending; numbers of orders [N])."""
    multisets = combinations_with_replacement(range(leaves), num_drafts)
    while batch := list(islice(multisets, size)):
        yield np.array(batch), np.array([count_orders(multiset) for multiset in batch])
