"""Taking the time changes no text, and the parts add up to the whole."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from decoding_support import PROMPTS, tiny_pair
from scripts import load
from spectheory.decoding import Speed, decode, plain_decoding, timed_decode
from spectheory.models import LanguageModelPair, SamplingOptions


@pytest.fixture(scope="module")
def pair() -> LanguageModelPair:
    torch.set_num_threads(1)
    return tiny_pair()


@pytest.mark.parametrize("slow", ["draft", "target", "verification", "other"])
def test_every_part_is_charged_with_its_own_work(
    pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """The clock stands still but in one place: that part is charged with every second, and no other."""
    place = {
        "draft": "spectheory.models.drafting._draft",
        "target": "spectheory.models.drafting._score",
        "verification": "spectheory.verification.outcome.Outcome.sample",
        "other": "spectheory.decoding.loop.output_tokens",
    }[slow]
    right = _found(place)
    passed = [0.0]

    def slowly(*args: Any, **kwargs: Any) -> Any:
        passed[0] += 1
        return right(*args, **kwargs)

    monkeypatch.setattr(place, slowly)
    monkeypatch.setattr("spectheory.decoding.speed.time", SimpleNamespace(perf_counter=lambda: passed[0]))
    settings: dict[str, Any] = {"draft_length": 2, "max_new_tokens": 12}
    texts, speed = timed_decode(pair, PROMPTS, "block", plain=(12, 0.1), **settings)
    calls = max(len(text.calls) for text in texts)
    assert calls >= 4
    assert speed.seconds[slow] >= calls
    assert sum(speed.seconds.values()) == speed.seconds[slow]
    monkeypatch.undo()
    assert texts == decode(pair, PROMPTS, "block", **settings)


def _found(place: str) -> Any:
    import spectheory.decoding.loop as loop
    import spectheory.models.drafting as drafting
    from spectheory.verification.outcome import Outcome

    owner = Outcome if "Outcome" in place else loop if "loop" in place else drafting
    return getattr(owner, place.rpartition(".")[2])


def test_numbers_of_a_speed() -> None:
    speed = Speed(30, {"draft": 1.0, "target": 1.5, "verification": 0.25, "other": 0.25}, 10, 2.0)
    assert (speed.tokens_per_second, speed.speed_up) == (10, 2)
    assert speed.shares["target"] == 0.5
    assert str(speed).startswith("10 tokens per second, 2.00 times plain decoding; draft 33%, target 50%")


def test_plain_decoding_counts_tokens_up_to_the_end(
    pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as greedy decoding writes, where a token ends the text; other draws are what they were."""
    greedy, ends = SamplingOptions(temperature=0), 1
    monkeypatch.setattr(pair.target_model.generation_config, "eos_token_id", ends)
    wanted = decode(pair, PROMPTS, "block", draft_length=2, max_new_tokens=20, options=greedy)
    state = torch.get_rng_state()
    for size in (1, 4):
        tokens, seconds = plain_decoding(pair, PROMPTS, max_new_tokens=20, options=greedy, batch_size=size)
        assert tokens == sum(len(text.token_ids) for text in wanted) < 20 * len(PROMPTS)
        assert seconds > 0
    plain_decoding(pair, PROMPTS, max_new_tokens=3)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_costs_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on with the models alone: by a time per call, and by one per token that is read."""
    pair, passed = tiny_pair(), [0.0]
    for model, call, token in ((pair.target_model, 100.0, 1.0), (pair.drafts[0], 5.0, 0.0)):

        def goes_on(_model: Any, args: Any, named: Any, call: float = call, token: float = token) -> None:
            passed[0] += call + token * named.get("input_ids", args[0] if args else None).shape[1]

        model.register_forward_pre_hook(goes_on, with_kwargs=True)
    monkeypatch.setattr("spectheory.decoding.speed.time", SimpleNamespace(perf_counter=lambda: passed[0]))
    call_costs = load("benchmarks", "call_costs").call_costs
    costs = call_costs(pair, PROMPTS[0], 3, 2)
    assert costs == (101.0, 10.0, 107.0)
    assert costs.cost_ratio(2) == 5 / 101
    assert costs.row_cost(6) == 1 / 101
    cost = 1 + 2 * costs.cost_ratio(2) + 6 * costs.row_cost(6)
    assert costs.speed_up(2.5) == pytest.approx(2.5 / cost, rel=1e-14)
    assert call_costs(pair, PROMPTS[0], 1, 2) == (101.0, 10.0, 103.0)
