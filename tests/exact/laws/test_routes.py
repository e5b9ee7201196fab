"""Laws by routes against their definition, the list of all tuples of drafts."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import golden
from deep import first_is_quick
from spectheory import certify, defects, instances, output_law, verifiers
from spectheory.exact.law import OutputLaw
from spectheory.exact.laws import route
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.drafts import DraftProcess, Iid, PerPath, PrefixTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.verification.resolve import resolve

EVERY = {**verifiers, **defects}
WITHOUT = {
    *("conditional_transport", "spectr_gbv", "naive_sampling"),
    # known-wrong ones that override more than a step, or select by no order of siblings
    *("rejected_token_masked", "draft_bonus", "shared_uniform", "stale_correction_row", "likeliest_draft"),
    *("next_correction_row", "swapped_models", "smoothed_ratio", "threshold_acceptance", "longest_accepted"),
    *("argmax_acceptance", "tempered_draft_law", "truncated_draft_law", "truncated_target"),
    "block_uncapped_last_weight",
}
"""Verifiers whose laws are enumerated."""
SHAPES = [(2, 2, 1), (3, 2, 2), (2, 3, 2), (2, 2, 3), (1, 2, 2), (4, 1, 3), (3, 3, 1), (2, 3, 3)]


def settings(name: str, shape: tuple[int, int, int], seed: int) -> Iterator[tuple[ModelPair, DraftProcess]]:
    """Rational and float pairs of a shape, with zeros, and the draft processes that a verifier takes."""
    size, length, num_drafts = shape
    for make in (instances.random_rational, instances.random_float):
        pair = make([seed, *shape], size, length)
        widths = (min(num_drafts, size), *[1] * (length - 1))
        every: list[DraftProcess] = [Iid(num_drafts), WithoutReplacement(widths)]
        every.append(PrefixTree((*widths[:-1], 2)))
        every.append(PerPath(tuple(make([9, k, seed], size, length) for k in range(num_drafts))))
        for process in every:
            if process.name in EVERY[name].draft_processes and process.fits(pair):
                yield pair, process


def law_of(name: str, pair: ModelPair, process: DraftProcess, monkeypatch: pytest.MonkeyPatch) -> OutputLaw:
    """The law from the list of all tuples."""
    with monkeypatch.context() as off:
        off.setattr(route, "_taken", False)
        return output_law(EVERY[name], pair, process)


def assert_equal(one: Any, other: Any, undefined: Any, is_exact: bool) -> None:
    for mine, theirs in zip(one.numbers, other, strict=True):
        if is_exact:
            assert (mine == theirs).all()
        else:
            np.testing.assert_allclose(theirs, mine, rtol=0, atol=1e-12)
    assert abs(float(one.undefined) - float(undefined)) < 1e-12


@first_is_quick("shape", SHAPES, quick=3)
@pytest.mark.parametrize("name", sorted({*EVERY} - {"optimal_multipath"}))
def test_a_route_gives_the_law(
    name: str, shape: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(route, "_worth", {True: 0, False: 0})
    taken = 0
    for pair, process in settings(name, shape, 0):
        try:
            problem = resolve(EVERY[name], pair, process)
        except InvalidInputError:  # kseq takes one token
            return
        found = route.route_of(problem)
        masses = None if found is None else found.law()
        if masses is not None:
            taken += 1
            expected = law_of(name, pair, process, monkeypatch)
            assert_equal(expected, masses.by_depth, masses.undefined, problem.pair.is_exact)
    assert taken > 0 or name in WITHOUT


def test_optimal_multipath_by_its_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "_worth", {True: 0, False: 0})
    for pair in (instances.two_token(2), instances.random_float(3, 3, 1)):
        found = route.route_of(resolve("optimal_multipath", pair, 2))
        assert found is not None
        masses = found.law()
        assert masses is not None
        expected = law_of("optimal_multipath", pair, Iid(2), monkeypatch)
        assert_equal(expected, masses.by_depth, masses.undefined, pair.is_exact)


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.deep) for n in range(1, 40))])
def test_golden_numbers_without_routes(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the commit before there were any (``test_golden`` compares them with routes)."""
    monkeypatch.setattr(route, "_taken", False)
    for case in golden.cases()[part::40][:: 1 if part else 4]:
        found = golden.row_of_case(case)
        assert golden.differences(golden.kept_rows()[found["case"]], found) == []


def test_more_drafts_than_can_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """10^9 tuples of drafts: a law and a verdict; a wrong verifier without a list of drafts to blame."""
    pair = instances.random_rational(4, 2, 10, zero_probability=0)
    right = certify("multi_round", pair, 3, with_optimum=False)
    assert right
    wrong = certify(defects["greedy_multipath_unskewed"], pair, 3, with_optimum=False)
    assert not wrong
    assert wrong.counterexample is not None
    assert wrong.counterexample.drafts == ()
    assert "to blame" not in wrong.in_words()
    # partner: with fewer drafts they are named
    few = certify(defects["greedy_multipath_unskewed"], instances.two_token(2), 2, with_optimum=False)
    assert "Most to blame are the drafts" in few.in_words()


def test_the_list_of_those_without_a_route_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some known-wrong selections are in an order on some pairs, so that they may have one there."""
    monkeypatch.setattr(route, "_worth", {True: 0, False: 0})
    pair = instances.random_rational(1, 3, 2)
    for name in WITHOUT - {"likeliest_draft"}:
        process = Iid(2) if "iid" in EVERY[name].draft_processes else WithoutReplacement((2, 1))
        assert route.route_of(resolve(EVERY[name], pair, process)) is None, name
    of_leaves = [
        route.route_of(resolve(EVERY["likeliest_draft"], instances.random_rational(seed, 3, 2), 2))
        for seed in range(5)
    ]
    assert None in [found and found.law() for found in of_leaves]
