"""The cut at several nodes is that of all sets and of the flow to all tuples of tokens."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest

from spectheory.optima import min_cut_of_nodes, optimal_acceptance
from spectheory.optima.transport import largest_coupling

SHAPES = ((2,), (1, 1), (3,), (2, 1), (1, 1, 1))
"""How many paths pass each node."""


def cases(seed: int, count: int) -> list[tuple[np.ndarray, np.ndarray, tuple[int, ...]]]:
    """(e, q, n): rationals with zeros, ties and nodes that the output never keeps."""
    rng, found = np.random.default_rng(seed), []
    for number in range(count):
        nodes, size = SHAPES[number % len(SHAPES)], 2 + number % 2
        weights = rng.integers(0, 4, (2, len(nodes), size)) + np.eye(size, dtype=int)[0]
        rows = [[[Fraction(int(w), int(row.sum())) for w in row] for row in side] for side in weights]
        shares = rng.integers(0, 3, len(nodes))
        kept = [Fraction(int(share), int(shares.sum()) + 1) for share in shares]
        found.append((np.array(kept)[:, None] * np.array(rows[0]), np.array(rows[1]), nodes))
    return found


def cut_value(masses: np.ndarray, draft: np.ndarray, nodes: tuple[int, ...], mask: np.ndarray) -> Fraction:
    hit = (mask * draft).sum(axis=1)
    return (~mask * masses).sum() + 1 - prod((1 - hit) ** np.array(nodes))


def test_cut_is_the_smallest_over_all_sets_and_the_flow() -> None:
    """60 cases, exactly; the mask attains the value."""
    for masses, draft, nodes in cases(1, 60):
        found = min_cut_of_nodes(masses, draft, nodes)
        masks = np.array(list(product((False, True), repeat=draft.size))).reshape(-1, *draft.shape)
        assert found.value == cut_value(masses, draft, nodes, found.tokens)
        assert found.value == min(cut_value(masses, draft, nodes, mask) for mask in masks)

        places = np.repeat(np.arange(len(nodes)), nodes)
        tuples = list(product(range(draft.shape[1]), repeat=len(places)))
        probs = [
            prod(draft[place, token] for place, token in zip(places, some, strict=True)) for some in tuples
        ]
        edges = {
            (int(place) * draft.shape[1] + token, number)
            for number, some in enumerate(tuples)
            for place, token in zip(places, some, strict=True)
        }
        assert sum(largest_coupling(masses.ravel(), probs, edges).values()) == found.value


def test_one_node_is_one_position() -> None:
    """With e = p the cut is α_K, in rationals and in float64."""
    target, draft = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
    for number in (1, 2, 3):
        best = optimal_acceptance(target, draft, number).value
        assert min_cut_of_nodes([target], [draft], [number]).value == best
        floats = ([[float(Fraction(entry)) for entry in row]] for row in (target, draft))
        assert min_cut_of_nodes(*floats, [number]).value == pytest.approx(float(best), abs=1e-15)
