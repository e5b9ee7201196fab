from collections.abc import Sequence
from fractions import Fraction

from matplotlib.figure import Figure

from figures.common.transport_bounds import transport_bounds
from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, panels_by
from spectheory.optima import optimal_acceptance, otm_optimum
from spectheory.verification.curves import GREY, optimum_curve

ROWS = {
    "two-token pair": (("1/3", "2/3"), ("2/3", "1/3")),
    "the draft is reversed": (("1/2", "1/3", "1/6"), ("1/6", "1/3", "1/2")),
    "the draft misses 1/4": (("1/4", "1/4", "1/2"), ("0", "1/2", "1/2")),
}
PROGRAM_UP_TO = 4  # the linear program has V^(K+1) variables


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    with panels_by(table, "pair", "acceptance probability", width=2.7, height=3.2) as (figure, parts):
        for axes, name, rows in parts:
            drafts, lower, upper = rows["num_drafts"], rows["lower"], rows["upper"]
            axes.fill_between(
                drafts, lower, upper, color=ACCENT, alpha=0.18, linewidth=0, label="between the bounds"
            )
            axes.plot(drafts, lower, color=ACCENT, linewidth=1.2, label="lower bound (Lemma 3)")
            optimum_curve(axes, drafts, rows["otm"], "optimum: the upper bound")
            axes.axhline(rows["limit"][0], color=GREY, linewidth=1, linestyle=":", label="limit (Lemma 1)")
            axes.set(xlabel="number of drafts K", ylim=(0, 1.02), xticks=drafts)
            axes.set_title(name)
    return figure


@result(
    title="Optimal acceptance, its limit and its bounds",
    source="spectr2023, Lemmas 1 and 3",
    draw=_draw,
    small={"max_drafts": 3},
)
def acceptance_bounds(names: Sequence[str] = tuple(ROWS), max_drafts: int = 8) -> Findings:
    """α_K by the min cut next to both bounds of Lemma 3 and the limit of Lemma 1, exactly."""
    checks = Checks()
    table = ResultTable(
        "acceptance_bounds",
        "Acceptance probability at one position. lower, upper: Lemma 3; limit: Lemma 1, the target mass of "
        "the tokens that the draft can emit. Exact.",
    )
    for name in names:
        target, draft = ROWS[name]
        limit = sum((Fraction(p) for p, q in zip(target, draft, strict=True) if Fraction(q) > 0), Fraction(0))
        previous = Fraction(0)
        for drafts in range(1, max_drafts + 1):
            best = optimal_acceptance(target, draft, drafts).value
            lower, upper, *_ = transport_bounds(target, draft, drafts)
            table.add(pair=name, num_drafts=drafts, otm=best, lower=lower, upper=upper, limit=limit)
            here = f"{name}, K = {drafts}: {best}"
            checks.expect("α_K does not fall as K grows (Lemma 1)", best >= previous, f"{here} < {previous}")
            checks.expect("α_K stays at or below its limit (Lemma 1)", best <= limit, f"{here} > {limit}")
            claim = "α_K lies between the bounds (Lemma 3)"
            checks.expect(claim, lower <= best <= upper, f"{here}, [{lower}, {upper}]")
            claim = "the upper bound is attained, exactly (Statement 3.4)"
            checks.expect(claim, best == upper, f"{here} < {upper}")
            if drafts <= PROGRAM_UP_TO:
                program = 1 - otm_optimum(target, draft, drafts).value
                claim = "for K ≤ 4 it equals the linear program (Eq. 4), exactly"
                checks.expect(claim, program == best, f"{here}, program {program}")
            previous = best
    return Findings(
        "α_K grows with K to the target mass of the tokens that the draft can emit. The upper bound of "
        "Lemma 3 is α_K itself, so its lower bound leaves the whole factor 1 − (1 − 1/K)^K open.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    acceptance_bounds.main()
