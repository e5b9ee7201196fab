from collections.abc import Sequence
from itertools import pairwise, product

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.drawing import estimates, legend_below, note, panels, verifier_band, verifier_points
from spectheory.paper.figures.support import (
    ONE_PATH,
    bundled_pair,
    counted,
    defects_on_two_tokens,
    interval,
    whole,
)
from spectheory.simulation import simulate
from spectheory.verification.first_drafts import OnFirst
from spectheory.verification.resolve import find_verifier

SEVERAL = ("multi_round", "spectr", "spectr_gbv", "greedy_multipath", "mixed_multipath")
SAME_ON_ONE_DRAFT = {
    "multi_round": "token", "spectr": "token", "greedy_multipath": "block", "mixed_multipath": "block",
    "spectr_gbv": "greedy_block",
}  # fmt: skip
PRINTED = {("token", 1, 4): 2.4, ("token", 1, 8): 2.9, ("spectr", 8, 4): 3.1, ("spectr", 8, 8): 4.0}
"""Block efficiency by (verifier, K, L) of other models, spectr2023 Table 1: nothing to be equal to."""


def _plot(findings: Findings) -> Figure:
    table = findings.tables[0]
    most, longest = max(table["num_drafts"]), max(table["draft_length"])
    with panels(1, 2, height=3.9, width=3.7, sharey=True) as (figure, (left, right)):
        for number, name in enumerate(ONE_PATH):
            (row,) = table.select(verifier=name, draft_length=longest)
            verifier_band(left, name, row, linestyle="-" if row["lossless"] else ":")
            _points(right, name, table.where(verifier=name), "draft_length", number - 3.5)
        several = ResultTable("", "", table.columns, [row for row in table.rows if row[1] > 1])
        for number, name in enumerate(SEVERAL):
            _points(left, name, several.where(verifier=name, draft_length=longest), "num_drafts", number - 2)
            rows = table.where(verifier=name, num_drafts=most)
            _points(right, name, rows, "draft_length", number - 0.5)
        drafts = sorted(set(several["num_drafts"]))
        left.set_xscale("log", base=2)
        left.set_xticks(drafts, [str(number) for number in drafts])
        left.minorticks_off()
        left.set(xlabel="number of drafts K", ylabel="block efficiency [tokens per target call]")
        left.set_title(f"{longest} tokens, one path as lines")
        right.set(xlabel="draft length L", xticks=sorted(set(table["draft_length"])))
        right.set_title(f"{most} drafts (one path: one)")
        note(right, f"{100 * findings.settings['confidence']:g} % intervals", (0.98, 0.03))
        legend_below(figure, 3)
    return figure


def _points(axes: Axes, name: str, rows: ResultTable, over: str, shift: float) -> None:
    """Estimates with their intervals, moved aside a little so that they do not hide each other."""
    if over == "num_drafts":
        places = [place * 1.025**shift for place in rows[over]]
    else:
        places = [place + 0.09 * shift for place in rows[over]]
    verifier_points(axes, name, places, *estimates(rows), lossless=rows["lossless"][0])


@exhibit(
    "language models",
    title="Block efficiency on the bundled language models",
    source="this package; the quantity of spectr2023 Tables 1 and 4 and block2024 Figure 4, other models",
    plot=_plot,
    small={"num_drafts": (1, 2), "draft_lengths": (2, 3), "num_prompts": 4, "samples": 2},
)
def full_vocabulary(
    num_drafts: Sequence[int] = (1, 2, 4, 8),
    draft_lengths: Sequence[int] = (2, 4, 6, 8),
    num_prompts: int = 32,
    samples: int = 5,
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
    simulation = whole(
        simulate(
            bundled_pair(), prompts, [OnFirst(*one) for one in asked], drafts=max(num_drafts),
            draft_length=max(draft_lengths), samples=samples, seed=seed, confidence=confidence,
            batch_size=16,
        )
    )  # fmt: skip
    table = ResultTable(
        "full_vocabulary",
        f"Block efficiency in tokens per target call, {len(prompts)} held-out prompts, temperature 1, "
        f"{100 * confidence:g}% intervals over drafts. printed: of other models.",
    )
    earned = {}
    for shape, estimate in zip(asked, simulation.estimates, strict=True):
        name, drafts, length = shape
        earned[shape] = estimate.block_efficiency
        table.add(
            verifier=name, num_drafts=drafts, draft_length=length, **interval(estimate), **counted(estimate),
            samples=estimate.samples, lossless=find_verifier(name).lossless, printed=PRINTED.get(shape),
            printed_in="spectr2023 Table 1" if shape in PRINTED else None,
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
        "All points come from the same drafts: those of fewer or shorter drafts see the first ones. A "
        "verifier of one path is a line. The estimate averages the verifier's expected tokens given the "
        "drafts; counted is the mean of sampled tokens. Hollow points are of verifiers that are not "
        "lossless. Their defect on the whole vocabulary is not enumerated; the second table has it on "
        "two tokens, with the K and L it belongs to.",
        tables=[table, defects],
        checks=checks,
    )
