"""Verifiers with a length rule: the same laws as shortened drafts, and lossy rules refused."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from draft_values import after_unlikely, before_unlikely
from spectheory import ModelPair, certify, decode, instances, output_law, plan, simulate
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair
from spectheory.pairs.drafts import Iid, Shortened
from spectheory.pairs.drafts.repairs import with_cemetery
from spectheory.pairs.instances import random_rational, tiny_probabilities
from spectheory.verification.algorithms.first_then_match import FirstThenMatch
from spectheory.verification.evaluator import Evaluator
from spectheory.verification.length_rules import DroppedAsRejected, WithLengthRule
from spectheory.verification.resolve import resolve


def keep_likely(row: Any) -> Any:
    return row * 0 + (row >= 0.5)


@pytest.mark.parametrize("verifier", ["token", "block", "naive_sampling"])
def test_rule_has_the_law_of_shortened_drafts(verifier: str) -> None:
    for seed in range(3):
        pair = random_rational([84, seed], 3, 2)
        with_rule = output_law(WithLengthRule(verifier, after_unlikely), pair)
        expected = output_law(verifier, pair, Shortened(1, after_unlikely))
        assert all(
            (mass == other).all() for mass, other in zip(with_rule.masses, expected.masses, strict=True)
        )
        lossy = WithLengthRule(verifier, before_unlikely, allow_lossy=True)
        found = certify(lossy, pair, with_optimum=False)
        assert (
            found.total_variation == output_law(verifier, pair, Shortened(1, before_unlikely)).total_variation
        )


@pytest.mark.parametrize(
    ("rule", "statement"),
    [
        (before_unlikely, "8.5"),  # reads the token that it drops
        (
            lambda tokens, rows: len(tokens) * int(all(token == 0 for token in tokens)),
            "8.5",
        ),  # all or nothing
        (lambda tokens, rows: max(0, before_unlikely(tokens, rows) - 1), "8.5"),  # looks ahead
        (lambda tokens, rows: before_unlikely(tokens, 25 * rows), "8.5"),  # a threshold of 1/50
        (lambda tokens, rows: before_unlikely(tokens, 500_000 * rows), "8.5"),  # a threshold of 10^-6
    ],
)
def test_lossy_rules_are_refused_with_the_statement(rule: Any, statement: str) -> None:
    with pytest.raises(InvalidInputError, match=f"Statement {statement}"):
        certify(WithLengthRule("block", rule), instances.two_token(2))
    tiny = tiny_probabilities(5, 2, 2)
    assert not certify(WithLengthRule("block", rule, allow_lossy=True), tiny, with_optimum=False)


def test_verifiers_that_select_a_path_are_refused() -> None:
    pair, rule = instances.two_token(2), lambda tokens, rows: 1 + (tokens[0][0] == tokens[1][0])
    with pytest.raises(InvalidInputError, match=r"may be lossy .* Statement 8\.13\); .* or one draft"):
        certify(WithLengthRule("greedy_multipath", rule), pair, 2)
    lossy = certify(WithLengthRule("greedy_multipath", rule, allow_lossy=True), pair, 2, with_optimum=False)
    assert lossy.total_variation == Fraction(2, 189)
    assert certify(WithLengthRule("multi_round", rule), pair, 2)
    assert certify(WithLengthRule("greedy_multipath", after_unlikely), pair, 1)
    with pytest.raises(InvalidInputError, match=r"Statement 8\.3"):
        certify(WithLengthRule("greedy_block", lambda tokens, rows: 1 + tokens[0]), pair)
    with pytest.raises(InvalidInputError, match="from 0 to 2"):
        certify(WithLengthRule("block", lambda tokens, rows: 3, allow_lossy=True), pair)


@pytest.mark.parametrize("verifier", ["token", "block", "multi_round", "naive_sampling"])
def test_dropped_as_rejected_is_repair_b(verifier: str) -> None:
    for seed in range(3):
        pair = random_rational([85, seed], 3, 2)
        drop = Shortened(1, before_unlikely)
        found = output_law(DroppedAsRejected(verifier, keep_likely), pair)
        expected = output_law(verifier, with_cemetery(drop, pair))
        assert found.total_variation == 0
        assert found.block_efficiency == expected.block_efficiency
        # Truth values: a token is kept or dropped, and never handed over with half of its probability.
        halves = DroppedAsRejected(verifier, lambda row: keep_likely(row) / 2)
        assert output_law(halves, pair).block_efficiency == expected.block_efficiency
    two = output_law(DroppedAsRejected("multi_round", keep_likely), instances.two_token(2), 2)
    assert two.total_variation == 0


def test_first_then_match() -> None:
    """Lossless, at least exact match, and right for marginals where token verification is wrong."""
    verifier = FirstThenMatch()
    for seed in range(4):
        pair = random_rational([86, seed], 3, 2)
        law = output_law(verifier, pair)
        assert law.total_variation == 0
        assert law.block_efficiency >= output_law("naive_sampling", pair).block_efficiency
        rounded = output_law(verifier, pair.to_float())
        assert rounded.block_efficiency == pytest.approx(float(law.block_efficiency))
    paths = torch.tensor([[[0, 1]], [[1, 1]]])
    rows = torch.tensor([0.25, 0.75], dtype=torch.float64).expand(2, 1, 3, 2)
    outcome = verifier.outcome(paths, rows, rows[:, :, :2])
    assert outcome.stop_probs.sum().item() == pytest.approx(2)
    assert outcome.correction(torch.tensor([0, 0]), torch.tensor([1, 2])).shape == (2, 2)


@pytest.mark.deep
def test_rules_on_the_bundled_models() -> None:
    """Texts, rows and calls; a lossy rule is refused before a text is decoded, and simulate marks it."""
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    prompts = ["import os", "def f("]
    settings = {"max_new_tokens": 12, "draft_length": 3}
    stops = WithLengthRule("block", after_unlikely)
    texts = decode(pair, prompts, stops, **settings)
    assert stops.calls == sum(len(text.calls) for text in texts)
    assert stops.calls <= stops.rows <= 3 * stops.calls
    dropped = DroppedAsRejected("block", lambda row: (row >= 0.5).to(row.dtype))
    texts = decode(pair, prompts, dropped, **settings)
    assert all(sum(text.calls) == 12 for text in texts)
    assert dropped.rows < 3 * dropped.calls
    with pytest.raises(InvalidInputError, match=r"Statement 8\.5"):
        decode(pair, prompts, WithLengthRule("block", before_unlikely), **settings)
    lossy = WithLengthRule("token", before_unlikely, allow_lossy=True)
    found = simulate(pair, prompts, [lossy, stops], samples=2, draft_length=3)
    assert [entry.lossless for entry in found.estimates] == [False, True]
    defects = found.settings["draft_defects"]  # on three tokens after the first prompt
    assert defects[lossy.name] > 0.01 > 1e-9 > defects[stops.name]


def test_plan_refuses_and_simulate_says_the_draft_defect_first() -> None:
    """p = q = (9/10, 1/10), L = 2: δ = 81/500, and block verification keeps what it is handed."""
    pair = ModelPair.context_free_pair(["9/10", "1/10"], ["9/10", "1/10"], 2)
    dropping, stopping = WithLengthRule("block", before_unlikely), WithLengthRule("token", after_unlikely)
    with pytest.raises(InvalidInputError, match=r"Statement 8\.5"):
        plan(pair, verifiers=[dropping], target_rows=2)
    assert plan(pair, verifiers=[stopping], target_rows=2).best.verifier == stopping.name
    found = simulate(pair, verifiers=[dropping, stopping], samples=200)
    assert found.settings["draft_defects"] == {dropping.name: pytest.approx(81 / 500), stopping.name: 0}
    title = found.tables()[0].title
    assert title.startswith(f"draft defect δ = 0: {stopping.name}\ndraft defect δ = 0.162: {dropping.name}\n")
    assert [entry.lossless for entry in found.estimates] == [False, True]
    assert "draft_defects" not in simulate(pair, verifiers=["block"], samples=2).settings


def test_a_rule_across_texts_shares_a_budget() -> None:
    """A budget by earlier rows is accepted; texts that read each other's tokens are refused (8.7)."""
    paths = torch.tensor([[[0, 1]], [[1, 1]]])
    rows = torch.tensor([0.25, 0.75], dtype=torch.float64).expand(2, 1, 3, 2)

    def slots(tokens: Any, rows: Any) -> list[int]:
        return [2, *[1] * (len(tokens) - 1)]

    shared = WithLengthRule("token", slots, across=True)
    shared.bind(Iid(1)).outcome(paths, rows, rows[:, :, :2])
    assert (shared.rows, shared.calls) == (3, 2)
    agree = WithLengthRule("token", lambda tokens, rows: [int(tokens[0] == tokens[1])] * 2, across=True)
    with pytest.raises(InvalidInputError, match=r"Statement 8\.7"):
        agree.bind(Iid(1))
    with pytest.raises(InvalidInputError, match="batch_law"):
        certify(shared, instances.two_token(2))


