"""The optimal acceptance as the drafts grow in number: where it tends, and the bounds around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from matplotlib.figure import Figure

from spectheory.optima import optimal_acceptance, otm_optimum, transport_bounds
from spectheory.paper.drawing import legend_below, optimum_curve, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, GREY

Rows = tuple[tuple[str, ...], tuple[str, ...]]
ROWS: Mapping[str, Rows] = {
    "two tokens": (("1/3", "2/3"), ("2/3", "1/3")),
    "reversed": (("1/2", "1/3", "1/6"), ("1/6", "1/3", "1/2")),
    "the draft misses 1/4": (("1/4", "1/4", "1/2"), ("0", "1/2", "1/2")),
}
PROGRAM_UP_TO = 4  # the linear program has V^(K+1) variables


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"acceptance_bounds": _plot(findings.tables[0])}


@exhibit(
    title="Optimal acceptance, its limit and its bounds", source="spectr2023, Lemmas 1 and 3", draw=_draw
)
def acceptance_bounds(names: Sequence[str] = tuple(ROWS), max_drafts: int = 8) -> Findings:
    """α_K by the min cut next to both bounds of Lemma 3 and the limit of Lemma 1, exactly.

    Args:
        names: which pairs; the default has all.
        max_drafts: the largest K.
    """
    rows, falls, above, outside, not_attained, program_fails = [], [], [], [], [], []
    programs = 0
    for name in names:
        target, draft = ROWS[name]
        limit = sum((Fraction(p) for p, q in zip(target, draft, strict=True) if Fraction(q) > 0), Fraction(0))
        previous = Fraction(0)
        for drafts in range(1, max_drafts + 1):
            best = optimal_acceptance(target, draft, drafts).value
            bounds = transport_bounds(target, draft, drafts)
            rows.append((
                name, drafts, best, float(best), bounds.lower, float(bounds.lower),
                bounds.upper, float(bounds.upper), limit, float(limit),
            ))  # fmt: skip
            here = f"{name}, K = {drafts}"
            if best < previous:
                falls.append(f"{here}: {best} < {previous}")
            if best > limit:
                above.append(f"{here}: {best} > {limit}")
            if not bounds.lower <= best <= bounds.upper:
                outside.append(f"{here}: {best} outside [{bounds.lower}, {bounds.upper}]")
            if best != bounds.upper:
                not_attained.append(f"{here}: {best} < {bounds.upper}")
            if drafts <= PROGRAM_UP_TO:
                programs += 1
                program = 1 - otm_optimum(target, draft, drafts).value
                if program != best:
                    program_fails.append(f"{here}: min cut {best}, program {program}")
            previous = best
    table = ResultTable(
        "acceptance_bounds",
        (
            "pair", "num_drafts", "otm", "otm_float", "lower", "lower_float",
            "upper", "upper_float", "limit", "limit_float",
        ),
        rows,
        "Acceptance probability at one position. lower, upper: Lemma 3; limit: Lemma 1, the target mass of "
        "the tokens that the draft can emit. Exact.",
    )  # fmt: skip
    count = len(rows)
    return Findings(
        explanation=(
            "α_K grows with K to the target mass of the tokens that the draft can emit. The upper bound of "
            "Lemma 3 is α_K itself, so its lower bound leaves the whole factor 1 − (1 − 1/K)^K open."
        ),
        settings={"names": list(names), "max_drafts": max_drafts},
        tables=[table],
        checks=[
            Check.of("α_K does not fall as K grows (Lemma 1)", count, falls),
            Check.of("α_K stays at or below its limit (Lemma 1)", count, above),
            Check.of("α_K lies between the bounds (Lemma 3)", count, outside),
            Check.of("the upper bound is attained, exactly (Statement 3.4)", count, not_attained),
            Check.of("for K ≤ 4 it equals the linear program (Eq. 4), exactly", programs, program_fails),
        ],
    )


def _plot(table: ResultTable) -> Figure:
    names = list(dict.fromkeys(table.column("pair")))
    with panels(1, len(names), width=2.7, height=3.2, sharey=True) as (figure, all_axes):
        for axes, name in zip(all_axes, names, strict=True):
            rows = table.select(pair=name)
            drafts = [row["num_drafts"] for row in rows]
            lower, upper = ([row[key] for row in rows] for key in ("lower_float", "upper_float"))
            axes.fill_between(
                drafts, lower, upper, color=ACCENT, alpha=0.18, linewidth=0, label="between the bounds"
            )
            axes.plot(drafts, lower, color=ACCENT, linewidth=1.2, label="lower bound (Lemma 3)")
            optimum_curve(axes, drafts, [row["otm_float"] for row in rows], "optimum: the upper bound")
            axes.axhline(
                rows[0]["limit_float"], color=GREY, linewidth=1, linestyle=":", label="limit (Lemma 1)"
            )
            axes.set(xlabel="number of drafts K", ylim=(0, 1.02), xticks=drafts)
            axes.set_title(name)
        all_axes[0].set_ylabel("acceptance probability")
        legend_below(figure)
    return figure
