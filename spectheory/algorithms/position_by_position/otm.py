"""OTM: draft selection with an optimal transport plan at every position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np

from spectheory.algorithms.position_by_position.base import Position, PositionByPosition, Selection
from spectheory.arrays import Array, is_exact, namespace, to_fractions
from spectheory.errors import EnumerationTooLargeError, InvalidInputError
from spectheory.outcome import Outcome

Tokens = tuple[int, ...]
Row = tuple[Any, ...]
MAX_VARIABLES = 20_000
"""Default for the largest plan, in entries."""
CACHED_PLANS = 4096
"""How many transport plans are remembered."""


class OTM(PositionByPosition):
    """Draft selection with multiple candidates, spectr2023 Algorithm 3 with the plan of Lemma 2.

    At a context with the surviving drafts x_1..x_n (p target, q draft):

    1. the transport plan from q^n to p is an optimal one, a solution of the linear program of
       Eq. 4 (``otm_optimum``)                                                (line 1)
    2. Y is drawn from the plan's conditional law given (x_1, .., x_n)         (line 2)
    3. at depth L-1 a Y that was drafted is followed by one more token from the target (lines 3-10)
    4. otherwise the drafts whose next token is Y survive; if there are none the round ends
       with Y as the correction token                                            (lines 11-16)

    Lossless (theory.md Statement 5.15).  At L = 1 no lossless verifier accepts more: the acceptance is α_K
    (theory.md Statement 3.1).  At L > 1 the plan is optimal at each position and need not be for the whole
    block.  The block efficiency then depends on which optimal plan the solver returns; losslessness does
    not.  On prefix trees the drafts are draws (``PositionByPosition``).

    A plan has V^(n+1) entries, so this is for small vocabularies.  Plans are computed on the CPU, one
    linear program per pair of rows and number of drafts, and remembered; for torch the resulting laws
    are moved to the device of the rows.  Exact rows give exact plans.

    Args:
        max_variables: the largest plan, in V^(K+1) entries, that is computed.

    Raises:
        EnumerationTooLargeError: the vocabulary or the number of drafts is too large for that.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.law import output_law
        >>> print(output_law(OTM(), instances.two_token(1), 2).block_efficiency)
        17/9
    """

    name: ClassVar[str] = "otm"
    source: ClassVar[str] = "spectr2023 Alg. 3, Lemma 2"
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid", "prefix_tree"})

    def __init__(self, max_variables: int = MAX_VARIABLES) -> None:
        self.max_variables = max_variables

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        num_drafts, size = paths.shape[-2], target_rows.shape[-1]
        if size ** (num_drafts + 1) > self.max_variables:
            raise EnumerationTooLargeError(
                f"verifier 'otm' needs transport plans of V^(K+1) = {size}^{num_drafts + 1} = "
                f"{size ** (num_drafts + 1)} entries, the limit is {self.max_variables}; use 'spectr' or "
                "'multi_round', restrict() to fewer tokens, fewer drafts, or raise max_variables"
            )
        return super().outcome(paths, target_rows, draft_rows)

    def select(self, position: Position) -> Selection:
        is_draft, size = position.is_draft, position.target_rows.shape[-1]
        contexts, num_drafts = is_draft.shape[-2:]
        # Plain lists, on the CPU whatever the device: tolist keeps the entries of exact arrays.
        targets = position.target_rows.reshape((-1, contexts, size)).tolist()
        drafts = position.draft_rows.reshape((-1, contexts, size)).tolist()
        tokens = position.tokens.reshape((-1, num_drafts)).tolist()
        here = is_draft.reshape((-1, contexts, num_drafts)).tolist()
        laws = [
            self._law(target, draft, drafted, flags)
            for batch in zip(targets, drafts, tokens, here, strict=True)
            for target, draft, drafted, flags in zip(
                batch[0], batch[1], [batch[2]] * contexts, batch[3], strict=True
            )
        ]
        like, shape = position.target_rows, tuple(is_draft.shape)
        return Selection(
            _array_like([law[0] for law in laws], shape, like),
            _array_like([law[1] for law in laws], shape[:-1], like),
            _array_like([law[2] for law in laws], (*shape[:-1], size), like),
        )

    def _law(
        self, target: Sequence[Any], draft: Sequence[Any], tokens: Sequence[int], is_draft: Sequence[bool]
    ) -> tuple[list[Any], Any, list[Any]]:
        """(by_draft [K], none, residual [V]) at one context."""
        zero = target[0] - target[0]
        drafted = tuple(token for token, here in zip(tokens, is_draft, strict=True) if here)
        if not drafted:
            return [zero] * len(tokens), zero + 1, list(target)
        plan = _plan(tuple(target), tuple(draft), len(drafted), self.max_variables)
        if drafted not in plan:
            raise InvalidInputError(
                f"drafts {drafted} have probability 0 under the draft row {list(draft)}; a transport plan "
                "says nothing about them: give each path the row its tokens were drawn from"
            )
        law = list(plan[drafted])
        by_draft = []
        for token, here in zip(tokens, is_draft, strict=True):
            # The first draft with a token is the one selected; the others survive with it.
            by_draft.append(law[token] if here else zero)
            if here:
                law[token] = zero
        return by_draft, sum(law, zero), law


@lru_cache(maxsize=CACHED_PLANS)
def _plan(target: Row, draft: Row, num_drafts: int, max_variables: int) -> Mapping[Tokens, Row]:
    """The law of Y given the drafts, for every tuple of tokens that can be drafted.

    Where the probability of a tuple is below the range of floats, and its row of the plan empty, Y
    follows the target whatever was drafted: lossless too.
    """
    # This loads solvers, which nothing but a plan needs.
    from spectheory.programs.one_position.otm import otm_optimum

    rows = [_as_law(row) for row in (target, draft)]
    plan = otm_optimum(rows[0], rows[1], num_drafts, max_variables).primal
    one = target[0] - target[0] + 1
    laws = {}
    for drafts in product([token for token, prob in enumerate(draft) if prob > 0], repeat=num_drafts):
        masses = [plan[drafts, token] for token in range(len(target))]
        total = sum(masses)
        if not total:
            laws[drafts] = target
        elif is_exact(rows[0]):
            shares = [mass / total for mass in masses]
            laws[drafts] = tuple(one * share.numerator / share.denominator for share in shares)
        else:
            laws[drafts] = tuple(mass / total for mass in masses)
    return laws


def _as_law(row: Row) -> np.ndarray:
    """A row as otm_optimum takes it: Fractions, or float64 with sum 1.

    Rows in float32 sum to 1 to 1e-7 only, and no plan couples two laws of different mass.
    """
    if isinstance(row[0], float):
        return np.array(row) / sum(row)
    return to_fractions(np.array(row, dtype=object))


def _array_like(values: list[Any], shape: tuple[int, ...], like: Array) -> Array:
    """The values as an array of the given shape and of the kind and device of ``like``."""
    if is_exact(like):
        return np.array(values, dtype=object).reshape(shape)
    return namespace(like).asarray(values, dtype=like.dtype, device=like.device).reshape(shape)
