"""Repairs of a drafter that drops tokens: what must be handed over instead (theory.md Statement 8.10)."""

from __future__ import annotations

from collections import defaultdict
from itertools import takewhile

import numpy as np

from spectheory.foundation.arrays import normalise
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context, all_contexts, context_number
from spectheory.pairs.drafts.kept import AdaptiveDrafts, KeptDrafts
from spectheory.pairs.pair import ModelPair

CEMETERY = "⊥"
"""The name of the token that stands for a dropped draft."""


def kept_weights(process: AdaptiveDrafts, pair: ModelPair) -> dict[Context, np.ndarray]:
    """Compute P(the kept tokens are a, and then this token or ⊥) for one path: a -> [V+1].

    Raises:
        InvalidInputError: several paths are drafted.
    """
    if process.num_drafts != 1:
        raise InvalidInputError(
            f"a repair is of one path, and {process.num_drafts} are drafted; repair each path by itself, as "
            "Shortened(1, rule)"
        )
    end, zero = pair.vocab_size, pair.numbers.draft[0][0, 0] * 0
    weights: dict[Context, np.ndarray] = defaultdict(lambda: np.full(end + 1, zero))
    for (path,), prob in process.kept_law(pair).items():
        for depth, token in enumerate((*path, end)[: pair.draft_length]):
            weights[path[:depth]][token] += prob
    return weights


def with_conditioned_rows(process: AdaptiveDrafts, pair: ModelPair) -> KeptDrafts:
    """Repair A: hand over the draft rows given that the token is kept.

    Every coherent verifier is then lossless for every target.

    Example:
        >>> from spectheory import ModelPair, certify
        >>> from spectheory.pairs.drafts import Shortened
        >>> pair = ModelPair.context_free_pair(["1/2", "1/2"], ["9/10", "1/10"], 1)
        >>> drop = Shortened(1, lambda tokens, rows: 1 - tokens[0])
        >>> repaired = certify("token", pair, with_conditioned_rows(drop, pair))
        >>> print(repaired.total_variation, repaired.block_efficiency)
        0 29/20
    """
    kept = {context: normalise(row[:-1]) for context, row in kept_weights(process, pair).items()}
    return KeptDrafts(process.kept_law(pair), {context: row for context, row in kept.items() if row.any()})


def with_cemetery(process: AdaptiveDrafts, pair: ModelPair) -> ModelPair:
    """Repair B: a pair with one more token ⊥, to which dropped drafts are changed.

    The target gives ⊥ probability 0, and the draft gives it the probability that the path ends there.  Every
    verifier that is lossless for whole drafts is lossless, without any change; several paths are drafted
    from the returned pair, each shortened by itself.  On no pair does a verifier that sees the kept tokens
    only accept more than ``block``.

    Example:
        >>> from spectheory import ModelPair, certify
        >>> from spectheory.pairs.drafts import Shortened
        >>> pair = ModelPair.context_free_pair(["1/2", "1/2"], ["9/10", "1/10"], 1)
        >>> drop = Shortened(1, lambda tokens, rows: 1 - tokens[0])
        >>> repaired = certify("block", with_cemetery(drop, pair))
        >>> print(repaired.total_variation, repaired.block_efficiency)
        0 3/2
    """
    weights, size, length = kept_weights(process, pair), pair.vocab_size, pair.draft_length
    zero = pair.target[0][0, 0] * 0
    target, draft = {}, {}
    for context in all_contexts(size + 1, length):
        known = tuple(takewhile(lambda token: token < size, context))  # ⊥ has the number V
        target[context] = [*pair.target[len(known)][context_number(known, size)], zero]
        if len(context) < length:
            draft[context] = normalise(weights.get(context, np.array([zero] * size + [zero + 1])))
    return ModelPair.from_contexts(target, draft, length, (*pair.vocab, CEMETERY))
