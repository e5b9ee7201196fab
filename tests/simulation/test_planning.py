"""Plans: exact values of enumerated pairs, shapes of profiles, and the race on language models."""

from dataclasses import replace
from fractions import Fraction
from math import prod
from typing import Any

import pytest

from spectheory import certify, instances, optimum
from spectheory.exact.law import output_law
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, bundled_prompts
from spectheory.pairs.drafts import ConfidenceTree, Iid, PrefixTree, ShapedTree, WithoutReplacement
from spectheory.pairs.pair import ModelPair
from spectheory.simulation import (
    Budget,
    plan,
    plan_pair,
    plan_profile,
    planning,
    predicted_speed_up,
    simulate,
)
from spectheory.simulation.planning import Candidate, _spread, _widths, candidates_of_models
from spectheory.verification.algorithms import verifiers
from spectheory.verification.outcome import Outcome


def test_a_plan_of_a_pair_is_the_best_of_all_it_tried() -> None:
    """Against a list of candidates that is written down here, each with its exact law."""
    pair, budget = instances.two_token(2), Budget(4, cost_ratio=0.1, row_cost=0.05)
    asked = [("block", Iid(1), length, length) for length in (1, 2)]
    asked += [("greedy_multipath", Iid(drafts), 1, drafts) for drafts in (2, 3, 4)]
    asked += [("greedy_multipath", Iid(2), 2, 4)]
    asked += [("naive_sampling", ConfidenceTree(nodes), 1, nodes) for nodes in (1, 2)]
    asked += [("naive_sampling", ConfidenceTree(nodes), 2, nodes) for nodes in (1, 2, 3, 4)]
    asked += [
        ("naive_sampling", ShapedTree(shape), 2, nodes) for shape, nodes in (((2, 1), 3), ((2, 0, 2), 4))
    ]
    values = [
        float(output_law(name, pair.truncate(length), process).block_efficiency)
        / (1 + 0.1 * length + 0.05 * rows)
        for name, process, length, rows in asked
    ]
    found = plan_pair(pair, budget, ["block", "greedy_multipath", "naive_sampling"])
    assert found.best.speed_up == pytest.approx(max(values))
    assert found.best.speed_up > min(values)
    assert [choice.speed_up for choice in found.choices] == sorted(
        (choice.speed_up for choice in found.choices), reverse=True
    )
    process = asked[values.index(max(values))][1]
    assert found.optimum == optimum(pair.truncate(found.best.draft_length), process).value


def test_candidates_that_are_too_large_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With at most four tuples only one path of two tokens, or two drafts of one, are enumerated."""
    pair, names = instances.two_token(2), ["greedy_multipath"]
    whole = plan_pair(pair, Budget(4), names)
    monkeypatch.setattr(planning, "MAX_TUPLES", 4)
    part = plan_pair(pair, Budget(4), names)
    assert whole.skipped == 0
    assert "too large" not in whole.tables()[-1].note
    assert part.skipped == part.to_document()["skipped"] == whole.tried - part.tried > 0
    assert f"{part.skipped} too large to enumerate" in part.tables()[-1].note


def test_costs_decide() -> None:
    """Without costs long drafts win, and with dear rows none of them does."""
    pair = instances.random_float(1, 2, 3, 0.5)
    free, dear = (plan_pair(pair, Budget(6, 0.0, cost), ["block"]) for cost in (0.0, 1.0))
    assert (free.best.draft_length, dear.best.target_rows) == (3, 1)
    assert free.best.block_efficiency > dear.best.block_efficiency


def test_a_plan_of_a_profile_is_a_tree() -> None:
    budget = Budget(6, cost_ratio=0.05, row_cost=0.01, draft_length=4)
    found = plan_profile(["3/5", "1/5", "1/10"], budget)
    best = found.best
    name, _, shape = best.drafts.partition(":")
    tree = ShapedTree(tuple(map(int, shape.split(","))))
    assert name == "shaped_tree"
    masses = (Fraction(3, 5), Fraction(1, 5), Fraction(1, 10))
    assert best.block_efficiency == 1 + sum(prod(masses[rank] for rank in node) for node in tree.nodes)
    assert best.speed_up == predicted_speed_up(float(best.block_efficiency), tree.depth, 0.05, 6, 0.01)
    assert {choice.draft_length for choice in found.choices} == {1, 2, 3, 4}
    assert found.to_document()["choices"][0]["block_efficiency"] == str(best.block_efficiency)


def test_rows_are_the_drafted_tokens() -> None:
    block = verifiers["block"]
    for process, length, rows in (
        (Iid(3), 4, 12), (PrefixTree((2, 1, 2)), 3, 8), (WithoutReplacement((3, 1)), 2, 6),
        (ConfidenceTree(7), 4, 7), (ShapedTree((2, 1)), 2, 3),
    ):  # fmt: skip
        assert Candidate(block, process, length).target_rows == rows
    assert set(_widths(4, 2)) == {(1, 1), (1, 2), (1, 3), (2, 1)}
    assert _spread(6, (1, 2, 3)) == [1, 2, 3, 4, 6]


def test_every_candidate_is_within_the_budget() -> None:
    found = candidates_of_models(Budget(8, draft_length=4))
    assert max(candidate.target_rows for candidate in found) == 8
    kinds = {(candidate.verifier.name, candidate.process.name) for candidate in found}
    assert kinds == {
        ("block", "iid"), ("scored_multipath", "iid"), ("traversal", "iid"),
        ("multi_round_without_replacement", "without_replacement"), ("naive_sampling", "confidence_tree"),
    }  # fmt: skip
    with pytest.raises(InvalidInputError, match="no verifier takes drafts that fit the budget"):
        candidates_of_models(Budget(1), ["multi_round_without_replacement"])


def test_a_plan_of_models_is_found_again_by_simulate() -> None:
    """The finalists' estimates are those of ``simulate`` behind the other half of the prompts."""
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    prompts, calls = bundled_prompts()[:8], []
    budget = Budget(2, cost_ratio=0.1, row_cost=0.05, draft_length=2)
    found = plan(
        pair, prompts, budget, ["block", "naive_sampling"], finalists=2, max_new_tokens=4,
        progress=lambda done, total: calls.append((done, total)),
    )  # fmt: skip
    assert calls == [(number, 7) for number in range(1, 8)]
    assert (found.tried, len(found.choices), found.confidence) == (5, 2, 0.95)
    best = found.best
    process = Iid(1) if best.drafts == "iid:1" else ConfidenceTree(int(best.drafts.partition(":")[2]))
    asked = {"drafts": process, "draft_length": best.draft_length, "max_new_tokens": 4, "confidence": 0.975}
    (again,) = simulate(pair, prompts[1::2], [best.verifier], seed=1, **asked).estimates
    assert best.block_efficiency == again.block_efficiency
    assert best.interval == pytest.approx(again.interval)
    (other,) = simulate(pair, prompts[::2], [best.verifier], seed=1, **asked).estimates
    assert other.block_efficiency != best.block_efficiency
    assert "95 % confidence" in found.tables()[0].note


