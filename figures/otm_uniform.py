from collections.abc import Sequence
from fractions import Fraction
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, Look, legend_below, panels
from spectheory.optima import optimal_acceptance_curve
from spectheory.pairs.instances import uniform
from spectheory.verification.algorithms.position_by_position.kseq import kseq_rule
from spectheory.verification.curves import BLACK, GREY

LOOKS = [(colour, line) for line in ("-", "--", ":") for colour in (BLACK, ACCENT, GREY)]


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    with panels(width=5.6, height=3.6) as (figure, (axes,)):
        supports = table.distinct("target_support")
        for support, (colour, line) in zip(supports, cycle(LOOKS), strict=False):
            rows = table.where(target_support=support)
            drafts = rows["num_drafts"]
            axes.plot(drafts, rows["otm"], line, color=colour, label=f"target U({support})")
            look: Look = {"color": colour, "markersize": 3.5, "markerfacecolor": "white"}
            axes.plot(drafts, rows["kseq"], "o", **look, clip_on=False)
        axes.set(xlabel="number of drafts K", ylabel="acceptance probability", ylim=(0, 1.02))
        axes.set(xlim=(1, max(table["num_drafts"])))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(f"Draft U({findings.settings['draft_support']}): optimum (lines), K-SEQ (points)")
        legend_below(figure, 3)
    return figure


@result(
    title="Acceptance at one position, uniform pairs",
    source="spectr2023, Figure 5, Appendix B.2",
    draw=_draw,
    small={"target_supports": (60, 40), "max_drafts": 4},
)
def otm_uniform(
    draft_support: int = 120, target_supports: Sequence[int] = (60, 40, 30, 20, 12), max_drafts: int = 20
) -> Findings:
    """α_K of draft U(d) against target U(d/r), exactly, and K-SEQ, which attains it.

    The paper's figure has d = 120; its text does not say which targets.

    Args:
        draft_support: d, the number of tokens that the draft emits.
        target_supports: d/r, divisors of d: the number of tokens that the target emits.
    """
    checks = Checks()
    table = ResultTable(
        "otm_uniform",
        f"Acceptance probability at one position, draft U({draft_support}), target U(target_support). "
        f"printed: 1 − (1 − 1/r)^K with r = {draft_support}/target_support, the paper's formula.",
    )
    for support in target_supports:
        ratio = draft_support // support
        pair = uniform(draft_support, ratio)
        target, draft = pair.target[0][0], pair.draft[0][0]
        previous = 0
        for drafts, cut in enumerate(optimal_acceptance_curve(target, draft, max_drafts), 1):
            best, formula = cut.value, 1 - Fraction(ratio - 1, ratio) ** drafts
            rule = kseq_rule(target.astype(float), draft.astype(float), np.array(float(drafts)))
            kseq = float(rule.acceptance)
            table.add(target_support=support, num_drafts=drafts, otm=best, printed=formula, kseq=kseq)
            here = f"target U({support}), K = {drafts}: {best}"
            claim = "the min cut equals the printed formula (Appendix B.1), exactly"
            checks.expect(claim, best == formula, f"{here}, formula {formula}")
            claim = "K-SEQ attains the optimum (Appendix B.2), within 1e-12"
            checks.expect(claim, abs(kseq - float(best)) <= 1e-12, f"{here}, K-SEQ {kseq!r}")
            claim = "α_K increases strictly with K until it is 1"
            checks.expect(claim, best > previous or previous == 1, f"{here} after {previous}")
            # the distance to 1 is (1 - 1/r)^K, so it is divided by 2 at the latest every r drafts
            claim = "1 − α_K is halved at least every r drafts (Lemma 1)"
            checks.expect(claim, 1 - best <= 2.0 ** -(drafts // ratio), f"{here}, {1 - best} short of 1")
            previous = best
    return Findings(
        f"The draft is uniform on {draft_support} tokens, the target on some of them. K-SEQ attains "
        "the optimum.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    otm_uniform.main()
