from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, as_float, result
from figures.style import ACCENT, AUTHORS, Look, label_point, named, panels_by
from spectheory.exact.law import output_law
from spectheory.optima import optimal_acceptance
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.multi_round import multi_round_acceptance
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound
from spectheory.verification.curves import GREY, optimum_curve, verifier_curve

PAIRS: Mapping[str, tuple[list[str], list[str]]] = {
    "two-token pair": (["1/3", "2/3"], ["2/3", "1/3"]),
    "equal models": (["1/2", "1/2"], ["1/2", "1/2"]),
    "partial overlap": (["1/4", "1/4", "1/2", "0"], ["1/4", "1/4", "0", "1/2"]),
}
LARGEST_OF_CLASS = "largest acceptance in the class of Lemma 5.1"


def conditionally_independent_maximum(target_row: Sequence[Any], draft_row: Sequence[Any]) -> Any:
    """Compute the largest acceptance probability of two drafts, independent given the output, L = 1, V = 2.

    Bound(2) is an upper bound on this value (spectrgbv2026 Lemma 5.1; theory.md §2).  At the maximum the
    first draft equals the output with probability Σ min(p, q).  The second draft is independent of the output
    and of the first draft.

    Example:
        >>> print(conditionally_independent_maximum([1 / 4, 3 / 4], [1 / 2, 1 / 2]))
        0.875
    """
    pairs = list(zip(target_row, draft_row, strict=True))
    return 1 - sum(max(p - q, p * 0) * (1 - q) for p, q in pairs)


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    size: Look = {"width": 2.7, "height": 3.5}
    with panels_by(table, "pair", "probability", legend_columns=2, **size) as (figure, parts):
        for axes, name, rows in parts:
            drafts = rows["num_drafts"]
            label = "acceptance by multi-round"
            verifier_curve(axes, "multi_round", drafts, rows["multi_round"], label=label)
            dotted: Look = {"color": ACCENT, "linestyle": ":", "linewidth": 2}
            axes.plot(drafts, rows["bound"], **dotted, label=f"Bound(K) of {AUTHORS['spectrgbv2026']}")
            lossy = f"acceptance by {named('spectr_gbv', lossless=False)}"
            verifier_curve(axes, "spectr_gbv", drafts, rows["spectr_gbv"], label=lossy)
            label = "total variation of SpecTr-GBV from the target"
            axes.bar(drafts, rows["total_variation"], 0.5, color=GREY, alpha=0.5, label=label)
            for row in rows.select():
                if row["class_maximum"] not in (None, row["bound"]):
                    point, label = as_float(row["class_maximum"]), LARGEST_OF_CLASS
                    axes.plot(row["num_drafts"], point, "*", color=ACCENT, markersize=9, label=label)
            optimum_curve(axes, drafts, rows["otm"], "largest acceptance of any lossless verifier")
            if rows["multi_round"] == rows["bound"] == rows["otm"]:
                text = "multi-round, Bound(K) and\nthe largest acceptance coincide"
                place = drafts[-1], as_float(rows["otm"][-1])
                up, side = (-9, "top") if place[1] > 0.9 else (9, "bottom")
                label_point(axes, text, place, (0, up), ha="right", va=side, fontsize=8)
            axes.set(xlabel="number of drafts K", ylim=(0, 1.03), xticks=drafts)
            axes.set_title(name)
    return figure


@result(
    title="Bound(K) at one position",
    source="spectrgbv2026, Eq. 5, Remark 5.2, Theorem 5.3",
    draw=_draw,
    small={"max_drafts": 3},
)
def spectr_gbv_bound(names: Sequence[str] = tuple(PAIRS), max_drafts: int = 6) -> Findings:
    """Bound(K), what SpecTr-GBV as printed accepts, its defect, α_K, and the largest of two classes; exactly.

    The class of Lemma 5.1 has drafts that are independent given the output.  For two tokens and two
    drafts its maximum is known: one draft is maximally coupled with the output and the other is
    independent of it (theory.md §2).
    """
    checks = Checks()
    table = ResultTable(
        "spectr_gbv_bound",
        "Accepted drafts at one position: Bound(K) (Eq. 5); α_K; multi-round rejection; SpecTr-GBV as "
        "printed with its defect and the probability of an undefined output; the maximum over the class of "
        "Lemma 5.1. Exact.",
    )
    for name in names:
        pair = ModelPair.context_free_pair(*PAIRS[name], 1)
        target, draft = pair.target[0][0], pair.draft[0][0]
        for drafts in range(1, max_drafts + 1):
            law = output_law("spectr_gbv", pair, drafts)
            known = drafts == len(target) == 2
            table.add(
                pair=name, num_drafts=drafts, bound=conditionally_independent_bound(pair, drafts),
                otm=optimal_acceptance(target, draft, drafts).value,
                multi_round=multi_round_acceptance(target, draft, drafts),
                spectr_gbv=law.block_efficiency - 1, total_variation=law.total_variation,
                undefined=law.undefined,
                class_maximum=conditionally_independent_maximum(target, draft) if known else None,
            )  # fmt: skip
    rows = table.select()
    claim = "Bound(K) is not a bound on lossless rules: α_K exceeds it"
    checks.expect(claim, any(row["otm"] > row["bound"] for row in rows), "it never does")
    claim = "SpecTr-GBV does not always accept Bound(K) (against Theorem 5.3)"
    checks.expect(claim, any(row["spectr_gbv"] != row["bound"] for row in rows), "it does")
    claim = "SpecTr-GBV is not lossless (against Theorem 4.2)"
    checks.expect(claim, any(row["total_variation"] for row in rows), "no defect")
    if "equal models" in names:
        bounds = table.where(pair="equal models").column("bound")
        claim = "Bound(K) does not always grow with K (against Remark 5.2)"
        checks.expect(claim, sorted(set(bounds)) != bounds, "it grows")
    of_class = [row for row in rows if row["class_maximum"] is not None]
    for row in of_class:
        where = f"{row['pair']}: {row['class_maximum']} > {row['bound']}"
        checks.expect("Bound(2) bounds its class (Lemma 5.1)", row["class_maximum"] <= row["bound"], where)
    if of_class:
        loose = any(row["class_maximum"] < row["bound"] for row in of_class)
        checks.expect("its class does not always attain it", loose, "it does")
    return Findings(
        "Two tokens, two drafts: the class of Lemma 5.1 accepts 7/9, Bound(2) is 5/6, α_2 is 8/9, and "
        "the algorithm as printed accepts 41/60 with a defect of 3/40. For equal models everything "
        "could be accepted; the algorithm as printed rejects drafts there and has nothing to replace "
        "them with.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    spectr_gbv_bound.main()
