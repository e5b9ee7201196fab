"""Contexts of the V-ary tree, and their numbers.

A context is a tuple of token ids.  Its number within its depth is written in base V, most significant token
first.  Its node number counts over all depths, breadth first: the root is 0, then depth 1 in token order, and
so on.
"""

from collections.abc import Sequence
from itertools import product
from math import factorial, prod
from typing import Any

import numpy as np

from spectheory.foundation.arrays import Array, namespace, take_path

Context = tuple[int, ...]


def context_number(context: Sequence[int], vocab_size: int) -> int:
    """Compute the number of a context among the V^depth contexts of its depth.

    Example:
        >>> context_number((1, 0, 1), 2)
        5
    """
    number = 0
    for token in context:
        number = number * vocab_size + token
    return number


def numbered_context(number: int, depth: int, vocab_size: int) -> Context:
    """Return the context with this number at this depth.

    Example:
        >>> numbered_context(5, 3, 2)
        (1, 0, 1)
    """
    tokens = []
    for _ in range(depth):
        number, token = divmod(number, vocab_size)
        tokens.append(token)
    return tuple(reversed(tokens))


def context_text(context: Sequence[int]) -> str:
    """Write a context as in messages and pair files: token ids separated by one space, "" at the root.

    Example:
        >>> context_text((0, 12))
        '0 12'
    """
    return " ".join(str(token) for token in context)


def count_nodes(vocab_size: int, depth: int) -> int:
    """Count the nodes of the tree down to this depth: 1 + V + .. + V^depth.

    Example:
        >>> count_nodes(2, 8)
        511
    """
    return sum(vocab_size**i for i in range(depth + 1))


def context_node(context: Sequence[int], vocab_size: int) -> int:
    """Compute the node number of a context: its number among all nodes, breadth first.

    Example:
        >>> context_node((1, 0), 2)
        5
    """
    return count_nodes(vocab_size, len(context) - 1) + context_number(context, vocab_size)


def count_orders(multiset: Sequence[int]) -> int:
    """Count the distinct orders of a multiset of tokens or paths.

    Example:
        >>> count_orders((0, 0, 1))
        3
    """
    return factorial(len(multiset)) // prod(factorial(multiset.count(value)) for value in set(multiset))


def all_contexts(vocab_size: int, depth: int) -> tuple[Context, ...]:
    """List all contexts of length at most ``depth`` in the order of their node numbers.

    Example:
        >>> all_contexts(2, 1)
        ((), (0,), (1,))
    """
    return tuple(context for i in range(depth + 1) for context in product(range(vocab_size), repeat=i))


def parent_nodes(vocab_size: int, depth: int) -> np.ndarray:
    """List the parent of every node of V^{≤depth} except the root, in the order of the nodes.

    Example:
        >>> parent_nodes(2, 2)
        array([0, 0, 1, 1, 2, 2])
    """
    return (np.arange(1, count_nodes(vocab_size, depth)) - 1) // vocab_size


def split_by_depth(values: np.ndarray, vocab_size: int, depth: int) -> list[np.ndarray]:
    """Split values, one per node of V^{≤depth}, into one array per depth, [V^i] for i = 0..depth.

    Example:
        >>> split_by_depth(np.arange(3), 2, 1)
        [array([0]), array([1, 2])]
    """
    return np.split(values, [count_nodes(vocab_size, i) for i in range(depth)])


def leaves_below(number: int, context_depth: int, vocab_size: int, depth: int) -> range:
    """Return the numbers of the leaves of V^depth below a context, given by its number and depth.

    Example:
        >>> leaves_below(1, 1, 2, 3)
        range(4, 8)
    """
    width = vocab_size ** (depth - context_depth)
    return range(number * width, (number + 1) * width)


def prefix_numbers(paths: Array, vocab_size: int) -> Array:
    """Compute the number of every prefix within its depth.  [..., K, L] -> [..., K, L+1]

    Example:
        >>> import numpy as np
        >>> prefix_numbers(np.array([[1, 0, 1]]), 2)
        array([[0, 1, 2, 5]])
    """
    numbers = [paths[..., 0] * 0]
    for depth in range(paths.shape[-1]):
        numbers.append(numbers[-1] * vocab_size + paths[..., depth])
    return namespace(paths).stack(numbers, axis=-1)


def prefix_of_leaf(leaves: Any, depth: int, draft_length: int, vocab_size: int) -> Any:
    """Compute the number of the prefix of this depth, for paths given by leaf numbers.  [...] -> [...]

    Example:
        >>> prefix_of_leaf(5, 2, 3, 2)  # (1, 0, 1) starts with (1, 0)
        2
    """
    return leaves // vocab_size ** (draft_length - depth)


