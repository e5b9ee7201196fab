"""The motivating example of block2024, section 2, for more draft lengths."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.pair import ModelPair
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit

PUBLISHED = {("token", 2): Fraction(10, 9), ("block", 2): Fraction(11, 9)}
"""E[tau] as printed in section 2, for the probability 1/3."""


@exhibit(title="The two-token example, exactly", source="block2024, section 2, Eq. 2")
def two_token_table(
    draft_lengths: Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8), probability: Fraction = Fraction(1, 3)
) -> Findings:
    """E[tau] of token and block verification and the LP optimum, exactly, for each draft length.

    Checks: the values the paper prints (10/9 and 11/9 at draft length 2), and that block
    verification attains the optimum on one path (greedy2026 Thm 3.3).

    Args:
        draft_lengths: the lengths L.
        probability: of the first token under the target, and of the second under the draft model.
    """
    rows = []
    published = PUBLISHED if probability == Fraction(1, 3) else {}
    target = [probability, 1 - probability]
    misprinted, below_optimum, printed_values = [], [], 0
    for length in draft_lengths:
        pair = ModelPair.context_free_pair(target, target[::-1], length)
        efficiency = {name: output_law(name, pair).block_efficiency for name in ("token", "block")}
        best = optimum(pair).value
        rows.append((
            length, efficiency["token"] - 1, efficiency["block"] - 1,
            efficiency["token"], efficiency["block"], best, best == efficiency["block"],
            published.get(("token", length)), published.get(("block", length)),
        ))  # fmt: skip
        for name, value in efficiency.items():
            printed = published.get((name, length))
            printed_values += printed is not None
            if printed is not None and value - 1 != printed:
                misprinted.append(f"{name} at draft length {length} has {value - 1}, not {printed}")
        if best != efficiency["block"]:
            below_optimum.append(f"at draft length {length} it is {best}, block has {efficiency['block']}")
    table = ResultTable(
        "two_token_table",
        (
            "draft_length", "token_accepted", "block_accepted",
            "token_block_efficiency", "block_block_efficiency", "optimum", "block_is_optimal",
            "token_printed", "block_printed",
        ),
        rows,
        "Accepted tokens E[τ] and block efficiency E[τ+1] in tokens per target call; exact. The optimum is "
        "the linear program over all valid verifiers on one path; printed are E[τ] of the paper.",
    )  # fmt: skip
    checks = [Check.of("block verification attains the optimum", len(rows), below_optimum)]
    if printed_values:
        claim = "E[τ] at draft length 2 is 10/9 for token and 11/9 for block, as printed"
        checks.insert(0, Check.of(claim, printed_values, misprinted))
    return Findings(
        explanation=(
            f"Target ({target[0]}, {target[1]}), draft ({target[1]}, {target[0]}) at every context, one "
            "drafted path."
        ),
        settings={"draft_lengths": list(draft_lengths), "probability": probability},
        tables=[table],
        checks=checks,
    )
