"""Multi-round rejection over distinct drafts: recursive rejection sampling without replacement."""

from collections.abc import Iterator
from typing import ClassVar

from spectheory.foundation.arrays import Array, namespace, normalise, zeros_like
from spectheory.foundation.errors import InvalidInputError
from spectheory.verification.algorithms.position_by_position.multi_round import recursive_rejection
from spectheory.verification.algorithms.position_by_position.positions import (
    Position,
    PositionByPosition,
    Selection,
)


class MultiRoundWithoutReplacement(PositionByPosition):
    """Recursive rejection over drafts drawn without replacement at every node of a tree.

    Of the four papers only spectr2023 footnote 8 mentions that drafts may be drawn this way.
    At a context with the distinct drafts x_1..x_n, in the order in which they were drawn (p target,
    q draft):

    1. p_1 = p; q_k is q without x_1..x_{k-1}, normalised: the row from which x_k was drawn
    2. x_k is accepted with probability min(1, p_k(x_k) / q_k(x_k)); then the round continues after x_k
    3. after a rejection p_{k+1} = max(p_k - q_k, 0), normalised
    4. after n rejections the round ends with the correction token Y ~ p_{n+1}, which is none of the
       drafts, because p_{k+1}(x_k) = 0
    5. a path accepted to its end is followed by one more token from the target

    Lossless for ``WithoutReplacement`` drafts; ``bind`` refuses other drafts.  The verifier must know the
    order of the paths and which paths share a draw, so it must be set up with ``bind``.  With all widths 1
    it is ``token``.

    Raises:
        InvalidInputError: there are several paths, and no draft process was bound.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.pairs.drafts import WithoutReplacement
        >>> from spectheory.exact.law import output_law
        >>> law = output_law(MultiRoundWithoutReplacement(), instances.three_token_reversed(1),
        ...                  drafts=WithoutReplacement((2,)))
        >>> print(law.block_efficiency, law.total_variation)
        16/9 0
    """

    name: ClassVar[str] = "multi_round_without_replacement"
    source: ClassVar[str] = "spectr2023 footnote 8; recursive rejection without replacement"
    draft_processes: ClassVar[frozenset[str]] = frozenset({"without_replacement"})

    def draws(self, paths: Array) -> Array:
        if self._process is None and paths.shape[-2] > 1:
            raise InvalidInputError(
                f"verifier {self.name!r} must know which paths share a draw, got {paths.shape[-2]} paths and "
                "no draft process; set it up with bind(WithoutReplacement(widths))"
            )
        return super().draws(paths)

    def select(self, position: Position) -> Selection:
        return recursive_rejection(position, rows_without_earlier(position))


def rows_without_earlier(position: Position) -> Iterator[Array]:
    """Yield for every draft the row q without the earlier drafts, normalised.  [..., C, V] each

    If no token is left the row is zeros, and it is never used.
    """
    xp = namespace(position.draft_rows)
    vocabulary = xp.arange(position.draft_rows.shape[-1], device=position.tokens.device)
    left = position.draft_rows
    for number in range(position.tokens.shape[-1]):
        yield normalise(left)
        drawn = vocabulary == position.tokens[..., number, None]
        taken = position.is_draft[..., number, None] & drawn[..., None, :]
        left = xp.where(taken, zeros_like(left), left)
