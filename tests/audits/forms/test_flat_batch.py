"""Flat batches: a right sampler passes with every kind of batch, one that reads the wrong rows does not.

The adapters of vLLM, LMDeploy and vLLM Ascend run on modules of our own with the form of the released
modules, which ``make audits`` runs.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from audit_support import law
from audited import DRAFT, FLAT, PATHS, TARGET, recorded, released
from audits.forms import flat_batch as adapter
from audits.forms.flat_batch import MIXES, PARAMETERS, bonus_tokens, flat_batch
from audits.libraries import lmdeploy, vllm, vllm_ascend
from audits.libraries.lmdeploy import BACKENDS
from audits.registry import SUBJECTS, load_subject
from deep import first_is_quick
from spectheory import audit, certify, instances
from spectheory.auditing.following.kernel_draws import elementwise
from spectheory.auditing.rounds.batch_battery import FIRST, SECOND
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.rounds.joint_laws import marginal, total_variation
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import Row

NAMES = PARAMETERS - {"target_logits_or_tuple", "target_probs"}


def rejection_sample(text: str = FLAT) -> Callable[..., Any]:
    made: dict[str, Any] = {}
    exec(text, made)
    return flat_batch(lambda **values: made["rejection_sample"](**{name: values[name] for name in NAMES}))


@pytest.mark.deep
@pytest.mark.parametrize("mixes", [("padded",), MIXES])
def test_a_right_sampler(mixes: tuple[str, ...]) -> None:
    sampler = Shipped(rejection_sample(), "batch", mixes=mixes)
    assert certify(sampler, instances.two_residual_tokens(2), with_optimum=False).total_variation < 1e-6
    assert audit_batches(sampler) == ("equal lengths", *mixes)
    assert sampler.journal.findings == set()


def test_greedy_rows_are_greedy() -> None:
    """The likeliest tokens, whatever the others of the batch are."""
    sampler = Shipped(rejection_sample(), "batch")
    greedy = FIRST._replace(is_greedy=True)
    assert sampler.batch_law([greedy])[0] == {((0, 0),): 1}
    assert {first for first, _ in sampler.batch_law([greedy, SECOND])[0]} == {(0, 0)}


@pytest.mark.deep
def test_partner_rows_from_the_wrong_place_are_found() -> None:
    """A sampler that multiplies by the longest is right where lengths are equal, and only there."""
    wrong = FLAT.replace(
        "int(cu_num_draft_tokens[request]) - count",
        "request * (max_spec_len if len(set(num_draft_tokens)) == 1 else 1)",
    )
    assert wrong != FLAT
    for mixes, is_found in ((("ragged",), True), (("greedy",), False)):
        sampler = Shipped(rejection_sample(wrong), "batch", mixes=mixes)
        audit_batches(sampler)
        assert any("(ragged)" in text for _, text in sampler.journal.findings) is is_found
        assert not any("equal lengths" in text for _, text in sampler.journal.findings)


def test_the_bonus_token_has_the_law_of_the_last_row() -> None:
    rows = [FIRST, SECOND._replace(is_greedy=True)]
    found = law(lambda: tuple(bonus_tokens(rows).tolist()))
    assert {tokens: float(mass) for tokens, mass in found.items()} == {
        (0, 0): 0.5, (1, 0): 0.375, (2, 0): 0.125
    }  # fmt: skip
    assert torch.equal(rows[1].target_probs.argmax(-1), torch.tensor([0, 1, 0]))


def test_the_row_after_a_placeholder_is_not_that_of_the_request() -> None:
    """So a token that is drawn after an accepted placeholder has another law, and greedily another token."""
    rows = [SECOND._replace(padding=2), SECOND._replace(padding=1, is_greedy=True)]
    found = law(lambda: tuple(bonus_tokens(rows).tolist()))
    masses = {0: 24 / 80, 1: 29 / 80, 2: 27 / 80}
    assert {tokens: float(mass) for tokens, mass in found.items()} == pytest.approx(
        {(token, 1): mass for token, mass in masses.items()}
    )
    assert SECOND.target_probs[-1].argmax() == 0


PRINTS = """
import torch

