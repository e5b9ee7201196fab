"""Whole texts: estimates against exact values, a plain decoding and one another; checkpoints; refusals."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from decoding_support import PROMPTS, saved_pair
from spectheory import certify
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.models import LanguageModelPair, Restriction, restrict
from spectheory.pairs.drafts import WithoutReplacement
from spectheory.simulation import Simulation, simulate
from spectheory.verification.outcome import Outcome

MANY = [list(prompt) for prompt in product(range(3), repeat=4)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> LanguageModelPair:
    torch.set_num_threads(1)
    return saved_pair(tmp_path_factory.mktemp("pair"))


def simulated(pair: LanguageModelPair, verifiers: list[Any], **changes: Any) -> Simulation:
    settings: dict[str, Any] = {
        "prompts": list(PROMPTS), "drafts": 2, "draft_length": 2, "max_new_tokens": 12, "batch_size": 100,
    }  # fmt: skip
    return simulate(pair, verifiers=verifiers, **(settings | changes))


def test_texts_of_one_token_are_one_call(pair: LanguageModelPair) -> None:
    """Both estimates against the mean of the exact block efficiencies behind the prompts, within five errors
    of the mean over calls."""
    exact = {}
    for name in ("token", "spectr", "greedy_multipath"):
        whole = [restrict(pair, list(p), Restriction([0, 1, 2]), 2) for p in PROMPTS]
        values = [certify(name, p, drafts=2, with_optimum=False).block_efficiency for p in whole]
        exact[name] = float(np.mean([float(value) for value in values]))
    for found in simulated(pair, list(exact), max_new_tokens=1, samples=1_500).estimates:
        error = 1 / np.sqrt(found.samples)  # tau + 1 is 1 to 3: its standard deviation is at most 1
        assert found.samples == 6_000
        assert found.block_efficiency == pytest.approx(exact[found.verifier], abs=5 * error)
        assert found.counted == pytest.approx(exact[found.verifier], abs=5 * error)
    assert exact["greedy_multipath"] > exact["token"] + 5 * error  # the partner


def test_rao_blackwell_and_counting_agree(pair: LanguageModelPair) -> None:
    """Within joint intervals, and the variance of counting over texts is the larger one."""
    for found in simulated(pair, ["token", "block", "spectr"], prompts=MANY, samples=1).estimates:
        joint = np.hypot(found.standard_error, found.counted_standard_error)
        assert abs(found.block_efficiency - found.counted) < 4 * joint
        assert found.counted_standard_error > found.standard_error
        assert sum(found.length_probs) == pytest.approx(1)
        assert sum(found.counted_length_probs) == pytest.approx(1)


def test_estimates_do_not_depend_on_the_number_of_texts_per_pass(pair: LanguageModelPair) -> None:
    """Other draws, within joint intervals; the partner drafts more tokens."""
    (one,) = simulated(pair, ["block"], prompts=MANY[::9], max_new_tokens=6, batch_size=1).estimates
    (many,) = simulated(pair, ["block"], prompts=MANY).estimates
    (longer,) = simulated(pair, ["block"], prompts=MANY, draft_length=6).estimates
    assert one.block_efficiency != many.block_efficiency
    for other, apart in ((many, False), (longer, True)):
        joint = np.hypot(one.standard_error, other.standard_error)
        assert (abs(one.block_efficiency - other.block_efficiency) > 4 * joint) == apart


def test_a_model_that_is_its_own_draft_earns_all(pair: LanguageModelPair) -> None:
    own = LanguageModelPair.of(pair.target_model, pair.target_model)
    (found,) = simulated(own, ["block"], drafts=1, samples=2).estimates
    assert found.counted == 3
    assert found.block_efficiency == pytest.approx(3, abs=1e-9)
    assert found.samples == 4 * 2 * 4  # twelve tokens in four calls


def test_a_run_stops_at_the_width_it_is_asked_for(pair: LanguageModelPair, tmp_path: Path) -> None:
    """After a whole batch; what it has used is the beginning of the whole run; resuming changes nothing."""
    settings: dict[str, Any] = {"prompts": MANY[:51], "batch_size": 17, "max_new_tokens": 4}
    names = ["token", "block"]
    whole = simulated(pair, names, **settings)
    widest = max(e.counted_interval[1] - e.counted_interval[0] for e in whole.estimates)
    asked = settings | {"width": 1.3 * widest}
    stopped = simulated(pair, names, checkpoint=tmp_path / "whole", **asked)
    used = stopped.settings["prompts_used"]
    assert used in (17, 34)
    assert stopped.estimates == simulated(pair, names, **(settings | {"prompts": MANY[:used]})).estimates
    for found in stopped.estimates:
        for low, high in (found.interval, found.counted_interval):
            assert high - low <= asked["width"]
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    (tmp_path / "part").write_bytes(b"".join(lines[:2]))
    assert simulated(pair, names, checkpoint=tmp_path / "part", **asked) == stopped
    assert (tmp_path / "part").read_bytes() == (tmp_path / "whole").read_bytes()
    with pytest.raises(InvalidInputError, match="width"):  # it is a part of what the run is
        simulated(pair, names, checkpoint=tmp_path / "part", **settings)
    never = simulated(pair, names, **(settings | {"width": 1e-9}))  # the partner
    assert (never.estimates, never.settings["prompts_used"]) == (whole.estimates, 51)


class Twice:
    """Block verification whose corrections have mass 2."""

    def outcome(self, paths: Any, target_rows: Any, draft_rows: Any) -> Outcome:
        from spectheory.verification.algorithms import verifiers

        right = verifiers["block"].outcome(paths, target_rows, draft_rows)
        return Outcome(right.stop_probs, lambda path, length: 2 * right.correction(path, length))


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"verifiers": [Twice()]}, InvalidOutcomeError, "correction rows that are not laws"),
        ({"max_new_tokens": 0}, InvalidInputError, "max_new_tokens"),
        ({"max_new_tokens": 60}, InvalidInputError, "64 positions"),
        ({"samples": 0}, InvalidInputError, "samples must be a whole number of at least 1"),
        ({"restriction": Restriction([0, 1])}, InvalidInputError, "not restricted"),
        ({"prompts": [[1]]}, InvalidInputError, "at least 2 different prompts"),
    ],
)
def test_what_is_refused(
    pair: LanguageModelPair, changes: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        simulated(pair, **{"verifiers": ["block"], "samples": 1, **changes})


def test_every_answer_of_a_text_is_checked(pair: LanguageModelPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spectheory.simulation.judging.Source.check_users_own", lambda *_: None)
    with pytest.raises(InvalidOutcomeError, match="correction rows that are not laws, after prompt"):
        simulated(pair, [Twice()], samples=1)


def test_equal_prompts_are_one_observation(pair: LanguageModelPair) -> None:
    """Sixteen copies of four prompts are as sure of other prompts as four are, and not four times as sure."""
    prompts = [list(prompt) for prompt in PROMPTS[:4]]
    once = simulated(pair, ["block", "token"], prompts=prompts, samples=16)
    copied = simulated(pair, ["block", "token"], prompts=prompts * 16)
    for one, many in zip(once.estimates, copied.estimates, strict=True):
        widths = [high - low for low, high in (one.interval, many.interval)]
        assert widths[1] > 0.7 * widths[0]
    gains = [run.estimates[1].gain_interval for run in (once, copied)]
    assert gains[1][1] - gains[1][0] > 0.7 * (gains[0][1] - gains[0][0])
    with pytest.raises(InvalidInputError, match="at least 2 different prompts, got 64 equal ones"):
        simulated(pair, ["block"], prompts=prompts[:1] * 64)


def test_a_run_goes_on_from_its_checkpoint(pair: LanguageModelPair, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"batch_size": 1, "samples": 2}
    whole = simulated(pair, ["token", "block"], checkpoint=tmp_path / "whole", **settings)
    lines = (tmp_path / "whole").read_bytes().splitlines(keepends=True)
    (tmp_path / "part").write_bytes(b"".join(lines[:2]))
    again = simulated(pair, ["token", "block"], checkpoint=tmp_path / "part", **settings)
    assert again == whole
    assert (tmp_path / "part").read_bytes() == (tmp_path / "whole").read_bytes()
    with pytest.raises(InvalidInputError, match="max_new_tokens"):
        simulated(pair, ["token", "block"], checkpoint=tmp_path / "part", **settings, max_new_tokens=5)


@pytest.mark.deep
def test_several_numbers_of_drafts_are_what_each_is_alone(pair: LanguageModelPair) -> None:
    """By verifier and K, up to the rounding of batches; a verifier of one path is decoded once."""
    names = ["token", "spectr", "greedy_multipath", "block"]
    together = simulated(pair, names, drafts=[1, 2, 4], samples=2).estimates
    shapes = [(found.verifier, found.num_drafts) for found in together]
    several = [(name, drafts) for name in names[1:3] for drafts in (1, 2, 4)]
    assert shapes == [("token", 1), *several, ("block", 1)]
    for found in together:
        (alone,) = simulated(pair, [found.verifier], drafts=found.num_drafts, samples=2).estimates
        assert alone.counted_length_probs == found.counted_length_probs  # the same texts
        assert alone.block_efficiency == pytest.approx(found.block_efficiency, abs=1e-12)
    by_shape = dict(zip(shapes, together, strict=True))
    # SpecTr on one path is token verification, greedy multi-path is block: the same numbers, the same texts.
    for name, other in (("spectr", "token"), ("greedy_multipath", "block")):
        assert by_shape[name, 1].counted_length_probs == by_shape[other, 1].counted_length_probs
    assert by_shape["token", 1].counted_length_probs != by_shape["block", 1].counted_length_probs
    (other,) = simulated(pair, ["token"], drafts=1, samples=2, seed=1).estimates  # the partner
    assert other.counted_length_probs != by_shape["token", 1].counted_length_probs


def test_fewer_drafts_are_the_first_of_more_in_one_call(pair: LanguageModelPair) -> None:
    """Without whole texts all K are judged on one set of drafts, of which the first is drawn alike."""
    settings: dict[str, Any] = {"max_new_tokens": None, "samples": 4}
    several = simulated(pair, ["block", "spectr"], drafts=[1, 3], **settings).estimates
    assert [(found.verifier, found.num_drafts) for found in several] == [
        ("block", 1), ("spectr", 1), ("spectr", 3),
    ]  # fmt: skip
    three = simulated(pair, ["block", "spectr"], drafts=3, **settings).estimates
    assert three[1] == several[2]
    assert three[0].block_efficiency == several[0].block_efficiency  # block looks at the first path


@pytest.mark.deep
def test_trees_without_replacement_are_drawn_with_common_numbers(pair: LanguageModelPair) -> None:
    """A tree takes a draw per path; the first call's mean is that of one call after each prompt."""
    name, tree = "multi_round_without_replacement", WithoutReplacement((2, 2))
    (texts,) = simulated(pair, [name], drafts=tree, max_new_tokens=1, samples=200).estimates
    (calls,) = simulated(pair, [name], drafts=tree, max_new_tokens=None, samples=200, seed=1).estimates
    assert texts.block_efficiency == pytest.approx(calls.block_efficiency, abs=5 * calls.standard_error)
    (fewer,) = simulated(pair, [name], drafts=WithoutReplacement((1, 1)), max_new_tokens=1).estimates
    assert texts.block_efficiency > fewer.block_efficiency + 0.2  # the partner
