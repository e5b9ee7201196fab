"""Acceptance at one position for Bernoulli pairs, spectr2023 Figures 4 and 6."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.optima import bernoulli_acceptance, optimal_acceptance, otm_optimum
from spectheory.pairs.instances import bernoulli
from spectheory.paper.drawing import verifier_curve
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import BLACK, figure_style
from spectheory.verification.algorithms.position_by_position.kseq import kseq_rule
from spectheory.verification.algorithms.position_by_position.multi_round import multi_round_acceptance

DRAFT_HEAD = Fraction(1, 4)
TARGET_HEADS = tuple(Fraction(head) for head in ("1/10", "1/2", "3/4", "1"))
MAX_DRAFTS_OF_PROGRAM = 4  # the linear program has 2^(k+1) variables


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"otm_bernoulli": _plot(findings.tables[0])}


@exhibit(
    title="Acceptance at one position, Bernoulli pairs",
    source="spectr2023, Figures 4 and 6, Eq. 10",
    draw=_draw,
)
def otm_bernoulli(target_heads: Sequence[Fraction] = TARGET_HEADS, max_drafts: int = 10) -> Findings:
    """Acceptance of OTM-k, K-SEQ and multi-round rejection, draft Ber(1/4) against targets Ber(b).

    OTM-k by the min cut, exactly, checked against the closed form (Eq. 10) and, for few drafts,
    against the linear program (Eq. 4); K-SEQ in float64,
    because its division factor is algebraic; multi-round exactly.

    Args:
        target_heads: b.
        max_drafts: the largest K.
    """
    rows = []
    formula_fails, program_fails, above = [], [], []
    programs = 0
    for head in target_heads:
        pair = bernoulli(DRAFT_HEAD, head)
        target, draft = pair.target[0][0], pair.draft[0][0]
        for drafts in range(1, max_drafts + 1):
            best = optimal_acceptance(target, draft, drafts).value
            rule = kseq_rule(target.astype(float), draft.astype(float), np.array(float(drafts)))
            kseq = float(rule.acceptance)
            multi_round = multi_round_acceptance(target, draft, drafts)
            rows.append((head, drafts, best, float(best), kseq, multi_round, float(multi_round)))
            formula = bernoulli_acceptance(DRAFT_HEAD, head, drafts)
            if best != formula:
                formula_fails.append(f"at b = {head}, K = {drafts}: min cut {best}, Eq. 10 {formula}")
            if drafts <= MAX_DRAFTS_OF_PROGRAM:
                programs += 1
                program = 1 - otm_optimum(target, draft, drafts).value
                if best != program:
                    program_fails.append(f"at b = {head}, K = {drafts}: min cut {best}, Eq. 4 {program}")
            if kseq > float(best) + 1e-12 or multi_round > best:
                above.append(f"at b = {head}, K = {drafts} a rule exceeds {best}")
    table = ResultTable(
        "otm_bernoulli",
        ("target_head", "num_drafts", "otm", "otm_float", "kseq", "multi_round", "multi_round_float"),
        rows,
        "Acceptance probability at one position, draft Ber(1/4), target Ber(target_head), K i.i.d. drafts.",
    )
    fewer = f"for K ≤ {MAX_DRAFTS_OF_PROGRAM} it equals the linear program (Eq. 4), exactly"
    return Findings(
        explanation=(
            "Draft Ber(0.25) against targets Ber(b). At b = 1 a draft is accepted if and only if a head is "
            "drawn, so the three rules coincide."
        ),
        settings={"target_heads": [str(head) for head in target_heads], "max_drafts": max_drafts},
        tables=[table],
        checks=[
            Check.of("the min cut equals the closed form (Eq. 10), exactly", len(rows), formula_fails),
            Check.of(fewer, programs, program_fails),
            Check.of("no rule exceeds the optimum", len(rows), above),
        ],
    )


def _plot(table: ResultTable) -> Figure:
    target_heads = list(dict.fromkeys(table.column("target_head")))
    with figure_style():
        figure = Figure(figsize=(7.6, 5.0), layout="constrained")
        columns = 2 if len(target_heads) > 1 else 1
        panels = figure.subplots(
            -(-len(target_heads) // columns), columns, sharex=True, sharey=True, squeeze=False
        )
        for number, head in enumerate(target_heads):
            axes = panels.flat[number]
            _panel(axes, table, head)
            if number == 0:
                axes.legend(frameon=False, loc="lower right")
        for axes in panels[:, 0]:
            axes.set_ylabel("acceptance probability")
        for axes in panels[-1, :]:
            axes.set_xlabel("number of drafts K")
    return figure


def _panel(axes: Axes, table: ResultTable, head: str) -> None:
    rows = table.select(target_head=head)
    drafts = [row["num_drafts"] for row in rows]
    curves = (
        ("otm_float", "otm", "OTM (optimal)", "-"),
        ("kseq", "kseq", "K-SEQ", "--"),
        ("multi_round_float", "multi_round", "multi-round", ":"),
    )
    for column, name, label, dashes in curves:
        verifier_curve(axes, name, drafts, [row[column] for row in rows], linestyle=dashes, label=label)
    if all(abs(row["otm_float"] - row["multi_round_float"]) < 1e-12 for row in rows):
        middle = rows[len(rows) // 2]
        axes.annotate(
            "all three coincide", (middle["num_drafts"], middle["otm_float"]), xytext=(8, -14),
            textcoords="offset points", color=BLACK,
        )  # fmt: skip
    axes.set(ylim=(0, 1.02), xticks=drafts)
    axes.set_title(f"target Ber({float(Fraction(head)):g}), draft Ber({float(DRAFT_HEAD):g})")
