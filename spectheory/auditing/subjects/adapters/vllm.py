"""vLLM's first model runner: token verification in Triton kernels."""

import inspect
from collections.abc import Callable
from typing import Any

from spectheory.auditing.following.triton_kernels import interpreting
from spectheory.auditing.subjects.adapters.flat_batch import BONUS, flat_batch
from spectheory.auditing.subjects.one_module import file_of, module_alone
from spectheory.foundation.wheels import Release

MODULE = "vllm.v1.sample.rejection_sampler"
FLY = "vllm.v1.spec_decode.fly"
"""Missing in earlier versions."""
STAND_INS = (
    "vllm.triton_utils: Triton",
    "triton_kernel_dispatcher_with_warmup: launches without a warmup",
    BONUS,
)


def rejection_sample(release: Release, **options: Any) -> Callable[..., Any]:
    """A sampler of the signature "batch"; the options are those of the shipped function."""
    with interpreting():
        import triton
        import triton.language as tl

        given = {
            "vllm.triton_utils": {"tl": tl, "triton": triton},
            "vllm.model_executor.warmup.jit_warmup_triton_helper": {
                "triton_kernel_dispatcher_with_warmup": _dispatcher
            },
        }
        modules = [name for name in (MODULE, FLY) if (release.folder / file_of(name)).is_file()]
        shipped = module_alone(release.folder, modules, given).rejection_sample
    return flat_batch(shipped, **options)


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