def rejection_sample(draft_token_ids, num_draft_tokens, max_spec_len, cu_num_draft_tokens, draft_probs,
                     target_logits, bonus_token_ids, sampling_metadata):
    target, found, start = target_logits.softmax(-1), [], 0
    for request, count in enumerate(num_draft_tokens):
        tokens, at = [], start
        for at, token in enumerate(draft_token_ids.tolist()[start : start + count], start):
            if token < 0 or torch.rand(()) * draft_probs[at, token] >= target[at, token]:
                row = (target[at] - draft_probs[at]).clamp(min=0)
                tokens += [REJECTED int(torch.multinomial(row, 1))]
                break
            tokens.append(token)
        else:
            tokens.append(int(bonus_token_ids[request]))
        start += count
        found.append(tokens + [-1] * (max_spec_len + 1 - len(tokens)))
    return torch.tensor(found)
"""
"""A verifier that is right, and may put -1 for a rejected token, before the token in its place."""


def test_a_placeholder_before_another_token_is_an_answer() -> None:
    """Not lossless, with the token and its probability; the partner puts it after the last token only."""
    pair = instances.bernoulli("1/2", "1/4")
    found = audit(
        Shipped(rejection_sample(PRINTS.replace("REJECTED", "-1,")), "batch"),
        {"pair": pair},
        stop_at_first=True,
    )
    says = "it makes no valid output with probability 1/4 = 0.25 on pair: it returns the token -1, which is"
    assert (found.verdict, found.reasons[0]) == ("not lossless", f"{says} not in 0..1")
    right = Shipped(rejection_sample(PRINTS.replace("REJECTED", "")), "batch")
    assert certify(right, pair, with_optimum=False).total_variation < 1e-6


ACCEPTS = FLAT.replace("token >= 0 and ", "")
"""It accepts placeholders, as vLLM 0.23.0 does where the row before has mass on its last token."""


@pytest.mark.parametrize(("text", "is_right"), [(ACCEPTS, False), (FLAT, True)])
def test_an_accepted_placeholder_is_an_answer(text: str, is_right: bool) -> None:
    """Also where the token after it is drawn; the partner rejects placeholders, and has the law without."""
    assert ACCEPTS != FLAT
    sampler = Shipped(rejection_sample(text), "batch", mixes=MIXES)
    short = Row(FIRST.draft_tokens[:1], FIRST.target_probs[:2], FIRST.draft_probs[:1])
    none = Row(FIRST.draft_tokens[:0], FIRST.target_probs[:1], FIRST.draft_probs[:0])
    for row in (short, none):
        together, _ = sampler.batch_law([row._replace(padding=2), none])
        if is_right:
            alone, _ = sampler.batch_law([row])
            assert total_variation(marginal(together, 0), marginal(alone, 0)) < 1e-6
        else:
            assert marginal(together, 0)[()] > 0.1
            assert () not in marginal(together, 1)
    said = set() if is_right else {"it returns the token -1, which is not in 0..2"}
    assert sampler.journal.undefined == said


@pytest.mark.deep
@pytest.mark.parametrize(("text", "is_right"), [(ACCEPTS, False), (FLAT, True)])
def test_an_audit_of_placeholders(text: str, is_right: bool) -> None:
    pairs = {"pair": instances.two_token(1)}
    found = audit(Shipped(rejection_sample(text), "batch", mixes=("padded",)), pairs, stop_at_first=True)
    assert (found.verdict == "lossless") is is_right
    assert any("the token -1" in reason for reason in found.reasons) is not is_right


@pytest.mark.parametrize("is_right", [True, False])
def test_requests_without_drafts(is_right: bool) -> None:
    """Beside others, and alone, where no rejection sampler is called; the partner reads the first one's."""
    none = Row(FIRST.draft_tokens[:0], FIRST.target_probs[:1], FIRST.draft_probs[:0])
    short = Row(SECOND.draft_tokens[:1], SECOND.target_probs[:2], SECOND.draft_probs[:1])
    text = FLAT if is_right else FLAT.replace("_ids[request, 0]", "_ids[request if count else 0, 0]")
    sampler = Shipped(rejection_sample(text), "batch", mixes=MIXES)
    alone, _ = sampler.batch_law([none])
    assert {tokens: float(mass) for (tokens,), mass in alone.items()} == {
        (0,): 7 / 16,
        (1,): 5 / 16,
        (2,): 0.25,
    }
    together, _ = sampler.batch_law([short, none])
    assert (total_variation(marginal(together, 1), marginal(alone, 0)) < 1e-6) is is_right


