"""Distribution modification: the changed target after an accepted prefix (theory.md §4.5).

Exact iterations (``iteration``) and the decoding loop (``decoding``) share one step, ``modified_rows``.
"""

from abc import abstractmethod

from spectheory.foundation.arrays import Array, namespace, normalise
from spectheory.verification.verifier import ModifiedTargetRows, Verifier


class ModifiesTarget(Verifier):
    """A verifier that computes correction rows and modified target rows by one formula, ``rejected_mass``."""

    @abstractmethod
    def rejected_mass(self, target_mass: Array, draft_mass: Array, num_drafts: int) -> Array:
        """Compute the mass that no draft takes, from p(a, x) and q(a, x) or common multiples.  -> [..., V]"""

    def modified_target_rows(
        self,
        target_rows: Array,
        draft_rows: Array,
        target_path_probs: Array,
        draft_path_probs: Array,
        num_drafts: int,
    ) -> Array:
        """Compute the target rows at contexts a beyond an accepted prefix: ``rejected_mass``, normalised.

        The rows apply up to the L-th token after the start of the iteration that accepted the prefix.
        p(a, x) and q(a, x) are path probabilities from that start.

        Args:
            target_rows, draft_rows: [..., V], p(. | a) and q(. | a).
            target_path_probs, draft_path_probs: [...], p(a) and q(a); a common factor cancels.
            num_drafts: K.

        Returns:
            [..., V].  If no mass is rejected, the row is zeros.

        Example:
            >>> from spectheory import instances
            >>> from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
            >>> pair = instances.two_token(2)
            >>> print(GreedyBlock().modified_target_rows(  # after B: p(B) = 2/3 > q(B) = 1/3
            ...     pair.target[1][1:], pair.draft[1][1:],
            ...     pair.target_path_probs(1)[1:], pair.draft_path_probs(1)[1:], 1)[0])
            [Fraction(0, 1) Fraction(1, 1)]
        """
        target, draft = target_path_probs[..., None] * target_rows, draft_path_probs[..., None] * draft_rows
        return normalise(self.rejected_mass(target, draft, num_drafts))


def modified_rows(
    modify: ModifiedTargetRows,
    target_rows: Array,
    draft_rows: Array,
    target_path_probs: Array,
    draft_path_probs: Array,
    num_drafts: int,
) -> Array:
    """Apply a verifier's ``modified_target_rows`` to target rows.

    The modified row is undefined at contexts that the modified target never reaches.  There we keep the
    original target row.
    """
    rows = modify(target_rows, draft_rows, target_path_probs, draft_path_probs, num_drafts)
    xp = namespace(rows)
    return xp.where(xp.sum(rows, axis=-1, keepdims=True) == 0, target_rows, rows)
