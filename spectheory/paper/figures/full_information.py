"""What full information would accept in block2024's first example, and why no lossless verifier does."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.optima import block_transport_optimum, optimum
from spectheory.pairs.instances import two_token
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import legend_below, optimum_curve, panels, verifier_curve
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import BLACK, GREY
from spectheory.verification.resolve import find_verifier

VERIFIERS = ("token", "block", "greedy_block")
PRINTED = {"token": Fraction(10, 9), "block": Fraction(11, 9), "ideal": Fraction(12, 9)}
"""E[tau] at draft length 2, block2024 section 2."""
PRINTED_ACCEPTANCE = {
    "AA": ("3/4", "0", "1/4"), "AB": ("0", "0", "1"), "BA": ("0", "1/2", "1/2"), "BB": ("0", "0", "1"),
}  # fmt: skip
"""P(tau = 0, 1, 2) of block verification for each drafted block, the same section."""
EXACT_IDEAL_UP_TO = 3  # the coupling program has V^(2L) variables


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"full_information": _plot(findings.table("full_information"))}


@exhibit(
    title="The ideal algorithm of the two-token example",
    source="block2024, section 2, Eqs. 40–42",
    draw=_draw,
)
def full_information(draft_lengths: Sequence[int] = (1, 2, 3, 4, 5, 6)) -> Findings:
    """E[τ] with full information, of valid verifiers, and the linear program over these; exactly.

    With the joint laws of both blocks known, a maximal coupling keeps Σ_a min(p(a), q(a)) at every
    length, E[τ] = 12/9 at length 2.  It corrects AA to BB, two tokens that were not drafted.  A verifier
    returns a drafted prefix and one token, and the program over all of these, whatever they know, gives 11/9.

    Args:
        draft_lengths: the lengths L.
    """
    rows, not_printed, above, below_optimum, no_coupling, not_lossy = [], [], [], [], [], []
    printed = couplings = 0
    for length in draft_lengths:
        pair = two_token(length)
        laws = {name: output_law(name, pair) for name in VERIFIERS}
        ideal = common_mass(pair)
        best = optimum(pair).value - 1
        values = {name: law.block_efficiency - 1 for name, law in laws.items()} | {"ideal": ideal}
        defects = {name: law.total_variation for name, law in laws.items()}
        for name, value in values.items():
            expected = PRINTED.get(name) if length == 2 else None
            defect = defects.get(name)
            rows.append((
                length, name, value, float(value), expected, best, float(best), defect,
                None if defect is None else float(defect),
            ))  # fmt: skip
            if expected is not None:
                printed += 1
                if value != expected:
                    not_printed.append(f"{name}: {value}, printed {expected}")
            if defect == 0 and value > best:
                above.append(f"L = {length}: {name} {value} > {best}")
        if values["block"] != best:
            below_optimum.append(f"L = {length}: {values['block']} < {best}")
        if length <= EXACT_IDEAL_UP_TO:
            couplings += 1
            program = block_transport_optimum(pair).value
            if not program == values["greedy_block"] == ideal:
                no_coupling.append(f"L = {length}: program {program}, sum {ideal}")
        if (ideal > best) != (defects["greedy_block"] > 0):
            not_lossy.append(f"L = {length}: defect {defects['greedy_block']}")
    acceptance = acceptance_by_block()
    wrong = [
        f"{row[0]}: {row[1:4]}, printed {row[4:]}"
        for row in acceptance
        if tuple(map(str, row[1:4])) != row[4:]
    ]
    checks = [
        Check.of("block verification is the best valid verifier, whatever the others know",
                 len(draft_lengths), below_optimum),
        Check.of("no lossless verifier exceeds the optimum", len(rows), above),
        Check.of("the coupling program (Eq. 40), Σ min(p, q) and greedy block agree, exactly",
                 couplings, no_coupling),
        Check.of("greedy block reaches the ideal; it is lossy on its own wherever the ideal is out of reach",
                 len(draft_lengths), not_lossy),
        Check.of("block verification accepts each of the four blocks as printed", len(acceptance), wrong),
    ]  # fmt: skip
    if printed:
        claim = "E[τ] is 10/9, 11/9 and 12/9 at length 2, as printed"
        checks.insert(0, Check.of(claim, printed, not_printed))
    return Findings(
        explanation=(
            "Two-token pair. The ideal is what two coupled texts have in common; it is no verifier, because "
            "it replaces more than one token. Greedy block reaches it only with modified rows in the next "
            "calls."
        ),
        settings={"draft_lengths": list(draft_lengths)},
        tables=[
            ResultTable(
                "full_information",
                (
                    "draft_length", "algorithm", "accepted", "accepted_float", "printed", "optimum",
                    "optimum_float", "total_variation", "total_variation_float",
                ),
                rows,
                "Accepted tokens E[τ] per target call; optimum: the program of one path, minus 1; "
                "total_variation: of one call. Exact.",
            ),
            ResultTable(
                "full_information_block",
                ("drafted", "accepts_0", "accepts_1", "accepts_2", "printed_0", "printed_1", "printed_2"),
                acceptance,
                "P(τ = 0, 1, 2) of block verification for each drafted block of two tokens, and as printed.",
            ),
        ],
        checks=checks,
    )  # fmt: skip


def common_mass(pair: ModelPair) -> Any:
    """Σ_{1≤|a|≤L} min(p(a), q(a)): the mean common prefix of the best coupling of two texts.

    Example:
        >>> print(common_mass(two_token(2)))
        4/3
    """
    return sum(
        np.minimum(pair.target_path_probs(depth), pair.draft_path_probs(depth)).sum()
        for depth in range(1, pair.draft_length + 1)
    )


def acceptance_by_block() -> list[tuple[str, ...]]:
    """P(τ = 0, 1, 2) of block verification for AA, AB, BA and BB, and the printed values."""
    pair = two_token(2)
    paths = np.array([[[0, 0]], [[0, 1]], [[1, 0]], [[1, 1]]])  # [N, K, L]
    target = np.broadcast_to(pair.target[0][0], (4, 1, 3, 2))
    draft = np.broadcast_to(pair.draft[0][0], (4, 1, 2, 2))
    stops = find_verifier("block").outcome(paths, target, draft).stop_probs[:, 0]
    return [
        (name, *row, *PRINTED_ACCEPTANCE[name]) for name, row in zip(PRINTED_ACCEPTANCE, stops, strict=True)
    ]


def _plot(table: ResultTable) -> Figure:
    with panels(width=6.8, height=3.8) as (figure, (axes,)):
        ideal = table.select(algorithm="ideal")
        lengths = [row["draft_length"] for row in ideal]
        best, out_of_reach = ([row[key] for row in ideal] for key in ("optimum_float", "accepted_float"))
        axes.fill_between(lengths, best, out_of_reach, color=GREY, alpha=0.2, linewidth=0,
                          label="out of reach of any lossless verifier")  # fmt: skip
        axes.plot(lengths, out_of_reach, color=BLACK, linewidth=1.2, linestyle=":",
                  label="ideal: Σ min(p, q)")  # fmt: skip
        for name in VERIFIERS:
            values = [row["accepted_float"] for row in table.select(algorithm=name)]
            lossy = name == "greedy_block"
            label = {"label": "greedy block (not lossless on its own)"} if lossy else {}
            verifier_curve(axes, name, lengths, values, linestyle="none" if lossy else "-", **label)
        optimum_curve(axes, lengths, best)
        axes.set(xlabel="draft length L", ylabel="accepted tokens E[τ]", xticks=lengths)
        axes.set_ylim(bottom=0)
        axes.set_title("Accepted tokens on the two-token pair, exactly")
        legend_below(figure, 2)
    return figure
