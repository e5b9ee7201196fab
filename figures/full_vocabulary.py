from collections.abc import Sequence
from itertools import pairwise, product

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.common.bundled import (
    GREEDY_BLOCK,
    ONE_PATH,
    counted,
    defects_on_two_tokens,
    gained,
    interval,
    on_common_drafts,
)
from figures.results import Checks, Findings, ResultTable, result
from figures.style import legend_below, note, panels, verifier_band, zero_line
from spectheory.verification.resolve import find_verifier

SEVERAL = (
    "multi_round", "spectr", "spectr_gbv", "traversal", "greedy_multipath", "mixed_multipath",
    "scored_multipath",
)  # fmt: skip
DRAWN = ("token", "greedy_block", *SEVERAL)
SAME_ON_ONE_DRAFT = {
    "multi_round": "token", "spectr": "token", "traversal": "block", "greedy_multipath": "block",
    "mixed_multipath": "block", "scored_multipath": "block", "spectr_gbv": "greedy_block",
}  # fmt: skip
PRINTED = {("token", 1, 4): 2.4, ("token", 1, 8): 2.9, ("spectr", 8, 4): 3.1, ("spectr", 8, 8): 4.0}
"""Block efficiency by (verifier, K, L) of other models, spectr2023 Table 1: nothing to be equal to."""


def _draw(findings: Findings) -> Figure:
    table = findings.tables[0]
    most, longest = max(table["num_drafts"]), max(table["draft_length"])
    with panels(1, 2, height=3.9, width=3.7, sharey=True) as (figure, (left, right)):
        for name in DRAWN:
            rows = table.where(verifier=name)
            if name in SEVERAL:  # with one draft they are verifiers of one path
                rows = ResultTable("", "", rows.columns, [row for row in rows.rows if row[1] > 1])
            at_longest = rows.where(draft_length=longest)
            _gains(left, name, "num_drafts", at_longest)
            at_most = rows.where(num_drafts=1 if name in ONE_PATH else most)
            _gains(right, name, "draft_length", at_most)
        left.set_xscale("log", base=2)
        drafts = table.distinct("num_drafts")
        left.set_xticks(drafts, [str(number) for number in drafts])
        left.minorticks_off()
        left.set(xlabel="number of drafts K", ylabel="gain over block [tokens per target call]")
        left.set_title(f"bundled models, L = {longest}")
        right.set(xlabel="draft length L", xticks=table.distinct("draft_length"))
        right.set_title(f"{most} drafts, or 1 of a verifier of one path")
        zero_line(left)
        zero_line(right)
        note(left, f"bands: {100 * findings.settings['confidence']:g} % intervals", (0.98, 0.03))
        legend_below(figure, 3)
    return figure


def _gains(axes: Axes, name: str, column: str, rows: ResultTable) -> None:
    """Gains with their intervals against a column."""
    gains = rows["gain"], rows["gain_low"], rows["gain_high"]
    verifier_band(axes, name, rows[column], *gains, lossless=rows["lossless"][0])


@result(
    title="Gains over block verification on the bundled language models",
    source="this package; the quantity of spectr2023 Tables 1 and 4 and block2024 Figure 4, other models",
    draw=_draw,
    small={"num_drafts": (1, 2), "draft_lengths": (2, 3), "num_prompts": 4, "samples": 2},
)
def full_vocabulary(
    num_drafts: Sequence[int] = (1, 2, 4, 8),
    draft_lengths: Sequence[int] = (2, 4, 6, 8),
    num_prompts: int = 64,
    samples: int = 10,
    seed: int = 11,
    confidence: float = 0.95,
) -> Findings:
    """Monte Carlo estimates over K and L on the bundled prompts, temperature 1, all from one set of drafts.

    With k drafts of l tokens a verifier sees the first k drafts and their first l tokens, so differences
    along a curve are not due to the draws.  The picture has every K at the largest L and every L at the
    largest K.
    """
    from spectheory.models import bundled_prompts

    checks, prompts = Checks(), bundled_prompts()[:num_prompts]
    asked = [*product(SEVERAL, num_drafts, draft_lengths), *product(ONE_PATH, (1,), draft_lengths)]
    estimates = on_common_drafts(asked, "block", prompts, samples=samples, seed=seed, confidence=confidence)
    table = ResultTable(
        "full_vocabulary",
        f"Block efficiency in tokens per target call, {len(prompts)} held-out prompts, temperature 1, "
        f"{100 * confidence:g}% intervals over drafts. gain: over block at the same L, paired by prompt. "
        "printed: of other models.",
    )
    earned = {}
    for shape, estimate in estimates.items():
        name, drafts, length = shape
        earned[shape] = estimate.block_efficiency
        table.add(
            verifier=name, num_drafts=drafts, draft_length=length, **interval(estimate), **gained(estimate),
            **counted(estimate), samples=estimate.samples, lossless=find_verifier(name).lossless,
            printed=PRINTED.get(shape), printed_in="spectr2023 Table 1" if shape in PRINTED else None,
        )  # fmt: skip
    for name, same in SAME_ON_ONE_DRAFT.items() if 1 in num_drafts else ():
        one, other = (earned[verifier, 1, max(draft_lengths)] for verifier in (name, same))
        claim = "with one draft each verifier of several is the one of one draft that it extends"
        checks.expect(claim, abs(one - other) <= 1e-4, f"{name} {one}, {same} {other}")
    # Of token verification P(τ ≥ i | drafts) does not depend on the tokens behind the i-th.
    for shorter, longer in pairwise(sorted(draft_lengths)):
        values = earned["token", 1, shorter], earned["token", 1, longer]
        claim = "on the same drafts a longer draft earns token verification no less"
        checks.expect(claim, values[1] >= values[0] - 1e-6, f"{longer} tokens: {values}")
    defects = defects_on_two_tokens("full_vocabulary_defect", (*ONE_PATH, *SEVERAL), (1.0,))
    for row in defects.select():
        lossless = find_verifier(row["verifier"]).lossless
        claim = "a verifier has a defect if and only if it is not said to be lossless"
        checks.expect(claim, (row["total_variation"] > 1e-6) != lossless, f"{row}")
    return Findings(
        "All points come from the same drafts: those of fewer or shorter drafts see the first ones. Drawn is "
        "the difference from block verification of one path at the same L, paired by prompt. The estimate "
        "averages the verifier's expected tokens given the drafts; counted is the mean of sampled tokens. "
        f"Hollow points are of verifiers that are not lossless. {GREEDY_BLOCK}; here it is unmodified. Their "
        "defect on the whole vocabulary is not enumerated; the second table has it on a vocabulary of two, "
        "with the K and L it belongs to.",
        tables=[table, defects],
        checks=checks,
    )


if __name__ == "__main__":
    full_vocabulary.main()
