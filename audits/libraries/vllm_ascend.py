"""vLLM Ascend: token and block verification in torch, where Triton is not available."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from audits.forms.flat_batch import BONUS, MIXES, PARAMETERS, flat_batch
from audits.loading.library_code import Code
from audits.loading.one_module import Given
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.flattened_batch import PLACEHOLDER
from spectheory.foundation.results import NOT_LOSSLESS

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
        "generate_uniform_probs": _uniform_numbers,
    }


def _uniform_numbers(
    size: int, counts: Sequence[int], generators: Mapping[int, torch.Generator], *_: Any
) -> torch.Tensor:
    found = torch.rand(size, dtype=torch.float64)
    for request, part in enumerate(found.split(list(counts))):
        if request in generators and len(part):
            part.uniform_(generator=generators[request])
    return found


def _logger() -> Mapping[str, Any]:
    names = ("debug_once", "info_once", "warning_once")
    return {"logger": SimpleNamespace(**dict.fromkeys(names, lambda *_, **__: None))}


GIVEN = {
    "vllm.v1.sample.rejection_sampler": Given(
        "generate_uniform_probs, which vLLM has: float64, from the generators of requests", _of_vllm
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


LIBRARY = Library("vllm-ascend", "vllm_ascend", "0.23.0", GIVEN)
_TOKEN = Subject(
    LIBRARY,
    FUNCTION,
    partial(rejection_sample, block_verification=False),
    {"2cceaf9e09bb1b9752cb9ac1d8a44ebdb5bdb92f0b3533811d91c9d2b2c36534": LIBRARY.tested},
    "batch",
    mistake=(
        "target_token_probs / draft_token_probs >= uniform_token_probs",
        "target_token_probs / draft_token_probs <= uniform_token_probs",
    ),
    settings={"mixes": MIXES, "stand_ins": (*STAND_INS, BONUS)},
)
SUBJECTS = {
    "vllm-ascend": _TOKEN,
    # Block verification, of three drafted tokens and more.
    "vllm-ascend-block": _TOKEN._replace(
        adapter=partial(rejection_sample, block_verification=True),
        verdict=NOT_LOSSLESS,
        mistake=None,
        settings={**_TOKEN.settings, "box_bits": 6},
    ),
}
