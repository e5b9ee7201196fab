"""Two pair files as JSON documents, rows along paths, and what it means that two pairs are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from reference import draft_row, target_row
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.pair_file import FORMAT

DOCUMENT: dict[str, Any] = {
    "format": FORMAT,
    "vocab": ["A", "B"],
    "draft_length": 1,
    "target": {"": ["1/3", "2/3"], "0": ["1/2", "0.5"], "1": ["1", "0"]},
    "draft": {"": ["2/3", "1/3"]},
}
CONTEXT_FREE: dict[str, Any] = {
    "format": FORMAT,
    "vocab": ["A", "B"],
    "draft_length": 2,
    "context_free": True,
    "target": ["1/3", "2/3"],
    "draft": ["2/3", "1/3"],
}


def assert_same_pair(one: ModelPair, other: ModelPair) -> None:
    """The same numbers of the same kind, bit by bit, and the same names."""
    assert (one.vocab, one.draft_length, one.arithmetic) == (
        other.vocab,
        other.draft_length,
        other.arithmetic,
    )
    assert one.context_free == other.context_free
    assert (len(one.target), len(one.draft)) == (len(other.target), len(other.draft))
    for level, expected in zip((*one.target, *one.draft), (*other.target, *other.draft), strict=True):
        assert level.dtype == expected.dtype
        np.testing.assert_array_equal(level, expected)


def rows_on(pair: ModelPair, paths: list[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One tuple of drafted paths with both models' rows, in a batch of one."""
    along = [[path[:depth] for depth in range(pair.draft_length + 1)] for path in paths]
    target = [[target_row(pair, context) for context in contexts] for contexts in along]
    draft = [[draft_row(pair, context) for context in contexts[:-1]] for contexts in along]
    return np.array([paths]), np.array([target], dtype=object), np.array([draft], dtype=object)