def test_torch_and_numpy_agree() -> None:
    """On all drafts of a pair, as decoding hands them over."""
    pair = random_rational([5, 2], 3, 2).to_float()
    for verifier in (
        WithLengthRule("block", after_unlikely),
        WithLengthRule("token", before_unlikely, allow_lossy=True),
        DroppedAsRejected("block", keep_likely),
    ):
        problem = resolve(verifier, pair, 1)
        leaves = np.flatnonzero(pair.draft_path_probs(2) > 0)[:, None]
        given = Evaluator.of(problem, problem.process).tuples(leaves)[1:]
        expected = problem.verifier.outcome(*given)
        found = problem.verifier.outcome(*(torch.tensor(array) for array in given))
        assert np.allclose(expected.stop_probs, found.stop_probs.numpy())
        stops = np.argmax(expected.stop_probs[:, 0], axis=-1)
        zeros = np.zeros_like(stops)
        rows = found.correction(torch.tensor(zeros), torch.tensor(stops)).numpy()
        assert np.allclose(expected.correction(zeros, stops), rows)


@pytest.mark.parametrize("answer", [(1, 1), 4, 0.5])
def test_a_rule_returns_one_length_of_all_paths(answer: Any) -> None:
    """Two lengths are for ``Shortened``."""
    drafts = (
        torch.zeros(1, 2, 3, dtype=torch.int64),
        torch.full((1, 2, 4, 2), 0.5),
        torch.full((1, 2, 3, 2), 0.5),
    )
    verifier = WithLengthRule("multi_round", lambda tokens, rows: answer, allow_lossy=True)
    with pytest.raises(InvalidInputError, match=r"length rule returned .*; expected one length from 0 to 3"):
        verifier.outcome(*drafts)
    whole = WithLengthRule("multi_round", lambda tokens, rows: 3, allow_lossy=True)
    assert whole.outcome(*drafts).stop_probs.sum() == 1
