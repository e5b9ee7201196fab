"""Two pair files as JSON documents, and what it means that two pairs are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory.pair import ModelPair
from spectheory.pair_file import FORMAT

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
