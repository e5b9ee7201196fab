"""What the verifiers of one path share: ratios along a path, and stops on the first path alone."""

import numpy as np

from spectheory import instances
from spectheory.pairs.contexts import context_number
from spectheory.verification.algorithms.one_path.first_path import (
    first_path_only,
    first_path_ratios,
    path_ratios,
)


def test_stops_stand_on_the_first_path() -> None:
    stop_probs = np.array([0.25, 0.5, 0.25])
    found = first_path_only(stop_probs, np.array([[0, 1], [1, 1], [1, 0]]))
    assert found.tolist() == [[0.25, 0.5, 0.25], [0, 0, 0], [0, 0, 0]]


def test_ratios_of_every_path_and_of_the_first() -> None:
    """p / q of the drafted token at its own depth; a row of depth L has no part in it."""
    pair = instances.random_rational(3, 3, 2, zero_probability=0)
    paths = np.array([[2, 0], [1, 1]])
    contexts = [[(), (first,), (first, second)] for first, second in paths.tolist()]
    target, draft = (
        np.array([[side[len(c)][context_number(c, 3)] for c in nodes[: len(side)]] for nodes in contexts])
        for side in (pair.target, pair.draft)
    )
    expected = [
        [target[path, depth, paths[path, depth]] / draft[path, depth, paths[path, depth]] for depth in (0, 1)]
        for path in (0, 1)
    ]
    assert path_ratios(paths, target, draft).tolist() == expected
    assert first_path_ratios(paths, target, draft).tolist() == expected[0]
    assert expected[0] != expected[1]
