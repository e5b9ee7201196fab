"""Several paths on context-free pairs: promises and scores against the program on the tree."""

import numpy as np
import pytest

from deep import first_is_quick
from spectheory import ModelPair, instances, optimum
from spectheory.optima.context_free.promises import Promises, _Search, context_free_interval
from spectheory.optima.context_free.ratios import Ratios
from spectheory.optima.interval.interval import multi_path_interval

FOUR = ModelPair.context_free_pair(["1/2", "3/10", "3/20", "1/20"], ["3/10", "2/5", "1/10", "1/5"], 4)
CASES = [
    (instances.two_token(3), 5),
    (instances.partial_overlap(3), 2),
    (instances.disjoint_supports(2), 3),
    (instances.equal_models(2), 2),
    (instances.uniform(4, 2, 3), 4),
    (instances.bernoulli("1/4", "1", 4), 2),
    (FOUR, 3),
    (instances.two_token(6), 2),
]


@first_is_quick(("pair", "num_drafts"), CASES, quick=5)
def test_the_interval_holds_the_optimum_of_the_tree(pair: ModelPair, num_drafts: int) -> None:
    tree = multi_path_interval(pair, num_drafts)
    found = context_free_interval(pair, num_drafts, relative_gap=6e-3)
    assert found.lower <= tree.upper
    assert tree.lower <= found.upper
    assert found.reached
    assert found.relative_gap <= 6e-3


@pytest.fixture(scope="module")
def search() -> _Search:
    return _Search(Ratios.of(FOUR), 4, 3, 1e-3)


def random_slopes(promises: Promises, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.sort(generator.uniform(0, generator.uniform(0.1, 4), len(promises.grid) - 1))


def test_bounds_hold_for_any_prices(search: _Search) -> None:
    """A search that goes astray costs tightness, not soundness."""
    tree, promises = multi_path_interval(FOUR, 3), Promises.of(32, 3)
    even, shares = search._same_promise(promises), np.array([0.0, 1.0])
    exceeded = 0
    for seed in range(12):
        slopes = random_slopes(promises, seed)
        assert search._certified_upper(promises, slopes) >= tree.lower
        _, policy = search._policy(promises, slopes)
        exceeded += policy.accepted > tree.upper
        assert search._certified_lower(promises, [even, policy], shares) <= tree.upper
    assert exceeded  # policies that nothing limits do promise too much


def test_a_dual_of_another_target_is_no_bound(search: _Search) -> None:
    promises, tree = Promises.of(64, 3), multi_path_interval(FOUR, 3)
    wrong = _Search(Ratios.of(FOUR), 4, 3, 1e-3)
    slopes = np.linspace(0.0, 2.0, len(promises.grid) - 1)
    honest = wrong._certified_upper(promises, slopes)
    assert honest >= tree.lower
    wrong.target = wrong.target * 0.5
    assert wrong._certified_upper(promises, slopes) < min(honest, tree.lower)


def test_promises_of_a_policy_are_kept(search: _Search) -> None:
    """The promises are a martingale from 1, and the value is that of the passes."""
    promises = Promises.of(32, 3)
    slopes = random_slopes(promises, 1)
    value, policy = search._policy(promises, slopes)
    assert policy.law.sum() == pytest.approx(1, abs=1e-12)
    assert policy.law @ promises.grid == pytest.approx(1, abs=1e-12)
    price = np.append(0.0, np.cumsum(slopes * np.diff(promises.grid)))
    assert value == pytest.approx(policy.accepted + (promises.limit - policy.law) @ price, abs=1e-10)
    even = search._same_promise(promises)
    assert even.law[promises.one] == pytest.approx(1, abs=1e-12)
    assert even.accepted <= float(optimum(FOUR).value)


def test_a_tree_of_a_billion_leaves() -> None:
    """V = 2, L = 30, within 3 %; one path earns less, and a shorter draft too."""
    pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], 30)
    best = optimum(pair, 2, relative_gap=3e-2)
    assert (best.method, best.reached) == ("dynamic programs over promises and scores", True)
    assert best.upper >= float(optimum(pair).value)
    assert best.upper >= multi_path_interval(pair.truncate(6), 2).lower
