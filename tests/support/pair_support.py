"""Pair files as JSON documents, good and bad ones, rows along paths, and when two pairs are the same."""

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
BAD_DOCUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    # what is wrong: (fields that replace those of DOCUMENT, what the error says)
    "format": ({"format": "spectheory-pair/2"}, r'expected "format": "spectheory-pair/1", got .*pair/2'),
    "vocab not names": ({"vocab": [1, 2]}, r"vocab must be a list of strings, got \[1, 2\]"),
    "vocab repeated": ({"vocab": ["A", "A"]}, r"vocab has repeated names: \['A', 'A'\]"),
    "vocab too long": ({"vocab": ["A", "B", "C"]}, r"shape \(1, 2\); expected \(1, 3\) for 3 tokens"),
    "length 0": ({"draft_length": 0}, "draft_length must be a whole number of at least 1, got 0"),
    "length a string": ({"draft_length": "1"}, "whole number of at least 1, got '1'"),
    "length a fraction": ({"draft_length": 1.5}, r"whole number of at least 1, got 1\.5"),
    "length true": ({"draft_length": True}, "whole number of at least 1, got True"),
    "row sum": ({"draft": {"": ["2/3", "1/4"]}}, "the draft row at context '' sums to 11/12, not 1"),
    "deep row sum": (
        {"target": {**DOCUMENT["target"], "1": ["1/2", "1/3"]}},
        "the target row at context '1' sums to 5/6, not 1",
    ),
    "float row sum": (
        {"target": {"": [0.5, 0.4], "0": [1, 0], "1": [1, 0]}, "draft": {"": [1, 0]}},
        r"the target row at context '' sums to 0\.9, not 1",
    ),
    "negative": ({"draft": {"": ["4/3", "-1/3"]}}, r"negative entry: \[4/3, -1/3\]"),
    "no root": ({"target": {"0": ["1", "0"]}}, "no row at the root context ''"),
    "context missing": (
        {"target": {"": ["1", "0"], "0": ["1", "0"]}},
        "the target has no row at context '1'; every context of depth 0..1 over 2 tokens needs one",
    ),
    "draft missing": ({"draft": {}}, "the draft has no row at context ''"),
    "context too deep": (
        {"draft": {"": ["1", "0"], "0": ["1", "0"]}},
        r"the draft has a row at context '0', which is not a context of depth 0\.\.0",
    ),
    "unknown token": (
        {"target": {**DOCUMENT["target"], "2": ["1", "0"]}},
        r"row at context '2', which is not a context of depth 0\.\.1 over tokens 0\.\.1; remove it",
    ),
    "bad key": ({"draft": {"": ["1", "0"], "A": ["1", "0"]}}, "context 'A' is not a list of token ids"),
    "mixed": ({"draft": {"": [0.5, 0.5]}}, r"exact and float entries are mixed \('1/3' and 0\.5\)"),
    "not a rational": ({"draft": {"": ["one", "0"]}}, "'one' is not a rational such as '1/3'"),
    "division by zero": ({"draft": {"": ["1/0", "0"]}}, "'1/0' is not a rational"),
    "infinite string": ({"draft": {"": ["inf", "0"]}}, "'inf' is not a rational"),
    "null": ({"draft": {"": [None, "1"]}}, "must be a string or a number, got None"),
    "boolean": ({"draft": {"": [True, "0"]}}, "a probability cannot be True"),
    "nested": ({"draft": {"": [["1"], "0"]}}, r"must be a string or a number, got \['1'\]"),
    "row a string": ({"draft": {"": "1/2"}}, "a row must be a list of probabilities, got '1/2'"),
    "draft row too short": ({"draft": {"": ["1"]}}, "draft row at context '' has 1 entry; expected 2"),
    "row lengths differ": ({"target": {**DOCUMENT["target"], "0": ["1", "0", "0"]}}, "context '0'"),
    "rows empty": ({"vocab": [], "target": {"": []}, "draft": {"": []}}, "at least one token"),
    "tables without contexts": ({"target": ["1", "0"]}, "target must map contexts to rows, got list"),
    "unknown field": (
        {"vocabulary": ["A", "B"]},
        "unknown fields: vocabulary; a pair file has format, vocab, draft_length, target, draft, "
        "and may have context_free",
    ),
    "two spellings": (
        {"target": {**DOCUMENT["target"], "00": ["1/2", "1/2"]}},
        "context '00' must be written '0': plain token ids with one space between them",
    ),
    "context_free a text": ({"context_free": "yes"}, "context_free must be true or false"),
    "beyond float64": ({"target": {"": [10**400, 0]}}, "too large for a float64"),
    "contexts where none are expected": (
        {"context_free": True},
        "a context-free target is one list of probabilities",
    ),
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
