"""Common texts: estimates and gains against exact values, and texts that do not depend on drafts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decoding_support import PROMPTS, saved_pair, target_law, tiny_pair
from spectheory import certify
from spectheory.foundation.errors import InvalidInputError
from spectheory.models import LanguageModelPair, Restriction, restrict
from spectheory.pairs.drafts import Iid
from spectheory.simulation import Simulation, simulate
from spectheory.simulation.settings import SimulationSettings
from spectheory.simulation.texts import CommonTextSource

MANY: dict[str, Any] = {"prompts": list(PROMPTS) * 50, "samples": 8, "batch_size": 200}
"""1 600 texts, each prompt as often as the others."""
NAMES = ["token", "block", "spectr", "greedy_multipath"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> LanguageModelPair:
    torch.set_num_threads(1)
    return saved_pair(tmp_path_factory.mktemp("pair"))


def simulated(pair: LanguageModelPair, verifiers: list[Any], **changes: Any) -> Simulation:
    settings: dict[str, Any] = {
        "prompts": list(PROMPTS), "drafts": 2, "draft_length": 2, "max_new_tokens": 2, "batch_size": 100,
        "common_texts": True,
    }  # fmt: skip
    return simulate(pair, verifiers=verifiers, **(settings | changes))


def exact(pair: LanguageModelPair, verifier: str, text: list[int]) -> float:
    """Its block efficiency behind a text, by enumeration."""
    enumerated = restrict(pair, text, Restriction([0, 1, 2]), 2)
    return float(certify(verifier, enumerated, drafts=2, with_optimum=False).block_efficiency)


def over_texts(pair: LanguageModelPair, verifier: str) -> float:
    """The mean over both contexts of texts of two tokens."""
    means = []
    for prompt in map(list, PROMPTS):
        behind = [exact(pair, verifier, [*prompt, token]) for token in range(3)]
        means.append((exact(pair, verifier, prompt) + target_law(pair, prompt, 1) @ behind) / 2)
    return float(np.mean(means))


def test_estimates_and_gains_are_the_exact_means_over_texts_of_the_target(pair: LanguageModelPair) -> None:
    """Within five standard errors; the partner is the mean behind the prompts alone."""
    found = simulated(pair, ["token", "greedy_multipath"], **MANY)
    assert found.settings["against"] == "token"
    expected = [over_texts(pair, name) for name in ("token", "greedy_multipath")]
    for estimate, value in zip(found.estimates, expected, strict=True):
        assert estimate.samples == 1_600 * 2
        error = 0.5 / np.sqrt(estimate.samples)  # E[tau + 1 | drafts] varies by less than 0.5
        assert estimate.block_efficiency == pytest.approx(value, abs=5 * error)
        assert estimate.counted == pytest.approx(value, abs=10 * error)
    assert found.estimates[0].gain is None
    gain = found.estimates[1].gain
    assert gain == pytest.approx(expected[1] - expected[0], abs=5 * error)
    behind = [exact(pair, "greedy_multipath", list(prompt)) for prompt in PROMPTS]
    assert abs(np.mean(behind) - expected[1]) > 5 * error


def texts_of(pair: LanguageModelPair, drafts: int, draft_length: int, seed: int = 0) -> torch.Tensor:
    """The target's row behind each text of the first batch, of two texts of six tokens per prompt."""
    settings = SimulationSettings(
        drafts=drafts, draft_length=draft_length, max_new_tokens=6, samples=2, common_texts=True, seed=seed
    )
    source = CommonTextSource(pair, list(PROMPTS), Iid(drafts), settings)
    draw = source.open_batch(0)
    drawn = [draw(source.generator(number), 1) for number in range(12)]
    assert all(bool(step.counted.all()) for step in drawn if step.counted is not None)
    return torch.stack([step.target_rows[:, 0, 0] for step in drawn])


def test_texts_do_not_depend_on_the_drafts(pair: LanguageModelPair) -> None:
    """Rows behind six tokens of two texts; the partners are texts of another seed, and a second text."""
    texts = texts_of(pair, drafts=1, draft_length=1)
    torch.testing.assert_close(texts, texts_of(pair, drafts=3, draft_length=2), atol=1e-12, rtol=0)
    assert not torch.allclose(texts, texts_of(pair, drafts=1, draft_length=1, seed=1))
    assert torch.equal(texts[0], texts[6])
    assert not torch.allclose(texts[:6], texts[6:])


def test_contexts_behind_the_end_of_a_text_do_not_count(pair: LanguageModelPair) -> None:
    """A token that ends texts: the second context is there as often as the first token is another one."""
    ended = tiny_pair()
    ended.target_model.generation_config.eos_token_id = 0
    (found,) = simulated(ended, ["block"], **MANY).estimates
    share = np.mean([1 - target_law(pair, prompt, 1)[0] for prompt in PROMPTS])
    assert found.samples / 1_600 - 1 == pytest.approx(share, abs=5 * 0.5 / 40)
    assert 0.1 < share < 0.9  # the partner: neither all contexts nor half of them
    assert sum(found.length_probs) == pytest.approx(1)
    assert sum(found.counted_length_probs) == pytest.approx(1)
    with_one = np.mean([exact(pair, "block", list(prompt)) for prompt in PROMPTS])
    behind = [
        target_law(pair, prompt, 1)[token] * exact(pair, "block", [*prompt, token])
        for prompt in PROMPTS for token in (1, 2)
    ]  # fmt: skip
    value = (with_one + np.sum(behind) / len(PROMPTS)) / (1 + share)
    assert found.block_efficiency == pytest.approx(value, abs=5 * 0.5 / np.sqrt(found.samples))


