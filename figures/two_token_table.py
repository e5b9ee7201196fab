from collections.abc import Sequence
from fractions import Fraction

from figures.results import Checks, Findings, ResultTable, result
from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.pair import ModelPair

PUBLISHED = {("token", 2): Fraction(10, 9), ("block", 2): Fraction(11, 9)}
"""E[tau] as printed in section 2, for the probability 1/3."""


@result(
    title="The two-token example, exactly",
    source="block2024, section 2, Eq. 2",
    small={"draft_lengths": (1, 2)},
)
def two_token_table(
    draft_lengths: Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8), probability: Fraction = Fraction(1, 3)
) -> Findings:
    """E[tau] of token and block verification and the LP optimum, exactly, for each draft length.

    Checks: the values the paper prints (10/9 and 11/9 at draft length 2), and that block
    verification attains the optimum on one path (greedy2026 Thm 3.3).

    Args:
        probability: of the first token under the target, and of the second under the draft model.
    """
    checks = Checks()
    table = ResultTable(
        "two_token_table",
        "Accepted tokens E[τ] and block efficiency E[τ+1] in tokens per target call; exact. The optimum is "
        "the linear program over all valid verifiers on one path; printed are E[τ] of the paper.",
    )
    published = PUBLISHED if probability == Fraction(1, 3) else {}
    target = [probability, 1 - probability]
    for length in draft_lengths:
        pair = ModelPair.context_free_pair(target, target[::-1], length)
        token, block = (output_law(name, pair).block_efficiency for name in ("token", "block"))
        best = optimum(pair).value
        table.add(
            draft_length=length, token_accepted=token - 1, block_accepted=block - 1,
            token_block_efficiency=token, block_block_efficiency=block, optimum=best,
            block_is_optimal=best == block, token_printed=published.get(("token", length)),
            block_printed=published.get(("block", length)),
        )  # fmt: skip
        for name, value in (("token", token - 1), ("block", block - 1)):
            if (name, length) in published:
                claim = "E[τ] at draft length 2 is 10/9 for token and 11/9 for block, as printed"
                checks.expect(claim, value == published[name, length], f"{name} has {value}")
        claim = "block verification attains the optimum"
        checks.expect(claim, best == block, f"at draft length {length} it is {best}, block has {block}")
    return Findings(
        f"Target ({target[0]}, {target[1]}), draft ({target[1]}, {target[0]}) at every context, one "
        "drafted path.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    two_token_table.main()
