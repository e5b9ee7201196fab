"""Array operations with the same meaning on numpy (float64 and exact rationals) and on torch.

A verifier is written once, with the functions of this module and the array-API subset that
numpy and torch share.  Arrays are numpy arrays of ``object`` (exact rationals, ``Fraction`` or ``fmpq``) or
of ``float64``, or torch tensors on any device.

Exact arrays stay exact by construction: zeros and ones are computed from an entry of the array
(``x - x``), so they have its type and never become machine numbers.
"""

from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_torch_array
from flint import fmpq

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import is_exact, to_flint, to_fraction
from spectheory.foundation.formal_number import FormalNumber
from spectheory.foundation.kernels import choice
from spectheory.foundation.kernels.choice import on_host as on_host

MOST_EXACT_DRAFTS = 10**6
"""The largest exponent in rationals.  Larger powers fill the memory."""
Array = Any
"""A numpy array (object or float64) or a torch tensor."""


def _formal_entry(array: Array) -> FormalNumber | None:
    entry = array.flat[0] if is_exact(array) and array.size else None
    return entry if issubclass(type(entry), FormalNumber) else None  # isinstance would read its __class__


def _holds_floats(array: Array) -> bool:
    """True for a numpy array of floats.  Their short paths save most of the time for small arrays."""
    return type(array) is np.ndarray and array.dtype.kind == "f"


# numpy has had the names of the array API since 2.1, and loads in a third of the time of its wrapper.
_NAMESPACES: dict[type, ModuleType] = {np.ndarray: np}


def namespace(*arrays: Array) -> ModuleType:
    """Return the array-API namespace of ``arrays`` (numpy or torch).  This never imports torch."""
    kind = type(arrays[0])
    if any(type(other) is not kind for other in arrays[1:]):
        return array_namespace(*arrays)
    if kind not in _NAMESPACES:  # the lookup takes longer than most operations on a few numbers
        _NAMESPACES[kind] = array_namespace(*arrays)
    return _NAMESPACES[kind]


def like_rows(table: np.ndarray, rows: Array) -> Array:
    """Convert a table of an enumerated pair to the arithmetic, precision and device of ``rows``."""
    if not is_exact(rows):
        return choice.on_device_of(rows, table.astype(float), rows.dtype)
    if not is_exact(table):
        raise InvalidInputError(
            "a verifier bound to a float64 pair was given exact rows; bind it to the exact pair"
        )
    return to_flint(table) if type(rows.ravel()[0]) is fmpq else table


def like_entries(value: Any, array: Array) -> Array:
    """Fill an array of the shape and arithmetic of ``array`` with one rational number, exactly if exact."""
    one = ones_like(array)
    if not is_exact(array):
        return one * float(value)
    number = to_fraction(value)
    return one * number.numerator / number.denominator


def zeros_like(array: Array) -> Array:
    """Return zeros of the same shape, type and device (exact zeros for exact arrays)."""
    if _holds_floats(array):
        return np.zeros(array.shape, array.dtype)
    if not is_exact(array):
        return namespace(array).zeros_like(array)
    entry = array.flat[0] if array.size else 0
    return np.full(array.shape, entry - entry, dtype=object)


def ones_like(array: Array) -> Array:
    """Return ones of the same shape, type and device (exact ones for exact arrays)."""
    if _holds_floats(array):
        return np.ones(array.shape, array.dtype)
    return zeros_like(array) + 1 if is_exact(array) else namespace(array).ones_like(array)


def after_rejection(target_left: Array, draft_row: Array) -> Array:
    """Compute max(p - q, 0), normalised: the target that is left after a draft from q is rejected.  [..., V]

    If no mass is left, the row is zeros.
    """
    return normalise(positive_part(target_left - draft_row))


def positive_part(array: Array) -> Array:
    """Compute max(array, 0), elementwise."""
    if _holds_floats(array):
        return np.maximum(array, 0)
    if _formal_entry(array) is not None:
        return np.frompyfunc(lambda entry: entry.positive_part(), 1, 1)(array + _zero(array))
    if is_torch_array(array):
        return array.clamp_min(0)
    # python-flint compares for equality three times as fast as for order
    return np.where(abs(array) == array, array, _zero(array)) if is_exact(array) else np.maximum(array, 0)


