"""The adapter on a module of our own that has the shape of the released one; ``make audits`` runs that."""

from __future__ import annotations

from pathlib import Path

import pytest

from audited import FLAT, released
from spectheory import certify, instances
from spectheory.auditing.subjects.adapters import vllm_ascend
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.wheels import Release

MODULE = """
from vllm.logger import logger
from vllm.triton_utils import HAS_TRITON
from vllm.v1.sample.rejection_sampler import GREEDY_TEMPERATURE, RejectionSampler, generate_uniform_probs
from vllm_ascend.ascend_config import get_ascend_config

class AscendRejectionSampler(RejectionSampler):
    pass

token_by_token = rejection_sample

def rejection_sample(*args):
    logger.info_once("block verification")
    if HAS_TRITON or torch.tensor([GREEDY_TEMPERATURE], pin_memory=True):
        raise RuntimeError("the torch path is meant")
    coins = iter(generate_uniform_probs(len(args[0]), args[1], {}, "cpu"))
    if get_ascend_config().rejection_sampler_config.enable_block_verify:
        return token_by_token(*args, uniform=lambda shape: 0.5 * next(coins))
    return token_by_token(*args, uniform=lambda shape: next(coins))
"""


@pytest.mark.parametrize("block", [False, True])
def test_the_torch_path_runs_without_a_device(block: bool, tmp_path: Path) -> None:
    """Page-locked memory is left out; the settings reach the module, whose block path is wrong here."""
    released(tmp_path, vllm_ascend.MODULE, FLAT + MODULE)
    release = Release("vllm-ascend", "0", tmp_path)
    sampler = Shipped(vllm_ascend.rejection_sample(release, block_verification=block), "batch")
    found = certify(sampler, instances.two_residual_tokens(2), with_optimum=False)
    assert (found.total_variation < 1e-6) is not block
    assert "rand: multiples of 2^-53" in sampler.journal.primitives
