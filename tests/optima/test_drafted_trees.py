"""The optimum of trees of drafts beyond the sizes whose antichains can be listed."""

import numpy as np
import pytest

from spectheory import ModelPair, certify, instances, optimum, output_law
from spectheory.foundation.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.optima import drafted_trees, multi_path_interval, multi_path_optimum
from spectheory.optima.drafted_trees import tree_optimum
from spectheory.pairs.drafts import HubTree, PrefixTree, WithoutReplacement


def pair_of(seed: int, size: int, length: int, zeros: float = 0.2) -> ModelPair:
    return instances.random_rational([32, seed], size, length, zero_probability=zeros)


@pytest.mark.parametrize("kind", [PrefixTree, WithoutReplacement, HubTree])
def test_equals_the_program_of_all_antichains(kind: type) -> None:
    """In rationals, with zeros."""
    tried = 0
    for size, widths in ((2, (2, 2)), (3, (2, 1)), (2, (1, 2, 1)), (3, (2, 2))):
        for seed in range(2):
            pair, process = pair_of(seed, size, len(widths)), kind(widths)
            if process.fits(pair):
                assert tree_optimum(pair, process).value == multi_path_optimum(pair, process).value
                tried += 1
    assert tried > 3


def test_paths_that_branch_at_the_root_are_iid() -> None:
    """V = L = 3, 389 017 000 antichains: within the certified interval of i.i.d. drafts."""
    pair = pair_of(0, 3, 3)
    value = float(tree_optimum(pair, PrefixTree((2, 1, 1))).value)
    interval = multi_path_interval(pair, 2)
    assert interval.lower - 1e-12 <= value <= interval.upper + 1e-12


@pytest.mark.parametrize("widths", [(1, 1, 2), (1, 1, 3)])
def test_late_branching_has_the_optimum_of_conditional_transport(widths: tuple[int, ...]) -> None:
    """theory.md Statement 5.30 (v), where the list is too long; ``certify`` finds no violation."""
    process = PrefixTree(widths)
    for seed in range(2):
        certificate = certify("conditional_transport", pair_of(seed, 3, 3), drafts=process)
        assert certificate.is_valid
        assert certificate.block_efficiency == certificate.optimum


def test_all_tokens_drafted_earn_everything() -> None:
    """Without replacement, as many tokens as there are."""
    pair = pair_of(1, 3, 3, zeros=0)
    assert tree_optimum(pair, WithoutReplacement((3, 3, 3))).value == 4
    assert tree_optimum(pair, WithoutReplacement((2, 1, 1))).value < 4


def test_no_verifier_is_above() -> None:
    """Of prefix trees and of trees without replacement; a wrong one is, and passes too often somewhere."""
    pair = pair_of(5, 3, 3, zeros=0)
    for process, names in (
        (PrefixTree((2, 1, 1)), ("traversal", "conditional_transport", "multi_round")),
        (WithoutReplacement((2, 1, 1)), ("multi_round_without_replacement", "naive_sampling")),
    ):
        best = optimum(pair, process)
        assert best.method == "multi-path antichain LP by rows"
        for name in names:
            law = output_law(name, pair, process)
            assert law.block_efficiency <= best.value
            assert law.largest_excess == (0, ())


def test_partner_without_antichains_of_several_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The conditions of single nodes alone allow more."""
    pair, process = pair_of(0, 3, 3), PrefixTree((2, 1, 1))
    value = tree_optimum(pair, process).value
    monkeypatch.setattr(drafted_trees, "most_violated_antichains", lambda *arguments: [])
    assert tree_optimum(pair, process).value > value


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match="takes an exact pair, got floats"):
        tree_optimum(instances.two_token(2).to_float(), PrefixTree((2, 1)))
    with pytest.raises(EnumerationTooLargeError, match="389017000 non-empty antichains"):
        optimum(pair_of(0, 3, 3).to_float(), PrefixTree((2, 1, 1)))
    assert np.isfinite(optimum(pair_of(0, 3, 3), PrefixTree((2, 1, 1))).value_float)
