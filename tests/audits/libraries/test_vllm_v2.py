"""The adapter on modules of our own that have the shape of the released ones; ``make audits`` runs those."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing import assert_close

from audited import DRAFT, GUMBEL, PATHS, TARGET, recorded, released
from audits.forms.flat_batch import MIXES
from audits.libraries import vllm_v2, vllm_v2_round
from audits.loading.library_code import NOISE as ONE_PER_TOKEN
from audits.registry import load_subject
from deep import first_is_quick
from spectheory import audit, certify, instances
from spectheory.auditing.following.kernel_draws import gumbel_noise
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.rounds.two_calls import follow_two_calls
from spectheory.auditing.subjects.asked import Question
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.pairs.drafts import Iid
from spectheory.pairs.pair import ModelPair

STATED = ModelPair.context_free_pair(["7/20", "7/20", "1/5", "1/10"], ["3/10", "1/20", "3/20", "1/2"], 1)
READ_AGAIN = "randomness: tl.rand reads random numbers that it has used in the call before"
NOISE = GUMBEL.replace(
    "import triton\nimport triton.language as tl", "from vllm.triton_utils import tl, triton"
)
NOISE = NOISE.replace("def uniform(", "def murmur3_uniform32(").replace("log_complement", "_log1p_neg_stable")
DRAFTER = """
import torch

@triton.jit
def draw(out, kept, stride, logits, slots, seeds, pos, column, vocab, SALT: tl.constexpr, SIZE: tl.constexpr):
    slot = tl.load(slots)
    lanes = tl.arange(0, SIZE)
    row = tl.load(logits + lanes, mask=lanes < vocab, other=float("-inf"))
    tl.store(kept + slot * stride + tl.load(column) * vocab + lanes, row, mask=lanes < vocab)
    u = murmur3_uniform32(tl.load(seeds + slot), tl.load(pos) + SALT, lanes)
    row = tl.where(lanes < vocab, row - tl.log(-_log1p_neg_stable(u)), float("-inf"))
    best, lane = tl.max(row, axis=0, return_indices=True)
    tl.store(out, lane)

def gumbel_sample(logits, expanded_idx_mapping, temperature, seed, pos, apply_temperature,
                  is_drafting, logits_cache, logits_cache_col):
    assert is_drafting and apply_temperature and temperature.tolist() == [1.0, 1.0]
    out = torch.zeros(1, dtype=torch.int64)
    draw[(1,)](out, logits_cache, logits_cache.stride(0), logits, expanded_idx_mapping, seed, pos,
               logits_cache_col, logits.shape[1], SALT=OFFSET, SIZE=4)
    return out
"""
MODULE = """
import torch
from vllm.triton_utils import tl, tldevice, triton
from vllm.v1.spec_decode.fly import unused
from vllm.v1.worker.gpu.sample.gumbel import _log1p_neg_stable, murmur3_uniform32
from vllm.v1.worker.gpu.sample.watermark import not_used

@triton.jit
def verify(out, count, target, draft, drafted, starts, slots, temperature, seeds, pos, steps, vocab,
           SIZE: tl.constexpr, BLOCK: tl.constexpr):
    request = tl.program_id(0)
    slot = tl.load(slots + request)
    start = tl.load(starts + request)
    length = tl.load(starts + request + 1) - start - 1
    lanes = tl.arange(0, SIZE)
    mask = lanes < vocab
    greedy = tl.load(temperature + slot) == 0.0
    going, kept = True, 0
    row = tl.load(target + start * vocab + lanes, mask=mask, other=float("-inf"))
    for step in range(length):
        if LOOKS_AHEAD and not going:
            if tl.rand(tl.load(seeds + slot), tl.load(pos + start + step)) < 0.5:
                pass
        if going:
            p = tl.load(target + (start + step) * vocab + lanes, mask=mask, other=float("-inf"))
            q = tl.load(draft + (slot * steps + step) * vocab + lanes, mask=mask, other=float("-inf"))
            token = tl.load(drafted + start + step + 1)
            ratio = tl.sum(tl.where(lanes == token, tl.exp(p - q), 0.0), axis=0)
            if greedy:
                going = tl.argmax(p, axis=0) == token
            else:
                u = tl.maximum(tl.rand(tl.load(seeds + slot), tl.load(pos + start + step)), 4.6566127342e-10)
                going = (token >= 0) & (u COMPARES ratio)
            row = p
            if not greedy and token >= 0:
                row = tl.where(p > q, p + tldevice.log1p(-tl.exp(q - p)), float("-inf"))
            if going:
                kept += 1
                tl.store(out + request * (steps + 1) + step, token)
    if kept == length:
        row = tl.load(target + (start + length) * vocab + lanes, mask=mask, other=float("-inf"))
    if not greedy:
        u = murmur3_uniform32(tl.load(seeds + slot), tl.load(pos + start + kept), lanes)
        row = tl.where(mask, row - tl.log(-_log1p_neg_stable(u)), float("-inf"))
    best, lane = tl.max(row, axis=0, return_indices=True)
    tl.store(out + request * (steps + 1) + kept, lane)
    tl.store(count + request, kept + 1)