def test_several_numbers_of_drafts_cost_one_run_of_the_models(
    pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four verifiers and three K read as much as one verifier; the partner writes a text for each."""
    from spectheory.models import reading

    calls, run = [0], reading.run_model

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return run(*args, **kwargs)

    monkeypatch.setattr(reading, "run_model", counted)

    def cost(verifiers: list[str], **changes: Any) -> int:
        before = calls[0]
        simulated(pair, verifiers, max_new_tokens=5, **changes)
        return calls[0] - before

    cost(["spectr"])  # the first run of a pair tries whether its models read on from a cache
    once = cost(["spectr"], drafts=3)
    assert cost(NAMES, drafts=[1, 2, 3]) == once
    assert cost(NAMES, drafts=[1, 2, 3], common_texts=False) > 4 * once
    assert simulated(pair, ["spectr"], drafts=[1, 2]).headline().count("spectr") == 1


def test_a_run_goes_on_from_its_checkpoint_and_stops_at_the_width_of_its_gains(
    pair: LanguageModelPair, tmp_path: Path
) -> None:
    prompts = [[token, other, again] for token in range(3) for other in range(3) for again in range(3)] * 2
    settings: dict[str, Any] = {"prompts": prompts, "batch_size": 9, "max_new_tokens": 3}
    whole = simulated(pair, NAMES, **settings)
    widths = [
        entry.gain_interval[1] - entry.gain_interval[0] for entry in whole.estimates if entry.gain_interval
    ]
    assert len(widths) == 3
    settings["gain_width"] = 1.4 * max(widths)
    stopped = simulated(pair, NAMES, checkpoint=tmp_path / "whole", **settings)
    used = stopped.settings["prompts_used"]
    assert 16 <= used < 54
    assert used % 9 == 0
    first = simulated(pair, NAMES, **(settings | {"prompts": prompts[:used], "gain_width": None}))
    assert stopped.estimates == first.estimates
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    (tmp_path / "part").write_bytes(b"".join(lines[:2]))
    again = simulated(pair, NAMES, checkpoint=tmp_path / "part", **settings)
    assert again == stopped
    assert (tmp_path / "part").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"against": "otm"}, "compared with 'otm', which is not among them; take one of block"),
        ({"against": "block"}, "against was asked for with one verifier"),
        ({"gain_width": 0.1}, "gain_width was asked for with one verifier"),
        ({"prompts": [[1]]}, "needs at least 2 different prompts, got 1"),
        ({"restriction": Restriction([0, 1])}, "leave the restriction out"),
    ],
)
def test_what_is_refused(pair: LanguageModelPair, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        simulated(pair, ["block"], **changes)


@pytest.mark.parametrize(
    ("how", "depends"),
    [({}, True), ({"common_texts": False, "max_new_tokens": None}, True), ({"common_texts": False}, False)],
)
def test_which_estimates_depend_on_the_largest_number_of_drafts(
    pair: LanguageModelPair, how: dict[str, Any], depends: bool
) -> None:
    """Those that share its paths; those of the largest number and of texts of their own do not."""
    alone, largest, together = (
        [found.block_efficiency for found in simulated(pair, ["spectr"], drafts=drafts, **how).estimates]
        for drafts in (1, 2, [1, 2])
    )
    assert (together[:1] != alone) == depends
    assert together[1:] == largest


def test_the_base_of_gains_is_chosen(pair: LanguageModelPair) -> None:
    """Block by default; of several K the base with as many drafts, or the one value that it has."""
    found = simulated(pair, ["token", "block", "spectr"], drafts=[1, 2])
    assert found.settings["against"] == "block"
    values = {(entry.verifier, entry.num_drafts): entry for entry in found.estimates}
    for (name, _), entry in values.items():
        gain = None if name == "block" else entry.block_efficiency - values["block", 1].block_efficiency
        assert entry.gain == pytest.approx(gain)
    over = simulated(pair, ["greedy_multipath", "spectr", "token"], drafts=[1, 2], against="spectr")
    values = {(entry.verifier, entry.num_drafts): entry for entry in over.estimates}
    for drafts in (1, 2):
        here = values["greedy_multipath", drafts]
        assert here.gain == pytest.approx(here.block_efficiency - values["spectr", drafts].block_efficiency)
    assert values["token", 1].gain == pytest.approx(0, abs=1e-9)  # SpecTr on one path is token verification
    assert [row["gain"] for row in over.rows()] == [entry.gain for entry in over.estimates]
    assert "gain over spectr" in over.to_latex()
    lossy = simulated(pair, ["token", "greedy_block"]).tables()[0]
    assert [row[0] for row in lossy.texts()] == ["token", "greedy_block *"]
