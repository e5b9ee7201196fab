"""greedy_block against its printed steps, its closed form and its likelihoods; not lossless on its own."""

from collections import defaultdict
from fractions import Fraction

from reference import (
    Law,
    add_outputs,
    draft_prob,
    draft_row,
    law_of,
    leaves,
    target_row,
    without_zeros,
)
from spectheory import output_law
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.greedy_block import GreedyBlock
from table import small_cases

ZERO, ONE = Fraction(0), Fraction(1)


def greedy_block_law(pair: ModelPair, undefined: Fraction) -> Law:
    """block2024 Algorithm 4, one subset of accepted prefixes after the other.

    Args:
        pair: the models.
        undefined: what h is taken as where line 5 is 0/0.
    """
    length = pair.draft_length
    law: Law = defaultdict(Fraction)
    for path in leaves(pair):
        if draft_prob(pair, path) == 0:
            continue
        ratios = [ONE]
        for i, token in enumerate(path):
            ratios.append(ratios[-1] * target_row(pair, path[:i])[token] / draft_row(pair, path[:i])[token])
        residuals, accept = [], []
        for i in range(length):
            rows = list(zip(target_row(pair, path[:i]), draft_row(pair, path[:i]), strict=True))
            gain = [max(ratios[i] * p - q, ZERO) for p, q in rows]
            loss = sum(max(q - ratios[i] * p, ZERO) for p, q in rows)
            residuals.append(gain)
            if i >= 1:
                unbounded = ONE if sum(gain) else undefined
                accept.append(min(ONE, sum(gain) / loss) if loss else unbounded)
        accept.append(min(ONE, ratios[length]))
        add_outputs(law, pair, path, draft_prob(pair, path), accept, residuals)
    return without_zeros(law)


def test_law_as_printed_whatever_0_over_0_is() -> None:
    """R equals the acted-out algorithm, with h = 0 and with h = 1 where line 5 is 0/0."""
    undefined_matters = 0
    for case in small_cases():
        found = law_of(output_law(GreedyBlock(), case.pair))
        assert found == greedy_block_law(case.pair, ZERO), case
        assert found == greedy_block_law(case.pair, ONE), case
        undefined_matters += found != law_of(output_law("block", case.pair))
    assert undefined_matters > 10  # partner: block's law is not this one
