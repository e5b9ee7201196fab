"""The pairs that a shipped sampler is judged on, the smallest first.

Dyadic rows are exact in floats.  A token without target mass shows comparisons at the ends of a coin.  Three
tokens with unequal residuals show a wrong correction row, which normalising hides for two tokens.  Random
pairs, whose rows depend on the context, show a row from the wrong position.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product

import numpy as np

from spectheory import instances
from spectheory.pair import ModelPair
from spectheory.validate import check_count


def audit_pairs() -> Mapping[str, ModelPair]:
    """Name -> pair, all exact.

    Example:
        >>> pairs = audit_pairs()
        >>> max(pair.vocab_size for pair in pairs.values()), max(pair.draft_length for pair in pairs.values())
        (4, 3)
    """
    return {
        "forbidden token": instances.bernoulli("1/2", "1"),
        "dyadic": ModelPair.context_free_pair(["1/4", "3/4"], ["1/2", "1/2"], 1),
        "two residual tokens": instances.two_residual_tokens(1),
        "disjoint supports": instances.disjoint_supports(1),
        "equal models": instances.equal_models(2),
        "thirds": instances.two_token(2),
        "sticky chain": instances.sticky_chain(2),
        "random dyadic, 2 tokens": random_dyadic(1, 2, 2),
        "tiny probabilities": instances.tiny_probabilities(200, 2, 2),
        "dyadic, 3 drafted": ModelPair.context_free_pair(["1/4", "3/4"], ["1/2", "1/2"], 3),
        "random dyadic, 3 drafted": random_dyadic(2, 2, 3),
        "random dyadic, 3 tokens": random_dyadic(3, 3, 2),
    }


def random_dyadic(seed: int, vocab_size: int, draft_length: int) -> ModelPair:
    """A pair with a random row of positive sixteenths at every context.

    Example:
        >>> print(random_dyadic(1, 2, 1).draft[0])
        [[Fraction(15, 16) Fraction(1, 16)]]
    """
    size, length = check_count("vocab_size", vocab_size, 2), check_count("draft_length", draft_length)
    rng = np.random.default_rng(seed)

    def row() -> list[Fraction]:
        cuts = np.sort(rng.choice(np.arange(1, 16), size - 1, replace=False))
        return [Fraction(int(weight), 16) for weight in np.diff([0, *cuts, 16])]

    def rows(depths: int) -> dict[tuple[int, ...], list[Fraction]]:
        return {context: row() for depth in range(depths) for context in product(range(size), repeat=depth)}

    return ModelPair.from_contexts(rows(length + 1), rows(length), length)
