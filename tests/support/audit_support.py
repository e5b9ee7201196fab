"""Laws of functions that draw with torch, by following all their runs and by drawing; what audits say."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import torch

from later import Later
from spectheory.auditing.following.intercept import Journal, intercepted
from spectheory.auditing.tape.decisions import Tape, all_runs

stats = Later("scipy.stats")

READ_AGAIN = "randomness: rand reads random numbers that rand has used in the call before"
SAID_OF = {
    "seed_per_call": READ_AGAIN,
    "coins_of_positions": READ_AGAIN,
    "seeds_the_global_generator": "contract: it gives torch's global generator a seed",
    "residual_in_place": "contract: its argument target_rows is changed in place",
    "boundary_comparison": "a forbidden token is made with probability 1/33554432 on",
    "bfloat16_coins": "it earns 1.75049 tokens per call on dyadic, and no lossless verifier",
    "product_of_uniforms": "no lossless verifier earns more than 20/9",
    "uncapped_joint_ratio": "it earns 2.33333 tokens per call on thirds, and no lossless verifier",
    "batch_shares_coins": "the tokens of requests (equal lengths) are not independent",
    "batch_is_greedy_if_one_is": "beside other requests (greedy) the tokens of a request have another law",
    "batch_counts_from_the_longest": "beside other requests (ragged) the tokens of a request have another",
}
"""What the audit says of specimens whose law for a request alone is not all that is wrong."""


def law(function: Callable[[], Any], journal: Journal | None = None) -> dict[Any, Fraction]:
    found: dict[Any, Fraction] = {}
    seen = journal or Journal()

    def run(tape: Tape) -> Any:
        with intercepted(tape, seen):
            return function()

    for probability, result in all_runs(run):
        found[result] = found.get(result, Fraction(0)) + probability
    assert sum(found.values()) == 1
    return found


def assert_drawn_from(function: Callable[[], Any], expected: dict[Any, Fraction], draws: int = 4_000) -> None:
    """The function itself, with torch's own numbers, has this law by a χ² test."""
    torch.manual_seed(5)
    counts = Counter(function() for _ in range(draws))
    assert counts.keys() <= expected.keys()
    likely = {result: float(prob) for result, prob in expected.items() if draws * prob >= 5}
    rest = 1 - sum(likely.values())
    observed = [*(counts[result] for result in likely), draws - sum(counts[result] for result in likely)]
    probs = [*likely.values(), rest]
    if rest * draws < 1:
        observed, probs = observed[:-1], [prob / sum(likely.values()) for prob in probs[:-1]]
    assert stats.chisquare(observed, [sum(observed) * prob for prob in probs]).pvalue > 1e-4
