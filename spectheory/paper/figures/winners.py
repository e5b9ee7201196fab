"""Which verifier earns most: a map over how well the models agree and how many paths are drafted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from spectheory.instances import random_float
from spectheory.law import output_law
from spectheory.paper.drawing import panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import VERIFIER_STYLES
from spectheory.programs import multi_path_interval

VERIFIERS = ("block", "multi_round", "spectr", "greedy_multipath")
ONE_PATH = "block"


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"winners": _plot(findings)}


@exhibit(
    title="Who wins: agreement of the models against the number of drafts",
    source="this package; compares spectr2023 Algorithm 3, block2024 Algorithm 2 and greedy2026 Algorithm 1",
    draw=_draw,
)
def winners(
    agreements: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
    num_drafts: Sequence[int] = (1, 2, 3),
    num_pairs: int = 8,
    seed: int = 31,
    vocab_size: int = 2,
    draft_length: int = 3,
) -> Findings:
    """Mean block efficiency of published lossless verifiers over the same random pairs, cell by cell.

    Args:
        agreements: a; the draft row is a times the target's and 1 − a times an independent one.
        num_drafts: the numbers K.
        num_pairs: random pairs per agreement, the same for every K.
        seed: of the pairs.
        vocab_size, draft_length: V and L.
    """
    rows, map_rows, above, below_block = [], [], [], []
    for agreement in agreements:
        pairs = [
            random_float([seed, n], vocab_size, draft_length, agreement=agreement) for n in range(num_pairs)
        ]
        block = [float(output_law(ONE_PATH, pair).block_efficiency) for pair in pairs]
        for drafts in num_drafts:
            optima = [multi_path_interval(pair, drafts) for pair in pairs]
            means = {}
            for name in VERIFIERS:
                values = [
                    one if name == ONE_PATH else float(output_law(name, pair, drafts).block_efficiency)
                    for one, pair in zip(block, pairs, strict=True)
                ]
                shares = [value / best.value for value, best in zip(values, optima, strict=True)]
                means[name] = float(np.mean(values))
                rows.append((agreement, drafts, name, means[name], float(np.mean(shares)), min(shares)))
                above += [
                    f"{name}, agreement {agreement}, K = {drafts}, pair {number}: {value} > {best.upper}"
                    for number, (value, best) in enumerate(zip(values, optima, strict=True))
                    if value > best.upper + 1e-9
                ]
                if name == "greedy_multipath":
                    below_block += [
                        drafts for value, one in zip(values, block, strict=True) if value < one - 1e-9
                    ]
            # with one draft greedy multi-path is block: the earlier name
            best_name = max(means, key=lambda name: round(means[name], 9))
            share = next(row[4] for row in rows if row[:3] == (agreement, drafts, best_name))
            map_rows.append((agreement, drafts, best_name, means[best_name], share))
    cells = len(agreements) * len(num_drafts)
    several = sum(1 for drafts in num_drafts if drafts > 1) * len(agreements) * num_pairs
    winners_of_several = Counter(row[2] for row in map_rows if row[1] > 1)
    won = ", ".join(
        f"{VERIFIER_STYLES[name].label} wins {count}" for name, count in winners_of_several.items()
    )
    refuted = [] if below_block else ["greedy multi-path never earned less than block on one path"]
    settings = {
        "agreements": list(agreements), "num_drafts": list(num_drafts), "num_pairs": num_pairs, "seed": seed,
        "vocab_size": vocab_size, "draft_length": draft_length,
    }  # fmt: skip
    return Findings(
        explanation=(
            "Every cell names the verifier with the largest mean block efficiency over the same random "
            f"pairs and what part of the optimum it earns. Cells with several paths: {won or 'none'}. "
            "Greedy multi-path earns less than block verification of a single path in "
            f"{len(below_block)} of {several} cases."
        ),
        settings=settings,
        tables=[
            ResultTable(
                "winners",
                ("agreement", "num_drafts", "winner", "block_efficiency", "share_of_optimum"),
                map_rows,
                "The verifier with the largest mean block efficiency, and the mean of its shares of the "
                "optimum.",
            ),
            ResultTable(
                "winners_all",
                (
                    "agreement", "num_drafts", "verifier", "block_efficiency", "share_of_optimum",
                    "smallest_share",
                ),
                rows,
                f"Means over {num_pairs} random pairs, V = {vocab_size}, L = {draft_length}.",
            ),
        ],
        checks=[
            Check.of("no verifier exceeds the optimum on any pair",
                     cells * num_pairs * len(VERIFIERS), above),
            Check.of("several paths do not always pay: greedy multi-path can earn less than block on one",
                     several, refuted),
        ],
    )  # fmt: skip


def _plot(findings: Findings) -> Figure:
    table, settings = findings.table("winners"), findings.settings
    agreements, drafts = (list(dict.fromkeys(table.column(key))) for key in ("agreement", "num_drafts"))
    with panels(width=max(0.9 * len(agreements) + 1.2, 4.8), height=0.55 * len(drafts) + 1.9) as (
        figure,
        (axes,),
    ):
        shown = []
        for row in table.select():
            x, y = agreements.index(row["agreement"]), drafts.index(row["num_drafts"])
            style = VERIFIER_STYLES[row["winner"]]
            shown.append(row["winner"])
            axes.add_patch(
                Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=style.colour, alpha=0.35, edgecolor="white")
            )
            axes.annotate(f"{row['block_efficiency']:.2f}\n{100 * row['share_of_optimum']:.1f} %", (x, y),
                          ha="center", va="center", fontsize=8)  # fmt: skip
        axes.set(xlim=(-0.5, len(agreements) - 0.5), ylim=(-0.5, len(drafts) - 0.5))
        axes.set_xticks(range(len(agreements)), [f"{value:g}" for value in agreements])
        axes.set_yticks(range(len(drafts)), [str(value) for value in drafts])
        axes.set(xlabel="agreement of the models", ylabel="number of drafts K")
        axes.grid(visible=False)
        axes.set_title(
            "Winner, its tokens per call, its share of the optimum\n"
            f"V = {settings['vocab_size']}, L = {settings['draft_length']}, "
            f"{settings['num_pairs']} pairs per cell"
        )
        handles = [
            Patch(facecolor=VERIFIER_STYLES[name].colour, alpha=0.35, label=VERIFIER_STYLES[name].label)
            for name in VERIFIERS if name in shown
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure
