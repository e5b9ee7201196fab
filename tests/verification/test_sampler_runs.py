"""Users' samplers and loops where drafts come from models: right texts, and wrong ones."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from decoding_support import PROMPTS, losslessness, tiny_pair
from deep import first_is_quick
from later import Later
from spectheory import from_loop, from_sampler, instances, output_law, verifiers
from spectheory.decoding import decode
from spectheory.foundation.errors import InvalidOutcomeError
from spectheory.models import SamplingOptions
from spectheory.pairs.drafts import Iid
from spectheory.simulation import simulate
from user_samplers import forgets_the_residual, token_sampler

models = Later("spectheory.models")


def token_by_token(paths: Any, target_rows: Any, draft_rows: Any) -> Any:
    stops, rows, reached = 0 * target_rows[..., 0], target_rows.copy(), 1
    for place, token in enumerate(paths[0]):
        target, draft = target_rows[0, place], draft_rows[0, place]
        accept = min(1, target[token] / draft[token])
        stops[0, place] = reached * (1 - accept)
        residual = np.maximum(target - draft, 0 * target)
        rows[0, place] = residual / (residual.sum() or 1)
        reached = reached * accept
    stops[0, -1] = reached
    return stops, rows


@first_is_quick("verifier", [from_sampler(token_sampler), from_loop(token_by_token)])
@first_is_quick("probs_dtype", [torch.float32, torch.float64])
def test_texts_follow_the_target(verifier: Any, probs_dtype: torch.dtype) -> None:
    """600 texts behind each prompt (fixed seed), in either precision of the rows."""
    pair = replace(tiny_pair(), probs_dtype=probs_dtype)
    assert losslessness(pair, verifier, 600, Iid(1), seed=5) > 1e-3


def test_partner_a_wrong_sampler_is_refused_by_its_texts() -> None:
    assert losslessness(tiny_pair(), from_sampler(forgets_the_residual), 600, Iid(1), seed=5) < 1e-6


@first_is_quick("verifier", [from_sampler(token_sampler), from_loop(token_by_token)])
def test_every_door(verifier: Any) -> None:
    """simulate, over calls and whole texts, decode and transformers: greedy texts are the target's."""
    pair, greedy = tiny_pair(), SamplingOptions(temperature=0)
    wanted = [text.token_ids for text in decode(pair, PROMPTS, "token", max_new_tokens=5, options=greedy)]
    found = decode(pair, PROMPTS, verifier, max_new_tokens=5, options=greedy)
    assert [text.token_ids for text in found] == wanted
    ids = torch.tensor([PROMPTS[2]])
    row = pair.target_model.generate(
        ids, custom_generate=models.custom_generate, draft_model=pair.draft_model, verifier=verifier,
        max_new_tokens=5, do_sample=False, pad_token_id=0, attention_mask=torch.ones_like(ids),
    )  # fmt: skip
    assert row[0, ids.shape[1] :].tolist() == wanted[2]
    for settings in ({"samples": 100}, {"max_new_tokens": 40}):
        token, own = simulate(
            pair, PROMPTS, ["token", verifier], draft_length=2, seed=3, jobs=1, **settings
        ).estimates
        assert own.interval[0] < token.block_efficiency < own.interval[1]


def test_the_estimate_is_that_of_the_law() -> None:
    """On an enumerated pair: the exact value lies within 4.5 standard errors, that of block does not."""
    pair = instances.two_token(4)
    estimate = simulate(pair, verifiers=[from_sampler(token_sampler)], samples=6_000, seed=1).estimates[0]
    exact, other = (float(output_law(name, pair).block_efficiency) for name in ("token", "block"))
    assert abs(estimate.block_efficiency - exact) < 4.5 * estimate.standard_error
    assert abs(estimate.block_efficiency - other) > 4.5 * estimate.standard_error
    assert estimate.block_efficiency == estimate.counted


def with_other_numbers(paths: Any, target: Any, *_: Any) -> list[int]:
    return [random.randrange(target.shape[-1])]


def with_choices(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
    return generator.choices(range(target.shape[-1]), weights=target[0, 0])


def writes(paths: Any, target: Any, draft: Any, generator: Any) -> list[int]:
    found = token_sampler(paths, target.copy(), draft.copy(), generator)
    for array in (paths, target, draft):
        array[...] = 0
    return found


@pytest.mark.parametrize(
    ("sampler", "says"),
    [
        (with_other_numbers, "'with_other_numbers' returned other tokens with the same drafts and random"),
        (lambda *_: [9], "returned the tokens .9.; expected 1"),
        (lambda *_: 1 / 0, "ZeroDivisionError: division by zero .*test_sampler_runs.py, line"),
        (with_choices, None),
        (writes, None),
    ],
)
def test_what_is_refused(sampler: Any, says: str | None) -> None:
    """In one line that names the sampler; the partners use what they may, or write into their own copies."""

    def run(sampler: Any) -> Any:
        asked: dict[str, Any] = {"draft_length": 2, "samples": 4, "jobs": 1}
        return simulate(tiny_pair(), PROMPTS, [from_sampler(sampler, "own")], **asked).estimates[0].counted

    if says is None:
        assert 1 <= run(sampler) <= 3
        assert sampler is not writes or run(writes) == run(token_sampler)
    else:
        with pytest.raises(InvalidOutcomeError, match=says.replace("'with_other_numbers'", "'own'")):
            run(sampler)


class TwoLaws:
    """Its ``outcome`` is token verification, and its runs accept everything."""

    name = "two_laws"

    def outcome(self, *arrays: Any) -> Any:
        return verifiers["token"].outcome(*arrays)

    def run_on_tuple(self, paths: Any, target_rows: Any, draft_rows: Any, generator: Any) -> Any:
        raise AssertionError("its outcome is what is judged, and so what is drawn from")


def test_an_object_has_one_law() -> None:
    pair, prompts = tiny_pair(), [list(prompt) for prompt in PROMPTS]
    first, second = (
        [text.token_ids for text in decode(pair, prompts, one, draft_length=2, max_new_tokens=6)]
        for one in (TwoLaws(), "token")
    )
    assert first == second
