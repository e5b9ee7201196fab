"""vLLM Ascend: token and block verification in torch, where Triton is not available."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from spectheory.auditing.subjects.adapters.flat_batch import BONUS, PLACEHOLDER, flat_batch
from spectheory.auditing.subjects.one_module import file_of, module_alone
from spectheory.foundation.wheels import Release

MODULE = "vllm_ascend.sample.rejection_sampler"
FILES = (file_of(MODULE),)
STAND_INS = (
    "generate_uniform_probs, which vLLM has: torch.rand of float64",
    "vllm_ascend.ascend_config: settings without entropy verification",
    "vllm.logger: silent; vllm.triton_utils: no Triton; page-locked memory: ordinary memory",
    BONUS,
)


def rejection_sample(release: Release, *, block_verification: bool) -> Callable[..., Any]:
    """A sampler of the signature "batch"; vLLM draws the uniform numbers: float64, one per drafted token."""
    settings = SimpleNamespace(
        enable_reduce_sample=False,
        rejection_sampler_config=SimpleNamespace(
            enable_block_verify=block_verification,
            enable_entropy_verify=False,
            posterior_threshold=1.0,
            posterior_alpha=0.0,
        ),
    )
    names = ("debug_once", "info_once", "warning_once")
    quiet = SimpleNamespace(**dict.fromkeys(names, lambda *_, **__: None))
    given: dict[str, dict[str, Any]] = {
        "vllm.logger": {"logger": quiet},
        "vllm.triton_utils": {"HAS_TRITON": False},
        "vllm.v1.sample.rejection_sampler": {
            "GREEDY_TEMPERATURE": 0,
            "MAX_SPEC_LEN": 128,
            "PLACEHOLDER_TOKEN_ID": PLACEHOLDER,
            "generate_uniform_probs": lambda size, *_: torch.rand(size, dtype=torch.float64),
        },
        "vllm_ascend.ascend_config": {"get_ascend_config": lambda: settings},
    }
    shipped = module_alone(release.folder, [MODULE], given).rejection_sample

    def unpinned(*args: Any) -> Any:
        with _WithoutPinnedMemory():
            return shipped(*args)

    return flat_batch(unpinned)


class _WithoutPinnedMemory(TorchFunctionMode):
    """Page-locked memory needs a device; numbers are the same without."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **{name: value for name, value in (kwargs or {}).items() if name != "pin_memory"})
