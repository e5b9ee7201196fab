"""The law of the accepted length, block2024 Figure 3."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from matplotlib.figure import Figure
from scipy.stats import binomtest

from spectheory.exact.law import output_law
from spectheory.pairs.instances import two_token
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.bundled import whole
from spectheory.paper.style import VERIFIER_COLOURS, VERIFIER_LABELS, figure_style
from spectheory.simulation import simulate_enumerated

VERIFIERS = ("token", "block")


def _draw(findings: Findings) -> dict[str, Figure]:
    return {
        "acceptance_length": _plot(
            findings.tables[0], **{key: findings.settings[key] for key in ("draft_length", "confidence")}
        )
    }


@exhibit(title="How many drafted tokens are accepted", source="block2024, Figure 3", draw=_draw)
def acceptance_length(
    draft_length: int = 10, samples: int = 4_000, seed: int = 3, confidence: float = 0.99
) -> Findings:
    """P(tau >= l) of token and block verification on the two-token pair, exact and counted.

    The exact curve sums the output law; the points count sampled acceptance lengths, with exact
    intervals (clopper1934).

    Args:
        draft_length: L; the paper's figure has 10.
        samples: sampled drafts.
        seed: of the sampling.
        confidence: with which all points of the figure together lie in their intervals.
    """
    pair = two_token(draft_length)
    simulation = simulate_enumerated(pair, VERIFIERS, samples=samples, seed=seed)
    level = 1 - (1 - confidence) / (len(VERIFIERS) * draft_length)  # Bonferroni
    rows: list[tuple[Any, ...]] = []
    for estimate in whole(simulation).estimates:
        exact = at_least(output_law(estimate.verifier, pair).length_probs)
        counted = at_least(estimate.counted_length_probs)
        rows.append((estimate.verifier, 0, exact[0], float(exact[0]), 1.0, 1.0, 1.0, True))
        for length in range(1, draft_length + 1):
            count = round(counted[length] * samples)
            interval = binomtest(count, samples).proportion_ci(level, method="exact")
            inside = bool(interval.low <= exact[length] <= interval.high)
            rows.append((
                estimate.verifier, length, exact[length], float(exact[length]),
                count / samples, interval.low, interval.high, inside,
            ))  # fmt: skip
    table = ResultTable(
        "acceptance_length",
        ("verifier", "length", "exact", "exact_float", "counted", "low", "high", "agree"),
        rows,
        "P(τ ≥ length): exact, and the fraction of sampled drafts with its interval "
        f"(all {len(VERIFIERS) * draft_length} together at {100 * confidence:g}%).",
    )
    failures = [
        f"P(τ ≥ {row[1]}) of {row[0]} is {row[3]:.6f}, outside [{row[5]:.6f}, {row[6]:.6f}]"
        for row in rows
        if not row[-1]
    ]
    claim = "every exact probability lies in the interval of its sampled fraction"
    return Findings(
        explanation=(
            f"Two-token pair, draft length {draft_length}. Lines are exact; points are fractions of "
            f"{samples} sampled drafts, bars their intervals."
        ),
        settings={
            "draft_length": draft_length, "samples": samples, "seed": seed, "confidence": confidence,
        },
        tables=[table],
        checks=[Check.of(claim, len(VERIFIERS) * draft_length, failures)],
    )  # fmt: skip


def at_least(length_probs: list[Any]) -> list[Any]:
    """P(tau >= i) from P(tau = i), i = 0..L.

    Example:
        >>> at_least([1, 2, 3])
        [6, 5, 3]
    """
    return list(accumulate(reversed(length_probs)))[::-1]


def _plot(table: ResultTable, draft_length: int, confidence: float) -> Figure:
    with figure_style():
        figure = Figure(figsize=(6.0, 3.8), layout="constrained")
        axes = figure.subplots()
        for name in VERIFIERS:
            rows = table.select(verifier=name)
            lengths = [row["length"] for row in rows]
            colour = VERIFIER_COLOURS[name]
            axes.plot(lengths, [row["exact_float"] for row in rows], color=colour)
            points = rows[1:]
            axes.errorbar(
                lengths[1:],
                [row["counted"] for row in points],
                yerr=[
                    [row["counted"] - row["low"] for row in points],
                    [row["high"] - row["counted"] for row in points],
                ],
                fmt="o", markersize=4, color=colour, capsize=2.5, elinewidth=1, markerfacecolor="white",
            )  # fmt: skip
            middle = rows[min(4, draft_length)]
            offset = {"token": (-8, -6), "block": (8, 6)}[name]
            axes.annotate(
                VERIFIER_LABELS[name], (middle["length"], middle["exact_float"]), xytext=offset,
                textcoords="offset points", color=colour, fontweight="bold",
                ha="right" if name == "token" else "left", va="top" if name == "token" else "bottom",
            )  # fmt: skip
        axes.set(
            xlabel="accepted tokens ℓ", ylabel="P(τ ≥ ℓ)", ylim=(0, 1.02), xlim=(0, draft_length + 0.3),
            xticks=range(draft_length + 1),
        )  # fmt: skip
        axes.annotate(
            f"all intervals together {100 * confidence:g} %", (0.98, 0.95),
            xycoords="axes fraction", ha="right", fontsize=8.5,
        )  # fmt: skip
        axes.set_title(f"Accepted tokens, draft length {draft_length}: exact (lines), sampled (points)")
    return figure
