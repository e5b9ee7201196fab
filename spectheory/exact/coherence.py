"""Coherence of verifiers: is the completed law a martingale in the length, or in the number of drafts?"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from spectheory.exact.law import law_of
from spectheory.foundation.exact_numbers import float_tolerance
from spectheory.pairs.contexts import Context, context_number
from spectheory.pairs.drafts.kept import KeptDrafts, Paths
from spectheory.pairs.pair import ModelPair
from spectheory.verification.resolve import find_verifier, resolve


def completed_law(verifier: str | Any, pair: ModelPair, paths: Paths) -> np.ndarray:
    """Compute M_n(x): the law of the L + 1 tokens of the completed output given kept drafts.  [V^(L+1)]

    Args:
        verifier: a name or an object.
        pair: the models.
        paths: K kept paths of n tokens each, n <= L.

    Example:
        >>> from spectheory import instances
        >>> law = completed_law("token", instances.two_token(1), ((0,),))
        >>> print(law.reshape(2, 2).sum(axis=1))  # of the first token: accepted with probability 1/2
        [Fraction(1, 2) Fraction(1, 2)]
    """
    one = "1" if pair.is_exact else 1.0
    found = law_of(resolve(find_verifier(verifier), pair, KeptDrafts({paths: one})))
    return found.prefix_law(pair.draft_length + 1)


def is_coherent_in_length(verifier: str | Any, pair: ModelPair, num_drafts: int = 1) -> bool:
    """Whether one more drafted token per path leaves the mean of the completed law (theory.md Statement 8.2).

    Only then is the verifier lossless if the number of verified tokens depends on the tokens before.

    Example:
        >>> from spectheory import instances
        >>> pair = instances.two_token(2)
        >>> [is_coherent_in_length(name, pair, 2) for name in ("multi_round", "greedy_multipath")]
        [True, False]
    """
    size, slack = pair.vocab_size, float_tolerance(pair, 1e-9)
    for length in range(pair.draft_length):
        for paths in product(product(range(size), repeat=length), repeat=num_drafts):
            if not all(_draft_prob(path, pair) > 0 for path in paths):
                continue
            longer = _mean(verifier, pair, paths)
            if (abs(longer - completed_law(verifier, pair, paths)) > slack).any():
                return False
    return True


def is_coherent_in_drafts(verifier: str | Any, pair: ModelPair, num_drafts: int = 1) -> bool:
    """Whether one more draft after ``num_drafts`` leaves the mean of the completed law.

    Only then may the number of drafts be decided while they are drawn.

    Example:
        >>> rows = ["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]
        >>> pair = ModelPair.context_free_pair(*rows, 1).to_float()
        >>> [is_coherent_in_drafts(name, pair) for name in ("multi_round", "otm")]
        [True, False]
    """
    size, slack = pair.vocab_size, float_tolerance(pair, 1e-9)
    leaves = [path for path in product(range(size), repeat=pair.draft_length) if _draft_prob(path, pair) > 0]
    for paths in product(leaves, repeat=num_drafts):
        laws = [completed_law(verifier, pair, (*paths, more)) * _draft_prob(more, pair) for more in leaves]
        if (abs(sum(laws) - completed_law(verifier, pair, paths)) > slack).any():
            return False
    return True


def _mean(verifier: str | Any, pair: ModelPair, paths: Paths) -> Any:
    """Compute the mean of the completed law over one more drafted token per path."""
    rows = [pair.draft[len(path)][context_number(path, pair.vocab_size)] for path in paths]
    total: Any = 0
    for tokens in product(range(pair.vocab_size), repeat=len(paths)):
        weight = 1
        for row, token in zip(rows, tokens, strict=True):
            weight = weight * row[token]
        if weight > 0:
            longer = tuple((*path, token) for path, token in zip(paths, tokens, strict=True))
            total = total + weight * completed_law(verifier, pair, longer)
    return total


def _draft_prob(path: Context, pair: ModelPair) -> Any:
    return pair.draft_path_probs(len(path))[context_number(path, pair.vocab_size)]
