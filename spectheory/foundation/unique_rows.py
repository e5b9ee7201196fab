"""Find duplicate rows, so that each is processed once."""

import math
from typing import Any

import numpy as np

from spectheory.foundation.arrays import Array, namespace, on_host
from spectheory.foundation.exact_numbers import is_exact


def unique_row_indices(*arrays: Array, same_objects: bool = False) -> tuple[Array, Array]:
    """Find the first occurrence of every distinct row, and map every row to it.

    On an accelerator every row counts as distinct, because comparing costs more than it saves.

    Args:
        arrays: [n, ..] each, rational, float or integer.  Row i is compared in all arrays together.
        same_objects: True if rationals count as equal only if they are the same object, as entries taken from
            one table are.  Then no values are compared, so that a proof needs no case distinction.

    Returns:
        (first [m], which [n]): row i equals row first[which[i]].

    Example:
        >>> first, which = unique_row_indices(np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]]))
        >>> first[which].tolist()
        [0, 1, 0]
    """
    if not isinstance(arrays[0], np.ndarray):
        xp = namespace(arrays[0])
        if on_host(arrays[0]):
            first, which = unique_row_indices(*(_bytes(array) for array in arrays))
            return xp.asarray(first), xp.asarray(which)
        every = xp.arange(arrays[0].shape[0], device=arrays[0].device)
        return every, every
    rows = [_entry_numbers(array, same_objects) if is_exact(array) else array for array in arrays]
    entries = np.concatenate([_flat(part).view(np.uint8) for part in rows], axis=1)
    keys = entries.view(np.dtype((np.void, entries.shape[1])))[:, 0]
    return np.unique(keys, return_index=True, return_inverse=True)[1:]


def _flat(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array.reshape(len(array), math.prod(array.shape[1:])))


def _bytes(tensor: Any) -> np.ndarray:
    """View the rows of a torch tensor as bytes, because numpy lacks some of torch's dtypes."""
    import torch

    rows = tensor.reshape(len(tensor), math.prod(tensor.shape[1:])).contiguous()
    # In a contiguous tensor an axis of length 1 may have any stride, but ``view`` requires stride 1.
    return rows.as_strided(rows.shape, (rows.shape[1], 1)).view(torch.uint8).numpy()


def _entry_numbers(array: np.ndarray, same_objects: bool) -> np.ndarray:
    """Map every rational to an integer, the same integer for equal rationals.

    With ``same_objects`` only the same object gets the same integer.  Hashing a rational is slow, and
    duplicate rows consist of the same objects, so we hash each object once.
    """
    values = array.ravel().tolist()
    numbers: dict[Any, int] = {}
    objects = {id(value): value for value in values}
    of_object = {
        key: numbers.setdefault(key if same_objects else value, len(numbers))
        for key, value in objects.items()
    }
    return np.array([of_object[id(value)] for value in values], dtype=np.int64).reshape(array.shape)