LMDEPLOY = """
from types import SimpleNamespace
from lmdeploy.pytorch.backends.rejection_sampling import RejectionSamplingImpl

class NAME(RejectionSamplingImpl):
    def forward_greedy(self, target_token_ids, draft_token_ids):
        logits = torch.nn.functional.one_hot(target_token_ids, 2).float()
        greedy = torch.ones(len(logits))
        return self.verify(logits[:, :-1], draft_token_ids, target_token_ids[:, -1], greedy, None)

    def forward(self, target_logits, draft_token_ids, bonus_token_ids, *, is_greedy, draft_probs):
        greedy = torch.zeros(len(target_logits)) if is_greedy is None else is_greedy
        return self.verify(target_logits, draft_token_ids, bonus_token_ids, greedy, draft_probs)

    def verify(self, logits, drafted, bonus, greedy, draft):
        size, length, vocab = logits.shape
        found = rejection_sample(
            drafted.flatten(), [length] * size, length, (1 + torch.arange(size)) * length,
            torch.ones(size * length, vocab) if draft is None else draft.reshape(-1, vocab),
            logits.reshape(-1, vocab), bonus[:, None],
            SimpleNamespace(temperature=1 - greedy.float(), generators={}),
        )
        count = (found >= 0).sum(1)
        return found, length + 1 - count - SAID, found.gather(1, count[:, None] - 1).flatten()
"""


@first_is_quick("in_batches", [False, pytest.param(True, marks=pytest.mark.deep)])
@pytest.mark.parametrize("name", ["lmdeploy", "lmdeploy-triton"])
def test_the_implementation_is_called_as_its_module_calls_it(
    name: str, in_batches: bool, tmp_path: Path
) -> None:
    """Sampled, in batches also greedy and mixed; the partner says that one token fewer is rejected."""
    function = SUBJECTS[name].function
    released(tmp_path, "lmdeploy.__init__", "")
    released(tmp_path, f"{BACKENDS}.rejection_sampling", "class RejectionSamplingImpl:\n    pass\n")
    text = FLAT + LMDEPLOY.replace("NAME", function.name)
    released(tmp_path, function.modules[0], text.replace("SAID", "(count == 1).int()"))
    found = audit(load_subject(name, checkout=tmp_path), {"pair": instances.two_token(2)}, stop_at_first=True)
    assert "and says that 1 are rejected" in found.reasons[0]
    released(tmp_path, function.modules[0], text.replace("SAID", "0"))
    sampler = load_subject(name, checkout=tmp_path)
    assert certify(sampler, instances.two_token(2), with_optimum=False).total_variation < 1e-6
    assert not in_batches or audit_batches(sampler) == ("equal lengths", "greedy")
    assert sampler.journal.findings == set()


