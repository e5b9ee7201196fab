"""The vectorised float64 law against a plain loop that asks for one outcome per tuple of drafts.

Both enumerate the same tuples at V = 3, L = 3, K = 2 (multisets where the verifier is exchangeable,
single paths where it looks at one path only).
"""

from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
from timing import arguments, median_seconds, ratio_entry, report

from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.verifier import Verifier

VOCAB_SIZE, DRAFT_LENGTH, NUM_DRAFTS = 3, 3, 2


def tuples(verifier: Verifier, leaves: range) -> list[tuple[tuple[int, ...], int]]:
    """(numbers of the drafted leaves, in how many orders they can be drafted)."""
    if verifier.single_path:
        return [((leaf,), 1) for leaf in leaves]
    if verifier.exchangeable:
        return [((a, b), 1 if a == b else 2) for a, b in combinations_with_replacement(leaves, NUM_DRAFTS)]
    return [(drafts, 1) for drafts in product(leaves, repeat=NUM_DRAFTS)]


def law_by_loop(verifier: Verifier, pair: ModelPair) -> list[np.ndarray]:
    """The masses R, one call of ``outcome`` and a few of ``correction`` per tuple."""
    size, length = pair.vocab_size, pair.draft_length
    masses = [np.zeros((size**depth, size)) for depth in range(length + 1)]
    leaf_probs = pair.draft_path_probs(length)
    for drafts, orders in tuples(verifier, range(size**length)):
        prefixes = [[leaf // size ** (length - depth) for depth in range(length + 1)] for leaf in drafts]
        paths = np.array([pair.context(length, leaf) for leaf in drafts])
        target_rows = np.array([[pair.target[i][p[i]] for i in range(length + 1)] for p in prefixes])
        draft_rows = np.array([[pair.draft[i][p[i]] for i in range(length)] for p in prefixes])
        outcome = verifier.outcome(paths, target_rows, draft_rows)
        weight = orders * np.prod(leaf_probs[list(drafts)])
        for k, i in np.argwhere(outcome.stop_probs > 0):
            row = outcome.correction(np.asarray(k), np.asarray(i))
            masses[i][prefixes[k][i]] += weight * outcome.stop_probs[k, i] * row
    return masses


def measure(repeats: int) -> list[dict[str, Any]]:
    """Times of both ways for every verifier, after checking that they agree.

    Raises:
        ArithmeticError: the two laws differ by more than 1e-12.
    """
    pair = instances.random_float(3, VOCAB_SIZE, DRAFT_LENGTH)
    entries = []
    for name in ("token", "block", "greedy_multipath", "spectr"):
        verifier = verifiers[name]
        vectorised = output_law(name, pair, NUM_DRAFTS).masses
        looped = law_by_loop(verifier, pair)
        if max(np.abs(a - b.ravel()).max() for a, b in zip(vectorised, looped, strict=True)) > 1e-12:
            raise ArithmeticError(f"the two laws of {name} differ")
        count = len(tuples(verifier, range(VOCAB_SIZE**DRAFT_LENGTH)))
        seconds = median_seconds(
            {
                "vectorised": lambda name=name: output_law(name, pair, NUM_DRAFTS),
                "loop": lambda verifier=verifier: law_by_loop(verifier, pair),
            },
            repeats,
        )
        claim = f"law of {name}, V={VOCAB_SIZE} L={DRAFT_LENGTH} K={NUM_DRAFTS}"
        entries.append(ratio_entry(claim, "vectorised", "loop", seconds, tuples=count))
    return entries


if __name__ == "__main__":
    options = arguments(__doc__)
    report(measure(options.repeats), options.repeats, options.out)
