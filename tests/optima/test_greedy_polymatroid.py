"""Skewed drafts as mixtures of rankings, exactly."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from leaf_laws import random_member, ranking_vertex
from spectheory import instances
from spectheory.foundation.errors import InvalidInputError
from spectheory.optima.greedy_polymatroid import decompose_into_rankings
from spectheory.optima.path_selection import path_selection_optimum


def test_every_skewed_draft_is_a_mixture_of_rankings() -> None:
    """Optimal and random members come back exactly from at most M rankings with weights > 0."""
    rng = np.random.default_rng(11)
    several = 0
    for seed in range(21):
        V, L, K = ((2, 1, 2), (2, 2, 2), (3, 1, 3), (2, 3, 3), (3, 2, 2), (4, 1, 2), (3, 3, 2))[seed % 7]
        pair = instances.random_rational(seed, V, L)
        laws = [random_member(rng, pair, K), path_selection_optimum(pair, K).skewed_draft.leaf_law]
        for law in laws:
            found = decompose_into_rankings(pair, K, law)
            assert len(found.weights) == len(found.orders) <= V**L
            assert min(found.weights) > 0
            assert sum(found.weights) == 1
            assert (found.leaf_law(pair, K) == law).all(), seed
            assert all(sorted(order.tolist()) == list(range(V**L)) for order in found.orders)
            several += len(found.weights) > 2
    assert several > 2


def test_vertices_are_their_own_mixture() -> None:
    """The law of one ranking, all of whose leaves can be drafted, decomposes into that ranking alone."""
    pair = instances.three_token_reversed(1)
    for order in permutations(range(3)):
        found = decompose_into_rankings(pair, 2, ranking_vertex(pair, 2, order))
        assert found.weights == (1,)
        assert found.orders[0].tolist() == list(order)


def test_decomposition_partner_refuses_what_is_no_skewed_draft() -> None:
    pair = instances.uniform_equal(1)
    with pytest.raises(InvalidInputError, match=r"leaves \[1\] have 1/20 more"):
        decompose_into_rankings(pair, 2, np.array([Fraction(1, 5), Fraction(4, 5)]))
    with pytest.raises(InvalidInputError, match="exact pair"):
        decompose_into_rankings(pair.to_float(), 2, np.array([0.5, 0.5]))
