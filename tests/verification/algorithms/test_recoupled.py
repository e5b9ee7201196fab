"""recoupled: lossless, never below its base, optimal transport at one position."""

from collections.abc import Iterable
from itertools import cycle

import numpy as np
import pytest

from deep import first_is_quick
from law_checks import assert_same_law
from spectheory import ModelPair, certify, instances, output_law, verifiers
from spectheory.pairs.drafts import PerPath
from spectheory.verification.algorithms.recoupled import Recoupled
from table import GENERAL
from torch_support import DEVICES, assert_agrees_on, drafted

BASES = (
    "scored_multipath",
    "greedy_multipath",
    "block",
    "traversal",
    "mixed_multipath",
    "multi_round",
    "otm",
    "token",
)
SHAPES = ((2, 2, 2), (3, 1, 3), (3, 2, 2), (2, 1, 2), (2, 2, 3), (4, 1, 2), (2, 2, 1), (4, 2, 1), (3, 1, 2))
"""(V, L, K)."""


def numbered_pair(number: int, vocab_size: int, draft_length: int) -> ModelPair:
    """Rationals with zeros and ties; every fourth pair is context-free."""
    pair = instances.random_rational([91, number], vocab_size, draft_length)
    if number % 4:
        return pair
    return ModelPair.context_free_pair(pair.target[0][0], pair.draft[0][0], draft_length)


