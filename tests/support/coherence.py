"""Coherence by its definition: is the completed law a martingale in the length, in the number of drafts?"""

from collections.abc import Sequence
from itertools import product
from typing import Any

from spectheory.exact.batches import completed_law_given
from spectheory.foundation.exact_numbers import float_tolerance
from spectheory.pairs.contexts import Context, context_number
from spectheory.pairs.drafts.kept import Paths
from spectheory.pairs.pair import ModelPair


def is_coherent_in_length(verifier: Any, pair: ModelPair, num_drafts: int = 1) -> bool:
    """Whether one more drafted token per path leaves the mean of the completed law (Statement 8.2)."""
    size = pair.vocab_size
    for length in range(pair.draft_length):
        for paths in product(product(range(size), repeat=length), repeat=num_drafts):
            longer = [
                tuple((*path, token) for path, token in zip(paths, tokens, strict=True))
                for tokens in product(range(size), repeat=num_drafts)
            ]
            if _prob(paths, pair) > 0 and not _is_mean(verifier, pair, paths, longer):
                return False
    return True


def is_coherent_in_drafts(verifier: Any, pair: ModelPair, num_drafts: int = 1) -> bool:
    """Whether one more draft leaves the mean of the completed law."""
    leaves = list(product(range(pair.vocab_size), repeat=pair.draft_length))
    return all(
        _is_mean(verifier, pair, paths, [(*paths, leaf) for leaf in leaves])
        for paths in product(leaves, repeat=num_drafts)
        if _prob(paths, pair) > 0
    )


def _is_mean(verifier: Any, pair: ModelPair, paths: Paths, longer: Sequence[Paths]) -> bool:
    mean: Any = 0
    for more in longer:
        share = _prob(more, pair) / _prob(paths, pair)
        if share > 0:
            mean = mean + share * completed_law_given(verifier, pair, more)
    return bool((abs(mean - completed_law_given(verifier, pair, paths)) <= float_tolerance(pair, 1e-9)).all())


def _prob(paths: Sequence[Context], pair: ModelPair) -> Any:
    prob: Any = 1
    for path in paths:
        prob = prob * pair.draft_path_probs(len(path))[context_number(path, pair.vocab_size)]
    return prob
