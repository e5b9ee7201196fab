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


@pytest.mark.parametrize(("vocab_size", "depth"), SIZES)
def test_numbers_count_the_contexts_of_a_depth(vocab_size: int, depth: int) -> None:
    """The n-th context that ``product`` lists has number n, and back."""
    for number, context in enumerate(product(range(vocab_size), repeat=depth)):
        assert contexts.context_number(context, vocab_size) == number
        assert contexts.numbered_context(number, depth, vocab_size) == context


def test_rows_along_paths() -> None:
    levels = [np.arange(3**depth * 3).reshape(-1, 3) for depth in range(3)]
    path = (2, 1)
    found = contexts.rows_along(levels, contexts.prefix_numbers(np.array([path]), 3))
    expected = [levels[i][contexts.context_number(path[:i], 3)].tolist() for i in range(3)]
    assert found[0].tolist() == expected
    swapped = contexts.rows_along(levels, contexts.prefix_numbers(np.array([path[::-1]]), 3))
    assert swapped[0].tolist() != expected  # the partner: the order of tokens matters


@given(paths=PATHS, data=st.data())
def test_credit_goes_to_the_first_path_with_the_prefix(paths: np.ndarray, data: st.DataObject) -> None:
    """The length law of one path is kept, and every entry sits at the first path with that prefix."""
    batch, num_drafts, length = paths.shape
    chosen = data.draw(npst.arrays(np.int64, batch, elements=st.integers(0, num_drafts - 1)))
    weights = data.draw(npst.arrays(np.int64, (batch, length + 1), elements=st.integers(0, 5)))
    credited = contexts.credit_to_first(paths, chosen, weights.astype(float))
    assert credited.shape == (batch, num_drafts, length + 1)
    np.testing.assert_array_equal(credited.sum(axis=1), weights)
    first = contexts.first_path_with_prefix(paths)
    for n, i in np.ndindex(batch, length + 1):
        assert credited[n, first[n, chosen[n], i], i] == weights[n, i]
