"""Random exact pairs, and pairs at the edges: zeros, ties, equal, disjoint and deterministic models."""

from typing import Any

from spectheory import instances
from spectheory.pairs.pair import ModelPair

# Residuals max(p - q, 0) with more than one token: on two tokens they are point masses, and multi-round
# rejection stays lossless even where its drafts are not what it takes them for.
SPREAD = (["2/5", "2/5", "1/5"], ["1/4", "1/8", "5/8"])


def random_pairs(
    vocab_size: int, draft_length: int, how_many: int, seed: int, **settings: Any
) -> list[ModelPair]:
    """Random exact pairs; small weights make zeros and ties frequent."""
    return [
        instances.random_rational(seed + number, vocab_size, draft_length, **settings)
        for number in range(how_many)
    ]


def edge_pairs(draft_length: int) -> list[ModelPair]:
    """Zeros, ties, equal, disjoint and deterministic models."""
    names = (
        "two_token",
        "equal_models",
        "disjoint_supports",
        "point_masses",
        "partial_overlap",
        "uniform_equal",
    )
    return [instances.NAMED[name](draft_length) for name in names]
