"""The most violated antichain of trees of drafts, against a list of all antichains."""

from fractions import Fraction

import numpy as np
import pytest

from spectheory import ModelPair, instances
from spectheory.optima.bounds.tree_antichains import Candidates, most_violated_antichains
from spectheory.optima.multi_path import largest_listed_excess
from spectheory.pairs.contexts import context_number
from spectheory.pairs.drafts import HubTree, PrefixTree, WithoutReplacement
from spectheory.pairs.drafts.trees import Tree

CASES: tuple[tuple[int, Tree], ...] = (
    (2, PrefixTree((2, 2))),
    (3, PrefixTree((2, 3))),
    (2, PrefixTree((1, 2, 2))),
    (3, WithoutReplacement((2, 2))),
    (3, WithoutReplacement((1, 2))),
    (2, WithoutReplacement((2, 1, 2))),
    (3, HubTree((2, 2))),
)
"""V and the drafts."""


def random_masses(pair: ModelPair, seed: int) -> list[np.ndarray]:
    rng, scale = np.random.default_rng(seed), (40, 12, 6)[seed % 3]
    sizes = [pair.vocab_size**depth for depth in range(pair.draft_length + 1)]
    return [np.array([Fraction(int(n), scale) for n in rng.integers(0, 8, size)]) for size in sizes]


def disagreements() -> int:
    """How often the largest violation is not that of the list; the antichain returned always has it."""
    wrong = 0
    for size, process in CASES:
        for seed in range(9):
            pair = instances.random_rational([31, seed], size, len(process.widths), zero_probability=0.2)
            if not process.fits(pair):
                continue
            masses = random_masses(pair, seed)
            listed, _ = largest_listed_excess(pair, masses, process)
            found = most_violated_antichains(pair, masses, process, most=3)
            values = [value for value, _ in found]
            assert values == sorted(values, reverse=True)
            assert min([1, *values]) > 0
            for value, antichain in found:
                mass = sum(masses[len(context)][context_number(context, size)] for context in antichain)
                assert value == mass - process.hit_probability(pair, antichain)
            wrong += max([Fraction(0), *values]) != listed
    return wrong


def test_separation_against_enumeration() -> None:
    """theory.md Statement 5.32, on arbitrary masses with ties and zeros."""
    assert disagreements() == 0


def test_floats_agree_with_rationals() -> None:
    for size, process in CASES:
        pair = instances.random_rational([31, 2], size, len(process.widths), zero_probability=0)
        masses = random_masses(pair, 2)
        [(value, _)] = most_violated_antichains(pair, masses, process)
        floats = [level.astype(float) for level in masses]
        [(found, _)] = most_violated_antichains(pair.to_float(), floats, process)
        assert found == pytest.approx(float(value), abs=1e-12)


def test_partner_without_the_inner_vertices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two ends of a hull are not enough."""
    vertices = Candidates.vertices

    def ends(candidates: Candidates) -> Candidates:
        hull = vertices(candidates)
        return Candidates(*(part[[0, -1]] for part in hull)) if len(hull.mass) > 2 else hull

    monkeypatch.setattr(Candidates, "vertices", ends)
    assert disagreements() > 3
