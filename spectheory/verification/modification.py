"""Distribution modification: the target that a verifier needs behind an accepted prefix (theory.md §4.5).

One step, shared by exact iterations (``iteration``) and by the decoding loop (``decoding``).
"""

from __future__ import annotations

from spectheory.foundation.arrays import Array, namespace
from spectheory.verification.verifier import ModifiedTargetRows


def modified_rows(
    modify: ModifiedTargetRows,
    target_rows: Array,
    draft_rows: Array,
    target_path_probs: Array,
    draft_path_probs: Array,
    num_drafts: int,
) -> Array:
    """The target's rows as a verifier's ``modified_target_rows`` changes them.

    The modified row is undefined at contexts that the modified target never reaches.  There the row stays
    as it was, and it is never used.

    Args:
        modify: ``modified_target_rows`` of a verifier.
        target_rows, draft_rows, target_path_probs, draft_path_probs, num_drafts: its arguments.

    Returns:
        [..., V], of the arithmetic of ``target_rows``.
    """
    rows = modify(target_rows, draft_rows, target_path_probs, draft_path_probs, num_drafts)
    xp = namespace(rows)
    return xp.where(xp.sum(rows, axis=-1, keepdims=True) == 0, target_rows, rows)
