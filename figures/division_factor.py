from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, BROKEN, label_point, legend_below, panels
from spectheory.exact.law import output_law
from spectheory.optima import optimal_acceptance
from spectheory.pairs.instances import two_token
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.position_by_position.kseq import KSeq, kseq_rule, kseq_rule_at
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES

PAIRS = {
    "two_token": two_token(1),
    "no_ratio_between": ModelPair.context_free_pair(["4/5", "1/5", "0"], ["1/3", "1/9", "5/9"], 1),
}
TITLES = {
    "two_token": "target (1/3, 2/3), draft (2/3, 1/3)",
    "no_ratio_between": "target (4/5, 1/5, 0), draft (1/3, 1/9, 5/9)",
}


def _draw(findings: Findings) -> Figure:
    table, bests = findings.table("division_factor"), findings.table("division_factor_best")
    colour = VERIFIER_STYLES["kseq"].colour
    curves = {
        "drafted": ("P(the output is a drafted token)", {"color": BLACK, "linewidth": 1.2}),
        "accepted": ("P(a draft is accepted in the sequence)", {"color": colour, "linewidth": 2.4}),
        "defect": ("defect (total variation)", {"color": ACCENT, "linestyle": ":", "linewidth": 2}),
    }
    with panels(1, len(bests.rows), height=3.4, sharey=True) as (figure, all_axes):
        for axes, name, factor, acceptance, optimal in zip(
            all_axes, *map(bests.__getitem__, bests.columns), strict=True
        ):
            rows = table.where(pair=name)
            factors = rows["division_factor"]
            axes.axhline(optimal, **BROKEN, label=r"$\alpha_K$, the optimum")
            for column, (label, look) in curves.items():
                axes.plot(factors, rows[column], label=label, **look)
            axes.axvline(factor, color=GREY, linewidth=1)
            axes.plot(factor, acceptance, "o", color=colour, markeredgecolor=BLACK, markersize=6)
            label_point(axes, f"ρ* = {factor:.3f}", (factor, 0.5), (5, 0), color=GREY)
            axes.set(xlabel="division factor ρ", ylim=(0, 1.02), xlim=(factors[0], factors[-1]))
            axes.set_title(TITLES[name], fontsize=9)
        all_axes[0].set_ylabel("probability")
        legend_below(figure, 2)
    return figure


@result(
    title="Acceptance of K-SEQ against its division factor",
    source="spectr2023, Algorithm 2, Theorem 1, Eq. 6",
    draw=_draw,
    small={"steps": 8},
)
def division_factor(names: Sequence[str] = tuple(PAIRS), num_drafts: int = 2, steps: int = 40) -> Findings:
    """K-SEQ with ρ = 1 + j/steps·(K − 1) and beyond K, exactly: what it accepts, and its defect.

    Three probabilities are told apart: that a draft is accepted in the sequence (p_acc), that the
    output is a drafted token (the residual can emit one), and the optimum α_K.

    Args:
        steps: points between ρ = 1 and ρ = K; a quarter as many follow beyond K.
    """
    checks = Checks()
    table = ResultTable(
        "division_factor",
        "accepted: P(a draft is accepted in the sequence); drafted: P(the output is a drafted token); "
        "defect: total variation from the target. Exact.",
    )
    bests = ResultTable("division_factor_best", "ρ*, the root of Eq. 6, its acceptance, and the optimum α_K.")
    for name in names:
        pair = PAIRS[name]
        target, draft = pair.target[0][0], pair.draft[0][0]
        most = optimal_acceptance(target, draft, num_drafts).value
        float_rows = target.astype(float)[None], draft.astype(float)[None]
        best = kseq_rule(*float_rows, np.array([float(num_drafts)]))
        best_factor, best_acceptance = float(best.division_factor[0]), float(best.acceptance[0])
        bests.add(pair=name, best_factor=best_factor, best_acceptance=best_acceptance, optimal=most)
        for step in range(steps + steps // 4 + 1):
            factor = 1 + Fraction(step * (num_drafts - 1), steps)
            accepted = kseq_rule_at(target, draft, num_drafts, factor).acceptance
            law = output_law(KSeq(factor, checked=False), pair, num_drafts)
            drafted, defect = law.block_efficiency - 1, law.total_variation
            table.add(pair=name, division_factor=factor, accepted=accepted, drafted=drafted, defect=defect)
            here = f"{name}, ρ = {factor}: defect {defect}, accepts {accepted}, emits {drafted}"
            if float(factor) > best_factor + 1e-12:
                checks.expect("K-SEQ is lossless for every ρ ≥ ρ* (Theorem 1)", not defect, here)
                claim = "no factor above ρ* accepts more drafts in the sequence than ρ*"
                checks.expect(claim, float(accepted) <= best_acceptance + 1e-12, here)
            lossless = _lossless_by_statement(target, draft, accepted, factor)
            claim = "it is lossless exactly where p_acc ≤ β max(ρ, m) (Statement 3.5)"
            checks.expect(claim, lossless == (defect == 0), here)
            claim = "no lossless factor emits a drafted token more often than α_K"
            checks.expect(claim, defect or drafted <= most, f"{here} > {most}")
    return Findings(
        f"{num_drafts} drafts. Above ρ* K-SEQ is lossless and accepts fewer drafts. ρ* does not maximise "
        "the probability that the output is a drafted token, and a factor below ρ* can be lossless "
        "(the second pair).",
        tables=[table, bests],
        checks=checks,
    )


def _lossless_by_statement(target: Any, draft: Any, accepted: Any, factor: Fraction) -> bool:
    """p_acc ≤ β max(ρ, m), m the smallest p/q over the tokens that both models can emit."""
    beta = sum(min(q, p / factor) for p, q in zip(target, draft, strict=True))
    ratios = [p / q for p, q in zip(target, draft, strict=True) if p > 0 and q > 0]
    return bool(accepted <= beta * max(factor, min(ratios)))


if __name__ == "__main__":
    division_factor.main()
