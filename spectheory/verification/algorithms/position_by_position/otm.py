"""OTM: draft selection with an optimal transport plan at every position."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.arrays import Array, namespace, normalise
from spectheory.foundation.exact_numbers import is_exact
from spectheory.foundation.formal_number import hashes_formal_numbers
from spectheory.foundation.unique_rows import unique_row_indices
from spectheory.optima.one_position.ranking_plan import OptimalRankings, rankings_of_rows
from spectheory.verification.algorithms.position_by_position.positions import (
    Position,
    PositionByPosition,
    Selection,
)

Row = tuple[Any, ...]
KEPT_PLANS, LARGEST_KEPT = 1024, 64
"""The number of plans that are kept, and the largest vocabulary for which they are."""


class OTM(PositionByPosition):
    """Draft selection with multiple candidates, spectr2023 Algorithm 3 with the plan of Lemma 2.

    At a context with the surviving drafts x_1..x_n (p target, q draft):

    1. the transport plan from q^n to p is an optimal one, a solution of the linear program of
       Eq. 4                                                                     (line 1)
    2. Y is drawn from the plan's conditional law given (x_1, .., x_n)         (line 2)
    3. at depth L-1 a Y that was drafted is followed by one more token from the target (lines 3-10)
    4. at other depths the drafts whose next token is Y survive; if none does, the round ends
       with Y as the correction token                                            (lines 11-16)

    Lossless (theory.md Statement 5.15).  At L = 1 no lossless verifier accepts more: the acceptance is α_K
    (theory.md Statement 3.1).  At L > 1 the plan is optimal at each position, but maybe not for the whole
    block.  The block efficiency then depends on the choice of the optimal plan; losslessness does not.  On
    prefix trees the drafts are draws (``PositionByPosition``).

    We represent the plan as a mixture of at most V rankings of the tokens (``rankings_of_rows``), not as a
    program of V^(n+1) entries.  It is computed on the CPU, once per pair of rows and number of drafts, and
    kept.  The laws are moved to the device of the rows.  At V = 32 000 a plan takes seconds, so this is for
    analysis, not for decoding.  Exact rows give exact plans.

    Raises:
        InvalidInputError: a drafted token has probability 0 in the draft row of its path.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.exact.law import output_law
        >>> print(output_law(OTM(), instances.two_token(1), 2).block_efficiency)
        17/9
    """

    name: ClassVar[str] = "otm"
    source: ClassVar[str] = "spectr2023 Alg. 3, Lemma 2"
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid", "prefix_tree"})

    def select(self, position: Position) -> Selection:
        like, is_draft = position.target_rows, position.is_draft
        *shape, num_drafts = is_draft.shape
        size = like.shape[-1]
        tokens = namespace(like).broadcast_to(position.tokens[..., None, :], is_draft.shape)
        # One row per context; contexts with equal rows and drafts are computed once.
        contexts = [part.reshape((-1, size)) for part in (like, position.draft_rows)]
        contexts += [part.reshape((-1, num_drafts)) for part in (tokens, is_draft)]
        first, which = unique_row_indices(*contexts, same_objects=True)
        # Lists are on the CPU for every device, and tolist keeps the entries of exact arrays.
        laws = [self._law(*rows) for rows in zip(*(part[first].tolist() for part in contexts), strict=True)]
        return Selection(
            _array_like([law[0] for law in laws], like)[which].reshape((*shape, num_drafts)),
            _array_like([law[1] for law in laws], like)[which].reshape(tuple(shape)),
            _array_like([law[2] for law in laws], like)[which].reshape((*shape, size)),
        )

    def _law(
        self, target: Sequence[Any], draft: Sequence[Any], tokens: Sequence[int], is_draft: Sequence[bool]
    ) -> tuple[list[Any], Any, list[Any]]:
        """Compute the fields of ``Selection`` at one context: by_draft [K], none, residual [V]."""
        zero = target[0] - target[0]
        drafted = tuple(token for token, here in zip(tokens, is_draft, strict=True) if here)
        if not drafted:
            return [zero] * len(tokens), zero + 1, list(target)
        law = list(_law_given(tuple(target), tuple(draft), tuple(sorted(drafted))))
        by_draft = []
        for token, here in zip(tokens, is_draft, strict=True):
            # The first draft with this token counts as selected; other drafts with this token survive too.
            by_draft.append(law[token] if here else zero)
            if here:
                law[token] = zero
        return by_draft, sum(law, zero), law


@hashes_formal_numbers
def _law_given(target: Row, draft: Row, drafted: tuple[int, ...]) -> Row:
    """Compute the law of the selected token given the drafted tokens, in increasing order."""
    if len(target) > LARGEST_KEPT:
        plan = rankings_of_rows(_as_law(target), _as_law(draft), len(drafted))
        return tuple(plan.law_given(drafted).tolist())
    return _kept_law(target, draft, drafted)


@lru_cache(maxsize=32 * KEPT_PLANS)
@hashes_formal_numbers
def _kept_law(target: Row, draft: Row, drafted: tuple[int, ...]) -> Row:
    return tuple(_kept_plan(target, draft, len(drafted)).law_given(drafted).tolist())


@lru_cache(maxsize=KEPT_PLANS)
def _kept_plan(target: Row, draft: Row, num_drafts: int) -> OptimalRankings:
    return rankings_of_rows(_as_law(target), _as_law(draft), num_drafts)


def _as_law(row: Row) -> np.ndarray:
    """Convert a row to an array.  Float rows are normalised in float64; exact rows stay.

    Rows in float32 sum to 1 only up to 1e-7, and no plan couples two laws of different mass.
    """
    return normalise(np.array(row)) if issubclass(type(row[0]), float) else np.array(row, dtype=object)


def _array_like(values: list[Any], like: Array) -> Array:
    """Convert the values to an array of the library, dtype and device of ``like``."""
    if is_exact(like):
        return np.array(values, dtype=object)
    return namespace(like).asarray(values, dtype=like.dtype, device=like.device)
