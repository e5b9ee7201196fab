"""Repairs of a drafter that drops tokens: what must be handed over instead (theory.md Statement 8.10)."""

from __future__ import annotations

import numpy as np

from spectheory.foundation.arrays import normalise
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import all_contexts, context_number
from spectheory.pairs.drafts.kept import AdaptiveDrafts, KeptDrafts
from spectheory.pairs.pair import ModelPair

CEMETERY = "⊥"
"""The name of the token that stands for a dropped draft."""


def kept_masses(process: AdaptiveDrafts, pair: ModelPair) -> list[np.ndarray]:
    """Compute m(a) = P(the kept tokens start with a) for one path, [V^depth] per depth 0..L.

    Raises:
        InvalidInputError: several paths are drafted.
    """
    if process.num_drafts != 1:
        raise InvalidInputError(
            f"kept masses are those of one path, and {process.num_drafts} are drafted; repair each path by "
            "itself, as Shortened(1, rule)"
        )
    masses = [probs * 0 for probs in pair.numbers.draft_path_probs]
    for (path,), prob in process.kept_law(pair).items():
        for depth, level in enumerate(masses[: len(path) + 1]):
            level[context_number(path[:depth], pair.vocab_size)] += prob
    return masses


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
    rows = {
        pair.context(depth, number): list(row)
        for depth, below in enumerate(kept_masses(process, pair)[1:])
        for number, row in enumerate(normalise(below.reshape(-1, pair.vocab_size)))
        if row.sum() > 0
    }
    return KeptDrafts(process.kept_law(pair), rows)


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
    masses, size, length = kept_masses(process, pair), pair.vocab_size, pair.draft_length
    zero = pair.target[0][0, 0] * 0
    target, draft = {}, {}
    for context in all_contexts(size + 1, length):
        known = context[: context.index(size)] if size in context else context  # ⊥ has the number V
        depth, number = len(known), context_number(known, size)
        target[context] = [*pair.target[depth][number], zero]
        if len(context) == length:
            continue
        row, mass = [*[zero] * size, zero + 1], masses[depth][number]
        if known == context and mass > 0:
            below = masses[depth + 1][number * size : (number + 1) * size]
            lost = max(mass - below.sum(), mass * 0)  # in floats the difference may be below 0
            row = list(np.append(below, lost) / mass)
        draft[context] = row
    return ModelPair.from_contexts(target, draft, length, (*pair.vocab, CEMETERY))