def rejection_sample(target_logits, draft_logits, draft_sampled, cu_num_logits, pos, idx_mapping,
                     expanded_idx_mapping, expanded_local_pos, temperature, seed, num_speculative_steps,
                     block=2):
    size = len(idx_mapping)
    assert expanded_idx_mapping.tolist() == idx_mapping.repeat_interleave(cu_num_logits.diff()).tolist()
    assert pos.tolist() == (pos.min() + expanded_local_pos).tolist() and len(set(seed.tolist())) == len(seed)
    out = torch.empty(size, num_speculative_steps + 1, dtype=torch.int64)
    count = torch.empty(size, dtype=torch.int32)
    verify[(size,)](out, count, target_logits, draft_logits, draft_sampled, cu_num_logits, idx_mapping,
                    temperature, seed, POSITION, num_speculative_steps, target_logits.shape[1],
                    SIZE=4, BLOCK=block)
    return out, count
"""


def sampler(
    root: Path,
    compares: str = "<",
    position: str = "pos",
    looks_ahead: bool = False,
    name: str = "vllm-v2",
    offset: int = 2**30,
) -> Shipped:
    text = MODULE.replace("COMPARES", compares).replace("POSITION", position)
    text = text.replace("LOOKS_AHEAD", str(looks_ahead))
    released(root, vllm_v2.FUNCTION.modules[0], text)
    released(root, "vllm.v1.worker.gpu.sample.gumbel", NOISE + DRAFTER.replace("OFFSET", str(offset)))
    (root / "vllm" / "__init__.py").touch()
    return load_subject(name, checkout=root)


@pytest.mark.deep
def test_numbers_are_followed_from_seeds_to_tokens(tmp_path: Path) -> None:
    """Alone and in batches, whose requests have seeds of their own; no number is read twice."""
    shipped = sampler(tmp_path)
    found = certify(shipped, instances.two_residual_tokens(2), with_optimum=False)
    assert found.total_variation < 1e-6
    assert audit_batches(shipped) == ("equal lengths", *MIXES)
    follow_two_calls(shipped, Question("", instances.two_token(2), Iid(1), ""))
    assert shipped.journal.findings == set()
    assert shipped.journal.primitives == {
        "murmur3_uniform32: uniform in the unit interval, as real numbers",
        "tl.rand: whole numbers of 63 bits, scaled in float32",
    }


@first_is_quick(
    ("mutant", "says"),
    [
        ({"compares": ">"}, "its law is not the target's"),
        ({"position": "expanded_local_pos.long()"}, READ_AGAIN),
        ({"looks_ahead": True}, READ_AGAIN),
    ],
    ids=["compares", "position", "looks ahead"],
)
def test_partner_mutants(mutant: dict[str, Any], says: str, tmp_path: Path) -> None:
    """A comparison the wrong way round; a position that does not go on from call to call; coins that are read
    after a rejection, whose positions the next call reads."""
    pairs = {"quarters": instances.bernoulli("1/4", "3/4", 2)}
    found = audit(sampler(tmp_path, **mutant), pairs, stop_at_first=True)
    assert any(reason.startswith(says) for reason in found.reasons)


@pytest.mark.parametrize(("offset", "is_shared"), [(2**30, False), (0, True)])
def test_the_noise_of_drafts(offset: int, is_shared: bool, tmp_path: Path) -> None:
    """Those of other positions are lossless; those of the residual are a defect on the stated pair."""
    shipped = sampler(tmp_path, name="vllm-v2-round", offset=offset)
    asked, pair = shipped.prepared(STATED)
    found = certify(asked, pair, with_optimum=False)
    assert abs(float(found.total_variation) - (0.054334 if is_shared else 0)) < 1e-6
    again = "murmur3_uniform32 reads random numbers that it has read before"
    assert (("randomness", again) in shipped.journal.findings) is is_shared
    assert "drafted by vllm/v1/worker/gpu/sample/gumbel.py, sha256" in shipped.note
    assert shipped.signature_name == "round_batch"


REPLACED = [(("murmur3_uniform32", "_log1p_neg_stable"), gumbel_noise, ONE_PER_TOKEN)]


def int32(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def test_what_the_verification_is_given() -> None:
    """Two requests, the second one greedy, with one drafted token and three placeholders."""
    rows = [
        Row(PATHS[0], TARGET[0], DRAFT[0]),
        Row(PATHS[1, :1], TARGET[1, :2], DRAFT[1, :1], is_greedy=True, padding=3),
    ]
    given, code = recorded((torch.tensor([[1, 0, 2, 9], [2, 9, 9, 9]]), int32(3, 1)))
    replaced: list[Any] = []
    code.replace = lambda *given: replaced.append(given)
    generator = torch.Generator().manual_seed(5)
    assert vllm_v2.rejection_sample(code)(rows, generator) == [[1, 0, 2], [2]]
    assert generator.initial_seed() == 5 + 3
    assert replaced == REPLACED
    draft = torch.tensor([1.0, 2.0, 3.0]).repeat(3, 4, 1)
    draft[2, :3], draft[1, :1] = DRAFT[0], DRAFT[1, :1]
    places = int32(0, 1, 2, 3, 0, 1, 2, 3, 4)
    unread = [(number - TARGET[1, 1:2]) / (3 * number - 1) for number in (1, 2, 3)]
    assert_close(
        given,
        {
            "target_logits": torch.cat([TARGET[0], TARGET[1, :2], *unread]).log(),
            "draft_logits": draft.log(),
            "draft_sampled": int32(0, 1, 0, 2, 0, 2, -1, -1, -1),
            "cu_num_logits": int32(0, 4, 9),
            "pos": 5 + places.long(),
            "idx_mapping": int32(2, 1),
            "expanded_idx_mapping": int32(2, 2, 2, 2, 1, 1, 1, 1, 1),
            "expanded_local_pos": places,
            "temperature": torch.tensor([1.0, 0.0, 1.0]),
            "seed": torch.tensor([1, 2, 3]),
            "num_speculative_steps": 4,
        },
    )


@pytest.mark.parametrize("count", [-1, 3])
def test_a_count_that_the_request_has_no_tokens_for(count: int) -> None:
    """Beside a longer request, whose tensor has room for them; the partner is the test above."""
    rows = [Row(PATHS[0], TARGET[0], DRAFT[0]), Row(PATHS[1, :1], TARGET[1, :2], DRAFT[1, :1])]
    _, code = recorded((torch.ones(2, 4), int32(4, count)))
    code.replace = lambda *_: None
    with pytest.raises(UndefinedDrawError, match=f"it returns {count} tokens for 1 drafted ones"):
        vllm_v2.rejection_sample(code)(rows, torch.Generator())


def model(first: int) -> Any:
    """Its rows depend on every token of the text and its place."""

    def row(text: Any) -> torch.Tensor:
        weights = [first, 1 + sum(place * token for place, token in enumerate(text, 1)), 1 + len(text)]
        return torch.tensor(weights) / sum(weights)

    return row


def test_what_drafter_and_verification_are_given() -> None:
    """Two rounds behind texts of unequal lengths; each drafted token is behind those before it."""
    target, draft = model(1), model(2)
    asked: list[dict[str, Any]] = []

    def drafted(**values: Any) -> torch.Tensor:
        kept = values.pop("logits_cache")
        assert kept is values.pop("output_processed_logits")
        kept[values["expanded_idx_mapping"].long(), int(values["logits_cache_col"])] = values["logits"]
        asked.append(values)
        return int32(2, 0) if len(asked) == 1 else int32(1, 2)

    given, code = recorded((torch.tensor([[2, 1, 0], [1, 9, 9]]), int32(3, 1)))
    replaced: list[Any] = []
    drafter = type(code)(call=drafted)
    drafter.replace = code.replace = lambda *given: replaced.append(given)
    found = vllm_v2_round.drafting_round(code, drafter)([[1, 0], [2]], target, draft, 2, None)
    assert replaced == REPLACED * 2
    rows = [torch.stack([draft([1, 0]), draft([1, 0, 2])]), torch.stack([draft([2]), draft([2, 0])])]
    assert_close(found, [([2, 1], rows[0], [2, 1, 0]), ([0, 2], rows[1], [1])])
    requests = {"temperature": torch.ones(3), "seed": torch.tensor([1, 2, 3])}
    for step, values in enumerate(asked):
        columns = dict.fromkeys(("output_processed_logits_col", "logits_cache_col"), int32(step)[0])
        assert_close(
            values,
            {
                "logits": torch.stack([rows[0][step], rows[1][step]]).log(),
                "expanded_idx_mapping": int32(1, 2),
                "pos": torch.tensor([2 + step, 1 + step]),
                "apply_temperature": True,
                "is_drafting": True,
                **requests,
                **columns,
            },
        )
    texts = [[1, 0], [1, 0, 2], [1, 0, 2, 1], [2], [2, 0], [2, 0, 2]]
    assert_close(
        given,
        {
            "target_logits": torch.stack([target(text) for text in texts]).log(),
            "draft_logits": torch.stack([torch.zeros(2, 3), *rows]).log(),
            "draft_sampled": int32(0, 2, 1, 0, 0, 2),
            "cu_num_logits": int32(0, 3, 6),
            "pos": torch.tensor([2, 3, 4, 1, 2, 3]),
            "idx_mapping": int32(1, 2),
            "expanded_idx_mapping": int32(1, 1, 1, 2, 2, 2),
            "expanded_local_pos": int32(0, 1, 2, 0, 1, 2),
            "num_speculative_steps": 2,
            **requests,
        },
    )
