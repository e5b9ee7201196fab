"""Answers that are no laws are refused: sums, signs, shapes and NaN, in rationals and in floats."""

from contextlib import nullcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from spectheory import instances
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.pairs.contexts import numbered_context
from spectheory.pairs.drafts import Iid, PerPath
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.evaluator import Evaluator, check_correction_rows, check_stop_probs
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import resolve

F = Fraction
TOKENS = np.array([[[0, 1]], [[1, 1]]])
STOPS = [[[F(1, 2), F(1, 4), F(1, 4)]], [[F(0), F(1), F(0)]]]


def check(stops: Any, dtype: Any, tolerance: float = 1e-9) -> None:
    outcome = Outcome(np.array(stops, dtype=dtype), lambda path_index, length: None)
    check_stop_probs(verifiers["token"], outcome, TOKENS, tolerance)


@pytest.mark.parametrize("dtype", [object, float])
def test_stop_probabilities(dtype: Any) -> None:
    """A law passes; the first tuple that has none is named with its sum and smallest entry."""
    check(STOPS, dtype)
    with pytest.raises(InvalidOutcomeError, match=r"drafts \[\[1, 1\]\]: they sum to (3/2|1.5)"):
        check([STOPS[0], [[F(1, 2), F(1), F(0)]]], dtype)
    with pytest.raises(InvalidOutcomeError, match=r"the smallest is (-1/2|-0.5)"):
        check([[[F(-1, 2), F(1), F(1, 2)]], STOPS[1]], dtype)
    with pytest.raises(InvalidOutcomeError, match=r"shape \(1, 1, 3\); .* = \(2, 1, 3\)"):
        check(STOPS[:1], dtype)


def test_a_tolerance_is_for_floats_alone() -> None:
    """A float sum may be off by less than the tolerance, a rational one by nothing; NaN is never a law."""
    off = [[[F(1, 2), F(1, 4), F(1, 4) + F(1, 10**10)]], STOPS[1]]
    check(off, float)
    with pytest.raises(InvalidOutcomeError, match="not a law"):
        check(off, object)
    with pytest.raises(InvalidOutcomeError, match="not a law"):
        check(off, float, 1e-11)
    with pytest.raises(InvalidOutcomeError, match="not a law"):
        check([[[float("nan"), 0.5, 0.5]], STOPS[1]], float)


@pytest.mark.parametrize("dtype", [object, float])
def test_correction_rows(dtype: Any) -> None:
    """A row counts as much as the stop it is for; a row of zeros says that the output is undefined."""

    def check_rows(rows: Any, probs: Any) -> None:
        rows, probs = np.array(rows, dtype=dtype), np.array(probs, dtype=dtype)
        check_correction_rows(verifiers["token"], rows, probs, 2, 1e-9)

    check_rows([[F(1, 3), F(2, 3)], [F(0), F(0)]], [F(1, 2), F(1, 2)])
    check_rows([[F(1, 3), F(1)], [F(0), F(1)]], [F(0), F(1)])  # that stop is never made
    for wrong in ([F(1, 3), F(1, 3)], [F(4, 3), F(-1, 3)]):
        with pytest.raises(InvalidOutcomeError, match="not laws"):
            check_rows([wrong, [F(0), F(1)]], [F(1, 2), F(1)])
    with pytest.raises(InvalidOutcomeError, match=r"shape \(1, 2\)"):
        check_rows([[F(0), F(1)]], [F(1), F(1)])


def test_tuples_are_what_a_verifier_sees() -> None:
    """Tokens and rows along the paths of three tuples, context by context."""
    pair = instances.random_rational(2, 3, 2)
    leaves = np.array([[0, 4], [8, 2], [5, 5]])
    seen = Evaluator.of(resolve("token", pair, 2), Iid(2)).tuples(leaves)
    for n, k in np.ndindex(leaves.shape):
        path = numbered_context(int(leaves[n, k]), 2, 3)
        assert tuple(seen.tokens[n, k]) == path
        for depth in range(3):
            number = int(seen.prefixes[n, k, depth])
            assert numbered_context(number, depth, 3) == path[:depth]
            assert [F(int(x.p), int(x.q)) for x in seen.target_rows[n, k, depth]] == list(
                pair.target[depth][number]
            )
            if depth < 2:
                row = [F(int(x.p), int(x.q)) for x in seen.draft_rows[n, k, depth]]
                assert row == list(pair.draft[depth][number])


def test_every_path_is_shown_the_rows_it_was_drafted_from() -> None:
    """With a draft model per path the rows of path k are those of model k."""
    pair, other = instances.two_token(2), instances.uniform_equal(2)
    process = PerPath((pair, ModelPair(pair.target, other.draft, pair.vocab)))
    problem = resolve(verifiers["multi_round"], pair, drafts=process)
    tuples = Evaluator.of(problem, process).tuples(np.array([[0, 3], [2, 1]]))
    for k, rows in enumerate((pair.draft[0][0], other.draft[0][0])):
        assert [F(int(x.p), int(x.q)) for x in tuples.draft_rows[0, k, 0]] == list(rows)
    assert (pair.draft[0][0] != other.draft[0][0]).all()


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_a_stop_behind_the_end_of_a_path(kind: Any) -> None:
    """In words on either kind of array; a stop before the end is taken."""
    paths = kind(np.array([[[0, -1]]]))
    for stops, is_refused in (([[[0.0, 1.0, 0.0]]], False), ([[[0.0, 0.0, 1.0]]], True)):
        outcome = Outcome(kind(np.array(stops)), lambda path_index, length: None)
        refusal = pytest.raises(InvalidOutcomeError, match="stops 2 tokens along path 0")
        with refusal if is_refused else nullcontext():
            check_stop_probs(verifiers["token"], outcome, paths, 1e-9)
