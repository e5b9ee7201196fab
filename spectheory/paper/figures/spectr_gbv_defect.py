"""SpecTr-GBV as printed: its counterexample, and its efficiency and defect on random pairs."""

from __future__ import annotations

from fractions import Fraction

from matplotlib.figure import Figure

from spectheory.exact.iteration import completed_law
from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.instances import random_rational, two_token
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import BLACK, VERIFIER_STYLES
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound

VERIFIERS = ("spectr", "multi_round", "spectr_gbv")
KNOWN_EFFICIENCY = {(1, 2): Fraction(41, 60), (2, 2): Fraction(74693, 57120)}
"""E[tau] on the two-token pair by (L, K), theory.md §2."""


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"spectr_gbv_defect": _plot(findings.table("spectr_gbv_defect"))}


@exhibit(
    title="SpecTr-GBV as printed: efficiency and defect",
    source="spectrgbv2026, Algorithms 1–3, Theorems 4.2 and 5.3", draw=_draw,
)  # fmt: skip
def spectr_gbv_defect(num_pairs: int = 20, num_drafts: int = 2, seed: int = 53) -> Findings:
    """Block efficiency with total variation beside it, on random exact pairs with V = 2, L = 2.

    Args:
        num_pairs: random pairs.
        num_drafts: K.
        seed: of the pairs.
    """
    rows, others_lossy, defects, above = [], [], [], []
    for number in range(num_pairs):
        pair = random_rational([seed, number], 2, 2, zero_probability=0, equal_row_probability=0)
        best = optimum(pair, num_drafts).value
        for name in VERIFIERS:
            law = output_law(name, pair, num_drafts)
            value, defect = float(law.block_efficiency), float(law.total_variation)
            if name == "spectr_gbv":
                with_modification = None  # where an output is undefined no call can follow
                if not law.undefined:
                    modified = completed_law(name, pair, num_drafts) - pair.target_path_probs(3)
                    with_modification = float(abs(modified).sum() / 2)
                if defect and with_modification != 0:
                    defects.append(number)
            else:
                with_modification = None
                if defect > 1e-9:
                    others_lossy.append(f"{name}, pair {number}: {defect}")
                if value > float(best) + 1e-9:
                    above.append(f"{name}, pair {number}: {value} > {float(best)}")
            rows.append((
                number, name, value, round(defect, 12), with_modification, float(best), value / float(best),
            ))  # fmt: skip
    two, wrong, attained = [], [], []
    for (length, drafts), known in KNOWN_EFFICIENCY.items():
        pair = two_token(length)
        law = output_law("spectr_gbv", pair, drafts)
        single = output_law("spectr_gbv", pair, 1)
        bound, first = conditionally_independent_bound(pair, drafts), law.prefix_law(1)[0]
        accepted = law.block_efficiency - 1
        from_one = single.block_efficiency - 1
        two.append((length, drafts, accepted, bound, from_one, first, law.total_variation))
        if accepted != known:
            wrong.append(f"L = {length}, K = {drafts}: {accepted}, not {known}")
        if accepted >= bound:
            attained.append(f"L = {length}, K = {drafts}: {accepted} >= {bound}")
    lossless = [] if len(defects) == num_pairs else [f"only {len(defects)} of {num_pairs} have a defect"]
    return Findings(
        explanation=(
            "An efficiency means little without its defect. SpecTr-GBV as printed changes the law of the "
            "text on every random pair, also with the distribution modification of its Algorithm 2; SpecTr "
            "and multi-round do not. A hexagon without a cross is a pair on which a residual is 0/0, so "
            "that no modification is defined."
        ),
        settings={"num_pairs": num_pairs, "num_drafts": num_drafts, "seed": seed},
        tables=[
            ResultTable(
                "spectr_gbv_defect",
                (
                    "number", "verifier", "block_efficiency", "total_variation", "with_modification",
                    "optimum", "share_of_optimum",
                ),
                rows,
                "Block efficiency in tokens per target call; total variation of one call from the target, "
                "completed by the target's rows, and with the modified rows of Algorithm 2.",
            ),
            ResultTable(
                "spectr_gbv_counterexample",
                (
                    "draft_length", "num_drafts", "accepted", "bound", "accepted_from_one_draft",
                    "first_token_is_A",
                    "total_variation",
                ),
                two,
                "The two-token pair, exactly: E[τ], Bound(K), E[τ] of one draft, P(the first token is A), "
                "which is 1/3 under the target, and the defect.",
            ),
        ],
        checks=[
            Check.of("E[τ] on the two-token pair is 41/60 and 74693/57120", len(two), wrong),
            Check.of("Theorem 5.3 is false: E[τ] is below Bound(K) on both", len(two), attained),
            Check.of("Theorem 4.2 is false: it is lossy on every random pair, with its modification too",
                     num_pairs, lossless),
            Check.of("SpecTr and multi-round are lossless on all of them", 2 * num_pairs, others_lossy),
            Check.of("these do not exceed the optimum", 2 * num_pairs, above),
        ],
    )  # fmt: skip


def _plot(table: ResultTable) -> Figure:
    with panels(width=5.4, height=3.8) as (figure, (axes,)):
        for name in VERIFIERS:
            rows, style = table.select(verifier=name), VERIFIER_STYLES[name]
            shares = [row["share_of_optimum"] for row in rows]
            axes.plot(shares, [row["total_variation"] for row in rows], style.marker,
                      color=style.colour, markersize=6, markerfacecolor="white", label=style.label,
                      clip_on=False)  # fmt: skip
        defined = [row for row in rows if row["with_modification"] is not None]
        axes.plot([row["share_of_optimum"] for row in defined], [row["with_modification"] for row in defined],
                  "x", color=VERIFIER_STYLES["spectr_gbv"].colour,
                  label="SpecTr-GBV with its modification")  # fmt: skip
        axes.axvline(
            1, color=BLACK, linestyle=(0, (4, 2)), linewidth=1.2, label="optimum of lossless verifiers"
        )
        axes.set(xlabel="block efficiency / optimum", ylabel="defect (total variation)")
        axes.set_ylim(bottom=0)
        axes.set_title("Random pairs, two drafts: efficiency and defect")
        legend_below(figure, 2)
    return figure
