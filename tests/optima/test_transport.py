"""Couplings by maximum flow, and Lemma 4.5 by them."""

from fractions import Fraction
from itertools import combinations, product
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from leaf_laws import random_law, random_member
from spectheory import instances
from spectheory.optima.bounds.skewed_draft import is_skewed_draft
from transport_feasibility import transport_feasibility


@given(st.data())
def test_lemma_a1(data: st.DataObject) -> None:
    """A coupling or a set with a(S) > b(N(S)), and the one exists exactly when the other does not."""
    sizes = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    left, right = random_law(rng, sizes[0]), random_law(rng, sizes[1])
    every = list(product(range(sizes[0]), range(sizes[1])))
    edges = [edge for edge in every if rng.random() < 0.6]
    found = transport_feasibility(left, right, edges)

    def hall(chosen: tuple[int, ...]) -> Fraction:
        reached = {y for x, y in edges if x in chosen}
        return sum(left[list(chosen)], Fraction(0)) - sum((right[y] for y in reached), Fraction(0))

    subsets = [s for size in range(sizes[0] + 1) for s in combinations(range(sizes[0]), size)]
    assert found.excess == max(hall(s) for s in subsets)
    assert found.is_feasible == (found.excess == 0)
    if found.coupling is None:
        assert hall(found.violating_set) == found.excess > 0
        return
    assert set(found.coupling) <= set(edges)
    assert min(found.coupling.values()) > 0
    for x in range(sizes[0]):
        assert sum(mass for edge, mass in found.coupling.items() if edge[0] == x) == left[x]
    for y in range(sizes[1]):
        assert sum(mass for edge, mass in found.coupling.items() if edge[1] == y) == right[y]


def test_lemma_4_5_by_maximum_flow() -> None:
    """A law is selected from K-tuples of drafts by some rule iff the sorted test says so, same excess."""
    rng = np.random.default_rng(3)
    verdicts = set()
    for seed in range(100):
        V, L, K = ((2, 1, 2), (2, 2, 2), (3, 1, 3), (2, 1, 3))[seed % 4]
        pair = instances.random_rational(seed, V, L)
        probs = pair.draft_path_probs(L)
        tuples = list(product(range(V**L), repeat=K))
        masses = [prod(probs[leaf] for leaf in drafts) for drafts in tuples]
        edges = [(leaf, number) for number, drafts in enumerate(tuples) for leaf in set(drafts)]
        for law in (random_member(rng, pair, K), random_law(rng, V**L)):
            flow = transport_feasibility(law, masses, edges)
            found = is_skewed_draft(pair, law, K)
            assert (flow.is_feasible, flow.excess) == (found.is_member, found.excess)
            verdicts.add(found.is_member)
    assert verdicts == {True, False}
