"""Run Triton kernels under Triton's own interpreter, on random numbers that we follow without drawing.

The interpreter runs one program of a kernel after the other on numpy arrays.  A load from the memory of a
random tensor gives a ``RandomArray``, because memory has the ``names`` of numbers.  We refuse every operation
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
from spectheory.auditing.following.random_array import RandomArray, as_scalars, followed, settled
from spectheory.auditing.following.random_tensor import follow, plain
from spectheory.auditing.following.replacements import Replacement, refusing, replaced
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
def kernels_followed(draws: Draws) -> Iterator[None]:
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


def _launched(launch: Callable[..., Any]) -> Callable[..., Any]:
    """Let a launch take random tensors.  Tensors in which it stores random numbers become random."""

    def launched(executor: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with np.errstate(all="ignore"):  # -inf minus -inf is for the kernel to see
                returned = launch(
                    executor, *map(plain, args), **{name: plain(arg) for name, arg in kwargs.items()}
                )
        except Exception as error:  # the interpreter wraps what goes wrong in a kernel
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, InvalidInputError):
                cause = cause.__cause__
            raise cause or error from None
        for arg in (*args, *kwargs.values()):
            if isinstance(arg, torch.Tensor):
                follow(arg)
        return returned

    return launched


@cache
def _replacements(interpreter: Any) -> tuple[Replacement, ...]:
    """The replacements of an interpreter's functions.  Made only if needed: most runs launch no kernel."""
    return tuple(_followed_functions(interpreter))


def _followed_functions(interpreter: Any) -> Iterator[Replacement]:
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    load, store = builder.create_masked_load, builder.create_masked_store

    def known(part: Any) -> Any:
        """Addresses or a mask, without random numbers."""
        return handle(settled(part.data), part.dtype)

    def truths(mask: Any) -> Any:
        """A boolean mask.  The interpreter spreads a scalar as integers, but refuses integers as a mask."""
        return handle(settled(mask.data).astype(bool), mask.dtype)

    def masked_load(self: Any, ptrs: Any, mask: Any, *rest: Any) -> Any:
        loaded = load(self, known(ptrs), truths(mask), *rest)
        return handle(as_scalars(loaded.data), loaded.dtype)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any) -> Any:
        return store(self, known(ptrs), value, truths(mask), *rest)

    yield builder, "create_masked_load", masked_load
    yield builder, "create_masked_store", masked_store
    yield interpreter.GridExecutor, "__call__", _launched(interpreter.GridExecutor.__call__)
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
    """Convert a scalar to a block, or back.  numpy moves the names, and forgets the class of the array."""

    def spread(self: Any, *args: Any) -> Any:
        arg = args[-1]
        if not isinstance(arg.data, RandomArray):
            return method(self, *args)
        made = method(self, *args[:-1], handle(np.asarray(arg.data), arg.dtype))
        return handle(followed(made.data), made.dtype)

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
