"""Bound(K) of spectrgbv2026 next to what can be accepted at one position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.optima import optimal_acceptance
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import legend_below, optimum_curve, panels, verifier_curve
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, GREY
from spectheory.verification.algorithms.position_by_position.multi_round import multi_round_acceptance
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound

PAIRS: Mapping[str, tuple[list[str], list[str]]] = {
    "two tokens": (["1/3", "2/3"], ["2/3", "1/3"]),
    "equal models": (["1/2", "1/2"], ["1/2", "1/2"]),
    "partial overlap": (["1/4", "1/4", "1/2", "0"], ["1/4", "1/4", "0", "1/2"]),
}


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"spectr_gbv_bound": _plot(findings.tables[0])}


@exhibit(title="Bound(K) at one position", source="spectrgbv2026, Eq. 5, Remark 5.2, Theorem 5.3", draw=_draw)
def spectr_gbv_bound(names: Sequence[str] = tuple(PAIRS), max_drafts: int = 6) -> Findings:
    """Bound(K), what SpecTr-GBV as printed accepts, its defect, α_K, and the largest of two classes; exactly.

    The class of Lemma 5.1 has drafts that are independent given the output.  For two tokens and two
    drafts its maximum is known: one draft is maximally coupled with the output and the other is
    independent of it (theory.md §2).

    Args:
        names: which pairs; the default has all.
        max_drafts: the largest K.
    """
    rows, exceeded, not_attained, not_growing, lossy = [], [], [], [], []
    for name in names:
        pair = ModelPair.context_free_pair(*PAIRS[name], 1)
        target, draft = pair.target[0][0], pair.draft[0][0]
        previous: Any = None
        for drafts in range(1, max_drafts + 1):
            bound = conditionally_independent_bound(pair, drafts)
            best = optimal_acceptance(target, draft, drafts).value
            multi_round = multi_round_acceptance(target, draft, drafts)
            law = output_law("spectr_gbv", pair, drafts)
            accepted, defect = law.block_efficiency - 1, law.total_variation
            largest = class_maximum(target, draft) if drafts == 2 and len(target) == 2 else None
            rows.append((
                name, drafts, bound, float(bound), best, float(best), multi_round, float(multi_round),
                accepted, float(accepted), defect, float(defect), law.undefined, largest,
            ))  # fmt: skip
            here = f"{name}, K = {drafts}"
            if bound < best:
                exceeded.append(f"{here}: {bound} < α_K = {best}")
            if accepted != bound:
                not_attained.append(f"{here}: {accepted} accepted, Bound {bound}")
            if defect:
                lossy.append(f"{here}: {defect}")
            if previous is not None and bound <= previous:
                not_growing.append(f"{here}: {bound} after {previous}")
            previous = bound
    table = ResultTable(
        "spectr_gbv_bound",
        (
            "pair", "num_drafts", "bound", "bound_float", "otm", "otm_float", "multi_round",
            "multi_round_float",
            "spectr_gbv", "spectr_gbv_float", "total_variation", "total_variation_float", "undefined",
            "class_maximum",
        ),
        rows,
        "Accepted drafts at one position: Bound(K) (Eq. 5); α_K; multi-round rejection; SpecTr-GBV as "
        "printed with its defect and the probability of an undefined output; the maximum over the class of "
        "Lemma 5.1. Exact.",
    )  # fmt: skip
    count = len(rows)

    def refutes(failures: list[str], otherwise: str) -> list[str]:
        return [] if failures else [otherwise]

    checks = [
        Check.of("Bound(K) is no bound on lossless rules: α_K exceeds it", count,
                 refutes(exceeded, "it never does")),
        Check.of("SpecTr-GBV does not always accept Bound(K) (against Theorem 5.3)", count,
                 refutes(not_attained, "it does")),
        Check.of("SpecTr-GBV is not lossless (against Theorem 4.2)", count, refutes(lossy, "no defect")),
    ]  # fmt: skip
    if "equal models" in names:
        claim = "Bound(K) does not always grow with K (against Remark 5.2)"
        checks.append(Check.of(claim, count, refutes(not_growing, "it grows")))
    known = [row for row in table.select() if row["class_maximum"] is not None]
    if known:
        loose = [row for row in known if row["class_maximum"] < row["bound"]]
        larger = [
            f"{row['pair']}: {row['class_maximum']}" for row in known if row["class_maximum"] > row["bound"]
        ]
        checks.append(Check.of("Bound(2) bounds its class (Lemma 5.1)", len(known), larger))
        checks.append(
            Check.of(
                "its class does not always attain it", len(known), refutes(list(map(str, loose)), "it does")
            )
        )
    return Findings(
        explanation=(
            "Two tokens, two drafts: the class of Lemma 5.1 accepts 7/9, Bound(2) is 5/6, α_2 is 8/9, and "
            "the algorithm as printed accepts 41/60 with a defect of 3/40. For equal models everything "
            "could be accepted; the algorithm as printed rejects drafts there and has nothing to replace "
            "them with."
        ),
        settings={"names": list(names), "max_drafts": max_drafts},
        tables=[table],
        checks=checks,
    )


def class_maximum(target: Any, draft: Any) -> Fraction:
    """The largest acceptance of two drafts of two tokens that are independent given the output.

    One draft agrees with the output with probability Σ min(p, q); the other is independent of both.

    Example:
        >>> class_maximum([Fraction(1, 3), Fraction(2, 3)], [Fraction(2, 3), Fraction(1, 3)])
        Fraction(7, 9)
    """
    rejected = [max(p - q, Fraction(0)) for p, q in zip(target, draft, strict=True)]
    return 1 - sum((lost * (1 - q) for lost, q in zip(rejected, draft, strict=True)), Fraction(0))


def _plot(table: ResultTable) -> Figure:
    names = list(dict.fromkeys(table.column("pair")))
    with panels(1, len(names), width=2.7, height=3.5, sharey=True) as (figure, all_axes):
        for axes, name in zip(all_axes, names, strict=True):
            rows = table.select(pair=name)
            drafts = [row["num_drafts"] for row in rows]
            verifier_curve(axes, "multi_round", drafts, [row["multi_round_float"] for row in rows])
            axes.plot(drafts, [row["bound_float"] for row in rows], color=ACCENT, linestyle=":", linewidth=2,
                      label="Bound(K)")  # fmt: skip
            verifier_curve(axes, "spectr_gbv", drafts, [row["spectr_gbv_float"] for row in rows])
            axes.bar(drafts, [row["total_variation_float"] for row in rows], 0.5, color=GREY, alpha=0.5,
                     label="defect of SpecTr-GBV (total variation)")  # fmt: skip
            for row in rows:
                if row["class_maximum"] is not None and row["class_maximum"] != row["bound"]:
                    axes.plot(row["num_drafts"], float(Fraction(row["class_maximum"])), "*", color=ACCENT,
                              markersize=9,
                              label="largest of the class of Lemma 5.1")  # fmt: skip
            optimum_curve(axes, drafts, [row["otm_float"] for row in rows], r"$\alpha_K$, the optimum")
            axes.set(xlabel="number of drafts K", ylim=(0, 1.03), xticks=drafts)
            axes.set_title(name)
        all_axes[0].set_ylabel("probability")
        legend_below(figure, 3)
    return figure
