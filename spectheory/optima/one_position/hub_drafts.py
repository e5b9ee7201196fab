"""Two drafts of which one is always the hub: their law, the optimal plan and its acceptance.

The idea is that of SpecHub (arXiv 2411.05289), whose text was not at hand.  A hub h is a likely token.  The
first draft is drawn from q.  If it is not h the second is h; otherwise the second is drawn from q without h.
So every pair is {h, x} and has the probability q(x) / (1 - q(h)).  The largest acceptance needs no sort and
no linear program (theory.md Statement 3.12).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.arrays import Array
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import plain_number
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import is_whole
from spectheory.optima.one_position.min_cut import check_single_rows


class HubPlan(NamedTuple):
    """The drafts, and the law of the output Z given them.

    Attributes:
        hub: h.
        draft_law: {(x_1, x_2): probability}.
        output_given: {(x_1, x_2): [V]}, the law of Z, the same in both orders.  Its mean is p.
        acceptance: the largest P(Z is one of the two) of these drafts.
    """

    hub: int
    draft_law: dict[tuple[int, int], Any]
    output_given: dict[tuple[int, int], np.ndarray]
    acceptance: Any

    def __bool__(self) -> bool:
        raise no_verdict(self, ".acceptance")


def hub_plan(
    target_probs: Sequence[Any] | Array, draft_probs: Sequence[Any] | Array, hub: int | None = None
) -> HubPlan:
    """Two hub drafts and the plan that accepts most of them.

    Source: theory.md Statement 3.12.  With m_x = q(x) / (1 - q(h)), Z given the pair {h, x} is x with
    probability min(p(x), m_x) / m_x, and otherwise follows p - min(p, m), p(h) at the hub, normalised.  The
    acceptance is p(h) + Σ_{x≠h} min(p(x), m_x).

    Args:
        target_probs, draft_probs: rows [V], exact or float.
        hub: h; by default the likeliest token of the draft's row.

    Raises:
        InvalidInputError: rows that are not probabilities over one vocabulary, or a hub that is not a token
            or is drafted almost surely.

    Example:
        >>> plan = hub_plan(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])
        >>> print(plan.hub, plan.acceptance, plan.draft_law[0, 2])
        2 5/6 1/6
    """
    target, draft = check_single_rows(target_probs, draft_probs)
    chosen = int(np.argmax(draft)) if hub is None else hub
    if not is_whole(chosen) or not 0 <= chosen < len(draft) or draft[chosen] == 1:
        raise InvalidInputError(
            f"hub must be a token from 0 to {len(draft) - 1} that the draft may not say, got {hub!r}"
        )
    others = [int(token) for token in np.flatnonzero(draft > 0) if token != chosen]
    pairs = draft / (1 - draft[chosen])
    served = np.minimum(target, pairs)
    served[chosen] = 0 * draft[chosen]
    left = 1 - served.sum()
    residual = target - served
    draft_law, output_given = {}, {}
    for token in others:
        # all pairs share alike the mass that is not on x: that of the hub and of undrafted tokens
        share = served[token] / pairs[token]
        row = residual * 0 if left == 0 else (1 - share) * residual / left
        row[token] += share
        draft_law[token, chosen] = plain_number(draft[token])
        output_given[token, chosen] = output_given[chosen, token] = row
        if draft[chosen] > 0:
            draft_law[chosen, token] = plain_number(draft[chosen] * pairs[token])
    return HubPlan(chosen, draft_law, output_given, plain_number(served.sum() + target[chosen]))
