"""vLLM Ascend: token and block verification in torch, where Triton is not available."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from spectheory.auditing.subjects.adapters.answers import PLACEHOLDER
from spectheory.auditing.subjects.adapters.flat_batch import PARAMETERS, flat_batch
from spectheory.auditing.subjects.library_code import Code
from spectheory.auditing.subjects.one_module import Given
from spectheory.auditing.subjects.reached_code import Function

FUNCTION = Function("rejection_sample", ("vllm_ascend.sample.rejection_sampler",), PARAMETERS)
STAND_INS = ("page-locked memory: ordinary memory",)


def rejection_sample(code: Code, *, block_verification: bool) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    settings = "vllm_ascend.ascend_config"
    if block_verification and settings not in code.stops:
        raise code.refused("reads no settings, so it has no block verification")

    def unpinned(**values: Any) -> Any:
        _SETTINGS.rejection_sampler_config.enable_block_verify = block_verification
        with _WithoutPinnedMemory():
            return code.call(**values)

    return flat_batch(unpinned, float(code.constant("GREEDY_TEMPERATURE", 0)))


_SETTINGS = SimpleNamespace(
    enable_reduce_sample=False,
    rejection_sampler_config=SimpleNamespace(
        enable_block_verify=False,
        enable_entropy_verify=False,
        posterior_threshold=1.0,
        posterior_alpha=0.0,
    ),
)


def _of_vllm() -> Mapping[str, Any]:
    """The constants and the coins: float64, one per drafted token."""
    return {
        "GREEDY_TEMPERATURE": 0,
        "MAX_SPEC_LEN": 128,
        "PLACEHOLDER_TOKEN_ID": PLACEHOLDER,
        "generate_uniform_probs": lambda size, *_: torch.rand(size, dtype=torch.float64),
    }


def _logger() -> Mapping[str, Any]:
    names = ("debug_once", "info_once", "warning_once")
    return {"logger": SimpleNamespace(**dict.fromkeys(names, lambda *_, **__: None))}


GIVEN = {
    "vllm.v1.sample.rejection_sampler": Given(
        "generate_uniform_probs, which vLLM has: torch.rand of float64", _of_vllm
    ),
    "vllm_ascend.ascend_config": Given(
        "vllm_ascend.ascend_config: settings without entropy verification",
        lambda: {"get_ascend_config": lambda: _SETTINGS},
    ),
    "vllm.logger": Given("vllm.logger: silent", _logger),
    "vllm.triton_utils": Given("vllm.triton_utils: no Triton", lambda: {"HAS_TRITON": False}),
}


class _WithoutPinnedMemory(TorchFunctionMode):
    """Page-locked memory needs a device; numbers are the same without."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **{name: value for name, value in (kwargs or {}).items() if name != "pin_memory"})
