"""Acceptance probabilities at one position: the optimum, the published rules and the bounds."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from spectheory.foundation.arrays import hit_probability
from spectheory.foundation.documents import both, count_text, number_text, to_json
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.foundation.exact_numbers import Number, plain_number
from spectheory.foundation.results import Result, Templates, no_verdict
from spectheory.foundation.validation import check_count
from spectheory.optima.one_position.min_cut import optimal_acceptance
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.kseq import kseq_rule
from spectheory.verification.algorithms.position_by_position.multi_round import multi_round_acceptance
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound

MAX_EXACT_POWER = 50_000
"""Largest K in rationals.  K-th powers for larger K have too many digits."""


@dataclass(frozen=True, eq=False, repr=False)
class Acceptance(Result):
    """Probabilities that the output of one position is one of K i.i.d. drafts.

    Quantities are Fractions if the rows are exact, else floats.

    Attributes:
        target, draft: the two rows.
        num_drafts: K.
        arithmetic: ``"exact"`` or ``"float64"``.
        optimal: α_K, the largest acceptance probability of any lossless rule.
        minimising_set: tokens of the minimum cut that proves this optimum.
        kseq: acceptance probability of K-SEQ.  It is a float, because its division factor is algebraic.
        kseq_division_factor: ρ*, the division factor of K-SEQ.
        multi_round: acceptance probability of recursive rejection.
        lower_bound: spectr2023 Lemma 3, the upper bound times 1 - (1 - 1/K)^K.
        upper_bound: spectr2023 Lemma 3; it is always attained (theory.md Statement 3.4).
        spectr_gbv_bound: spectrgbv2026 Eq. 5 as printed; it does not bound lossless rules (theory.md §2).
    """

    target: tuple[Any, ...]
    draft: tuple[Any, ...]
    num_drafts: int
    arithmetic: str
    optimal: Number
    minimising_set: tuple[int, ...]
    kseq: float
    kseq_division_factor: float
    multi_round: Number
    lower_bound: Number
    upper_bound: Number
    spectr_gbv_bound: Number

    def __bool__(self) -> bool:
        raise no_verdict(self, ".optimal")

    facts: ClassVar[Templates] = {
        "upper bound": "{upper_bound} (Lemma 3, always attained)",
        "optimal (OTM)": "{optimal} (min cut at the tokens {{{cut}}})",
        "K-SEQ": "{kseq} (division factor {kseq_division_factor:.6f})",
        "multi-round": "{multi_round} (recursive rejection)",
        "lower bound": "{lower_bound} (Lemma 3, the upper bound times 1 - (1 - 1/K)^K)",
        "Bound(K)": "{spectr_gbv_bound} (spectrgbv2026 Eq. 5 as printed: not a bound on lossless verifiers)",
    }

    def headline(self) -> str:
        drafts = count_text(self.num_drafts, "draft")
        return f"acceptance at one position, {drafts}: at most {number_text(self.optimal)}"

    def shown(self) -> dict[str, Any]:
        cut = ", ".join(map(str, self.minimising_set)) or " "
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"cut": cut}

    def to_document(self) -> dict[str, Any]:
        """Return the JSON object of ``spectheory acceptance --json``."""
        return {
            "target": to_json(self.target),
            "draft": to_json(self.draft),
            "num_drafts": self.num_drafts,
            "arithmetic": self.arithmetic,
            **both("optimal", self.optimal),
            "minimising_set": list(self.minimising_set),
            "kseq": self.kseq,
            "kseq_division_factor": self.kseq_division_factor,
            **both("multi_round", self.multi_round),
            **both("lower_bound", self.lower_bound),
            **both("upper_bound", self.upper_bound),
            **both("spectr_gbv_bound", self.spectr_gbv_bound),
        }


def acceptance(target_probs: Sequence[Any], draft_probs: Sequence[Any], drafts: int = 1) -> Acceptance:
    """Compute optimal acceptance with its cut, K-SEQ, multi-round rejection and bounds at one position.

    Args:
        target_probs, draft_probs: one probability per token, all exact (strings) or all float.
        drafts: K, drawn independently.

    Raises:
        InvalidInputError: a row is not a distribution, the rows have different lengths, or K < 1.

    Example:
        >>> found = acceptance(["1/3", "2/3"], ["2/3", "1/3"], 2)
        >>> print(found.optimal, found.multi_round, round(found.kseq, 6))
        8/9 7/9 0.81142
    """
    num_drafts = check_count("drafts", drafts)
    pair = ModelPair.context_free_pair(target_probs, draft_probs, draft_length=1)
    if pair.is_exact and num_drafts > MAX_EXACT_POWER:
        raise EnumerationTooLargeError(
            f"the powers of {num_drafts} drafts are too long for rationals, the limit is {MAX_EXACT_POWER}; "
            "use fewer drafts, or floats in Python"
        )
    target, draft = pair.target[0][0], pair.draft[0][0]
    cut = optimal_acceptance(target, draft, num_drafts)
    rule = kseq_rule(target.astype(float), draft.astype(float), np.array(float(num_drafts)))
    one = Fraction(1) if pair.is_exact else 1.0
    factor = hit_probability(np.array([one / num_drafts]), num_drafts)[0]
    return Acceptance(
        target=tuple(target.tolist()),
        draft=tuple(draft.tolist()),
        num_drafts=num_drafts,
        arithmetic=pair.arithmetic,
        optimal=plain_number(cut.value),
        minimising_set=tuple(np.flatnonzero(cut.tokens).tolist()),
        kseq=float(rule.acceptance),
        kseq_division_factor=float(rule.division_factor),
        multi_round=plain_number(multi_round_acceptance(target, draft, num_drafts)),
        lower_bound=plain_number(cut.value * factor),
        # The upper bound of Lemma 3 is attained (theory.md Statement 3.4), so the cut gives both bounds.
        upper_bound=plain_number(cut.value),
        spectr_gbv_bound=plain_number(conditionally_independent_bound(pair, num_drafts)),
    )
