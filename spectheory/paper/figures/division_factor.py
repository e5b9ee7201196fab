"""Acceptance and defect of K-SEQ as functions of its division factor, with the best one marked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.optima import optimal_acceptance
from spectheory.pairs.instances import two_token
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, BLACK, GREY, VERIFIER_COLOURS
from spectheory.verification.algorithms.position_by_position.kseq import KSeq, kseq_rule, kseq_rule_at

PAIRS = {
    "two_token": two_token(1),
    "no_ratio_between": ModelPair.context_free_pair(["4/5", "1/5", "0"], ["1/3", "1/9", "5/9"], 1),
}
TITLES = {
    "two_token": "target (1/3, 2/3), draft (2/3, 1/3)",
    "no_ratio_between": "target (4/5, 1/5, 0), draft (1/3, 1/9, 5/9)",
}


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"division_factor": _plot(findings)}


@exhibit(
    title="Acceptance of K-SEQ against its division factor",
    source="spectr2023, Algorithm 2, Theorem 1, Eq. 6",
    draw=_draw,
)
def division_factor(names: Sequence[str] = tuple(PAIRS), num_drafts: int = 2, steps: int = 40) -> Findings:
    """K-SEQ with ρ = 1 + j/steps·(K − 1) and beyond K, exactly: what it accepts, and its defect.

    Three probabilities are told apart: that a draft is accepted in the sequence (p_acc), that the
    output is a drafted token (the residual can emit one), and the optimum α_K.

    Args:
        names: which pairs; the default has all.
        num_drafts: K.
        steps: points between ρ = 1 and ρ = K; a quarter as many follow beyond K.
    """
    rows, best_rows = [], []
    accepted_more, wrong_side, not_lossless, not_best, above = [], [], [], [], 0
    for name in names:
        pair = PAIRS[name]
        target, draft = pair.target[0][0], pair.draft[0][0]
        most = optimal_acceptance(target, draft, num_drafts).value
        float_rows = target.astype(float)[None], draft.astype(float)[None]
        best = kseq_rule(*float_rows, np.array([float(num_drafts)]))
        best_factor, best_acceptance = float(best.division_factor[0]), float(best.acceptance[0])
        best_rows.append((name, best_factor, best_acceptance, most, float(most)))
        for step in range(steps + steps // 4 + 1):
            factor = 1 + Fraction(step * (num_drafts - 1), steps)
            accepted = kseq_rule_at(target, draft, num_drafts, factor).acceptance
            law = output_law(KSeq(factor, checked=False), pair, num_drafts)
            drafted, defect = law.block_efficiency - 1, law.total_variation
            rows.append((
                name, factor, float(factor), accepted, float(accepted), drafted, float(drafted),
                defect, float(defect),
            ))  # fmt: skip
            here = f"{name}, ρ = {factor}"
            lossless = _lossless_by_statement(target, draft, accepted, factor)
            if float(factor) > best_factor + 1e-12:
                above += 1
                if defect:
                    not_lossless.append(f"{here}: defect {defect}")
                if float(accepted) > best_acceptance + 1e-12:
                    accepted_more.append(f"{here} accepts {accepted}")
            if lossless != (defect == 0):
                wrong_side.append(f"{here}: defect {defect}")
            if not defect and drafted > most:
                not_best.append(f"{here}: {drafted} > {most}")
    table = ResultTable(
        "division_factor",
        (
            "pair", "division_factor", "division_factor_float", "accepted", "accepted_float",
            "drafted", "drafted_float", "defect", "defect_float",
        ),
        rows,
        "accepted: P(a draft is accepted in the sequence); drafted: P(the output is a drafted token); "
        "defect: total variation from the target. Exact.",
    )  # fmt: skip
    best_table = ResultTable(
        "division_factor_best",
        ("pair", "best_factor", "best_acceptance", "optimal", "optimal_float"),
        best_rows,
        "ρ*, the root of Eq. 6, its acceptance, and the optimum α_K.",
    )
    return Findings(
        explanation=(
            f"{num_drafts} drafts. Above ρ* K-SEQ is lossless and accepts fewer drafts. ρ* does not maximise "
            "the probability that the output is a drafted token, and a factor below ρ* can be lossless "
            "(the second pair)."
        ),
        settings={"names": list(names), "num_drafts": num_drafts, "steps": steps},
        tables=[table, best_table],
        checks=[
            Check.of("K-SEQ is lossless for every ρ ≥ ρ* (Theorem 1)", above, not_lossless),
            Check.of("no factor above ρ* accepts more drafts in the sequence than ρ*", above, accepted_more),
            Check.of(
                "it is lossless exactly where p_acc ≤ β max(ρ, m) (Statement 3.5)", len(rows), wrong_side
            ),
            Check.of("no lossless factor emits a drafted token more often than α_K", len(rows), not_best),
        ],
    )


def _lossless_by_statement(target: Any, draft: Any, accepted: Any, factor: Fraction) -> bool:
    """p_acc ≤ β max(ρ, m), m the smallest p/q over the tokens that both models can emit."""
    beta = sum(min(q, p / factor) for p, q in zip(target, draft, strict=True))
    ratios = [p / q for p, q in zip(target, draft, strict=True) if p > 0 and q > 0]
    return bool(accepted <= beta * max(factor, min(ratios)))


def _plot(findings: Findings) -> Figure:
    best_rows = findings.table("division_factor_best").select()
    with panels(1, len(best_rows), height=3.4, sharey=True) as (figure, all_axes):
        for axes, best in zip(all_axes, best_rows, strict=True):
            _panel(axes, best, findings.table("division_factor").select(pair=best["pair"]))
        all_axes[0].set_ylabel("probability")
        legend_below(figure, 2)
    return figure


def _panel(axes: Axes, best: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    factors = [row["division_factor_float"] for row in rows]
    colour = VERIFIER_COLOURS["kseq"]
    axes.axhline(
        best["optimal_float"],
        color=BLACK,
        linestyle=(0, (4, 2)),
        linewidth=1.2,
        label=r"$\alpha_K$, the optimum",
    )
    axes.plot(factors, [row["drafted_float"] for row in rows], color=BLACK, linewidth=1.2,
              label="P(the output is a drafted token)")  # fmt: skip
    axes.plot(factors, [row["accepted_float"] for row in rows], color=colour, linewidth=2.4,
              label="P(a draft is accepted in the sequence)")  # fmt: skip
    axes.plot(factors, [row["defect_float"] for row in rows], color=ACCENT, linestyle=":", linewidth=2,
              label="defect (total variation)")  # fmt: skip
    axes.axvline(best["best_factor"], color=GREY, linewidth=1)
    axes.plot(
        best["best_factor"], best["best_acceptance"], "o", color=colour, markeredgecolor=BLACK, markersize=6
    )
    axes.annotate(f"ρ* = {best['best_factor']:.3f}", (best["best_factor"], 0.5), xytext=(5, 0),
                  textcoords="offset points", color=GREY)  # fmt: skip
    axes.set(xlabel="division factor ρ", ylim=(0, 1.02), xlim=(factors[0], factors[-1]))
    axes.set_title(TITLES[best["pair"]], fontsize=9)
