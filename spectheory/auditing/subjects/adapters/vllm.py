"""vLLM's first model runner: token verification in Triton kernels."""

import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from spectheory.auditing.following.kernel_draws import elementwise
from spectheory.auditing.subjects.adapters.flat_batch import PARAMETERS, flat_batch
from spectheory.auditing.subjects.library_code import Code
from spectheory.auditing.subjects.one_module import Given
from spectheory.auditing.subjects.reached_code import Function

FUNCTION = Function("rejection_sample", ("vllm.v1.sample.rejection_sampler",), PARAMETERS)


def rejection_sample(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    return flat_batch(code.call, float(code.constant("GREEDY_TEMPERATURE", 0)))


def _triton() -> Mapping[str, Any]:
    import triton
    import triton.language as tl

    device = SimpleNamespace(log1p=elementwise(np.log1p))
    return {"tl": tl, "triton": triton, "tldevice": device, "HAS_TRITON": True}


def _dispatcher(*, kernel: Any, warmup_inputs: Any) -> Callable[..., Any]:
    """Turn a function that returns grid and constants into a launch of the kernel, without a warmup."""

    def decorate(dispatch: Callable[..., Any]) -> Callable[..., Any]:
        def launch(*args: Any, **kwargs: Any) -> None:
            bound = inspect.signature(dispatch).bind(*args, **kwargs)
            bound.apply_defaults()
            grid, constants = dispatch(*args, **kwargs)
            named = {
                name: value
                for given, value in bound.arguments.items()
                for name in (given, f"{given}_ptr")
                if name in kernel.arg_names
            }
            kernel[grid](**named, **constants)

        return launch

    return decorate


GIVEN = {
    "vllm.triton_utils": Given(
        "vllm.triton_utils: Triton, with numpy's log1p for the device's", _triton, has_kernels=True
    ),
    "vllm.model_executor.warmup.jit_warmup_triton_helper": Given(
        "triton_kernel_dispatcher_with_warmup: launches without a warmup",
        lambda: {"triton_kernel_dispatcher_with_warmup": _dispatcher},
    ),
}