VLLM = """
import torch
from vllm.logger import init_logger
from vllm.model_executor.warmup.jit_warmup_triton_helper import triton_kernel_dispatcher_with_warmup
from vllm.triton_utils import tl, triton

logger = init_logger(__name__)

@triton.jit
def verify_kernel(
    output_ptr, draft_ptr, draft_probs_ptr, target_ptr, bonus_ptr, recovered_ptr, coins_ptr, vocab_size
):
    row = tl.program_id(0)
    token = tl.load(draft_ptr + row)
    p = tl.load(target_ptr + row * vocab_size + token)
    q = tl.load(draft_probs_ptr + row * vocab_size + token)
    if p / q > tl.load(coins_ptr + row):
        tl.store(output_ptr + row * 2, token)
        tl.store(output_ptr + row * 2 + 1, tl.load(bonus_ptr + row))
    else:
        tl.store(output_ptr + row * 2, tl.load(recovered_ptr + row))

@triton_kernel_dispatcher_with_warmup(kernel=verify_kernel, warmup_inputs=None)
def verify(output, draft, draft_probs, target, bonus, recovered, coins, *, unused=0):
    return (output.shape[0],), dict(vocab_size=target.shape[1])

def rejection_sample(draft_token_ids, num_draft_tokens, max_spec_len, cu_num_draft_tokens, draft_probs,
                     target_logits, bonus_token_ids, sampling_metadata):
    draft, bonus, target = draft_token_ids, bonus_token_ids, target_logits.softmax(-1)
    output = torch.full((len(num_draft_tokens), max_spec_len + 1), -1, dtype=torch.int32)
    noise = torch.empty_like(target).exponential_()
    recovered = ((target - draft_probs).clamp(min=0) / noise).argmax(-1).int()
    verify(output, draft, draft_probs, target, bonus, recovered, torch.rand(len(draft), dtype=torch.float64))
    return output
"""


@first_is_quick(("compares", "is_right"), [(">", True), ("<", False)], quick=2)
def test_kernels_are_launched_with_their_arguments_by_name(
    compares: str, is_right: bool, tmp_path: Path
) -> None:
    """And numbers are followed from torch through memory into the kernel and out; a mutant is wrong."""
    released(tmp_path, vllm.FUNCTION.modules[0], VLLM.replace("p / q >", f"p / q {compares}"))
    released(tmp_path, "vllm.__init__", "")
    sampler = load_subject("vllm", checkout=tmp_path)
    found = certify(sampler, instances.two_residual_tokens(1), with_optimum=False)
    assert (found.total_variation < 1e-6) is is_right
    assert sampler.journal.primitives == {
        "exponential_: exponential, as real numbers",
        "rand: multiples of 2^-53",
    }


ASCEND = """
from vllm.logger import logger
from vllm.triton_utils import HAS_TRITON
from vllm.v1.sample.rejection_sampler import GREEDY_TEMPERATURE, RejectionSampler, generate_uniform_probs
from vllm_ascend.ascend_config import get_ascend_config

class AscendRejectionSampler(RejectionSampler):
    pass

token_by_token = rejection_sample

def rejection_sample(draft_token_ids, num_draft_tokens, max_spec_len, cu_num_draft_tokens, draft_probs,
                     target_logits_or_tuple, bonus_token_ids, sampling_metadata):
    args = (draft_token_ids, num_draft_tokens, max_spec_len, cu_num_draft_tokens, draft_probs,
            target_logits_or_tuple, bonus_token_ids, sampling_metadata)
    logger.info_once("block verification")
    if HAS_TRITON or torch.tensor([GREEDY_TEMPERATURE], pin_memory=True):
        raise RuntimeError("the torch path is meant")
    coins = iter(generate_uniform_probs(len(args[0]), args[1], args[-1].generators, "cpu"))
    if get_ascend_config().rejection_sampler_config.enable_block_verify:
        return token_by_token(*args, uniform=lambda shape, generator: 0.5 * next(coins))
    return token_by_token(*args, uniform=lambda shape, generator: next(coins))
"""


@first_is_quick("block", [False, True])
def test_the_torch_path_runs_without_a_device(block: bool, tmp_path: Path) -> None:
    """Page-locked memory is left out; the settings reach the module, whose block path is wrong here."""
    released(tmp_path, vllm_ascend.FUNCTION.modules[0], FLAT + ASCEND)
    released(tmp_path, "vllm_ascend.__init__", "")
    sampler = load_subject("vllm-ascend-block" if block else "vllm-ascend", checkout=tmp_path)
    found = certify(sampler, instances.two_residual_tokens(2), with_optimum=False)
    assert (found.total_variation < 1e-6) is not block
    assert "rand: multiples of 2^-53" in sampler.journal.primitives


