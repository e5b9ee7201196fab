"""Run Triton kernels under Triton's own interpreter, on random numbers that we follow without drawing.

The interpreter runs one program of a kernel after the other on numpy arrays.  A load from the memory of a
random tensor gives a ``RandomArray``.  We keep stored random numbers by address.  We refuse every operation
that we cannot follow, and name it.
"""

import atexit
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

import numpy as np
import torch

from spectheory.auditing.following.kernel_draws import INTERPRETER, Draws, drawing, rand, randint
from spectheory.auditing.following.random_array import RandomArray, moved, random_array, settled
from spectheory.auditing.following.random_tensor import (
    PART_OF_A_TENSOR,
    RandomTensor,
    become_random,
    unwrapped,
)
from spectheory.auditing.following.replacements import Replacement, refusing, replaced
from spectheory.auditing.tape.atoms import Number
from spectheory.auditing.tape.decisions import NotEnumerableError
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.extras import installed

ENVIRONMENT = {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
_OWN: dict[str, ModuleType] = {}
"""Triton's modules, imported for the interpreter; the rest of the process does not see them."""


@contextmanager
def interpreting() -> Iterator[None]:
    """Inside this context, Triton interprets kernels that you import or launch, without a device.

    Raises:
        MissingDependencyError: Triton is not installed.
    """
    if not _OWN and _interprets(sys.modules.get("triton.language")):
        yield
        return
    with _own_triton(), installed():
        import triton.language  # noqa: F401

        yield


def _interprets(language: ModuleType | None) -> bool:
    """Whether the process imported Triton with TRITON_INTERPRET=1.  Its functions then have a rewriter."""
    return hasattr(getattr(language, "max", None), "rewriter")


@contextmanager
def _own_triton() -> Iterator[None]:
    """Replace the process's Triton, which may be for a device, by our own.  Both share compiled modules."""
    before = dict(os.environ)
    others = _taken()
    try:
        sys.modules.update(_OWN)
        os.environ.update(ENVIRONMENT)
        yield
    finally:
        _put_back(before)
        if not _OWN:  # Python then cleans these modules up at exit, as all others
            atexit.register(lambda: sys.modules.update(_OWN))
        _OWN.update(_taken())
        sys.modules.update(others)


def _put_back(environment: dict[str, str]) -> None:
    """Undo all changes of the environment.  We compare first, because rewriting all of it takes longer."""
    found = dict(os.environ)
    for name in found.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if found.get(name) != value:
            os.environ[name] = value


def _taken() -> dict[str, ModuleType]:
    """Remove Triton's modules from the process and return them.  Compiled modules stay."""
    # Every run asks, and thousands of modules may be there; a new one is the last.
    names = _names(id(sys.modules.get("triton")), len(sys.modules), next(reversed(sys.modules)))
    found = {name: sys.modules[name] for name in names if name in sys.modules}
    for name in found:
        if not f"{name}.".startswith("triton._C."):
            del sys.modules[name]
    return found


@lru_cache(maxsize=8)
def _names(root: int, number_of_modules: int, last: str) -> list[str]:
    """Names of the modules of the imported Triton."""
    return [name for name in sys.modules if f"{name}.".startswith("triton.")]


@contextmanager
def followed(draws: Draws) -> Iterator[None]:
    """Follow random numbers through all kernels, also those that kernels draw.  No effect without Triton."""
    with ExitStack() as stack:
        compiled = sys.modules.get("triton.runtime.jit")  # the process's own, before ours takes its place
        if compiled is not None:
            stack.enter_context(replaced([(compiled.JITFunction, "run", _launch(compiled.JITFunction))]))
        if _OWN:
            stack.enter_context(_own_triton())
        interpreter = sys.modules.get(INTERPRETER)
        if interpreter is not None:
            stack.enter_context(drawing(draws))
            stack.enter_context(replaced(_replacements(interpreter)))
        yield


@cache
def _launch(kind: Any) -> Callable[..., Any]:
    """Launch a compiled kernel.  Without a device, raise an error that says what to do."""
    launch = kind.run

    def launched(*args: Any, **kwargs: Any) -> Any:
        try:
            return launch(*args, **kwargs)
        except RuntimeError as error:
            if "active drivers" not in str(error):
                raise
            raise InvalidInputError(
                f"the Triton kernel {getattr(args[0], '__name__', '')} was compiled for a device; set "
                "TRITON_INTERPRET=1 before Triton is imported, so that kernels are interpreted and followed"
            ) from error

    return launched


class _Memory(dict[int, Any]):
    """Map from addresses to the random numbers stored there, while a kernel runs."""

    def lanes(self, addresses: np.ndarray, mask: np.ndarray) -> list[tuple[int, int]]:
        """Pairs (lane, address) of the random lanes that are not masked."""
        if not self:
            return []
        lanes = np.flatnonzero(np.broadcast_to(mask, addresses.shape))
        found = zip(lanes.tolist(), addresses.ravel()[lanes].tolist(), strict=True)
        return [(lane, address) for lane, address in found if address in self]


def _addresses(tensor: torch.Tensor) -> np.ndarray:
    entries = np.zeros(tuple(tensor.shape), dtype=np.int64)
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        shape = [1] * entries.ndim
        shape[axis] = size
        entries += (np.arange(size) * stride).reshape(shape)
    return entries * tensor.element_size() + tensor.data_ptr()


def _launched(launch: Callable[..., Any], memory: _Memory) -> Callable[..., Any]:
    """Let a launch take random tensors.  Tensors in which it stores random numbers become random."""

    def launched(executor: Any, *args: Any, **kwargs: Any) -> Any:
        plain: dict[int, torch.Tensor] = {}
        try:
            for arg in (*args, *kwargs.values()):
                if isinstance(arg, RandomTensor):
                    plain[id(arg)] = unwrapped(torch.Tensor.as_subclass, (arg, torch.Tensor), {})
                    addresses = _addresses(plain[id(arg)]).ravel().tolist()
                    memory.update(zip(addresses, arg.numbers.ravel(), strict=True))
                elif isinstance(arg, torch.Tensor):
                    plain[id(arg)] = arg
            with np.errstate(all="ignore"):  # -inf minus -inf is for the kernel to see
                returned = launch(
                    executor,
                    *(plain.get(id(arg), arg) for arg in args),
                    **{name: plain.get(id(arg), arg) for name, arg in kwargs.items()},
                )
            for arg in (*args, *kwargs.values()):
                if id(arg) in plain:
                    _remember(arg, plain[id(arg)], memory)
            return returned
        except Exception as error:  # the interpreter wraps what goes wrong in a kernel
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, InvalidInputError):
                cause = cause.__cause__
            raise cause or error from None
        finally:  # the memory outlives the run
            memory.clear()

    return launched