def paths_to(numbers: np.ndarray, draft_length: int, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the prefixes and the lengths of paths given by path numbers.

    Args:
        numbers: path numbers, [...].  A path of L tokens has its leaf number; a path that ends early at node
            number n has -1 - n.
        draft_length, vocab_size: L and V.

    Returns:
        The number of every prefix within its depth, [..., L+1], and the numbers of tokens, [...].  After the
        end of a path the prefix continues with token 0.

    Example:
        >>> prefixes, lengths = paths_to(np.array([5, -1 - 2]), 3, 2)  # (1, 0, 1), and (1,)
        >>> prefixes.tolist(), lengths.tolist()
        ([[0, 1, 2, 5], [0, 1, 2, 4]], [3, 1])
    """
    first = np.array([count_nodes(vocab_size, depth - 1) for depth in range(draft_length + 1)])
    nodes = np.where(numbers < 0, -1 - numbers, first[-1] + numbers)
    lengths = np.searchsorted(first, nodes, side="right") - 1
    leaves = (nodes - first[lengths]) * vocab_size ** (draft_length - lengths)
    depths = range(draft_length + 1)
    return np.stack(
        [prefix_of_leaf(leaves, depth, draft_length, vocab_size) for depth in depths], axis=-1
    ), lengths


def path_number(path: Sequence[int], draft_length: int, vocab_size: int) -> int:
    """Compute the path number (``paths_to``) of a path of at most L tokens.

    Example:
        >>> path_number((1, 0, 1), 3, 2), path_number((1,), 3, 2)
        (5, -3)
    """
    ended = len(path) < draft_length
    return -1 - context_node(path, vocab_size) if ended else context_number(path, vocab_size)


def path_to(number: int, draft_length: int, vocab_size: int) -> Context:
    """Return the tokens of the path with this path number (``paths_to``).

    Example:
        >>> path_to(5, 3, 2), path_to(-1 - 2, 3, 2)
        ((1, 0, 1), (1,))
    """
    prefixes, length = paths_to(np.array(number), draft_length, vocab_size)
    return numbered_context(int(prefixes[length]), int(length), vocab_size)


def rows_along(levels: Sequence[Array], prefixes: Array) -> Array:
    """Look up the rows of a model along paths.

    Args:
        levels: D arrays of rows, [V^depth, V] for depth 0..D-1.
        prefixes: [..., L+1], the number of every prefix within its depth.

    Returns:
        [..., D, V].
    """
    rows = [level[prefixes[..., depth]] for depth, level in enumerate(levels)]
    return namespace(rows[0]).stack(rows, axis=-2)


def first_path_with_prefix(paths: Array) -> Array:
    """Find, for each path k and length i, the first path with the same first i tokens.

    [..., K, L] -> [..., K, L+1].  Entry (k, 0) is 0, because all paths share the empty prefix.

    Example:
        >>> import numpy as np
        >>> first_path_with_prefix(np.array([[0, 1], [1, 0], [0, 0]]))
        array([[0, 0, 0],
               [0, 1, 1],
               [0, 0, 2]])
    """
    xp = namespace(paths)
    return xp.argmax(xp.astype(shared_prefixes(paths), xp.int64), axis=-2)


def is_first_with_prefix(paths: Array) -> Array:
    """True if path k is the first path with its first i tokens.  [..., K, L] -> bool [..., K, L+1]"""
    return first_path_with_prefix(paths) == _path_indices(paths)


def _path_indices(paths: Array) -> Array:  # [K, 1]
    return namespace(paths).arange(paths.shape[-2], device=paths.device)[:, None]


def shared_prefixes(paths: Array) -> Array:
    """True at [..., k, j, i] if paths k and j have the same first i tokens.

    [..., K, L] -> bool [..., K, K, L+1]
    """
    xp = namespace(paths)
    agree = xp.astype(paths[..., :, None, :] == paths[..., None, :, :], xp.int64)
    empty = xp.ones((*agree.shape[:-1], 1), dtype=xp.int64, device=agree.device)
    return xp.cumulative_prod(xp.concat([empty, agree], axis=-1), axis=-1) == 1


def credit_to_first(paths: Array, path_index: Array, length_probs: Array) -> Array:
    """Credit the stop probabilities of one chosen path to the first path with each prefix.

    Args:
        paths: [..., K, L].
        path_index: [...], the chosen path.
        length_probs: [..., L+1], the law of the accepted length tau on the chosen path.

    Returns:
        [..., K, L+1].
    """
    xp = namespace(length_probs)
    holder = take_path(first_path_with_prefix(paths), path_index)[..., None, :]
    numbers = _path_indices(paths)
    spread = length_probs[..., None, :] + xp.zeros_like(numbers)
    return xp.where(holder == numbers, spread, spread - spread)
