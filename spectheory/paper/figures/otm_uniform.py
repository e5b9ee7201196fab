"""Acceptance at one position for uniform pairs, spectr2023 Figure 5."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.validation import check_count
from spectheory.optima import optimal_acceptance_curve, uniform_acceptance
from spectheory.pairs.instances import uniform
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, BLACK, GREY
from spectheory.verification.algorithms.position_by_position.kseq import kseq_rule

LOOKS = [(colour, line) for line in ("-", "--", ":") for colour in (BLACK, ACCENT, GREY)]


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"otm_uniform": _plot(findings)}


@exhibit(
    title="Acceptance at one position, uniform pairs", source="spectr2023, Figure 5, Appendix B.2", draw=_draw
)
def otm_uniform(
    draft_support: int = 120, target_supports: Sequence[int] = (60, 40, 30, 20, 12), max_drafts: int = 20
) -> Findings:
    """α_K of draft U(d) against target U(d/r), exactly, and K-SEQ, which attains it.

    The paper's figure has d = 120; its text does not say which targets.

    Args:
        draft_support: d, the number of tokens that the draft emits.
        target_supports: d/r, divisors of d: the number of tokens that the target emits.
        max_drafts: the largest K.

    Raises:
        InvalidInputError: one of them does not divide d.
    """
    check_count("draft_support", draft_support)
    for support in target_supports:
        if draft_support % check_count("target_supports", support):
            raise InvalidInputError(f"target_supports are divisors of {draft_support}, got {support}")
    rows, formula_fails, kseq_fails, falls, beyond = [], [], [], [], []
    for support in target_supports:
        pair = uniform(draft_support, draft_support // support)
        target, draft = pair.target[0][0], pair.draft[0][0]
        curve = optimal_acceptance_curve(target, draft, max_drafts)
        previous = None
        for drafts, cut in enumerate(curve, 1):
            best = cut.value
            kseq = float(
                kseq_rule(target.astype(float), draft.astype(float), np.array(float(drafts))).acceptance
            )
            formula = uniform_acceptance(draft_support // support, drafts)
            rows.append((support, drafts, best, float(best), formula, kseq))
            here = f"target U({support}), K = {drafts}"
            if best != formula:
                formula_fails.append(f"{here}: min cut {best}, formula {formula}")
            if abs(kseq - float(best)) > 1e-12:
                kseq_fails.append(f"{here}: K-SEQ {kseq!r}, optimum {float(best)!r}")
            if previous is not None and best <= previous < 1:
                falls.append(f"{here}: {best} after {previous}")
            previous = best
            # the distance to 1 is (1 - 1/r)^K, so it is divided by 2 at the latest every r drafts
            if 1 - best > 2.0 ** -(drafts // (draft_support // support)):
                beyond.append(f"{here}: still {1 - best} short of 1")
    table = ResultTable(
        "otm_uniform",
        ("target_support", "num_drafts", "otm", "otm_float", "printed", "kseq"),
        rows,
        f"Acceptance probability at one position, draft U({draft_support}), target U(target_support). "
        f"printed: 1 − (1 − 1/r)^K with r = {draft_support}/target_support, the paper's formula.",
    )
    return Findings(
        explanation=(
            f"The draft is uniform on {draft_support} tokens, the target on some of them. K-SEQ attains "
            "the optimum."
        ),
        settings={
            "draft_support": draft_support, "target_supports": list(target_supports),
            "max_drafts": max_drafts,
        },
        tables=[table],
        checks=[
            Check.of(
                "the min cut equals the printed formula (Appendix B.1), exactly", len(rows), formula_fails
            ),
            Check.of("K-SEQ attains the optimum (Appendix B.2), within 1e-12", len(rows), kseq_fails),
            Check.of("α_K increases strictly with K until it is 1", len(rows), falls),
            Check.of("1 − α_K is halved at least every r drafts (Lemma 1)", len(rows), beyond),
        ],
    )  # fmt: skip


def _plot(findings: Findings) -> Figure:
    table = findings.tables[0]
    with panels(width=5.6, height=3.6) as (figure, (axes,)):
        supports = dict.fromkeys(table.column("target_support"))
        for support, (colour, line) in zip(supports, cycle(LOOKS), strict=False):
            rows = table.select(target_support=support)
            drafts = [row["num_drafts"] for row in rows]
            axes.plot(drafts, [row["otm_float"] for row in rows], line, color=colour,
                      label=f"target U({support})")  # fmt: skip
            axes.plot(drafts, [row["kseq"] for row in rows], "o", color=colour, markersize=3.5,
                      markerfacecolor="white", clip_on=False)  # fmt: skip
        axes.set(xlabel="number of drafts K", ylabel="acceptance probability", ylim=(0, 1.02))
        axes.set(xlim=(1, max(table.column("num_drafts"))))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_title(f"Draft U({findings.settings['draft_support']}): optimum (lines), K-SEQ (points)")
        legend_below(figure, 3)
    return figure
