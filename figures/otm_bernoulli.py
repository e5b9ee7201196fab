from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, result
from figures.style import label_point, panels
from spectheory.optima import optimal_acceptance, otm_optimum
from spectheory.pairs.instances import bernoulli
from spectheory.verification.algorithms.position_by_position.kseq import kseq_rule
from spectheory.verification.algorithms.position_by_position.multi_round import multi_round_acceptance
from spectheory.verification.curves import BLACK, verifier_curve

DRAFT_HEAD = Fraction(1, 4)
TARGET_HEADS = tuple(Fraction(head) for head in ("1/10", "1/2", "3/4", "1"))
MAX_DRAFTS_OF_PROGRAM = 4  # the linear program has 2^(k+1) variables
CURVES = {"otm": ("OTM (optimal)", "-"), "kseq": ("K-SEQ", "--"), "multi_round": ("multi-round", ":")}


def bernoulli_acceptance(draft_head: Fraction, target_head: Fraction, num_drafts: int) -> Fraction:
    """spectr2023 Eq. 10 in the letters of theory.md: min(c, 1 - (1-b)^K) + min(1-c, 1 - b^K)."""
    b, c = draft_head, target_head
    return min(c, 1 - (1 - b) ** num_drafts) + min(1 - c, 1 - b**num_drafts)


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    heads = table.distinct("target_head")
    columns = 2 if len(heads) > 1 else 1
    lines = -(-len(heads) // columns)
    with panels(lines, columns, width=7.6 / columns, height=5.0 / lines, sharex=True, sharey=True) as (
        figure,
        all_axes,
    ):
        for axes, head in zip(all_axes, heads, strict=False):
            rows = table.where(target_head=head)
            drafts = rows["num_drafts"]
            for name, (label, dashes) in CURVES.items():
                verifier_curve(axes, name, drafts, rows[name], linestyle=dashes, label=label)
            if np.allclose(rows["otm"], rows["multi_round"], rtol=0, atol=1e-12):
                middle = len(drafts) // 2
                point = drafts[middle], rows["otm"][middle]
                label_point(axes, "all three coincide", point, (8, -14), color=BLACK)
            axes.set(ylim=(0, 1.02), xticks=drafts)
            axes.set_title(f"target Ber({float(Fraction(head)):g}), draft Ber({float(DRAFT_HEAD):g})")
        all_axes[0].legend(loc="lower right")
        for axes in all_axes[::columns]:
            axes.set_ylabel("acceptance probability")
        for axes in all_axes[-columns:]:
            axes.set_xlabel("number of drafts K")
    return figure


@result(
    title="Acceptance at one position, Bernoulli pairs",
    source="spectr2023, Figures 4 and 6, Eq. 10",
    draw=_draw,
    small={"max_drafts": 3},
)
def otm_bernoulli(target_heads: Sequence[Fraction] = TARGET_HEADS, max_drafts: int = 10) -> Findings:
    """Acceptance of OTM-k, K-SEQ and multi-round rejection, draft Ber(1/4) against targets Ber(b).

    OTM-k by the min cut, exactly, checked against the closed form (Eq. 10) and, for few drafts,
    against the linear program (Eq. 4); K-SEQ in float64,
    because its division factor is algebraic; multi-round exactly.

    Args:
        target_heads: b.
    """
    checks = Checks()
    table = ResultTable(
        "otm_bernoulli",
        "Acceptance probability at one position, draft Ber(1/4), target Ber(target_head), K i.i.d. drafts.",
    )
    for head in target_heads:
        pair = bernoulli(DRAFT_HEAD, head)
        target, draft = pair.target[0][0], pair.draft[0][0]
        for drafts in range(1, max_drafts + 1):
            best = optimal_acceptance(target, draft, drafts).value
            rule = kseq_rule(target.astype(float), draft.astype(float), np.array(float(drafts)))
            kseq = float(rule.acceptance)
            multi_round = multi_round_acceptance(target, draft, drafts)
            table.add(target_head=head, num_drafts=drafts, otm=best, kseq=kseq, multi_round=multi_round)
            here = f"at b = {head}, K = {drafts}: min cut {best}"
            formula = bernoulli_acceptance(DRAFT_HEAD, head, drafts)
            claim = "the min cut equals the closed form (Eq. 10), exactly"
            checks.expect(claim, best == formula, f"{here}, Eq. 10 {formula}")
            if drafts <= MAX_DRAFTS_OF_PROGRAM:
                program = 1 - otm_optimum(target, draft, drafts).value
                claim = f"for K ≤ {MAX_DRAFTS_OF_PROGRAM} it equals the linear program (Eq. 4), exactly"
                checks.expect(claim, best == program, f"{here}, Eq. 4 {program}")
            within = kseq <= float(best) + 1e-12 and multi_round <= best
            checks.expect("no rule exceeds the optimum", within, f"{here}, rules {kseq} and {multi_round}")
    return Findings(
        "Draft Ber(0.25) against targets Ber(b). At b = 1 a draft is accepted if and only if a head is "
        "drawn, so the three rules coincide.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    otm_bernoulli.main()