def at_most_one(array: Array) -> Array:
    """Compute min(array, 1), elementwise."""
    if _holds_floats(array):
        return np.minimum(array, 1)
    if _formal_entry(array) is not None:
        return 1 - positive_part(1 - array)
    if is_torch_array(array):
        return array.clamp_max(1)
    if not is_exact(array):
        return np.minimum(array, 1)
    rest = 1 - array
    return np.where(abs(rest) == rest, array, _zero(array) + 1)


def zero_where(condition: Array, array: Array) -> Array:
    """Replace the entries where the condition holds by 0."""
    if is_torch_array(array):
        return array.masked_fill(condition, 0)
    return np.where(condition, _zero(array), array)


def _zero(array: Array) -> Any:
    """Return a scalar zero of the array's type, to broadcast without writing an array of zeros."""
    return zeros_like(array.ravel()[:1])[0] if is_exact(array) and array.size else 0


def add_scaled(array: Array, scale: Array, other: Array) -> Array:
    """Compute array + scale * other, in one kernel on torch."""
    if not is_torch_array(array):
        return array + scale * other
    one_per_row = array.shape == scale.shape == (*other.shape[:-1], 1)
    one_per_row = one_per_row and array.dtype == scale.dtype == other.dtype
    if one_per_row and other.shape[-1] >= choice.BLOCK and on_host(array):
        # Two operands with one number per row would be read without vector instructions.
        return other.new_empty(other.shape).copy_(array).addcmul_(scale, other)
    return array.addcmul(scale, other)


def quotients(numerator: Array, denominator: Array) -> Array:
    """Compute numerator / denominator.  Division by 0 gives ±∞ or NaN for floats, and 0 for rationals."""
    if is_exact(denominator):
        return divide_or_zero(numerator, denominator)
    if is_torch_array(denominator):
        return numerator / denominator
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return numerator / denominator


def residual_mass(
    rows: Array, other: Array, scale: Array | None = None, other_scale: Array | None = None
) -> Array:
    """Compute sum_x max(scale rows(x) - other_scale other(x), 0).  A scale of None is 1.

    [..., V], [..., V], [...], [...] -> [...]

    Many long torch rows on the host are read once.  For other torch rows one kernel multiplies and subtracts.
    """
    scales = [array for array in (scale, other_scale) if array is not None]
    if scales and choice.numbers_beside(rows, scales[0]):
        return choice.row_kernels().masses(rows, other, scale, other_scale)
    if choice.sums_by_kernel(rows, other, *scales):
        return choice.row_kernels().residual_mass(rows, other, scale, other_scale)
    if not is_torch_array(rows) or len(scales) != 1:
        return namespace(rows).sum(residual_rows(rows, other, scale, other_scale), axis=-1)
    if scale is None:
        return _row_sums(rows.addcmul(scales[0][..., None], other, value=-1).clamp_min_(0))
    return -_row_sums(other.addcmul(scale[..., None], rows, value=-1).clamp_max_(0))


def residual_rows(
    rows: Array, other: Array, scale: Array | None = None, other_scale: Array | None = None
) -> Array:
    """Compute max(scale rows - other_scale other, 0).  A scale of None is 1.

    [..., V], [..., V], [...], [...] -> [..., V]
    """
    left = rows if scale is None else scale[..., None] * rows
    right = other if other_scale is None else other_scale[..., None] * other
    return positive_part(left - right)


def block_sums(rows: Array, dtype: Any = None) -> Array:
    """Sum blocks of ``choice.BLOCK`` neighbouring entries of each row.  The last block may be shorter.

    Args:
        rows: [..., V], V at least ``choice.BLOCK``.
        dtype: dtype of the sums.

    Returns:
        [..., V / choice.BLOCK, rounded up].
    """
    xp = namespace(rows)
    blocks, rest = rows.shape[-1] // choice.BLOCK, rows.shape[-1] % choice.BLOCK
    whole = rows[..., : blocks * choice.BLOCK].reshape((*rows.shape[:-1], blocks, choice.BLOCK))
    sums = xp.sum(whole, axis=-1, dtype=dtype)
    if not rest:
        return sums
    return xp.concat([sums, xp.sum(rows[..., -rest:], axis=-1, keepdims=True, dtype=dtype)], axis=-1)


def _row_sums(rows: Array) -> Array:
    """Sum torch rows.  Compiled code sums blocks first, because one long sum costs more."""
    if choice.compiling() and rows.shape[-1] >= choice.BLOCK:
        rows = block_sums(rows)
    return rows.sum(-1)


