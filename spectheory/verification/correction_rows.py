"""Target and draft rows at the prefix where a verifier stops; the correction token is drawn from them."""

import math
from typing import NamedTuple

from spectheory.foundation.arrays import Array, batch_indices, namespace, on_host, residual_rows, zeros_like
from spectheory.foundation.kernels import choice


class CorrectionRows(NamedTuple):
    """Target and draft rows, and one stop (a prefix of one path) per batch element.

    Attributes:
        target_rows: rows at all prefixes, [..., K, L+1, V].
        draft_rows: [..., K, L, V].  At depth L, after a fully accepted path, nothing is drafted and q = 0.
        path_index: the path of the stop, [...].
        length: the number of its accepted tokens, [...].
    """

    target_rows: Array
    draft_rows: Array
    path_index: Array
    length: Array

    @property
    def target_row(self) -> Array:
        """The target row p at the stop, [..., V]."""
        return take_stop_row(self.target_rows, self.path_index, self.length)

    @property
    def draft_row(self) -> Array:
        """The draft row q at the stop; zeros at depth L.  [..., V]"""
        return take_draft_row(self.draft_rows, self.path_index, self.length)

    def residual(self, scale: Array | None = None, draft_scale: Array | None = None) -> Array:
        """Compute max(scale p - draft_scale q, 0), not normalised.  At depth L it is proportional to p.

        Args:
            scale, draft_scale: [...], 1 by default.

        Returns:
            [..., V].

        Raises:
            IndexError: a stop is longer than the paths, or its path index is out of range.

        Example:
            >>> import numpy as np
            >>> rows = np.array([[[0.75, 0.25], [0.5, 0.5]]]), np.array([[[0.5, 0.5]]])
            >>> CorrectionRows(*rows, np.array(0), np.array([0, 1])).residual()
            array([[0.25, 0.  ],
                   [0.5 , 0.5 ]])
        """
        if choice.numbers_beside(self.target_rows, self.length):
            from spectheory.foundation.kernels.row_kernels import residuals

            return residuals(*self, scale, draft_scale)
        if self._kernel_fits(scale, draft_scale):
            from spectheory.foundation.kernels.row_kernels import residual_at_stops

            return residual_at_stops(*self, scale, draft_scale)
        return residual_rows(self.target_row, self.draft_row, scale, draft_scale)

    def _kernel_fits(self, *scales: Array | None) -> bool:
        """True if a row kernel applies: there is one stop per batch element, and more than one element.

        A single stop needs no kernel, because views suffice.
        """
        *batch, paths, depths, size = self.target_rows.shape
        per_stop = [array for array in (self.path_index, self.length, *scales) if array is not None]
        return (
            not choice.is_one_number(self.length)
            and tuple(self.draft_rows.shape) == (*batch, paths, depths - 1, size)
            and all(tuple(array.shape) == tuple(batch) for array in per_stop)
            and choice.use_row_kernel((self.target_rows, self.draft_rows), scales, math.prod(batch) * size)
        )


def take_stop_row(rows: Array, path_index: Array, length: Array) -> Array:
    """Take rows[..., path_index, length, :], the row at one prefix of one path per batch element.

    [..., K, N, V], [...], [...] -> [..., V].  Only these rows are copied.  A single row is a view.
    """
    if choice.is_one_number(length):
        return rows[..., path_index.item(), length.item(), :]
    return rows[(*batch_indices(path_index), path_index, length)]


def take_draft_row(draft_rows: Array, path_index: Array, length: Array) -> Array:
    """Take the draft row at one prefix per batch element, or zeros at depth L, where nothing is drafted.

    With q = 0 the residual max(w p - q, 0) is proportional to p.  So after a fully accepted path the residual
    formulas give the target's row.  [..., K, L, V], [...], [...] -> [..., V], which may be a view.
    """
    last, xp = draft_rows.shape[-2] - 1, namespace(draft_rows)
    if choice.is_one_number(length):
        if length.item() <= last:
            return take_stop_row(draft_rows, path_index, length)
        row = draft_rows[..., 0, 0, :]
        return xp.broadcast_to(zeros_like(row[..., :1]), row.shape)
    beyond = length > last
    # We avoid ``clip``, which checks whether ``last`` is a number: torch.compile may not know its value.
    row = take_stop_row(draft_rows, path_index, xp.where(beyond, length * 0 + last, length))
    if on_host(beyond) and not bool(xp.any(beyond)):
        return row
    return xp.where(beyond[..., None], zeros_like(row[..., :1]), row)
