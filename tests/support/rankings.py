"""Tree-based rankings, and the order on all leaves that each of them defines."""

from typing import Any

import numpy as np

import reference
from spectheory.optima.bounds.rankings import Ranking, coarse_ratio_ranking, ratio_ranking
from spectheory.pairs.pair import ModelPair
from table import Case, groups

RANDOM_GROUPS = [
    "random-V2-L1-K3",
    "random-V2-L2-K3",
    "random-V2-L3-K2",
    "random-V3-L1-K2",
    "random-V3-L2-K2",
    "random-V4-L1-K3",
]

RANKINGS: dict[str, Ranking] = {
    "ratio": ratio_ranking,
    "reversed ratio": lambda target_rows, draft_rows: -ratio_ranking(target_rows, draft_rows),
    "coarse ratio": coarse_ratio_ranking,
    "target": lambda target_rows, draft_rows: target_rows,
    "unlikely last": lambda target_rows, draft_rows: -draft_rows,
    "difference": lambda target_rows, draft_rows: target_rows - draft_rows,
    "token id": lambda target_rows, draft_rows: draft_rows * 0,
}
"""Tree-based rankings; ties are frequent, and in the last all tokens tie."""


def some_cases(group: str, most: int = 8) -> tuple[Case, ...]:
    return groups()[group][:most]


def plain_order(pair: ModelPair, ranking: Ranking) -> list[tuple[int, ...]]:
    """All leaves by their tuples of (key, token id), the definition of a tree-based ranking."""

    def key(path: tuple[int, ...]) -> list[tuple[Any, int]]:
        steps = []
        for i, token in enumerate(path):
            rows = [np.array(row(pair, path[:i])) for row in (reference.target_row, reference.draft_row)]
            steps.append((ranking(*rows)[token], token))
        return steps

    return sorted(reference.leaves(pair), key=key)