def divide_or_zero(numerator: Array, denominator: Array) -> Array:
    """Compute numerator / denominator, and 0 where the denominator is 0.

    Use it if the quotient does not matter at denominator 0: the ratio p/q of a token that cannot be
    drafted, or the residual of an event of probability zero.
    """
    if _holds_floats(denominator):
        shape = (
            numerator.shape
            if numerator.shape == denominator.shape
            else np.broadcast(numerator, denominator).shape
        )
        room = np.zeros(shape, np.result_type(numerator, denominator))
        if choice.is_quiet():
            return np.divide(numerator, denominator, out=room, where=denominator != 0)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.divide(numerator, denominator, out=room, where=denominator != 0)
    if is_torch_array(denominator):
        return zero_where(denominator == 0, numerator / denominator)
    if _formal_entry(denominator) is not None:
        quotient = np.frompyfunc(lambda over, under: under.quotient_or_zero(over), 2, 1)
        return quotient(numerator, denominator + _zero(denominator))
    empty = denominator == 0
    if is_exact(denominator):
        denominator = np.where(empty, _zero(denominator) + 1, denominator)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        return zero_where(empty, numerator / denominator)


def normalise(rows: Array) -> Array:
    """Divide rows of weights by their sums over the last axis.  A row of zeros stays zeros."""
    formal = _formal_entry(rows)
    if formal is not None:
        return formal.normalised(rows)
    xp = namespace(rows)
    # keepdims: numpy sums a single row of rationals to a bare Fraction otherwise.
    total = xp.sum(rows, axis=-1, keepdims=True)
    return rows / xp.where(total == 0, ones_like(total), total)


def prefix_products(factors: Array) -> Array:
    """Compute 1, f_1, f_1 f_2, ..: products over prefixes of the last axis.  [..., L] -> [..., L+1]"""
    if _holds_floats(factors):
        products = np.empty((*factors.shape[:-1], factors.shape[-1] + 1), factors.dtype)
        products[..., 0] = 1
        np.multiply.accumulate(factors, axis=-1, out=products[..., 1:])
        return products
    xp = namespace(factors)
    one = ones_like(factors[..., :1])
    return xp.cumulative_prod(xp.concat([one, factors], axis=-1), axis=-1)


def hit_probability(draft_probs: Any, num_drafts: Any) -> Any:
    """Compute f(u) = 1 - (1 - u)^K: the probability that one of K i.i.d. drafts passes through a set.

    For floats we use log1p and expm1, so that f keeps its relative accuracy for small u.  If rounding made u
    larger than 1, it counts as 1.

    Args:
        draft_probs: u, the draft probabilities of the sets, [...] or one number: rational, float, torch or
            symbolic.
        num_drafts: K, a number or an array [...].

    Returns:
        f(u), of the same shape and arithmetic.
    """
    if isinstance(num_drafts, int) and num_drafts == 1:
        return draft_probs
    if isinstance(draft_probs, float):
        return float(hit_probability(np.asarray([draft_probs]), num_drafts)[0])
    if not hasattr(draft_probs, "dtype") or is_exact(draft_probs):
        if isinstance(num_drafts, int) and num_drafts > MOST_EXACT_DRAFTS:
            raise InvalidInputError(
                f"num_drafts must be at most {MOST_EXACT_DRAFTS} in rationals, got {num_drafts}; use floats"
            )
        return 1 - (1 - draft_probs) ** num_drafts
    xp = namespace(draft_probs)
    with np.errstate(divide="ignore"):  # log1p(-1) = -inf gives f(1) = 1, as it should
        return -xp.expm1(num_drafts * xp.log1p(-at_most_one(draft_probs)))


def power_sum(upper: Array, lower: Array, num_drafts: int) -> Array:
    """Compute S_K(u, b) = sum_{j=0}^{K-1} u^j b^(K-1-j), so that u^K - b^K = (u - b) S_K(u, b).

    We use S_2n = S_n (u^n + b^n) and S_{n+1} = u S_n + b^n: about 2 log2 K steps without a subtraction.
    """
    if num_drafts == 1:
        return ones_like(upper)
    total, high, low = None, upper, lower
    bits = bin(num_drafts)[3:]
    for number, bit in enumerate(bits, start=1):
        total = high + low if total is None else total * (high + low)
        if bits[number - 1 :] == "00":
            return total * add_scaled(high * high, low, low)
        if number < len(bits) or bit == "1":
            high, low = high * high, low * low
        if bit == "1":
            total = upper * total + low
            if number < len(bits):
                high, low = high * upper, low * lower
    return total


