"""What a deviation from the target can buy: the front, and verifiers that are not lossless below it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.optima import lossy_optimum, optimum
from spectheory.pairs.instances import two_token
from spectheory.paper.drawing import legend_below, optimum_curve, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, VERIFIER_STYLES
from spectheory.verification.algorithms import verifiers
from spectheory.verification.defective import defects
from spectheory.verification.verifier import Verifier

PUBLISHED = ("token", "block", "greedy_block", "multi_round", "traversal", "greedy_multipath", "spectr_gbv")
TOLERANCE = 1e-9
"""Of comparisons with laws in float64; those in rationals agree exactly."""


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"lossy_front": _plot(findings)}


@exhibit(
    title="What a deviation from the target can buy", source="this package (theory.md Statement 5.22)",
    draw=_draw,
)  # fmt: skip
def lossy_front(draft_length: int = 2, num_drafts: Sequence[int] = (1, 2), steps: int = 24) -> Findings:
    """The largest block efficiency by total variation, and where verifiers are; the two-token pair.

    Args:
        draft_length: L.
        num_drafts: the numbers K, a panel each.
        steps: in which the total variation goes from 0 to 1/2.
    """
    pair = two_token(draft_length)
    front, points, not_optimal, bent, above, not_all = [], [], [], [], [], []
    for drafts in num_drafts:
        budgets = [Fraction(step, 2 * steps) for step in range(steps + 1)]
        values = [lossy_optimum(pair, budget, drafts).value for budget in budgets]
        front += [
            (drafts, budget, float(budget), value, float(value))
            for budget, value in zip(budgets, values, strict=True)
        ]
        best = optimum(pair, drafts).value
        if values[0] != best:
            not_optimal.append(f"K = {drafts}: {values[0]} and {best}")
        gains = [after - before for before, after in pairwise(values)]
        if gains != sorted(gains, reverse=True) or gains[-1] < 0:
            bent.append(f"K = {drafts}: steps {[str(gain) for gain in gains]}")
        everything = lossy_optimum(pair, 1, drafts).value
        if everything != draft_length + 1:
            not_all.append(f"K = {drafts}: {everything}")
        for kind, name, verifier in _tried(drafts):
            law = output_law(verifier, pair, drafts)
            if law.undefined:
                continue
            distance, tokens = law.total_variation, law.block_efficiency
            most = lossy_optimum(pair, Fraction(distance), drafts).value
            points.append((
                drafts, kind, name, distance, float(distance), tokens, float(tokens), most, float(most)
            ))  # fmt: skip
            if tokens > most + TOLERANCE:
                above.append(f"{name}, K = {drafts}: {tokens} > {most}")
    return Findings(
        explanation=(
            "The curve is the most that any verifier earns whose output is within a total variation of the "
            "target. It starts at the optimum of the lossless verifiers, and ends where every draft is "
            "accepted. Of the verifiers with a known mistake most earn less than the best lossless one."
        ),
        settings={"draft_length": draft_length, "num_drafts": list(num_drafts), "steps": steps},
        tables=[
            ResultTable(
                "lossy_front",
                ("num_drafts", "total_variation", "total_variation_float", "most", "most_float"),
                front,
                f"The largest block efficiency, tokens per target call. Two-token pair, L = {draft_length}, "
                "exact.",
            ),
            ResultTable(
                "lossy_verifiers",
                (
                    "num_drafts", "kind", "verifier", "total_variation", "total_variation_float",
                    "block_efficiency", "block_efficiency_float", "most", "most_float",
                ),
                points,
                "Verifiers, their total variation from the target, and the most that any earns with it.",
            ),
        ],
        checks=[
            Check.of("the front starts at the optimum of the lossless verifiers", len(num_drafts),
                     not_optimal),
            Check.of("it is concave and does not fall", len(num_drafts), bent),
            Check.of("with a total variation of 1 all drafts can be accepted", len(num_drafts), not_all),
            Check.of("no verifier is above it", len(points), above),
        ],
    )  # fmt: skip


def _tried(num_drafts: int) -> list[tuple[str, str, Verifier]]:
    """Published verifiers and known-wrong ones that take this number of drafts; of one path at K = 1 only."""
    known = [("published", name, verifiers[name]) for name in PUBLISHED]
    wrong = [("known-wrong", name, verifier) for name, verifier in defects.items()]
    return [entry for entry in known + wrong if entry[2].single_path == (num_drafts == 1)]


def _plot(findings: Findings) -> Figure:
    front, points = findings.table("lossy_front"), findings.table("lossy_verifiers")
    counts = list(dict.fromkeys(front.column("num_drafts")))
    with panels(1, len(counts), height=3.5, sharey=True) as (figure, all_axes):
        for axes, drafts in zip(all_axes, counts, strict=True):
            _panel(axes, front, points, drafts)
        all_axes[0].set_ylabel("block efficiency\n[tokens per target call]")
        legend_below(figure, 3)
    return figure


def _panel(axes: Axes, front: ResultTable, points: ResultTable, drafts: int) -> None:
    rows = front.select(num_drafts=drafts)
    optimum_curve(
        axes, [row["total_variation_float"] for row in rows], [row["most_float"] for row in rows],
        label="most of any verifier (linear program)",
    )  # fmt: skip
    wrong = points.select(num_drafts=drafts, kind="known-wrong")
    axes.scatter(
        [row["total_variation_float"] for row in wrong], [row["block_efficiency_float"] for row in wrong],
        s=22, facecolor="none", edgecolor=ACCENT, label="known-wrong verifiers", clip_on=False,
    )  # fmt: skip
    for row in points.select(num_drafts=drafts, kind="published"):
        style = VERIFIER_STYLES[row["verifier"]]
        axes.plot(
            row["total_variation_float"], row["block_efficiency_float"], color=style.colour,
            marker=style.marker, markersize=7, linestyle="none", label=style.label, clip_on=False, zorder=3,
        )  # fmt: skip
    axes.set(xlabel="total variation from the target")
    axes.set_title("One path" if drafts == 1 else f"K = {drafts} drafts")
