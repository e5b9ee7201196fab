"""Numbers of contexts and nodes against lists of all contexts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from spectheory import contexts

SIZES = [(1, 3), (2, 3), (3, 2), (4, 1)]


@pytest.mark.parametrize(("vocab_size", "depth"), SIZES)
def test_numbers_count_the_contexts_of_a_depth(vocab_size: int, depth: int) -> None:
    """The n-th context that ``product`` lists has number n, and back."""
    for number, context in enumerate(product(range(vocab_size), repeat=depth)):
        assert contexts.context_number(context, vocab_size) == number
        assert contexts.numbered_context(number, depth, vocab_size) == context


@pytest.mark.parametrize(("vocab_size", "depth"), SIZES)
def test_nodes_are_breadth_first(vocab_size: int, depth: int) -> None:
    """All contexts by length, each below its parent; values split as the depths do."""
    nodes = contexts.all_contexts(vocab_size, depth)
    assert list(nodes) == sorted(nodes, key=lambda node: (len(node), node))
    assert len(set(nodes)) == len(nodes) == contexts.count_nodes(vocab_size, depth)
    parents = contexts.parent_nodes(vocab_size, depth)
    assert [nodes[parent] for parent in parents] == [node[:-1] for node in nodes[1:]]
    parts = contexts.split_by_depth(np.arange(len(nodes)), vocab_size, depth)
    assert [[len(nodes[i]) for i in part] for part in parts] == [
        [i] * vocab_size**i for i in range(depth + 1)
    ]


@pytest.mark.parametrize(("vocab_size", "depth"), SIZES)
def test_leaves_and_prefixes(vocab_size: int, depth: int) -> None:
    """The leaves below a context start with it; every prefix of a path has its number."""
    leaves = list(product(range(vocab_size), repeat=depth))
    numbers = contexts.prefix_numbers(np.array(leaves)[:, None], vocab_size)[:, 0]
    for at in range(depth + 1):
        prefix = contexts.prefix_of_leaf(np.arange(len(leaves)), at, depth, vocab_size)
        assert prefix.tolist() == numbers[:, at].tolist()
        for number, context in enumerate(product(range(vocab_size), repeat=at)):
            below = [i for i, leaf in enumerate(leaves) if leaf[:at] == context]
            assert list(contexts.leaves_below(number, at, vocab_size, depth)) == below
            assert {int(n) for n in prefix[below]} == {number}


def test_rows_along_paths() -> None:
    """The row at every prefix, looked up one by one."""
    levels = [np.arange(3**depth * 3).reshape(-1, 3) for depth in range(3)]
    path = (2, 1)
    found = contexts.rows_along(levels, contexts.prefix_numbers(np.array([path]), 3))
    expected = [levels[i][contexts.context_number(path[:i], 3)].tolist() for i in range(3)]
    assert found[0].tolist() == expected
    swapped = contexts.rows_along(levels, contexts.prefix_numbers(np.array([path[::-1]]), 3))
    assert swapped[0].tolist() != expected  # the partner: the order of tokens matters


def test_texts() -> None:
    assert [contexts.context_text(context) for context in ((), (3,), (0, 12))] == ["", "3", "0 12"]