def check(first: int, count: int, shapes: tuple[tuple[int, int, int], ...]) -> int:
    """Lossless exactly, and never below the base, on numbered pairs; -> how often it earns more."""
    some, ahead = cycle(shapes), 0
    for number in range(first, first + count):
        size, length, drafts = next(some)
        pair, base = numbered_pair(number, size, length), BASES[number * 5 // 3 % len(BASES)]
        law, other = (output_law(it, pair, drafts) for it in (Recoupled(verifiers[base]), base))
        assert law.total_variation == 0, (number, base)
        assert law.block_efficiency >= other.block_efficiency, (number, base)
        assert list(law.length_probs[:-2]) == list(other.length_probs[:-2])
        ahead += law.block_efficiency > other.block_efficiency
    return ahead


def test_lossless_and_never_below_its_base() -> None:
    """theory.md Statement 5.24, in rationals; lengths below L-1 keep their probability."""
    assert check(0, 5, SHAPES) > 2


@pytest.mark.deep
@pytest.mark.parametrize("first", range(36, 336, 100))
def test_lossless_and_never_below_its_base_on_many_pairs(first: int) -> None:
    """300 pairs, those with V = 3 and 4, L = 2, K = 2 and 3 among them."""
    assert check(first, 100, (*SHAPES, (4, 2, 2), (3, 2, 2), (3, 2, 3))) > 20


@first_is_quick("name", ["scored_multipath", "block", "multi_round"])
def test_value_by_minimum_cuts_is_that_of_the_law(name: str) -> None:
    """Exchangeable bases and others; stops above the last two lengths count too."""
    for number, (size, length, drafts) in enumerate(((3, 2, 2), (2, 3, 2), (2, 1, 3)), 1):
        pair, verifier = numbered_pair(number, size, length), Recoupled(verifiers[name])
        value = verifier.block_efficiency(pair, drafts)
        assert value == output_law(verifier, pair, drafts).block_efficiency


@first_is_quick(("number", "drafts"), [(1, 2), (2, 3), pytest.param(4, 4, marks=pytest.mark.deep)])
@first_is_quick("name", BASES, quick=3)
def test_one_position_is_optimal_transport(name: str, number: int, drafts: int) -> None:
    """L = 1: whatever the base, the block efficiency is that of otm."""
    pair = numbered_pair(number, 3, 1)
    value = output_law(Recoupled(verifiers[name]), pair, drafts).block_efficiency
    assert value == output_law("otm", pair, drafts).block_efficiency


def test_over_block_one_draft_changes_nothing() -> None:
    """K = 1: the output law is that of block; over token it is not that of token."""
    for number in range(4):
        pair = numbered_pair(number, 3, 2)
        assert_same_law(output_law(Recoupled(verifiers["block"]), pair), output_law("block", pair))
    pair = instances.two_token(2)
    values = [output_law(it, pair).block_efficiency for it in (Recoupled(verifiers["token"]), "token")]
    assert values[0] > values[1]


@first_is_quick(
    ("pair", "num_drafts"),
    [
        (instances.two_token(2), 2),
        pytest.param(instances.two_token(2), 3, marks=pytest.mark.deep),
        (instances.random_rational([7, 485], 3, 2), 2),
        pytest.param(
            instances.random_rational([5, 56], 3, 2, equal_row_probability=0.3), 4, marks=pytest.mark.deep
        ),
    ],
)
def test_optimal_where_scored_selection_is_not(pair: ModelPair, num_drafts: int) -> None:
    certificate = certify(Recoupled(verifiers["scored_multipath"]), pair, num_drafts)
    assert certificate
    assert certificate.block_efficiency == certificate.optimum
    assert output_law("scored_multipath", pair, num_drafts).block_efficiency < certificate.optimum


def check_models_per_path(name: str, size: int, length: int, num_drafts: int, numbers: Iterable[int]) -> None:
    """Drafts of models that are not the pair's: lossless exactly, and not below the base."""
    for number in numbers:
        seeds = (number, *(number + 50 + 40 * path for path in range(num_drafts)))
        pair, *models = (numbered_pair(seed, size, length) for seed in seeds)
        process = PerPath(tuple(models))
        laws = [output_law(it, pair, process) for it in (Recoupled(verifiers[name]), name)]
        assert laws[0].total_variation == 0
        assert laws[0].block_efficiency >= laws[1].block_efficiency


PER_PATH = ("multi_round", "naive_sampling")


@first_is_quick("name", PER_PATH)
def test_one_model_per_path(name: str) -> None:
    check_models_per_path(name, 2, 2, 2, range(1, 4))


class RowOfAnotherNode(Recoupled):
    """Wrong: e is read from the first path's row at depth L-1, whatever the node."""

    def _masses(self, tokens: np.ndarray, targets: np.ndarray, drafts: np.ndarray) -> np.ndarray:
        targets = targets.copy()
        targets[:, 1:, -2] = targets[:, :1, -2]
        return super()._masses(tokens, targets, drafts)


def test_partner_masses_of_a_row_that_is_not_the_nodes() -> None:
    """The certificate finds it."""
    pair = instances.random_rational([92, 0], 3, 2, equal_row_probability=0)
    for kind, valid in ((Recoupled, True), (RowOfAnotherNode, False)):
        certificate = certify(kind(verifiers["greedy_multipath"]), pair, 2, with_optimum=False)
        assert bool(certificate) is valid


@pytest.mark.parametrize("name", GENERAL)
def test_bases_decide_without_the_rows_behind_the_leaves(name: str) -> None:
    """What Statement 5.24 asks of a base; its partner: the rows above are read."""
    paths, target, draft = drafted(instances.random_float(9, 3, 2), 2, batch=16, seed=1)
    stops = verifiers[name].outcome(paths, target, draft).stop_probs
    for depth, same in ((2, True), (1, False)):
        other = target.copy()
        other[..., depth, :] = other[..., depth, ::-1]
        assert np.array_equal(verifiers[name].outcome(paths, other, draft).stop_probs, stops) == same


@pytest.mark.parametrize("number", [1, *(pytest.param(number, marks=pytest.mark.deep) for number in (2, 3))])
@pytest.mark.parametrize("device", DEVICES)
def test_float_and_torch_agree_with_rationals(device: str, number: int) -> None:
    """torch with numpy; the block efficiency in float64 with the rational one, though flows may differ."""
    pair, verifier = numbered_pair(number, 3, 2), Recoupled(verifiers["greedy_multipath"])
    assert_agrees_on(device, verifier, pair, 2, str(number))
    exact, law = output_law(verifier, pair, 2), output_law(verifier, pair.to_float(), 2)
    assert law.total_variation < 1e-12
    assert law.block_efficiency == pytest.approx(float(exact.block_efficiency), abs=1e-12)
