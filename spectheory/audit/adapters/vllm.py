"""vLLM's first model runner: token verification in Triton kernels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from spectheory.audit.adapters.flat_batch import flat_batch
from spectheory.audit.fetch import Release
from spectheory.audit.kernels import interpreting
from spectheory.audit.one_module import module_alone

MODULE = "vllm.v1.sample.rejection_sampler"
FILES = (f"{MODULE.replace('.', '/')}.py",)


def rejection_sample(release: Release) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""
    with interpreting():
        import triton
        import triton.language as tl

        given = {
            "vllm.triton_utils": {"tl": tl, "triton": triton},
            "vllm.model_executor.warmup.jit_warmup_triton_helper": {
                "triton_kernel_dispatcher_with_warmup": _dispatcher
            },
        }
        shipped = module_alone(release.folder, [MODULE], given).rejection_sample
    return flat_batch(shipped)


def _dispatcher(*, kernel: Any, warmup_inputs: Any) -> Callable[..., Any]:
    """A function that says grid and constants becomes a launch of the kernel; nothing is warmed up."""

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