def _remember(arg: Any, plain: torch.Tensor, memory: _Memory) -> None:
    numbers = np.array(plain.tolist(), dtype=object).reshape(tuple(plain.shape))
    found = False
    for place, address in np.ndenumerate(_addresses(plain)):
        if int(address) in memory:
            numbers[place], found = memory[int(address)], True
    if found and plain._is_view() and not isinstance(arg, RandomTensor):
        raise NotEnumerableError(f"a kernel stores {PART_OF_A_TENSOR}")
    if found or isinstance(arg, RandomTensor):
        become_random(arg, numbers)


@cache
def _replacements(interpreter: Any) -> tuple[Replacement, ...]:
    """The replacements of an interpreter's functions.  Made only if needed: most runs launch no kernel."""
    return tuple(_followed_functions(interpreter, _Memory()))


def _followed_functions(interpreter: Any, memory: _Memory) -> Iterator[Replacement]:
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    load, store = builder.create_masked_load, builder.create_masked_store

    def truths(mask: Any) -> Any:
        """A boolean mask.  The interpreter spreads a scalar as integers, but refuses integers as a mask."""
        return handle(settled(mask.data).astype(bool), mask.dtype)

    def masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any) -> Any:
        ptrs, mask = handle(settled(ptrs.data), ptrs.dtype), truths(mask)
        loaded = load(self, ptrs, mask, other, *rest)
        kind = loaded.data.dtype.type
        lanes = {lane: memory[address] for lane, address in memory.lanes(ptrs.data, mask.data)}
        for lane, number in lanes.items():
            if isinstance(number, Number):
                lanes[lane] = number.mapped(lambda value: kind(float(value)))
        return handle(random_array(loaded.data, lanes), loaded.dtype)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        ptrs, mask = handle(settled(ptrs.data), ptrs.dtype), truths(mask)
        for _, address in memory.lanes(ptrs.data, mask.data):
            del memory[address]
        if isinstance(value.data, RandomArray):
            kept = np.broadcast_to(mask.data, ptrs.data.shape).ravel()
            addresses, lanes = ptrs.data.ravel(), value.data.lanes
            memory.update({int(addresses[lane]): lanes[lane] for lane in lanes if kept[lane]})
            value = handle(value.data.view(np.ndarray), value.dtype)
        return store(self, ptrs, value, mask, *rest)

    yield builder, "create_masked_load", masked_load
    yield builder, "create_masked_store", masked_store
    yield interpreter.GridExecutor, "__call__", _launched(interpreter.GridExecutor.__call__, memory)
    for module in (interpreter.tl, interpreter.tl.random):
        yield module, "rand", rand
        yield module, "randint", randint
        for name in _RANDOM:
            yield module, name, refusing(f"a kernel draws from tl.{name}, whose law is not known here")
    # Whole numbers wrap around, as in a compiled kernel; to check all sums takes a quarter of the time.
    yield interpreter.TritonSemantic, "binary_op_sanitize_overflow_impl", lambda *_: None
    yield interpreter, "_patch_lang", _patched_once(interpreter._patch_lang)
    for name in dir(builder):
        if name in ("create_splat", "create_unsplat"):
            yield builder, name, _spread(getattr(builder, name), handle)
        elif name.startswith("create_") and not re.fullmatch(_FOLLOWED, name):
            yield builder, name, _refused_if_random(getattr(builder, name), name)
    yield (
        interpreter.ReduceOps,
        "generic_reduce",
        _refused_if_random(interpreter.ReduceOps.generic_reduce, "reduce"),
    )
    yield interpreter.ScanOps, "apply_impl", _refused_if_random(interpreter.ScanOps.apply_impl, "scan")
    yield (
        interpreter.ReduceScanOpInterface,
        "to_tensor",
        _with_an_axis(interpreter.ReduceScanOpInterface.to_tensor),
    )


