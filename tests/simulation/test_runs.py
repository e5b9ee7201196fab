"""simulate: the estimates against exact values, common random numbers, and bad settings."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decoding_support import PROMPTS as SHORT
from decoding_support import tiny_pair
from later import Later
from montecarlo_support import NAMES, PROMPTS, run
from snapshots import numbers, shape
from spectheory import certify, decode, from_sampler, instances
from spectheory.exact.law import output_law
from spectheory.foundation.documents import to_json
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.models import LanguageModelPair, Restriction, SamplingOptions, restrict
from spectheory.pairs.drafts import (
    ConfidenceTree,
    DraftProcess,
    PrefixTree,
    ShapedTree,
    TopTree,
    WithoutReplacement,
)
from spectheory.simulation import simulate
from spectheory.simulation.runs import model_threads
from user_samplers import token_sampler

transformers = Later("transformers")


@pytest.mark.parametrize("build", [instances.two_token, instances.sticky_chain, instances.partial_overlap])
def test_both_estimators_agree_with_the_exact_value(build: Any) -> None:
    """The exact E[τ+1] and P(τ = i) lie within 4.5 standard errors of either estimate (fixed seed)."""
    pair = build(2)
    simulation = simulate(pair, verifiers=NAMES, drafts=2, samples=8_000, seed=11)
    assert [estimate.verifier for estimate in simulation.estimates] == NAMES
    for estimate in simulation.estimates:
        law = output_law(estimate.verifier, pair.to_float(), 2)
        exact = float(law.block_efficiency)
        assert abs(estimate.block_efficiency - exact) <= 4.5 * estimate.standard_error + 1e-12
        assert abs(estimate.counted - exact) <= 4.5 * estimate.counted_standard_error + 1e-12
        np.testing.assert_allclose(estimate.length_probs, [float(p) for p in law.length_probs], atol=0.03)
        np.testing.assert_allclose(
            estimate.counted_length_probs, [float(p) for p in law.length_probs], atol=0.03
        )


def test_estimate_partner_another_verifier_is_outside() -> None:
    """The interval of token excludes the exact value of block: it is narrow enough to fail."""
    pair = instances.two_token(4)
    estimate = simulate(pair, verifiers=["token"], samples=8_000, seed=3).estimates[0]
    assert float(output_law("block", pair).block_efficiency) > estimate.interval[1]
    assert float(output_law("block", pair).block_efficiency) > estimate.counted_interval[1]


def test_rao_blackwell_never_has_the_larger_error() -> None:
    """theory.md §7: Var E[τ+1 | drafts] <= Var (τ+1); strictly smaller where verifying is random."""
    simulation = simulate(instances.two_token(3), verifiers=NAMES, drafts=3, samples=8_000, seed=5)
    for estimate in simulation.estimates:
        assert estimate.standard_error < estimate.counted_standard_error


def test_all_verifiers_judge_the_same_drafts() -> None:
    """Common random numbers: an estimate does not depend on which other verifiers are listed."""
    pair = instances.sticky_chain(3)
    together = simulate(pair, verifiers=NAMES, drafts=2, samples=400, seed=2).estimates
    for name, estimate in zip(NAMES, together, strict=True):
        assert simulate(pair, verifiers=[name], drafts=2, samples=400, seed=2).estimates == [estimate]
    other = simulate(pair, verifiers=NAMES, drafts=2, samples=400, seed=3).estimates
    assert other[0].block_efficiency != together[0].block_efficiency


def test_more_samples_go_on_from_the_same_draws() -> None:
    """The first chunk of 2001 samples is that of 2000: one sample moves the mean by at most 3/2001."""
    pair = instances.two_token(2)
    fewer, more = (
        simulate(pair, verifiers=["block"], samples=samples, seed=1).estimates[0].counted * samples
        for samples in (2_000, 2_001)
    )
    assert more - fewer == pytest.approx(round(more - fewer), abs=1e-6)
    assert 1 <= round(more - fewer) <= 3


def test_a_seed_gives_the_numbers_it_always_gave() -> None:
    """Sampled tokens of version 0.1.0; published tables rest on them.  Another seed gives others."""
    pair = instances.sticky_chain(3)

    def counted(seed: int) -> list[float]:
        simulation = simulate(pair, verifiers=["block", "spectr"], drafts=2, samples=4_000, seed=seed)
        return [estimate.counted for estimate in simulation.estimates]

    assert counted(5) == [3.2445, 3.479]
    assert counted(6) != [3.2445, 3.479]


def test_language_models_agree_with_their_enumeration(models: LanguageModelPair) -> None:
    """The cross-check on a restricted pair: cached drafting and sampling against the exact law."""
    restriction = Restriction([5, 90, 200])
    pair = restrict(models, PROMPTS[0], restriction, 2)
    simulation = simulate(
        models,
        [PROMPTS[0]] * 8,
        NAMES,
        drafts=2,
        draft_length=2,
        samples=150,
        restriction=restriction,
        seed=1,
    )
    for estimate in simulation.estimates:
        exact = float(output_law(estimate.verifier, pair, 2).block_efficiency)
        assert abs(estimate.block_efficiency - exact) <= 4.5 * estimate.standard_error + 1e-6
        assert abs(estimate.counted - exact) <= 4.5 * estimate.counted_standard_error
    wrong = restrict(models, PROMPTS[0], Restriction([7, 33, 120]), 2)  # partner: other tokens
    token = simulation.estimates[0]
    away = abs(token.block_efficiency - float(output_law("token", wrong).block_efficiency))
    assert away > 6 * token.standard_error


@pytest.fixture(scope="module")
def five_tokens() -> LanguageModelPair:
    """Two random models of five tokens, whose enumeration holds all that they can do."""
    made = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        config = transformers.GPT2Config(
            vocab_size=5, n_positions=64, n_embd=16, n_layer=1, n_head=2, initializer_range=0.4
        )
        made.append(transformers.GPT2LMHeadModel(config).eval())
    return LanguageModelPair.of(*made)


DETERMINISTIC = (
    TopTree((2, 1)),
    ShapedTree((3, 2, 0, 1)),
    ConfidenceTree(5),
    ConfidenceTree(5, 2),
    ConfidenceTree(12),
)


@pytest.mark.parametrize("tree", DETERMINISTIC, ids=lambda tree: tree.text)
def test_deterministic_drafts_of_models_are_those_of_their_enumeration(
    five_tokens: LanguageModelPair, tree: DraftProcess
) -> None:
    """Nothing is sampled, so one draw is exact; drafts of one node more are not."""
    pair = restrict(five_tokens, [1, 2, 3], Restriction(range(5)), 2)
    asked: dict[str, Any] = {"draft_length": 2, "samples": 2}
    (found,) = simulate(five_tokens, [[1, 2, 3]], ["naive_sampling"], drafts=tree, **asked).estimates
    exact = float(output_law("naive_sampling", pair, tree).block_efficiency)
    assert found.block_efficiency == pytest.approx(exact, abs=1e-6)
    other = float(output_law("naive_sampling", pair, ConfidenceTree(6)).block_efficiency)
    assert abs(found.block_efficiency - other) > 1e-3  # the partner


@pytest.mark.parametrize("tree", DETERMINISTIC[:2], ids=lambda tree: tree.text)
def test_a_verifier_of_a_sampled_path_is_refused_where_none_is_sampled(
    five_tokens: LanguageModelPair, tree: DraftProcess
) -> None:
    """Over whole texts too, where it would be given one path of its own."""
    asked: dict[str, Any] = {"drafts": tree, "draft_length": 2, "max_new_tokens": 3}
    with pytest.raises(InvalidInputError, match=f"'block' is not valid for '{tree.name}' drafts"):
        simulate(five_tokens, [[1, 2, 3]], ["naive_sampling", "block"], **asked)


def test_whole_texts_of_deterministic_drafts(
    five_tokens: LanguageModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With and without a cache the same texts; the draft read paths that the target did not score."""
    texts = []
    for cached in (True, False):
        monkeypatch.setitem(vars(five_tokens), "cached", (cached, cached))
        asked: dict[str, Any] = {"draft_length": 3, "max_new_tokens": 20, "seed": 3}
        found = decode(five_tokens, [[1, 2, 3], [4]], "naive_sampling", drafts=ConfidenceTree(6), **asked)
        texts.append([text.token_ids for text in found])
    assert texts[0] == texts[1]
    assert len(texts[0][0]) == 20