def test_what_is_refused() -> None:
    pair, budget = instances.two_token(2), Budget(4)
    for wrong, match in (
        ({"target_rows": 0}, "target_rows"), ({"cost_ratio": -1}, "cost_ratio"),
        ({"row_cost": "1"}, "row_cost"), ({"draft_length": 0}, "draft_length"),
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match=match):
            plan_pair(pair, budget._replace(**wrong))
    with pytest.raises(InvalidInputError, match="no verifier takes"):
        plan_pair(pair, Budget(1), ["multi_round_without_replacement"])
    with pytest.raises(InvalidInputError, match="the profile accepts nothing"):
        plan_profile(["0"], budget)
    assert (
        plan_pair(instances.disjoint_supports(2), budget, ["block", "naive_sampling"]).best.draft_length == 1
    )
    models = LanguageModelPair.load("bundled", "bundled", device="cpu")
    with pytest.raises(InvalidInputError, match="at least 8 different prompts, got 2"):
        plan(models, bundled_prompts()[:2] * 4, budget)


class AlwaysAccepts:
    name = "always_accepts"

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        stops = 0 * target_rows[..., 0]
        stops[..., 0, -1] += 1
        return Outcome.from_rows(stops, target_rows)


def test_a_verifier_that_is_not_lossless_is_no_choice() -> None:
    """It would earn the most: more than any lossless one can."""
    pair, budget = instances.two_token(1), Budget(2)
    found = plan_pair(pair, budget, ["block", AlwaysAccepts()])
    assert (found.best.verifier, tuple(found.left_out)) == ("block", ("always_accepts",))
    assert "left out, because one call is not lossless on this pair: always_accepts" in found.tables()[0].note
    assert found.to_document()["left_out"] == ["always_accepts"]
    with pytest.raises(InvalidInputError, match="one call is not lossless on this pair: always_accepts"):
        plan_pair(pair, budget, [AlwaysAccepts()])


def test_an_estimate_says_what_it_does_not_know() -> None:
    found = replace(plan_pair(instances.two_token(1), Budget(1), ["block"]), unknown=["block"])
    assert found.headline().endswith("tokens per unit of cost (not known to be lossless)")
    assert "not known to be lossless: block" in found.tables()[0].note


def test_the_limit_of_a_plan_is_an_upper_end() -> None:
    """On this pair only an interval is known, and greedy multi-path lies inside of it."""
    pair = ModelPair.context_free_pair(["1/10", "9/10"], ["2/5", "3/5"], 4)
    found = plan_pair(pair, Budget(8), ["greedy_multipath"])
    assert found.optimum is not None
    assert found.optimum >= found.best.block_efficiency
    certificate = certify("greedy_multipath", pair, 2)
    shown = certificate.shown()["optimum"]
    lower, upper = (float(end) for end in shown.split(" to "))
    assert lower <= certificate.block_efficiency <= upper
