"""Monte Carlo: the estimators against exact values, their intervals, common random numbers, checkpoints."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
import torch

from models_support import save_pair
from spectheory import instances
from spectheory.errors import InvalidInputError
from spectheory.law import output_law
from spectheory.models import LanguageModelPair, Restriction
from spectheory.models.restrict import restricted_pair
from spectheory.montecarlo import Simulation, simulate, simulate_enumerated
from spectheory.montecarlo.estimates import stratified as _stratified

NAMES = ["token", "block", "spectr", "multi_round", "greedy_multipath", "mixed_multipath"]
PROMPTS = ["def main(", "import", "for index in range"]
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> LanguageModelPair:
    target, draft = save_pair(tmp_path_factory.mktemp("pair"), "llama")
    return LanguageModelPair.load(target, draft, device="cpu")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("build", [instances.two_token, instances.sticky_chain, instances.partial_overlap])
def test_both_estimators_agree_with_the_exact_value(build: Any, device: str) -> None:
    """The exact E[τ+1] and P(τ = i) lie within 4.5 standard errors of either estimate (fixed seed)."""
    pair = build(2)
    simulation = simulate_enumerated(pair, NAMES, num_drafts=2, samples=8_000, seed=11, device=device)
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
    estimate = simulate_enumerated(pair, ["token"], samples=8_000, seed=3).estimates[0]
    assert float(output_law("block", pair).block_efficiency) > estimate.interval[1]
    assert float(output_law("block", pair).block_efficiency) > estimate.counted_interval[1]


def test_rao_blackwell_never_has_the_larger_error() -> None:
    """theory.md §7: Var E[τ+1 | drafts] <= Var (τ+1); strictly smaller where verifying is random."""
    simulation = simulate_enumerated(instances.two_token(3), NAMES, num_drafts=3, samples=8_000, seed=5)
    for estimate in simulation.estimates:
        assert estimate.standard_error < estimate.counted_standard_error


def test_interval_is_as_wide_as_its_confidence() -> None:
    """Half width = quantile x standard error, for both estimators."""
    for confidence in (0.5, 0.95, 0.999):
        simulation = simulate_enumerated(
            instances.two_token(2), ["block"], samples=500, confidence=confidence
        )
        estimate = simulation.estimates[0]
        width = NormalDist().inv_cdf((1 + confidence) / 2)
        low, high = estimate.interval
        assert high - estimate.block_efficiency == pytest.approx(width * estimate.standard_error)
        assert estimate.block_efficiency - low == pytest.approx(width * estimate.standard_error)
        low, high = estimate.counted_interval
        assert (high - low) / 2 == pytest.approx(width * estimate.counted_standard_error)


def test_stratified_mean_and_error() -> None:
    """By numpy on the draws themselves: mean of stratum means, sqrt(Σ s²/n) / strata."""
    draws = np.random.default_rng(0).normal(size=(7, 3)) + np.array([0.0, 5.0, -2.0])
    mean, error = _stratified(draws.sum(axis=0), (draws**2).sum(axis=0), len(draws))
    assert mean == pytest.approx(draws.mean(axis=0).mean())
    assert error == pytest.approx(np.sqrt((draws.var(axis=0, ddof=1) / 7).sum()) / 3)
    pooled = draws.std(ddof=1) / np.sqrt(draws.size)
    assert error < pooled / 2  # the spread between strata is no error of their mean


def test_all_verifiers_judge_the_same_drafts() -> None:
    """Common random numbers: an estimate does not depend on which other verifiers are listed."""
    pair = instances.sticky_chain(3)
    together = simulate_enumerated(pair, NAMES, num_drafts=2, samples=400, seed=2).estimates
    for name, estimate in zip(NAMES, together, strict=True):
        assert simulate_enumerated(pair, [name], num_drafts=2, samples=400, seed=2).estimates == [estimate]
    other = simulate_enumerated(pair, NAMES, num_drafts=2, samples=400, seed=3).estimates
    assert other[0].block_efficiency != together[0].block_efficiency


def test_language_models_agree_with_their_enumeration(models: LanguageModelPair) -> None:
    """The cross-check on a restricted pair: cached drafting and sampling against the exact law."""
    restriction = Restriction.fixed([5, 90, 200])
    pair = restricted_pair(models, PROMPTS[0], restriction, 2)
    simulation = simulate(
        models,
        [PROMPTS[0]] * 8,
        NAMES,
        num_drafts=2,
        draft_length=2,
        samples=150,
        restriction=restriction,
        seed=1,
    )
    for estimate in simulation.estimates:
        exact = float(output_law(estimate.verifier, pair, 2).block_efficiency)
        assert abs(estimate.block_efficiency - exact) <= 4.5 * estimate.standard_error + 1e-6
        assert abs(estimate.counted - exact) <= 4.5 * estimate.counted_standard_error
    wrong = restricted_pair(models, PROMPTS[0], Restriction.fixed([7, 33, 120]), 2)  # partner: other tokens
    token = simulation.estimates[0]
    away = abs(token.block_efficiency - float(output_law("token", wrong).block_efficiency))
    assert away > 6 * token.standard_error


def run(models: LanguageModelPair, checkpoint: Path | None = None, **changes: Any) -> Simulation:
    settings: dict[str, Any] = {"num_drafts": 2, "draft_length": 3, "samples": 3, "batch_size": 1, "seed": 4}
    return simulate(models, PROMPTS, ["token", "block"], checkpoint=checkpoint, **(settings | changes))


def test_a_stopped_run_goes_on_from_its_checkpoint(models: LanguageModelPair, tmp_path: Path) -> None:
    """Ctrl-C in the second prompt: the first is kept, and going on gives what an unbroken run gives."""
    whole = run(models)

    def stop(done: int, total: int) -> None:
        assert total == 9
        if done == 4:
            raise KeyboardInterrupt

    stopped = run(models, tmp_path / "state.json", progress=stop)
    assert stopped.interrupted
    assert stopped.estimates[0].samples == 3
    assert stopped.to_document()["interrupted"] is True
    steps: list[int] = []
    finished = run(models, tmp_path / "state.json", progress=lambda done, total: steps.append(done))
    assert steps[0] == 3  # the finished prompt is not drawn again
    assert finished.estimates == whole.estimates
    assert not finished.interrupted


def test_interrupted_before_anything_is_finished(models: LanguageModelPair) -> None:
    """Nothing to report: the interrupt goes through."""

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(models, progress=stop)


def test_a_checkpoint_of_other_settings_is_refused(models: LanguageModelPair, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    run(models, state)
    with pytest.raises(InvalidInputError, match=r"other settings \(seed\)"):
        run(models, state, seed=5)
    state.write_text("not json")
    with pytest.raises(InvalidInputError, match="is not a checkpoint"):
        run(models, state)
    with pytest.raises(InvalidInputError, match="folder"):
        run(models, tmp_path / "missing" / "state.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 1}, "samples must be at least 2"),
        ({"num_drafts": 0}, "num_drafts must be a whole number of at least 1"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"batch_size": 0}, "batch_size must be at least 1"),
    ],
)
def test_bad_settings(models: LanguageModelPair, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        run(models, **changes)


def test_bad_lists(models: LanguageModelPair) -> None:
    with pytest.raises(InvalidInputError, match="no prompts"):
        simulate(models, [], ["token"])
    with pytest.raises(InvalidInputError, match="at least one verifier"):
        simulate(models, PROMPTS, [])
    with pytest.raises(InvalidInputError, match="listed twice"):
        simulate(models, PROMPTS, ["token", "token"])
    with pytest.raises(InvalidInputError, match="not valid for 'iid' drafts"):
        simulate(models, PROMPTS, ["multi_round_without_replacement"])
    with pytest.raises(InvalidInputError, match="enumerated pair"):
        simulate(models, PROMPTS, ["optimal_multipath"], samples=2)
    with pytest.raises(InvalidInputError, match="multiple of 2000"):
        simulate_enumerated(instances.two_token(1), ["token"], samples=2_001)
    with pytest.raises(InvalidInputError, match="device must be"):
        simulate_enumerated(instances.two_token(1), ["token"], device="tpu")
