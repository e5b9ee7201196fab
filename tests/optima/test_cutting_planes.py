"""The optimum by antichains that are added, against the list of all, and beyond what can be listed."""

import pytest

from spectheory import ModelPair, certify, instances, optimum, output_law
from spectheory.foundation.errors import SolverError
from spectheory.optima import (
    check_solution,
    cutting_planes,
    multi_path_interval,
    multi_path_optimum,
    multi_path_program,
    solve_exact,
)
from spectheory.pairs.drafts import HubTree, Iid, PerPath, PrefixTree, WithoutReplacement


def pair_of(seed: int, size: int, length: int, zeros: float = 0.2) -> ModelPair:
    return instances.random_rational([32, seed], size, length, zero_probability=zeros)


@pytest.mark.parametrize("kind", [PrefixTree, WithoutReplacement, HubTree, Iid, PerPath])
def test_equals_the_program_of_all_antichains(kind: type) -> None:
    """In rationals, with zeros; fewer antichains are listed, and they prove the value."""
    tried = 0
    for size, widths in ((2, (2, 2)), (3, (2, 1)), (2, (1, 2, 1)), (3, (2, 2))):
        for seed in range(2):
            pair = pair_of(seed, size, len(widths))
            given = {Iid: 1 + seed + size, PerPath: (pair, pair_of(7 + seed, size, len(widths)))}
            process = kind(given.get(kind, widths))
            if process.fits(pair):
                best = multi_path_optimum(pair, process)
                assert best.value == solve_exact(multi_path_program(pair, process)).value
                check_solution(multi_path_program(pair, process, best.members), best)
                floats = multi_path_optimum(pair.to_float(), process.to_float())
                assert floats.lower <= best.value <= floats.upper < floats.lower + 1e-9
                tried += 1
    assert tried > 3


@pytest.mark.parametrize(("size", "length", "num_drafts"), [(2, 7, 2), (5, 3, 4)])
def test_starts_at_the_point_of_the_interval(size: int, length: int, num_drafts: int) -> None:
    """Beyond 64 leaves; the exact value lies in the interval, whose antichains alone do not prove it."""
    pair = pair_of(3, size, length, zeros=0)
    best, interval = optimum(pair, num_drafts, relative_gap=0), multi_path_interval(pair, num_drafts)
    assert best.arithmetic == "exact"
    assert interval.lower <= best.value <= interval.upper
    assert size**length < len(best.members) < 2_000


@pytest.mark.parametrize("widths", [(1, 1, 2), (1, 1, 3)])
def test_late_branching_has_the_optimum_of_conditional_transport(widths: tuple[int, ...]) -> None:
    """theory.md Statement 5.30 (v), where the list is too long; ``certify`` finds no violation."""
    process = PrefixTree(widths)
    for seed in range(2):
        certificate = certify("conditional_transport", pair_of(seed, 3, 3), drafts=process)
        assert certificate
        assert certificate.block_efficiency == certificate.optimum


def test_no_verifier_is_above() -> None:
    """Of prefix trees and of trees without replacement; a wrong one is, and passes too often somewhere."""
    pair = pair_of(5, 3, 3, zeros=0)
    for process, names in (
        (PrefixTree((2, 1, 1)), ("traversal", "conditional_transport", "multi_round")),
        (WithoutReplacement((2, 1, 1)), ("multi_round_without_replacement", "naive_sampling")),
    ):
        best = optimum(pair, process)
        assert best.method == "multi-path antichain LP"
        for name in names:
            law = output_law(name, pair, process)
            assert law.block_efficiency <= best.value
            assert law.largest_excess == (0, ())


@pytest.mark.parametrize("drafts", [PrefixTree((2, 1, 1)), 2])
def test_partner_without_antichains_of_several_nodes(
    drafts: PrefixTree | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conditions of single nodes alone allow more."""
    pair = pair_of(0, 3, 3)
    value = multi_path_optimum(pair, drafts).value
    for name in ("most_violated_antichains", "violated_antichains"):
        monkeypatch.setattr(cutting_planes, name, lambda *arguments: [])
    assert multi_path_optimum(pair, drafts).value > value


def test_floats_pay_for_antichains_that_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends too early widens the bounds, until they are refused."""
    pair = pair_of(0, 3, 3).to_float()
    best = multi_path_optimum(pair, 2)
    monkeypatch.setattr(cutting_planes, "ROW_TOLERANCE", 1e-3)
    with pytest.raises(SolverError, match=r"the bounds .* differ by too much"):
        multi_path_optimum(pair, 2)
    monkeypatch.setattr(cutting_planes, "GAP_TOLERANCE", 1.0)
    early = multi_path_optimum(pair, 2)
    assert early.lower <= best.lower <= best.upper <= early.upper