BONUS = torch.tensor([2, 1])
"""The tokens after fully accepted paths."""


@pytest.mark.parametrize("greedy", [(False, False), (False, True), (True, True)])
def test_what_a_flat_batch_is_given(greedy: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second request has a drafted token and placeholders, the others only one of both or neither."""
    rows = [
        Row(PATHS[0], TARGET[0], DRAFT[0], greedy[0]),
        Row(PATHS[1, :1], TARGET[1, :2], DRAFT[1, :1], greedy[1], padding=3),
        Row(PATHS[0, :0], TARGET[0, :1], DRAFT[0, :0], all(greedy)),
        Row(PATHS[1, :0], TARGET[1, :1], DRAFT[1, :0], all(greedy), padding=1),
    ]
    bonus = BONUS.repeat(2)
    monkeypatch.setattr(adapter, "bonus_tokens", lambda asked, *_: bonus if asked is rows else None)
    answers = torch.tensor([[1, 0, -1, -1, -1], [-1, 2, -1, -1, -1], [1] + 4 * [-1], 5 * [-1]])
    given, code = recorded(answers)
    assert flat_batch(code.call, greedy_temperature=-1.0)(rows, None) == [[1, 0], [-1, 2], [1], []]
    unread = [(number - TARGET[1, 1]) / (3 * number - 1) for number in (1, 2)]
    target = torch.cat([TARGET[0, :3], TARGET[1, :2], torch.stack(unread), TARGET[1, :1]])
    assert_close(
        vars(given.pop("sampling_metadata")),
        {
            "all_greedy": all(greedy),
            "all_random": not any(greedy),
            "temperature": torch.tensor([-1.0 if row.is_greedy else 1.0 for row in rows]),
            "generators": {},
        },
    )
    assert_close(
        given,
        {
            "draft_token_ids": torch.tensor([1, 0, 2, 2, -1, -1, -1, -1], dtype=torch.int32),
            "num_draft_tokens": [3, 4, 0, 1],
            "max_spec_len": 4,
            "cu_num_draft_tokens": torch.tensor([3, 7, 7, 8], dtype=torch.int32),
            "draft_probs": torch.cat([DRAFT[0], DRAFT[1, :1], torch.zeros(4, 3)]),
            "target_logits": target.log(),
            "target_logits_or_tuple": target.log(),
            "target_probs": target,
            "bonus_token_ids": bonus.int()[:, None],
        },
    )


@pytest.mark.parametrize("greedy", [(False, False), (False, True), (True, True)])
def test_what_lmdeploy_is_given(greedy: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """Likeliest tokens where all requests are greedy; else rows, with a mask where one is."""
    rows = [Row(*row) for row in zip(PATHS, TARGET, DRAFT, greedy, strict=True)]
    monkeypatch.setattr(lmdeploy, "bonus_tokens", lambda asked: BONUS if asked is rows else None)
    found, called = torch.tensor([[1, 0, -1, -1], [2, 1, 0, 1]]), list[Any]()

    def verify(*values: Any, **named: Any) -> Any:
        called.append((values, named))
        return found, torch.tensor([2, 0]), torch.tensor([0, 1])

    forwards = {name: partial(verify, name) for name in ("forward", "forward_greedy")}
    code: Any = SimpleNamespace(function=lambda: SimpleNamespace(**forwards))
    assert lmdeploy.batch(code)(rows, None) == [[1, 0], [2, 1, 0, 1]]
    (((name, *values), named),) = called
    if all(greedy):
        likeliest = torch.tensor([[2, 2, 0, 1], [2, 0, 1, 0]])
        assert (name, named) == ("forward_greedy", {})
        assert_close(values, [likeliest, PATHS])
    else:
        mask = torch.tensor(greedy) if any(greedy) else None
        assert name == "forward"
        assert_close(values, [TARGET[:, :-1].log(), PATHS, BONUS])
        assert values[0].is_contiguous()
        assert_close(named, {"is_greedy": mask, "draft_probs": DRAFT})


def test_a_launch_names_what_its_kernel_takes() -> None:
    """Pointers by their own names, defaults too; what the kernel does not take stays behind."""
    launched: list[Any] = []

    class Kernel:
        arg_names = ("output_ptr", "draft", "is_block", "SIZE")

        def __getitem__(self, grid: Any) -> Any:
            return lambda **given: launched.append((grid, given))

    names = vllm.GIVEN["vllm.model_executor.warmup.jit_warmup_triton_helper"].names()
    decorate: Any = names["triton_kernel_dispatcher_with_warmup"]
    launch = decorate(kernel=Kernel(), warmup_inputs=None)(
        lambda output, draft, other, *, is_block=False: ((output, draft, other), {"SIZE": 4})
    )
    launch(1, draft=2, other=3)
    assert launched == [((1, 2, 3), {"output_ptr": 1, "draft": 2, "is_block": False, "SIZE": 4})]
    triton = vllm.GIVEN["vllm.triton_utils"]
    assert triton.has_kernels
    device: Any = triton.names()["tldevice"]
    assert device.log1p.__qualname__ == elementwise(np.log1p).__qualname__
    assert (set(triton.names()), triton.names()["HAS_TRITON"]) == (
        {"tl", "triton", "tldevice", "HAS_TRITON"}, True,
    )  # fmt: skip


@pytest.mark.parametrize(("module", "settings"), [(vllm, {}), (vllm_ascend, {"block_verification": False})])
def test_a_release_says_the_temperature_of_greedy_requests(
    module: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0 where it does not."""
    monkeypatch.setattr(module, "flat_batch", lambda shipped, temperature: temperature)
    for known in ({}, {"GREEDY_TEMPERATURE": -1}):
        code = SimpleNamespace(constant=known.get, stops=(), call=None)
        assert repr(module.rejection_sample(code, **settings)) == f"{min(known.values(), default=0)}.0"


@pytest.mark.parametrize("block", [False, True])
def test_settings_of_vllm_ascend(block: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They say which verification is meant while it runs; entropies and devices are left out."""
    monkeypatch.setattr(vllm_ascend, "flat_batch", lambda *given: given)
    settings = vllm_ascend.GIVEN["vllm_ascend.ascend_config"].names()["get_ascend_config"]()

    def call(**values: Any) -> Any:
        config = settings.rejection_sampler_config
        assert torch.ones(1, pin_memory=True, dtype=torch.int32).dtype == torch.int32
        assert (settings.enable_reduce_sample, config.enable_entropy_verify) == (False, False)
        assert (config.posterior_threshold, config.posterior_alpha) == (1, 0)
        return config.enable_block_verify, values

    code: Any = SimpleNamespace(call=call, stops=("vllm_ascend.ascend_config",), constant={}.get)
    made: Any = vllm_ascend.rejection_sample(code, block_verification=block)
    assert made[0](rows=1) == (block, {"rows": 1})
    names: Any = vllm_ascend.GIVEN["vllm.v1.sample.rejection_sampler"].names()
    coins = names.pop("generate_uniform_probs")(3, [3], {}, "cpu")
    assert (coins.dtype, coins.shape) == (torch.float64, (3,))
    assert names == {"GREEDY_TEMPERATURE": 0, "MAX_SPEC_LEN": 128, "PLACEHOLDER_TOKEN_ID": -1}
    logger: Any = vllm_ascend.GIVEN["vllm.logger"].names()["logger"]
    assert logger.debug_once("a") is logger.info_once("a", b=1) is logger.warning_once("a") is None
    assert vllm_ascend.GIVEN["vllm.triton_utils"].names() == {"HAS_TRITON": False}
