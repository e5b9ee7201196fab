"""The checks of losslessness in benchmarks/smollm2_laws.py, on a small pair of models."""

import numpy as np
import pytest
import torch

from decoding_support import tiny_pair
from scripts import load
from spectheory.models import LanguageModelPair
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.simulation.settings import SimulationSettings
from spectheory.verification.algorithms import verifiers

laws = load("benchmarks", "smollm2_laws")


@pytest.fixture(scope="module")
def pair() -> LanguageModelPair:
    torch.set_num_threads(1)
    return tiny_pair(8)


def test_the_deviation_is_zero_on_average(pair: LanguageModelPair) -> None:
    """Within 4.5 standard errors for lossless verifiers; the wrong one is outside."""
    generator, number = pair.generator(1), 4_000
    drafted = draft_and_score(prefill(pair, [[0, 1, 2]] * number), 2, 2, generator)
    arrays = drafted.paths, drafted.target_rows, drafted.draft_rows
    judged = [verifiers[name] for name in ("token", "block", "spectr", "scored_multipath")]
    for verifier in (*judged, laws.CorrectsFromTarget()):
        values = laws.deviation(verifier.outcome(*arrays), *arrays, generator).numpy()
        assert values.shape == (number,)
        is_zero = abs(values.mean()) <= 4.5 * values.std() / np.sqrt(number)
        assert is_zero == (verifier in judged)


def test_rows_on_seven_tokens(pair: LanguageModelPair) -> None:
    """They are those of the models behind texts of the target, and only wrong verifiers are off."""
    settings = SimulationSettings(draft_length=1, max_new_tokens=2, common_texts=True)
    prompts = [[0, 1, 2], [5]]
    found = laws.restricted_pairs(pair, settings, prompts, 1, 4)
    assert len(found) == 4
    for prompt, one in zip(prompts, found, strict=False):
        rows = [
            model(torch.tensor([prompt])).logits[0, -1].softmax(-1).detach()
            for model in (pair.target_model, pair.draft_model)
        ]
        kept = rows[0].argsort(descending=True)
        for row, level in zip(rows, (one.target[0][0], one.draft[0][0]), strict=True):
            expected = [*row[kept[:6]].tolist(), row[kept[6:]].sum().item()]
            np.testing.assert_allclose(level.astype(float), expected, atol=1e-12)
        behind = pair.target_model(torch.tensor([[*prompt, kept[6].item()]])).logits[0, -1].softmax(-1)
        highest = behind.topk(6).values.tolist()  # behind the rest
        np.testing.assert_allclose(one.target[1][6][:6].astype(float), highest, atol=1e-12)
    for num_drafts in (1, 2):
        for name, entry in laws.largest_deviations(found, 1, num_drafts).items():
            assert (entry["beyond_tolerance"] == 0) == entry["lossless"], name
