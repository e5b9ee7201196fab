"""Verifiers out of samplers and loops: the certificates of the published ones, and the verdict of a test."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deep import first_is_quick
from law_checks import assert_same_law
from spectheory import certify, from_loop, from_sampler, instances, output_law
from spectheory.exact.suite_cases import standard_suite
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.testing import assert_lossless
from user_samplers import forgets_the_residual, token_sampler

PAIRS = [instances.sticky_chain(2), instances.partial_overlap(1), instances.random_rational(8, 3, 2)]


def recursive_sampler(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Recursive rejection over several drafts, position by position (SpecInfer), as a loop over survivors."""
    accepted: list[int] = []
    alive = list(range(len(paths)))
    for depth in range(paths.shape[1]):
        target, draft = target_rows[alive[0], depth], draft_rows[alive[0], depth]
        for number in alive:
            token = int(paths[number, depth])
            if generator.random() * draft[token] < target[token]:
                break
            residual = np.array(
                [max(p - q, p - p) for p, q in zip(target, draft, strict=True)], dtype=target.dtype
            )
            target = residual / residual.sum()
        else:
            token = int(generator.choice(len(target), p=list(target)))
        alive = [number for number in alive if paths[number, depth] == token]
        accepted.append(token)
        if not alive:
            return accepted
    return [*accepted, int(generator.choice(target_rows.shape[-1], p=list(target_rows[alive[0], -1])))]


@first_is_quick("pair", PAIRS, ids=["sticky_chain", "partial_overlap", "random"])
def test_samplers_have_the_law_of_the_published_ones(pair: Any) -> None:
    """Every run followed, in rationals: the same output law, mass for mass."""
    assert_same_law(output_law(from_sampler(token_sampler), pair), output_law("token", pair))
    for num_drafts in (1, 2):
        found = output_law(from_sampler(recursive_sampler), pair, num_drafts)
        assert_same_law(found, output_law("multi_round", pair, num_drafts))
    in_float = output_law(from_sampler(token_sampler), pair.to_float())
    assert_same_law(in_float, output_law("token", pair.to_float()), 1e-15)


def computes_in_place(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Right: its rows are its own, and it makes the residual of them."""
    target, draft, token = target_rows[0, 0], draft_rows[0, 0], int(paths[0, 0])
    if generator.random() < target[token] / draft[token]:
        return [token, int(generator.choice(len(target), p=target_rows[0, 1]))]
    target -= draft
    np.maximum(target, 0, out=target)
    return [int(generator.choice(len(target), p=target / target.sum()))]


def marks_its_rows(paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> list[int]:
    """Wrong but where an earlier run has left a mark in the rows."""
    target, draft, token = target_rows[0, 0], draft_rows[0, 0], int(paths[0, 0])
    is_marked = draft.sum() == 2
    own = draft / 2 if is_marked else draft.copy()
    if generator.random() < target[token] / own[token]:
        if not is_marked:
            draft *= 2
        return [token, int(generator.choice(len(target), p=target_rows[0, 1]))]
    residual = np.maximum(target - own, 0 * own)
    return [int(generator.choice(len(target), p=residual / residual.sum() if is_marked else target))]


def test_every_run_has_rows_of_its_own() -> None:
    """What a run writes is not found by the next, which made the wrong one lossless and refused the right."""
    for pair in (instances.two_token(1), instances.two_residual_tokens(1)):
        assert certify(from_sampler(computes_in_place), pair)
        assert not certify(from_sampler(marks_its_rows), pair)


@pytest.mark.deep
def test_samplers_pass_or_fail_the_suite() -> None:
    """A sampler is certified like any verifier; the wrong one with its drafts."""
    small = [case for case in standard_suite() if case.process.count_tuples(case.pair) <= 9]
    assert assert_lossless(from_sampler(token_sampler, name="mine"), small).verifier == "mine"
    wrong = certify(from_sampler(forgets_the_residual), instances.two_token(1))
    assert wrong.total_variation == Fraction(1, 9)
    with pytest.raises(AssertionError, match="forgets_the_residual is not lossless"):
        assert_lossless(from_sampler(forgets_the_residual), small)


def test_from_loop_is_the_loop_it_replaces() -> None:
    """A function of one tuple of drafts against the batched verifier."""

    def block(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
        weight = [target_rows[0, 0].sum()]
        for depth, token in enumerate(paths[0]):
            ratio = target_rows[0, depth, token] / draft_rows[0, depth, token]
            weight.append(min(weight[0], weight[-1] * ratio))
        stops, rows, longer = [], [], weight[0] * 0
        for depth in reversed(range(len(weight))):
            scaled = weight[depth] * target_rows[0, depth]
            residual = (
                scaled if depth == paths.shape[1] else np.maximum(scaled - draft_rows[0, depth], scaled * 0)
            )
            mass = residual.sum()
            accept = (
                weight[-1]
                if depth == paths.shape[1]
                else (mass / (1 - weight[depth] + mass) if mass else mass)
            )
            accept = accept if depth else weight[0]
            stops.append((1 - longer) * accept)
            longer = longer + stops[-1]
            rows.append(residual / mass if mass else residual)
        zeros = [stop * 0 for stop in stops]
        return [stops[::-1]] + [zeros] * (len(paths) - 1), [rows[::-1]] * len(paths)

    for pair in PAIRS:
        assert_same_law(output_law(from_loop(block), pair, 2), output_law("block", pair, 2))
    assert from_loop(block, name="mine").name == "mine"


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ([], "expected 1"),
        ([0, 0, 0, 0], "expected 1"),
        ([7], "expected 1"),
        ([1, 1, 0], "must be the start of"),
    ],
)
def test_outputs_that_are_none(tokens: list[int], says: str) -> None:
    """Too short, too long, unknown tokens, an accepted prefix that was not drafted."""
    pair = instances.two_token(2).truncate(2)
    with pytest.raises(InvalidOutcomeError, match=says):
        output_law(from_sampler(lambda paths, target, draft, generator: tokens, name="none"), pair)


@pytest.mark.parametrize("returned", [None, 3, ["a"], [0.5]])
def test_samplers_that_return_no_tokens(returned: Any) -> None:
    with pytest.raises(InvalidOutcomeError, match="expected token ids"):
        output_law(from_sampler(lambda *_: returned), instances.two_token(1))