def first_true(condition: Array) -> Array:
    """Find the index of the first true entry along the last axis, or 0 if none is.  [..., N] -> [...]"""
    if is_torch_array(condition):
        return condition.byte().argmax(-1)
    return np.argmax(condition, axis=-1)


def take_along(array: Array, order: Array) -> Array:
    """Take array[..., order], M entries of the last axis.  [..., N], [..., M] -> [..., M]"""
    if choice.numbers_beside(array, order):
        return choice.row_kernels().entries(array[..., None, :].expand(*order.shape, array.shape[-1]), order)
    if is_torch_array(array):
        # The array API's function copies the order to read negative entries.  Torch takes no 16-bit indices.
        return array.gather(-1, order.long() if order.itemsize == 2 else order)
    if array.shape[:-1] != order.shape[:-1]:
        return np.take_along_axis(array, order, axis=-1)
    return array[(*_leading_indices(order.shape), order)]


@lru_cache(maxsize=256)
def _leading_indices(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Build the index of ``np.take_along_axis`` without the last axis; cached, because building is slow."""
    return list(np.ogrid[tuple(slice(size) for size in shape)][:-1])


def running_minimum(array: Array) -> Array:
    """Compute a_1, min(a_1, a_2), ..  along the last axis.  [..., N]"""
    if is_torch_array(array):
        return array.cummin(-1).values
    return np.minimum.accumulate(array, axis=-1)


def put_along(values: Array, order: Array) -> Array:
    """Make the array with array[..., order] = values, for a permutation ``order``.  [..., N] -> [..., N]"""
    if is_torch_array(values):
        return values.new_empty(values.shape).scatter_(-1, order, values)
    array = np.empty_like(values)
    np.put_along_axis(array, order, values, axis=-1)
    return array


def argsort(keys: Array) -> Array:
    """Return the indices that sort keys stably.  [..., N] -> [..., N]"""
    if choice.sorts_by_loop(keys):
        return choice.row_kernels().argsort(keys)
    if is_torch_array(keys):
        return keys.argsort(dim=-1, stable=True)
    return np.argsort(keys, axis=-1, stable=True)


def take_token(rows: Array, tokens: Array) -> Array:
    """Take rows[..., tokens], one entry of the last axis per batch element.  [..., V], [...] -> [...]"""
    if choice.numbers_beside(rows, tokens):
        return choice.row_kernels().entries(rows, tokens)
    return take_along(rows, tokens[..., None])[..., 0]


def take_row(rows: Array, index: Array) -> Array:
    """Take rows[..., index, :], one row per batch element.  [..., N, V], [...] -> [..., V]"""
    return rows[(*batch_indices(index), index)]


def batch_indices(index: Array) -> list[Array]:
    """Return an index array for each batch axis, shaped to index together with ``index``."""
    xp, axes = namespace(index), index.ndim
    return [
        xp.arange(size, device=index.device).reshape((size, *[1] * (axes - axis - 1)))
        for axis, size in enumerate(index.shape)
    ]


def take_path(array: Array, path_index: Array) -> Array:
    """Take array[..., path_index, :, ...], the slice of one drafted path per batch element.

    [..., K, N(, V)], [...] -> [..., N(, V)]
    """
    return array[(*batch_indices(path_index), path_index)]


def take_paths(array: Array, candidates: Array) -> Array:
    """Take the slices of several drafted paths.  [..., K, N(, V)], [..., C] -> [..., C, N(, V)]"""
    if array.shape[candidates.ndim - 1] == 1:  # a single path needs no copy
        shape = (*candidates.shape, *array.shape[candidates.ndim :])
        return namespace(array).broadcast_to(array, shape)
    if candidates.ndim != 2 or not (choice.is_large_on_host(array) and choice.rows_for_loops(array)):
        return array[_several(candidates)]
    room = choice.room_like(array, (*candidates.shape, *array.shape[2:]))
    for element, indices in enumerate(candidates.tolist()):
        for place, index in enumerate(indices):
            room[element, place] = array[element, index]
    return room


def _several(indices: Array) -> tuple[Array, ...]:
    """Build an index of M entries per batch element from indices [..., M]."""
    return (*(batch[..., None] for batch in batch_indices(indices[..., 0])), indices)
