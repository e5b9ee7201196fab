"""A pair at a temperature: every row is the softmax of the logits over T, along every route to it."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decoding_support import PROMPTS, saved_pair, tiny_pair
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, SamplingOptions, restrict
from spectheory.models.drafting import draft_and_score, prefill
from spectheory.simulation.first_line import of_models


def gap_from_softmax(pair: LanguageModelPair, temperature: float) -> float:
    """The largest difference of a drafted row from softmax(logits / T) of a full pass, in float64."""
    batch = draft_and_score(prefill(pair, PROMPTS), 2, 3, pair.generator(0))
    gaps = []
    for b, prompt in enumerate(PROMPTS):
        for path, target, draft in zip(
            batch.paths[b], batch.target_rows[b], batch.draft_rows[b], strict=True
        ):
            text = torch.cat([torch.tensor(prompt), path])[None]
            for model, rows in ((pair.target_model, target), (pair.draft_model, draft)):
                with torch.no_grad():
                    logits = model(text).logits[0, len(prompt) - 1 :][: len(rows)]
                gaps.append(float((torch.softmax(logits / temperature, dim=-1) - rows).abs().max()))
    assert len(gaps) == 2 * 2 * len(PROMPTS)
    return max(gaps)


@pytest.mark.parametrize("temperature", [0.3, 1, 2.5])
def test_rows_are_the_softmax_at_the_temperature(temperature: float) -> None:
    """To rounding in float64, of both models; at another temperature they are other rows."""
    pair = tiny_pair().tempered(temperature)
    assert gap_from_softmax(pair, temperature) < 1e-12
    assert gap_from_softmax(pair, 1.3 * temperature) > 1e-3


def test_tempering_goes_before_a_restriction_or_after_it() -> None:
    """p^(1/T), normalised on two tokens, is the restriction of the tempered pair and of the option."""
    pair, options = tiny_pair(), SamplingOptions(temperature=0.6)
    plain, tempered = restrict(pair, [1], 2, 2), restrict(pair.tempered(0.6), [1], 2, 2)
    for rows, found, wanted in zip(
        plain.target, tempered.target, restrict(pair, [1], 2, 2, options).target, strict=True
    ):
        powers = rows ** (1 / 0.6)
        np.testing.assert_allclose(found, powers / powers.sum(-1, keepdims=True), rtol=1e-10)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
        assert np.abs(found - rows).max() > 1e-3  # the partner


def test_half_precision_is_upcast_before_the_division() -> None:
    """1/3 of a bfloat16 number is not one: divided first, the logits would be rounded."""
    pair = tiny_pair().tempered(3)
    scores = torch.tensor([1.0, 2.5, -3.0], dtype=torch.bfloat16)
    assert torch.equal(pair.logits(scores), scores.double() / 3)
    assert not torch.equal(pair.logits(scores), (scores / 3).double())


def test_a_pair_that_is_not_loaded_stays_tempered_and_counts_as_another(tmp_path: Path) -> None:
    saved_pair(tmp_path)
    pair = LanguageModelPair.load(
        tmp_path / "target", tmp_path / "draft", device="cpu", dtype="float64", weights_now=False
    )
    assert gap_from_softmax(pair.tempered(0.5), 0.5) < 1e-12
    assert of_models(pair.tempered(0.5)) != of_models(pair) == of_models(pair.tempered(1))


@pytest.mark.parametrize("temperature", [0, -1, math.nan, math.inf, True, "hot"])
def test_what_is_not_a_temperature_is_refused(temperature: Any) -> None:
    with pytest.raises(InvalidInputError, match="temperature of a pair must be a number above 0"):
        tiny_pair().tempered(temperature)


def test_temperatures_multiply() -> None:
    pair = tiny_pair()
    assert pair.tempered(2).tempered(1.5).temperature == 3
    assert gap_from_softmax(pair.tempered(0.25).tempered(4), 1) < 1e-12
    assert pair.temperature == 1  # the pair itself is left as it was
