"""Everything about one position, as ``spectheory acceptance`` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.algorithms.kseq import kseq_rule
from spectheory.algorithms.multi_round import multi_round_acceptance
from spectheory.algorithms.spectr_gbv import conditionally_independent_bound
from spectheory.pair import ModelPair
from spectheory.programs import optimal_acceptance
from spectheory.validate import check_num_drafts


def acceptance_document(
    target_probs: Sequence[Any], draft_probs: Sequence[Any], num_drafts: int
) -> dict[str, Any]:
    """Optimal acceptance with its cut, K-SEQ, multi-round rejection and the bounds of Lemma 3.

    Args:
        target_probs, draft_probs: one probability per token, all exact (strings) or all float.
        num_drafts: K.

    Raises:
        InvalidInputError: a row is not a distribution, the rows have different lengths, or K < 1.

    Example:
        >>> document = acceptance_document(["1/3", "2/3"], ["2/3", "1/3"], 2)
        >>> document["optimal"], document["multi_round"], round(document["kseq"], 6)
        ('8/9', '7/9', 0.81142)
    """
    check_num_drafts(num_drafts)
    pair = ModelPair.context_free_pair(target_probs, draft_probs, draft_length=1)
    target, draft = pair.target[0][0], pair.draft[0][0]
    cut = optimal_acceptance(target, draft, num_drafts)
    rule = kseq_rule(target.astype(float), draft.astype(float), np.array(float(num_drafts)))
    # The upper bound of Lemma 3 is attained (``programs.otm_bounds``), so the cut gives both bounds.
    factor = 1 - (1 - Fraction(1, num_drafts)) ** num_drafts
    lower = cut.value * (factor if pair.is_exact else float(factor))
    return {
        "target": [_exact(value) or float(value) for value in target],
        "draft": [_exact(value) or float(value) for value in draft],
        "num_drafts": num_drafts,
        "arithmetic": pair.arithmetic,
        **_both("optimal", cut.value),
        "minimising_set": np.flatnonzero(cut.tokens).tolist(),
        "kseq": float(rule.acceptance),
        "kseq_division_factor": float(rule.division_factor),
        **_both("multi_round", multi_round_acceptance(target, draft, num_drafts)),
        **_both("lower_bound", lower),
        **_both("upper_bound", cut.value),
        **_both("spectr_gbv_bound", conditionally_independent_bound(pair, num_drafts)),
    }


def _exact(value: Any) -> str | None:
    return str(value) if isinstance(value, Fraction) else None


def _both(name: str, value: Any) -> dict[str, Any]:
    return {name: _exact(value), f"{name}_float": float(value)}
