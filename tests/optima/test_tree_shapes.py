"""Shapes of trees: the dynamic program against all shapes, and the values against exact laws."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any

import pytest

from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.optima.tree_shapes import Shape, best_shapes
from spectheory.pairs.drafts import DraftProcess, PrefixTree, TopTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from tree_values import prefix_tree_value, profile_levels, ranked_acceptance, shape_value

PAIRS = [
    instances.two_token(2),
    instances.random_rational(1, 3, 2),
    instances.random_rational(2, 2, 3),
    instances.random_rational(3, 3, 2, zero_probability=0.3),
]
WIDTHS = ((2, 1, 1), (2, 2, 1), (1, 2, 1))


@cache
def all_shapes(num_nodes: int, depth: int) -> list[Shape]:
    """Every tree with so many nodes below the root, at most so deep."""
    if not num_nodes:
        return [()]
    if not depth:
        return []
    return [
        (child, *others)
        for used in range(1, num_nodes + 1)
        for child in all_shapes(used - 1, depth - 1)
        for others in all_shapes(num_nodes - used, depth)
    ]


def uniform(widths: tuple[int, ...]) -> Shape:
    return (uniform(widths[1:]),) * widths[0] if widths else ()


def earned(verifier: str, pair: ModelPair, process: DraftProcess) -> Any:
    return output_law(verifier, pair, process).block_efficiency


@pytest.mark.parametrize("drafts", ["shaped_tree", "without_replacement", "prefix_tree"])
@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_no_shape_earns_more(pair: ModelPair, drafts: str) -> None:
    """F(n) is the maximum over all shapes of at most n nodes, and its shape attains it."""
    levels = ranked_acceptance(pair, drafts, 5)
    values = [max(shape_value(levels, shape) for shape in all_shapes(n, pair.draft_length)) for n in range(6)]
    found = best_shapes(levels, 5)
    for n, (value, shape) in enumerate(found, 1):
        assert value == max(values[: n + 1]) == shape_value(levels, shape)
    # The partner: it is not every shape that earns as much.
    assert found[2].value > min(shape_value(levels, shape) for shape in all_shapes(3, pair.draft_length))


def test_a_profile_is_the_context_free_pair() -> None:
    """Sequoia's recursion, one number per child, is the case of rows that are the same everywhere."""
    pair = instances.three_token_reversed(3)
    levels = ranked_acceptance(pair, "without_replacement", 3)
    profile = [str(mass) for mass in levels[0][0, :, 0]]
    assert best_shapes(profile_levels(profile, 3), 9) == best_shapes(levels, 9)
    assert best_shapes(profile_levels(profile[:2], 3), 9)[-1].value < best_shapes(levels, 9)[-1].value


def test_the_likeliest_nodes_are_the_best_shape_of_a_falling_profile() -> None:
    """Statement 5.28 (iv); where later positions accept more, a tree that branches late earns more."""
    profile = [Fraction(9, 20), Fraction(1, 4), Fraction(1, 10), Fraction(1, 20)]
    masses = sorted((prod(r) for d in (1, 2, 3) for r in product(profile, repeat=d)), reverse=True)
    for n, best in enumerate(best_shapes(profile_levels([str(a) for a in profile], 3), 12), 1):
        assert best.value == 1 + sum(masses[:n])
    sure, unsure = profile_levels(["1", "0"], 1), profile_levels(["1/2", "1/2"], 1)
    assert best_shapes([*sure, *unsure], 3)[-1].children == (1, 2)


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_values_are_those_of_exact_laws(pair: ModelPair) -> None:
    for widths in {width[: pair.draft_length] for width in WIDTHS}:
        shape = uniform(widths)
        levels = ranked_acceptance(pair, "shaped_tree", 2)
        assert shape_value(levels, shape) == earned("naive_sampling", pair, TopTree(widths))
        exact = earned("multi_round", pair, PrefixTree(widths))
        assert prefix_tree_value(pair, shape) == exact
        # Later children with the accepted token are followed: that never costs anything.
        assert shape_value(ranked_acceptance(pair, "prefix_tree", 2), shape) <= exact
        if min((level > 0).sum(axis=1).min() for level in pair.draft) > 1:
            levels = ranked_acceptance(pair, "without_replacement", 2)
            law = earned("multi_round_without_replacement", pair, WithoutReplacement(widths))
            assert shape_value(levels, shape) == law
