"""From logits to rows, and from rows to tokens."""

import math

import numpy as np
import pytest
import torch

from spectheory.foundation.errors import ComputationError, InvalidInputError, InvalidOutcomeError
from spectheory.models import SamplingOptions, sampling
from spectheory.models.sampling import LogitsCheck, most_likely, scaled_logits
from spectheory.verification.outcome import sample_rows


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (SamplingOptions(), [0.4, 0.2, 0.2, 0.1, 0.1]),
        (SamplingOptions(temperature=0.5), [16 / 26, 4 / 26, 4 / 26, 1 / 26, 1 / 26]),
        (SamplingOptions(top_k=2), [2 / 3, 1 / 3, 0, 0, 0]),  # of the tie at 0.2 the lower id
        (SamplingOptions(top_k=4), [4 / 9, 2 / 9, 2 / 9, 1 / 9, 0]),
        (SamplingOptions(top_k=9), [0.4, 0.2, 0.2, 0.1, 0.1]),
        (SamplingOptions(top_p=0.3), [1, 0, 0, 0, 0]),
        (SamplingOptions(top_p=0.5), [2 / 3, 1 / 3, 0, 0, 0]),
        (SamplingOptions(top_p=0.7), [0.5, 0.25, 0.25, 0, 0]),
        (SamplingOptions(top_p=1e-9), [1, 0, 0, 0, 0]),
        (SamplingOptions(top_k=3, top_p=0.6), [2 / 3, 1 / 3, 0, 0, 0]),  # of 1/2, 1/4, 1/4
        (SamplingOptions(temperature=1e-308), [1, 0, 0, 0, 0]),  # logits / 1e-308 overflow
    ],
)
def test_probabilities_by_hand(options: SamplingOptions, expected: list[float]) -> None:
    """Logits log(4, 2, 2, 1, 1) + 3, and the same tokens in reverse."""
    logits = torch.tensor([4.0, 2.0, 2.0, 1.0, 1.0], dtype=torch.float64).log() + 3
    probs = scaled_logits(logits, options).softmax(-1)
    assert probs.dtype == torch.float64
    np.testing.assert_allclose(probs, expected, rtol=1e-12, atol=0)
    # The lower id of a tie wins there too: within tied pairs the entries keep their order.
    swapped = scaled_logits(logits.flip(0), options).softmax(-1)
    np.testing.assert_allclose(swapped, np.take(expected, [3, 4, 1, 2, 0]), rtol=1e-12, atol=0)


def test_half_precision_logits_are_upcast_first() -> None:
    logits = torch.tensor([1.0, 2.5, -3.0], dtype=torch.bfloat16)
    assert torch.equal(scaled_logits(logits).softmax(-1), scaled_logits(logits.double()).softmax(-1))
    assert scaled_logits(logits, dtype=torch.float32).softmax(-1).dtype == torch.float32


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_raise(bad: float) -> None:
    with pytest.raises(ComputationError, match="NaN"):
        scaled_logits(torch.tensor([0.0, bad])).softmax(-1)


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": -1.0},
        {"temperature": float("inf")},
        {"temperature": float("nan")},
        {"temperature": True},
        {"top_k": 0},
        {"top_k": 1.5},
        {"top_p": 0.0},
        {"top_p": 1.1},
    ],
)
def test_bad_options_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        SamplingOptions(**bad)  # type: ignore[arg-type]


def test_tokens_without_mass_are_never_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    """At u = 0, u = 1 - 2^-53 and between, the token has mass, first and last entries being 0."""
    row = torch.tensor([0.0, 0.1, 0.0, 0.2, 0.0, 0.7, 0.0], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    drawn = sample_rows(row.expand(5000, 7), generator)
    assert set(drawn.tolist()) == {1, 3, 5}
    for uniform, token in ((0.0, 1), (0.1 - 1e-12, 1), (0.1 + 1e-12, 3), (1 - 2.0**-53, 5)):
        monkeypatch.setattr(
            torch, "rand", lambda shape, u=uniform, **_: torch.full(shape, u, dtype=torch.float64)
        )
        assert sample_rows(row, generator) == token
        assert int(sample_rows(row * 3e-310, generator)) in {1, 3, 5}  # subnormal mass
    with pytest.raises(InvalidOutcomeError, match="without mass"):
        sample_rows(torch.zeros(3), generator)


def test_temperature_zero_is_a_point_mass() -> None:
    """On the most likely token, by lower id among equals, whatever top-k and top-p would leave."""
    logits = torch.tensor([[1.0, 3.0, 3.0], [5.0, -torch.inf, 2.0]])
    for options in (SamplingOptions(temperature=0), SamplingOptions(temperature=0, top_k=2, top_p=0.5)):
        assert scaled_logits(logits, options).softmax(-1).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert scaled_logits(logits, SamplingOptions(temperature=1)).softmax(-1)[0, 2] > 0  # the partner


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_on_an_accelerator_a_row_without_a_maximum_is_kept_until_somebody_asks(
    bad: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a CPU that is taken for one: nothing raises, other rows stay, and it is remembered."""
    monkeypatch.setattr(sampling, "on_host", lambda array: False)
    good = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    check = LogitsCheck()
    assert torch.equal(scaled_logits(good, check=check), scaled_logits(good))
    assert not check.failed(good)
    wrong = torch.tensor([[0.0, 1.0], [bad, bad]])
    assert torch.equal(scaled_logits(wrong, check=check)[0], scaled_logits(good)[0])
    assert torch.softmax(scaled_logits(wrong, check=check)[1], dim=-1).tolist() == [0.5, 0.5]
    scaled_logits(good, check=check)
    assert check.failed(good)
    with pytest.raises(ComputationError, match="without a finite maximum"):
        scaled_logits(wrong)


@pytest.mark.parametrize("count", [1, 30, 600, 2_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("steps", [3, 1e9])
def test_the_most_likely_tokens_are_those_of_a_stable_sort(
    count: int, dtype: torch.dtype, steps: float
) -> None:
    """With many equals, also with the last one, and with none; zeros of both signs, and what is left out."""
    scores = torch.randn(4, 2_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores = (scores * steps).round().to(dtype) / steps
    scores[1, ::3] = -math.inf
    expected = scores.sort(dim=-1, descending=True, stable=True).indices[..., :count]
    assert torch.equal(most_likely(scores, count), expected)
    if steps == 3 and count > 1:  # partner: torch's selection has equals in another order
        assert not torch.equal(scores.topk(count).indices, expected)


def test_top_p_that_is_reached_exactly_needs_no_further_token() -> None:
    """Two of four equal tokens have one half; a third is kept for the least bit more."""
    logits = torch.zeros(4, dtype=torch.float64)
    for top_p, kept in ((0.5, 2), (0.5 + 1e-9, 3), (0.25, 1), (0.75, 3)):
        probs = scaled_logits(logits, SamplingOptions(top_p=top_p)).softmax(-1)
        assert int((probs > 0).sum()) == kept
        assert float(probs.sum()) == 1.0