_FOLLOWED = (
    "create_((masked_)?(load|store)|addptr|broadcast|expand_dims|reshape|trans|select|[fi]cmp.*|f?(add|sub|mul)|"
    "fdiv|fneg|(precise|approx)_divf|(min|max).*|exp2?|log2?|(precise_)?sqrt|rsqrt|fp_ext|fp_trunc|fp_to_[su]i|"
    "int_cast|and|or)"
)
"""Operations lane by lane, where ``RandomArray`` decides whether they are followed, and moves of entries."""
_RANDOM = ["philox", "rand4x", "randint4x", "randn", "randn4x"]
"""Triton's own random functions that are not followed."""


def _is_random(part: Any) -> bool:
    if isinstance(part, (tuple, list)):
        return any(map(_is_random, part))
    return isinstance(getattr(getattr(part, "handle", part), "data", None), RandomArray)


def _refused_if_random(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    def refusing(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _is_random([*args, *kwargs.values()]):
            what = name.removeprefix("create_")
            raise NotEnumerableError(f"a kernel applies {what} to random numbers, which is not followed")
        return method(self, *args, **kwargs)

    return refusing


def _spread(method: Callable[..., Any], handle: Any) -> Callable[..., Any]:
    """Convert a scalar to a block, or back."""

    def spread(self: Any, *args: Any) -> Any:
        arg = args[-1]
        if not isinstance(arg.data, RandomArray):
            return method(self, *args)
        shape = args[0].shape if len(args) == 2 else (1,)
        spread = moved(lambda part: np.broadcast_to(part.ravel()[:1], shape), arg.data)
        return handle(spread, arg.dtype.scalar)

    return spread


def _with_an_axis(method: Callable[..., Any]) -> Callable[..., Any]:
    """Convert a random scalar to a block of one entry, because numpy would read the scalar's memory."""

    def to_tensor(self: Any, ret: Any, dtype: Any) -> Any:
        if not isinstance(ret, RandomArray) or ret.shape:
            return method(self, ret, dtype)
        tensor = method(self, np.zeros((), ret.dtype), dtype)
        tensor.handle.data = ret.reshape(1).astype(tensor.handle.data.dtype)
        return tensor

    return to_tensor


_PATCHED: set[tuple[int, ...]] = set()


def _patched_once(patch_language: Callable[..., Any]) -> Callable[..., Any]:
    """Let the interpreter replace Triton's language only once, and not at every launch."""

    class Kept:
        def restore(self) -> None:
            """Keep the interpreter's language."""

    def patched(function: Any) -> Kept:
        modules = tuple(
            sorted({id(value) for value in function.__globals__.values() if isinstance(value, ModuleType)})
        )
        if modules not in _PATCHED:
            patch_language(function)
            _PATCHED.add(modules)
        return Kept()

    return patched
