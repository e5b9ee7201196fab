"""The functions of torch that are followed on random numbers, by what they do to entries."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from spectheory.auditing.tape.decisions import NotEnumerableError


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DRAWS = _words("uniform_ exponential_ bernoulli_ rand_like randint_like")
"""Functions that draw numbers, and ignore the numbers of a tensor that they are given."""
METADATA = _words(
    "size dim numel nelement stride is_floating_point is_contiguous is_complex element_size get_device "
    "__len__ result_type can_cast storage_offset _is_view "
    "new_full new_empty new_zeros new_ones full_like empty_like zeros_like ones_like "
    "shape dtype device ndim is_cuda layout requires_grad is_leaf grad_fn is_sparse"
)
MOVES = _words(
    "__getitem__ view reshape squeeze unsqueeze flatten expand expand_as permute transpose t contiguous "
    "clone detach cpu repeat split chunk unbind select narrow flip index_select gather ravel view_as "
    "reshape_as movedim swapaxes broadcast_to T mT tile unflatten"
)
"""Functions that only move the entries of their first argument.  The others are shapes and indices."""
JOINS = _words("cat concat concatenate stack hstack vstack dstack column_stack")
STORES = ("masked_fill", "__setitem__", "copy_")
"""Functions whose last argument is stored in the first."""
QUESTIONS = _words("isinf isnan isfinite isposinf isneginf")
OPERATIONS = {
    name: operation
    for operation, names in {
        "divide": "div divide true_divide __truediv__ __rdiv__ __rtruediv__",
        "multiply": "mul multiply __mul__ __rmul__",
        "add": "add __add__ __radd__",
        "subtract": "sub subtract __sub__ rsub __rsub__",
        "negative": "neg negative __neg__",
        "floor_divide": "floor_divide __floordiv__",
        "clamp": "clamp clip clamp_min clamp_max",
        "less": "lt less __lt__",
        "less_equal": "le less_equal __le__",
        "greater": "gt greater __gt__",
        "greater_equal": "ge greater_equal __ge__",
        "equal": "eq __eq__",
        "not_equal": "ne not_equal __ne__",
    }.items()
    for name in names.split()
} | {
    name: name
    for name in _words(
        "log log2 log10 log1p exp expm1 sqrt reciprocal minimum maximum floor ceil trunc round"
    )
    | _words("to type float double half bfloat16 long int short")
    | QUESTIONS
}
"""torch's name -> the operation on entries."""
REVERSED = _words("rsub __rsub__ __rdiv__ __rtruediv__ __rmul__ __radd__")
"""Operations whose second operand comes first."""
CASTS = _words("to type float double half bfloat16 long int short")
REAL = (torch.float32, torch.float64)
"""The types in which a uniform number is still one, and a race is one of real numbers."""
TOKENS = (torch.int16, torch.int32, torch.int64)
"""The types in which every token of an audit's vocabularies is itself."""


def bounds_of(name: str, args: Sequence[Any], kwargs: Any) -> tuple[Any, Any]:
    """The lower and the upper bound of a function that clamps; ``None`` for no bound."""
    if name == "clamp_max":
        return None, args[1] if len(args) > 1 else kwargs["max"]
    low = args[1] if len(args) > 1 else kwargs.get("min")
    return low, args[2] if len(args) > 2 else kwargs.get("max")


def unwrapped(func: Any, args: Any, kwargs: Any) -> Any:
    """Run a torch function on the memory of random tensors.  Only shape and dtype of the result are right."""
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


def dtype_of(tensor: torch.Tensor) -> torch.dtype:
    """The dtype of a tensor of any class."""
    return unwrapped(torch.Tensor.dtype.__get__, (tensor,), {})  # type: ignore[attr-defined]


def all_python(args: Sequence[Any]) -> bool:
    """Whether torch sees no argument as a tensor.  Then Python computes, in float64."""
    return all(not isinstance(arg, torch.Tensor) or getattr(arg, "is_python", False) for arg in args)


def kind_of(arg: Any, python: bool) -> Callable[[Any], Any]:
    """Build the conversion of a value to the kind of the argument ``arg``.

    A scalar stays a scalar, and a tensor becomes a tensor of one entry, so torch converts types as usual.
    """
    if not isinstance(arg, torch.Tensor):
        return lambda value: _float64(value) if python and isinstance(value, float) else value
    if getattr(arg, "is_python", False):
        return lambda value: _float64(float(value)) if python else float(value)
    dtype = dtype_of(arg)
    shape = () if unwrapped(torch.Tensor.dim, (arg,), {}) == 0 else (1,)
    return lambda value: torch.as_tensor(value, dtype=dtype).reshape(shape)


def _float64(value: float) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.float64)


def cumulative(combine: Any, random: torch.Tensor, dim: int) -> torch.Tensor:
    """Combine one entry after the other along an axis, as torch's loop on a CPU does."""
    parts = list(random.unbind(dim))
    for number in range(1, len(parts)):
        parts[number] = combine(parts[number - 1], parts[number])
    return torch.stack(parts, dim)


def searchsorted(
    edges: torch.Tensor, values: Any, *, right: bool = False, side: str = "left", **options: Any
) -> torch.Tensor:
    """Count the edges below each value, or with ``right`` those at most equal to it.  Edges are sorted."""
    if hasattr(edges, "is_python") or options:
        raise NotEnumerableError("the sampler calls searchsorted in a form that is not followed")
    if not bool((edges[..., 1:] >= edges[..., :-1]).all()):
        raise NotEnumerableError("the sampler calls searchsorted with edges that are not sorted")
    compare = torch.ge if right or side == "right" else torch.gt
    rows = edges.expand(*values.shape[:-1], edges.shape[-1])
    found = torch.zeros(tuple(values.shape), dtype=torch.long)
    for place in np.ndindex(tuple(values.shape)):
        for edge in rows[place[:-1]]:
            if not bool(compare(values[place], edge)):
                break
            found[place] += 1
    return found
