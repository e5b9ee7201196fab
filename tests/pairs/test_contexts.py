"""Numbers of contexts and nodes against lists of all contexts."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from spectheory.pairs import contexts

SIZES = [(1, 3), (2, 3), (3, 2), (4, 1)]
PATHS = npst.arrays(
    np.int64,
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    elements=st.integers(0, 2),
)


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


@given(paths=PATHS)
def test_prefix_helpers_agree_with_loops(paths: np.ndarray) -> None:
    """Which paths share a prefix, and which holds it first, against plain comparison."""
    shared, first = contexts.shared_prefixes(paths), contexts.first_path_with_prefix(paths)
    batch, num_drafts, length = paths.shape
    assert shared.shape == (batch, num_drafts, num_drafts, length + 1)
    assert first.shape == (batch, num_drafts, length + 1)
    for n, k, i in np.ndindex(batch, num_drafts, length + 1):
        agree = [bool((paths[n, k, :i] == paths[n, j, :i]).all()) for j in range(num_drafts)]
        assert shared[n, k, :, i].tolist() == agree
        assert first[n, k, i] == agree.index(True)
