from typing import Any

import numpy as np
from matplotlib.figure import Figure

from figures.common.measured import measurement
from figures.results import Checks, Findings, ResultTable, result
from figures.style import note, panels_by
from spectheory.verification.curves import GREY, verifier_curve

SOURCE, EVERYWHERE, DRAFT = "study", "all", "target:last-4"
VERIFIERS = ("block", "naive_sampling", "multi_round", "traversal", "greedy_multipath", "scored_multipath")
ROW_COSTS = tuple(float(cost) for cost in np.geomspace(0.001, 0.1, 25))
"""From a large model on a GPU that waits for its weights to a small model on a CPU."""


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    label = "tokens in the time of one call\nthat scores no drafts (up is better)"
    with panels_by(table, "temperature", label, width=4.0, height=3.4, legend_columns=3) as (figure, parts):
        for axes, heat, rows in parts:
            for name in VERIFIERS:
                curve = rows.where(verifier=name)
                verifier_curve(axes, name, curve["row_cost"], curve["speed"], marker="")
            axes.axhline(1, color=GREY, linestyle=":", linewidth=1)
            axes.set(xscale="log", xlabel="cost of a drafted token in the call, c")
            axes.set_title(f"SmolLM2-135M, temperature {heat:g}")
        parts[0][0].set_ylim(0.8, 1.05 * max(table["speed"]))
        note(parts[0][0], "dotted: plain decoding", (0.02, 0.14), ha="left")
    return figure


def fastest(rows: list[dict[str, Any]], row_cost: float) -> dict[str, Any]:
    """The drafts of which a call earns most per time: the largest E[tokens] / (1 + c N) over N rows.

    Example:
        >>> rows = [{"nodes": 8, "block_efficiency": 2.0}, {"nodes": 64, "block_efficiency": 2.5}]
        >>> [fastest(rows, cost)["nodes"] for cost in (0.001, 0.1)]
        [64, 8]
    """
    return max(rows, key=lambda row: row["block_efficiency"] / (1 + row_cost * row["nodes"]))


@result(
    title="Who is fastest at which cost of verification",
    source="this package (no counterpart in the papers)",
    draw=_draw,
)
def verification_cost(draft: str = DRAFT) -> Findings:
    """Tokens per time against the cost of a drafted token in a call, from the study that was measured before.

    Args:
        draft: the draft model of the study; its drafts cost nothing here.
    """
    checks, found = Checks(), measurement(SOURCE)
    table = ResultTable(
        "verification_cost",
        f"{found.machine}. speed: E[tokens] / (1 + c N), with the drafts and N among those of the study that "
        "make it largest; plain decoding has 1. Drafting costs nothing.",
    )
    measured = found.select(domain=EVERYWHERE, draft=draft)
    for heat in sorted({row["temperature"] for row in measured}):
        for name in VERIFIERS:
            rows = [row for row in measured if (row["temperature"], row["verifier"]) == (heat, name)]
            chosen = [fastest(rows, cost) for cost in ROW_COSTS]
            for cost, best in zip(ROW_COSTS, chosen, strict=True):
                table.add(
                    temperature=heat, verifier=name, row_cost=cost, drafts=best["drafts"],
                    nodes=best["nodes"], speed=best["block_efficiency"] / (1 + cost * best["nodes"]),
                )  # fmt: skip
            nodes = [best["nodes"] for best in chosen]
            claim = "dearer rows never make more of them worth while"
            checks.expect(claim, nodes == sorted(nodes, reverse=True), f"{name} at {heat}: {nodes}")
    return Findings(
        "A call that scores N drafted tokens takes 1 + c N times as long as one that scores none. Every "
        "verifier takes, at every cost c, the drafts and the number N that pay best among those of the study "
        "(4 to 64 tokens). Drafting costs nothing here, so that the picture is about verification alone; "
        "`spectheory plan` measures both costs on your machine.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    verification_cost.main()
