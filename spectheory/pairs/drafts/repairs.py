"""Repairs of a drafter that drops tokens: what must be handed over instead (theory.md Statement 8.10)."""

from __future__ import annotations

from typing import Any

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.pairs.contexts import Context, all_contexts, context_number
from spectheory.pairs.drafts.kept import AdaptiveDrafts, KeptDrafts
from spectheory.pairs.pair import ModelPair

CEMETERY = "⊥"
"""The name of the token that stands for a dropped draft."""


def kept_masses(process: AdaptiveDrafts, pair: ModelPair) -> dict[Context, Any]:
    """Compute m(a) = P(the kept tokens start with a) at every context, for one path.

    Raises:
        InvalidInputError: several paths are drafted.
    """
    if process.num_drafts != 1:
        raise InvalidInputError(
            f"kept masses are those of one path, and {process.num_drafts} are drafted; repair each path by "
            "itself, as Shortened(1, rule)"
        )
    zero = pair.numbers.draft[0][0, 0] * 0
    masses = dict.fromkeys(all_contexts(pair.vocab_size, pair.draft_length), zero)
    for (path,), prob in process.kept_law(pair).items():
        for depth in range(len(path) + 1):
            masses[path[:depth]] = masses[path[:depth]] + prob
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
    masses, size = kept_masses(process, pair), pair.vocab_size
    rows = {}
    for context in all_contexts(size, pair.draft_length - 1):
        below = np.array([masses[(*context, token)] for token in range(size)])
        if below.sum() > 0:
            rows[context] = list(fractions_if_exact(below / below.sum()))
    law = process.kept_law(pair)
    probs = fractions_if_exact(np.array(list(law.values())))
    return KeptDrafts(dict(zip(law, probs, strict=True)), rows)


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
    masses, size = kept_masses(process, pair), pair.vocab_size
    end = size  # the number of the token ⊥
    target: dict[Context, Any] = {}
    draft: dict[Context, Any] = {}
    no_mass = pair.target[0][0, 0] * 0
    for context in all_contexts(size + 1, pair.draft_length):
        known = context[: context.index(end)] if end in context else context
        row = pair.target[len(known)][context_number(known, size)]
        target[context] = [*row, no_mass]
        if len(context) == pair.draft_length:
            continue
        mass = masses[known]
        if end in context or mass == 0:
            draft[context] = [*[no_mass] * size, no_mass + 1]
            continue
        below = np.array([masses[(*known, token)] for token in range(size)])
        lost = max(mass - below.sum(), mass * 0)  # in floats the difference may be below 0
        row = fractions_if_exact(np.append(below, lost) / mass)
        draft[context] = list(row)
    return ModelPair.from_contexts(target, draft, pair.draft_length, (*pair.vocab, CEMETERY))
