"""Triton kernels compiled for a device that is not here, from the arguments of their launches."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

import torch

from later import Later

triton = Later("triton")
compiler = Later("triton.compiler")
backends = Later("triton.backends.compiler")

POINTERS = {
    torch.float64: "*fp64", torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16",
    torch.int64: "*i64", torch.int32: "*i32", torch.bool: "*i1", torch.uint8: "*u8",
}  # fmt: skip


class _Compiles:
    """In the place of a kernel: a launch compiles it, and computes nothing."""

    def __init__(self, kernel: Any, capability: int, compiled: list[str]) -> None:
        self.kernel, self.capability, self.compiled = kernel, capability, compiled

    def __getitem__(self, grid: Any) -> Any:
        def launch(*given: Any, **options: Any) -> None:
            constants, signature = {}, {}
            for parameter, value in zip(self.kernel.params, given, strict=True):
                if parameter.is_constexpr:
                    constants[parameter.name], signature[parameter.name] = value, "constexpr"
                elif isinstance(value, torch.Tensor):
                    signature[parameter.name] = POINTERS[value.dtype]
                else:
                    signature[parameter.name] = "fp32" if isinstance(value, float) else "i32"
            source = compiler.ASTSource(fn=self.kernel, signature=signature, constexprs=constants)
            triton.compile(source, target=backends.GPUTarget("cuda", self.capability, 32), options=options)
            self.compiled.append(self.kernel.__name__)

        return launch


def compiled_module(name: str) -> ModuleType:
    """A new copy of a module with kernels: another test may have imported it for Triton's interpreter."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def compiled_for(module: Any, capability: int) -> Iterator[list[str]]:
    """Launches of the module's kernels compile them; yields the names of those that were."""
    compiled: list[str] = []
    kernels = {name: value for name, value in vars(module).items() if name.endswith("_kernel")}
    try:
        for name, kernel in kernels.items():
            setattr(module, name, _Compiles(kernel, capability, compiled))
        yield compiled
    finally:
        for name, kernel in kernels.items():
            setattr(module, name, kernel)
