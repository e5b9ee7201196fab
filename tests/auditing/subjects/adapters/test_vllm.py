"""The adapter on a module of our own that has the shape of the released one; ``make audits`` runs that."""

from __future__ import annotations

from pathlib import Path

import pytest

from audited import released
from spectheory import certify, instances
from spectheory.auditing.subjects.adapters import vllm
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.wheels import Release

MODULE = """
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

def rejection_sample(draft, counts, longest, ends, draft_probs, logits, bonus, metadata):
    target = logits.softmax(-1)
    output = torch.full((len(counts), longest + 1), -1, dtype=torch.int32)
    noise = torch.empty_like(target).exponential_()
    recovered = ((target - draft_probs).clamp(min=0) / noise).argmax(-1).int()
    verify(output, draft, draft_probs, target, bonus, recovered, torch.rand(len(draft), dtype=torch.float64))
    return output
"""


@pytest.mark.parametrize(("compares", "is_right"), [(">", True), ("<", False)])
def test_kernels_are_launched_with_their_arguments_by_name(
    compares: str, is_right: bool, tmp_path: Path
) -> None:
    """And numbers are followed from torch through memory into the kernel and out; a mutant is wrong."""
    released(tmp_path, vllm.MODULE, MODULE.replace("p / q >", f"p / q {compares}"))
    sampler = Shipped(vllm.rejection_sample(Release("vllm", "0", tmp_path)), "batch")
    found = certify(sampler, instances.two_residual_tokens(1), with_optimum=False)
    assert (found.total_variation < 1e-6) is is_right
    assert sampler.journal.primitives == {
        "exponential_: exponential, as real numbers",
        "rand: multiples of 2^-53",
    }
