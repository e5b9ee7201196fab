"""The most violated antichain against a list of all antichains."""

from fractions import Fraction

import numpy as np
import pytest

from deep import first_is_quick
from spectheory import instances
from spectheory.optima import antichains, multi_path_optimum, single_path_program
from spectheory.optima.bounds.antichain_hulls import most_violated_antichain
from spectheory.pairs.pair import ModelPair


@first_is_quick(("vocab_size", "draft_length"), [(2, 2), (2, 3), (3, 2)])
@first_is_quick("num_drafts", [1, 2, 3])
def test_separation_against_enumeration(vocab_size: int, draft_length: int, num_drafts: int) -> None:
    """The hulls find the largest violation over all antichains, on arbitrary and on feasible masses."""
    rng = np.random.default_rng([vocab_size, draft_length, num_drafts])
    members = antichains(vocab_size, draft_length)
    for trial in range(6):
        pair = instances.random_rational([num_drafts, trial], vocab_size, draft_length)
        scale = (1, 4, 20)[trial % 3]
        masses = [
            np.array([Fraction(int(w), 20 * scale) for w in rng.integers(0, 8, vocab_size**i)], dtype=object)
            for i in range(draft_length + 1)
        ]
        assert_separates(pair, masses, num_drafts, members)
    solution = multi_path_optimum(pair, num_drafts)
    budgets = np.array(list(solution.primal.values()), dtype=object)
    starts = np.cumsum([vocab_size**i for i in range(draft_length)])
    feasible = np.split(budgets * single_path_program(pair).objective, starts)
    assert most_violated_antichain(pair, feasible, num_drafts)[0] == 0
    assert_separates(pair, [2 * level for level in feasible], num_drafts, members)


def test_a_node_beyond_a_child_without_mass() -> None:
    """The line to the root's point is flatter than all steps; the second child has none."""
    pair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/100", "99/100"], 1)
    masses = [np.array([Fraction(3, 2)]), np.array([Fraction(1), Fraction(0)])]
    assert most_violated_antichain(pair, masses, 100) == (Fraction(1, 2), ((),))
    assert_separates(pair, masses, 100, antichains(2, 1))


def assert_separates(pair: ModelPair, masses: list[np.ndarray], num_drafts: int, members: np.ndarray) -> None:
    depths = range(pair.draft_length + 1)
    mass = np.concatenate(masses)
    draft = np.concatenate([pair.draft_path_probs(i) for i in depths])
    counted = members.astype(object)
    best = max(counted @ mass - 1 + (1 - counted @ draft) ** num_drafts)
    violation, found = most_violated_antichain(pair, masses, num_drafts)
    assert isinstance(violation, Fraction)
    assert violation == best
    labels = list(single_path_program(pair).variables)
    chosen = np.isin(np.arange(len(labels)), [labels.index(context) for context in found])
    assert (members == chosen).all(axis=1).any()
    assert mass[chosen].sum() - 1 + (1 - draft[chosen].sum()) ** num_drafts == best
    floats, _ = most_violated_antichain(pair.to_float(), [m.astype(float) for m in masses], num_drafts)
    assert floats == pytest.approx(float(best), abs=1e-12)