@pytest.mark.parametrize("tree", [ConfidenceTree(5), ConfidenceTree(5, 2)], ids=lambda tree: tree.text)
def test_confidence_trees_on_few_tokens(five_tokens: LanguageModelPair, tree: ConfidenceTree) -> None:
    """One draw is exact; the enumeration of all tokens is another number."""
    restriction = Restriction([4, 1, 2])
    asked: dict[str, Any] = {"drafts": tree, "draft_length": 2, "samples": 2, "restriction": restriction}
    (found,) = simulate(five_tokens, [[1, 2, 3]], ["naive_sampling"], **asked).estimates
    exact, other = (
        float(output_law("naive_sampling", restrict(five_tokens, [1, 2, 3], kept, 2), tree).block_efficiency)
        for kept in (restriction, Restriction(range(5)))
    )
    assert found.block_efficiency == pytest.approx(exact, abs=1e-6)
    assert abs(exact - other) > 1e-3
    with pytest.raises(InvalidInputError, match="there are 12 nodes, and 13 were asked for"):
        simulate(five_tokens, [[1]], ["naive_sampling"], **(asked | {"drafts": ConfidenceTree(13)}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 1}, "samples must be a whole number of at least 2, got 1; an interval needs a variance"),
        ({"drafts": 0}, "drafts must be a whole number of at least 1"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_bad_settings(models: LanguageModelPair, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(models, **changes)


def test_a_published_rule_without_a_law_is_named() -> None:
    """On equal drafts spectr_gbv is 0/0 at some stops; the partner is a pair on which it has a law."""
    settings: dict[str, Any] = {"drafts": 2, "samples": 100}
    with pytest.raises(InvalidOutcomeError, match=r"'spectr_gbv'.* 0/0 there, which certify counts as undef"):
        simulate(instances.uniform_equal(2), verifiers=["spectr_gbv"], **settings)
    assert certify("spectr_gbv", instances.uniform_equal(2), drafts=2).undefined > 0
    simulate(instances.two_token(2), verifiers=["spectr_gbv"], **settings)
    assert certify("spectr_gbv", instances.two_token(2), drafts=2).undefined == 0


def test_a_verifier_that_needs_the_pair_is_given_it() -> None:
    pair = instances.two_token(2)
    estimate = simulate(pair, verifiers=["optimal_multipath"], drafts=2, samples=4_000).estimates[0]
    low, high = estimate.interval
    assert low < 212 / 81 < high


# ------------------------------------------------------------------------------ runs of before

KEPT = Path(__file__).with_name("runs.json")
FEW = ["token", "block", "spectr"]
TEXTS: dict[str, Any] = {"drafts": 2, "draft_length": 2, "max_new_tokens": 4, "samples": 2, "batch_size": 3}
ON_MODELS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "texts": (["block", "token", "greedy_multipath"], TEXTS | {"drafts": [1, 2], "seed": 3}),
    "one call": (FEW, TEXTS | {"max_new_tokens": None, "samples": 3}),
    "common texts": (FEW, TEXTS | {"common_texts": True, "against": "spectr", "confidence": 0.9}),
    "options": (["block"], TEXTS | {"options": SamplingOptions(temperature=0.7, top_k=2)}),
    "part of the mass": (["block"], TEXTS | {"options": SamplingOptions(top_p=0.8)}),
    "a width": (FEW, TEXTS | {"width": 1.2, "samples": 1}),
    "a width of gains": (FEW, TEXTS | {"gain_width": 1.5, "samples": 1}),
    "ends of prompts": (["block"], TEXTS | {"max_prompt_tokens": 2}),
    "prefix tree": (["traversal"], TEXTS | {"drafts": PrefixTree((2, 1))}),
    "without replacement": (
        ["multi_round_without_replacement"],
        TEXTS | {"drafts": WithoutReplacement((2, 1))},
    ),
    "greedy block": (["greedy_block"], TEXTS),
    "a sampler": ([from_sampler(token_sampler, exact=False)], TEXTS | {"samples": 1}),
}
ON_TABLES: dict[str, dict[str, Any]] = {
    "two drafts": {"drafts": 2, "samples": 20},
    "several numbers": {"drafts": [1, 3], "samples": 12, "seed": 2, "confidence": 0.8},
}


def documents() -> dict[str, Any]:
    """What runs on small models and tables say and show, without the place of the run."""
    pair, found = tiny_pair(), {}
    for name, (verifiers, settings) in ON_MODELS.items():
        found[name] = simulate(pair, list(SHORT), verifiers, **settings)
    for name, settings in ON_TABLES.items():
        found[name] = simulate(instances.sticky_chain(3), verifiers=[*FEW, "greedy_block"], **settings)
    return {
        name: {
            "document": {key: entry for key, entry in one.to_document().items() if key != "threads"},
            "headline": one.headline(),
            "tables": [[table.title, table.note, to_json(table.rows)] for table in one.tables()],
            "latex": one.to_latex(),
        }
        for name, one in found.items()
    }


def test_runs_say_what_they_said_before() -> None:
    """After a change that is meant, this file as a program, with tests/support on the path, keeps the new."""
    found, kept = json.loads(json.dumps(documents())), json.loads(KEPT.read_text(encoding="utf-8"))
    assert shape(found) == shape(kept)
    assert numbers(found) == pytest.approx(numbers(kept), rel=1e-6, abs=1e-9, nan_ok=True)


if __name__ == "__main__":
    KEPT.write_text(json.dumps(documents()), encoding="utf-8")


TREES = {
    "multi_round": PrefixTree((1, 3)),
    "multi_round_without_replacement": WithoutReplacement((1, 2)),
}


@pytest.mark.parametrize("samples", [2, 3, 1_999, 2_001, 4_000, 4_002])
def test_any_number_of_samples(samples: int) -> None:
    """Every sample is drawn and counted once, whatever the chunks; the exact value stays in reach."""
    pair = instances.two_token(2)
    estimate = simulate(pair, verifiers=["block"], samples=samples, seed=1).estimates[0]
    assert estimate.samples == samples
    assert sum(estimate.counted_length_probs) == pytest.approx(1, abs=1e-12)
    counts = np.array(estimate.counted_length_probs) * samples
    np.testing.assert_allclose(counts, counts.round(), atol=1e-8)
    if samples > 1_000:
        assert abs(estimate.block_efficiency - 20 / 9) <= 4.5 * estimate.standard_error
    with pytest.raises(InvalidInputError, match="samples must be a whole number of at least 2, got 0"):
        simulate(pair, verifiers=["block"], samples=0)


def test_progress_counts_draws() -> None:
    steps: list[tuple[int, int]] = []
    simulate(
        instances.two_token(1),
        verifiers=["token"],
        samples=4_500,
        progress=lambda done, total: steps.append((done, total)),
    )
    assert steps == [(2_000, 4_500), (4_000, 4_500), (4_500, 4_500)]


@pytest.mark.deep
@pytest.mark.parametrize("name", TREES)
def test_trees_of_drafts_agree_with_their_enumeration(models: LanguageModelPair, name: str) -> None:
    """The exact law of a restricted pair on a tree; the widths the other way round earn something else."""
    tree, restriction = TREES[name], Restriction([5, 90, 200])
    asked: dict[str, Any] = {"draft_length": 2, "samples": 200, "restriction": restriction, "seed": 1}
    found = simulate(models, [PROMPTS[0]] * 8, [name], drafts=tree, **asked)
    assert found.settings["draft_process"] == f"{tree.name}:{','.join(map(str, tree.widths))}"
    (estimate,) = found.estimates
    pair = restrict(models, PROMPTS[0], restriction, 2)
    exact = float(output_law(name, pair, drafts=tree).block_efficiency)
    assert abs(estimate.block_efficiency - exact) <= 4.5 * estimate.standard_error + 1e-6
    assert abs(estimate.counted - exact) <= 4.5 * estimate.counted_standard_error
    turned = type(tree)(tree.widths[::-1])
    other = float(output_law(name, pair, drafts=turned).block_efficiency)
    assert abs(estimate.block_efficiency - other) > 4.5 * estimate.standard_error  # the partner


def test_large_models_take_all_threads(models: LanguageModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones take one, unless a number is given; afterwards there are as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with model_threads(models, None) as small, model_threads(models, 3) as given:
            assert (small, given) == (1, 3)
        monkeypatch.setattr("spectheory.simulation.runs.SMALL_MODELS", 0)
        with model_threads(models, None) as large:
            assert large == torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_bad_lists(models: LanguageModelPair) -> None:
    with pytest.raises(InvalidInputError, match="at least one prompt"):
        simulate(models, [], ["token"])
    with pytest.raises(InvalidInputError, match="at least one verifier"):
        simulate(models, PROMPTS, [])
    with pytest.raises(InvalidInputError, match="listed twice"):
        simulate(models, PROMPTS, ["token", "token"])
    with pytest.raises(InvalidInputError, match="not valid for 'iid' drafts"):
        simulate(models, PROMPTS, ["multi_round_without_replacement"])
    with pytest.raises(InvalidInputError, match="enumerated pair"):
        simulate(models, PROMPTS, ["optimal_multipath"], samples=2)


def test_settings_and_prompts_that_an_enumerated_pair_does_not_have() -> None:
    pair = instances.two_token(1)
    for changes in ({"draft_length": 2}, {"max_new_tokens": 4}, {"jobs": 2}, {"checkpoint": "a"}):
        with pytest.raises(InvalidInputError, match=f"{next(iter(changes))} is a setting of language models"):
            simulate(pair, verifiers=["token"], **changes)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"has no prompts, got \['token'\]"):
        simulate(pair, ["token"])
    assert simulate(pair, verifiers=["token"]).estimates[0].samples == 10_000
