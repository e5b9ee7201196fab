"""Batches: the joint law of the outputs of several requests that share a length rule (theory.md §8.7)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np

from spectheory.exact.law import law_of
from spectheory.foundation.exact_numbers import Number, plain_number
from spectheory.foundation.results import no_verdict
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts.defect import variations
from spectheory.pairs.drafts.kept import KeptDrafts, Paths
from spectheory.pairs.drafts.shortened import Shortened
from spectheory.pairs.pair import ModelPair
from spectheory.verification.resolve import find_verifier, resolve


def completed_law_given(verifier: str | Any, pair: ModelPair, paths: Paths) -> np.ndarray:
    """Compute M_n(x): the law of the L + 1 tokens of the completed output given kept drafts.  [V^(L+1)]

    Args:
        verifier: a name or an object.
        pair: the models.
        paths: K kept paths of n tokens each, n <= L.

    Example:
        >>> from spectheory import instances
        >>> law = completed_law_given("token", instances.two_token(1), ((0,),))
        >>> print(law.reshape(2, 2).sum(axis=1))  # of the first token: accepted with probability 1/2
        [Fraction(1, 2) Fraction(1, 2)]
    """
    one = "1" if pair.is_exact else 1.0
    found = law_of(resolve(find_verifier(verifier), pair, KeptDrafts({paths: one})))
    return found.prefix_law(pair.draft_length + 1)


@dataclass(frozen=True)
class BatchLaw:
    """Total variations of the outputs of a batch.

    Attributes:
        total_variation: between the joint law of all completed outputs and independent targets.
        of_requests: of each request by itself.  All can be 0 although the batch is wrong.
    """

    total_variation: Number
    of_requests: tuple[Number, ...]

    def __bool__(self) -> bool:
        raise no_verdict(self, ".total_variation")


def batch_law(verifier: str | Any, pair: ModelPair, process: Shortened) -> BatchLaw:
    """Compute the joint law of the outputs of B requests whose lengths are decided together.

    Every path of the process is the draft of one request.  Each request is verified by itself.

    Args:
        verifier: a name or an object; it verifies one path.
        pair: the models of every request.  With ``PerPath`` request r has the r-th model.
        process: independent paths, and a rule that returns one length per path.

    Example:
        >>> from spectheory import ModelPair
        >>> fair = ModelPair.context_free_pair(["1/2", "1/2"], ["1/2", "1/2"], 1)
        >>> both_if_equal = Shortened(2, lambda tokens, rows: (int(tokens[0] == tokens[1]),) * 2)
        >>> found = batch_law("token", fair, both_if_equal)
        >>> print(found.total_variation, *found.of_requests)
        1/4 0 0
    """
    pairs = [process.drafter(pair, request) for request in range(process.num_drafts)]

    @cache
    def kernel(request: int, path: Context) -> np.ndarray:
        return completed_law_given(verifier, pairs[request], (path,))

    process.check(pair)
    joint = sum(
        plain_number(prob) * reduce(np.multiply.outer, map(kernel, range(len(pairs)), paths))
        for paths, prob in process.kept_law(pair).items()
    )
    targets = [each.target_path_probs(each.draft_length + 1) for each in pairs]
    total, *of_requests = variations(joint - reduce(np.multiply.outer, targets))
    return BatchLaw(total, tuple(of_requests))
