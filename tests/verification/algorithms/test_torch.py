"""The same verifier objects on torch: the numbers of numpy, and samples that follow the exact law."""

from typing import Any

import numpy as np
import pytest
import torch

from deep import first_is_quick
from later import Later
from spectheory import instances
from spectheory.exact.law import OutputLaw, output_law
from spectheory.verification.algorithms import verifiers
from spectheory.verification.outcome import Outcome
from table import GENERAL, groups
from torch_support import DEVICES, assert_agrees_on, drafted, on_device

stats = Later("scipy.stats")

NOT_LOSSLESS = [name for name, verifier in verifiers.items() if not verifier.lossless]
NUM_SAMPLES = 40_000
MANY_SAMPLES = 200_000


def generator(device: str, seed: int) -> Any:
    if device == "numpy":
        return np.random.default_rng(seed)
    return torch.Generator(device).manual_seed(seed)


@first_is_quick("device", DEVICES)
@first_is_quick("name", [*GENERAL, *NOT_LOSSLESS], quick=6)
@first_is_quick(
    "group", ["partial_overlap", "equal_models", "disjoint_supports", "random-V3-L2-K3", "random-V4-L3-K2"]
)
def test_outcomes_agree_with_numpy(group: str, name: str, device: str) -> None:
    """Stop probabilities and all correction rows, pairs with zeros and ties, to 1e-12."""
    for case in groups()[group]:
        assert_agrees_on(device, verifiers[name], case.pair, case.num_drafts, str(case))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", GENERAL)
def test_float32_rows_stay_float32(name: str, device: str) -> None:
    """Rows in float32 give float32 outcomes near the float64 ones: nothing is silently promoted or lost."""
    arrays = drafted(instances.random_float(9, 4, 3), 3, batch=32, seed=1)
    expected = verifiers[name].outcome(*arrays).expected_tokens()
    paths, *rows = on_device(arrays, device)
    outcome = verifiers[name].outcome(paths, *(row.float() for row in rows))
    assert outcome.stop_probs.dtype == torch.float32
    np.testing.assert_allclose(outcome.expected_tokens().cpu().numpy(), expected, rtol=0, atol=2e-4)


def counts_of(law: OutputLaw, paths: np.ndarray, outcome: Outcome, seed_or_generator: Any) -> np.ndarray:
    """How often each output (accepted prefix and token) is drawn, in the order of the law's masses."""
    sample = outcome.sample(seed_or_generator)
    path_index, length, token = (
        np.asarray(value.cpu() if isinstance(value, torch.Tensor) else value)
        for value in (sample.path_index, sample.length, sample.token)
    )
    size = law.pair.vocab_size
    chosen = paths[np.arange(len(paths)), path_index]
    counts = []
    for depth, masses in enumerate(law.masses):
        here = length == depth
        number = np.zeros(int(here.sum()), dtype=np.int64)
        for position in range(depth):
            number = number * size + chosen[here, position]
        counts.append(np.bincount(number * size + token[here], minlength=len(masses)))
    return np.concatenate(counts)


def p_value(counts: np.ndarray, law: OutputLaw) -> float:
    """Pearson's chi-square test of the counts against the law; an impossible output gives 0."""
    probs = np.concatenate([mass.astype(float) for mass in law.masses])
    possible = probs > 1e-12
    if counts[~possible].any():
        return 0.0
    return float(
        stats.chisquare(counts[possible], counts.sum() * probs[possible] / probs[possible].sum()).pvalue
    )


def distance(law: OutputLaw, other: OutputLaw) -> float:
    return max(float(abs(a - b).max()) for a, b in zip(law.masses, other.masses, strict=True))


@first_is_quick("device", ["numpy", *DEVICES])
@first_is_quick("name", GENERAL, quick=4)
def test_samples_follow_the_exact_law(name: str, device: str) -> None:
    """40 000 fixed-seed rounds: p > 1e-3 against the exact law, p < 1e-6 against every other one.

    200 000 of block: one definition draws for all verifiers, and a search for 0.99 u, which moves a
    probability of 1/2 by 0.005, is seen in so many.
    """
    num_samples = MANY_SAMPLES if name == "block" else NUM_SAMPLES
    pair = instances.sticky_chain(2)
    arrays = drafted(pair.to_float(), 2, num_samples, seed=2024)
    placed = list(arrays) if device == "numpy" else on_device(arrays, device)
    outcome = verifiers[name].outcome(*placed)
    law = output_law(name, pair, 2)
    counts = counts_of(law, arrays[0], outcome, generator(device, 99))
    assert counts.sum() == num_samples
    assert len(counts) == sum(len(mass) for mass in law.masses)
    assert p_value(counts, law) > 1e-3
    laws = [output_law(other, pair, 2) for other in GENERAL]
    others = [other for other in laws if distance(other, law) > 1e-3]
    assert len(others) >= 5  # six laws at least are told apart
    for other in others:
        assert p_value(counts, other) < 1e-6, other


@first_is_quick("device", ["numpy", *DEVICES])
@first_is_quick("name", GENERAL, quick=4)
def test_rao_blackwell_mean_estimates_the_block_efficiency(name: str, device: str) -> None:
    """E[τ+1 | drafts] averaged over 40 000 drafts is within 5 standard errors of the exact value, and an
    error of 0.05 is seen."""
    pair = instances.two_token(3)
    arrays = drafted(pair.to_float(), 2, NUM_SAMPLES, seed=31)
    placed = list(arrays) if device == "numpy" else on_device(arrays, device)
    tokens = verifiers[name].outcome(*placed).expected_tokens()
    values = tokens if device == "numpy" else tokens.cpu().numpy()
    exact = float(output_law(name, pair, 2).block_efficiency)
    assert abs(values.mean() - exact) <= 5 * values.std() / NUM_SAMPLES**0.5
    assert abs(values.mean() - exact - 0.05) > 5 * values.std() / NUM_SAMPLES**0.5


class AnotherOnTorch:
    """Block verification on numpy and token verification on torch: a second implementation that drifted."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        name = "block" if isinstance(paths, np.ndarray) else "token"
        return verifiers[name].outcome(paths, target_rows, draft_rows)


@pytest.mark.parametrize("device", DEVICES)
def test_agreement_partner(device: str) -> None:
    """What compares the two arithmetics tells two algorithms apart, and passes one."""
    pair = instances.two_token(3)
    assert_agrees_on(device, verifiers["block"], pair, 1, "block")
    with pytest.raises(AssertionError, match="drifted"):
        assert_agrees_on(device, AnotherOnTorch(), pair, 1, "drifted")  # type: ignore[arg-type]
