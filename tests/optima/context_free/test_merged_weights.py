"""One path on context-free pairs: merged weights against the program on the tree."""

from fractions import Fraction
from typing import Any

import pytest

from spectheory import ModelPair, instances, optimum
from spectheory.foundation.errors import CertificationError
from spectheory.optima import single_path_optimum
from spectheory.optima.bounds.context_tree import accepted_masses
from spectheory.optima.context_free import merged_weights
from spectheory.optima.context_free.merged_weights import context_free_path_optimum

PAIRS = [
    instances.two_token(3),
    instances.three_token_reversed(3),
    instances.partial_overlap(2),
    instances.disjoint_supports(2),
    instances.equal_models(2),
    instances.uniform(4, 2, 2),
    ModelPair.context_free_pair(["1/2", "3/10", "3/20", "1/20"], ["3/10", "2/5", "1/10", "1/5"], 3),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: str(pair.target[0][0]))
def test_the_value_is_that_of_the_program(pair: ModelPair) -> None:
    for length in range(1, pair.draft_length + 1):
        assert (
            context_free_path_optimum(pair, length).value == single_path_optimum(pair.truncate(length)).value
        )


def test_a_tree_of_a_billion_leaves() -> None:
    """Weights are polynomially many; the tree of L = 14 checks the recursion, which is the same for 30."""
    pair = ModelPair.context_free_pair(["1/3", "2/3"], ["2/3", "1/3"], 30)
    best = optimum(pair)
    assert (best.method, best.reached) == ("block verification by weights", True)
    assert isinstance(best.value, Fraction)
    assert best.lower <= best.value <= best.upper
    shorter = pair.truncate(14).to_float()
    tree = accepted_masses(shorter.numbers.draft_path_probs, shorter.target[:-1])
    assert float(context_free_path_optimum(pair, 14).value) == pytest.approx(
        sum(level.sum() for level in tree), rel=1e-12
    )


def test_float_rows_are_bracketed() -> None:
    exact = optimum(ModelPair.context_free_pair(["1/4", "3/4"], ["3/4", "1/4"], 20))
    found = optimum(ModelPair.context_free_pair([0.25, 0.75], [0.75, 0.25], 20))
    assert isinstance(found.value, float)
    assert found.lower <= exact.value <= found.upper


def test_two_sides_that_differ_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = merged_weights._dual_objective

    def wrong(levels: Any, tokens: list[Any], one: Any) -> Any:
        return honest(levels, [(q, p, ratio * 9 / 10) for q, p, ratio in tokens], one)

    monkeypatch.setattr(merged_weights, "_dual_objective", wrong)
    with pytest.raises((CertificationError, KeyError)):
        context_free_path_optimum(instances.three_token_reversed(3))
