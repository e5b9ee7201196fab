"""Which verifier earns most: a map over the agreement of the models, the number of paths and their length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from spectheory.exact.law import output_law
from spectheory.optima import multi_path_interval
from spectheory.pairs.instances import random_float
from spectheory.paper.drawing import panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import VERIFIER_STYLES

VERIFIERS = ("block", "multi_round", "spectr", "greedy_multipath")
ONE_PATH = "block"


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"winners": _plot(findings)}


@exhibit(
    title="Who wins: agreement of the models, number of drafts and their length",
    source="this package; compares spectr2023 Algorithm 3, block2024 Algorithm 2 and greedy2026 Algorithm 1",
    draw=_draw,
)
def winners(
    agreements: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
    num_drafts: Sequence[int] = (1, 2, 3),
    draft_lengths: Sequence[int] = (1, 2, 3),
    num_pairs: int = 8,
    seed: int = 31,
    vocab_size: int = 2,
) -> Findings:
    """Mean block efficiency of published lossless verifiers over the same random pairs, cell by cell.

    Args:
        agreements: a; the draft row is a times the target's and 1 − a times an independent one.
        num_drafts: the numbers K.
        draft_lengths: the lengths L.
        num_pairs: random pairs per agreement and length, the same for every K.
        seed: of the pairs.
        vocab_size: V.
    """
    rows, map_rows, above, tried, below_block = [], [], [], 0, []
    for length, agreement in product(draft_lengths, agreements):
        pairs = [random_float([seed, n], vocab_size, length, agreement=agreement) for n in range(num_pairs)]
        block = [float(output_law(ONE_PATH, pair).block_efficiency) for pair in pairs]
        for drafts in num_drafts:
            cell = (agreement, drafts, length)
            optima = [multi_path_interval(pair, drafts) for pair in pairs]
            summary = {}
            for name in VERIFIERS:
                values = [
                    one if name == ONE_PATH else float(output_law(name, pair, drafts).block_efficiency)
                    for one, pair in zip(block, pairs, strict=True)
                ]
                shares = [value / best.value for value, best in zip(values, optima, strict=True)]
                summary[name] = (float(np.mean(values)), float(np.mean(shares)), min(shares))
                tried += num_pairs
                above += [
                    f"{name}, {cell}, pair {number}: {value} > {best.upper}"
                    for number, (value, best) in enumerate(zip(values, optima, strict=True))
                    if value > best.upper + 1e-9
                ]
                if name == "greedy_multipath" and drafts > 1:
                    below_block += [value < one - 1e-9 for value, one in zip(values, block, strict=True)]
            rows += [(*cell, name, *numbers) for name, numbers in summary.items()]
            # with one draft greedy multi-path is block: the earlier name
            best_name = max(summary, key=lambda name: round(summary[name][0], 9))
            map_rows.append((*cell, best_name, *summary[best_name][:2]))
    won = Counter(row[3] for row in map_rows if row[1] > 1)
    wins = ", ".join(f"{VERIFIER_STYLES[name].label} wins {count}" for name, count in won.items())
    refuted = [] if any(below_block) else ["greedy multi-path never earned less than block on one path"]
    cell_columns = ("agreement", "num_drafts", "draft_length")
    return Findings(
        explanation=(
            "Every cell names the verifier with the largest mean block efficiency over the same random "
            f"pairs and what part of the optimum it earns. Cells with several paths: {wins or 'none'}. "
            "Greedy multi-path earns less than block verification of a single path in "
            f"{sum(below_block)} of {len(below_block)} cases."
        ),
        settings={
            "agreements": list(agreements), "num_drafts": list(num_drafts),
            "draft_lengths": list(draft_lengths), "num_pairs": num_pairs, "seed": seed,
            "vocab_size": vocab_size,
        },
        tables=[
            ResultTable(
                "winners",
                (*cell_columns, "winner", "block_efficiency", "share_of_optimum"),
                map_rows,
                "The verifier with the largest mean block efficiency, and the mean of its shares of the "
                "optimum.",
            ),
            ResultTable(
                "winners_all",
                (*cell_columns, "verifier", "block_efficiency", "share_of_optimum", "smallest_share"),
                rows,
                f"Means over {num_pairs} random pairs, V = {vocab_size}.",
            ),
        ],
        checks=[
            Check.of("no verifier exceeds the optimum on any pair", tried, above),
            Check.of("several paths do not always pay: greedy multi-path can earn less than block on one",
                     len(below_block), refuted),
        ],
    )  # fmt: skip


def _plot(findings: Findings) -> Figure:
    table, settings = findings.table("winners"), findings.settings
    agreements, drafts, lengths = (
        list(dict.fromkeys(table.column(key))) for key in ("agreement", "num_drafts", "draft_length")
    )
    with panels(
        len(lengths), 1, width=max(0.9 * len(agreements) + 1.2, 4.8), height=0.55 * len(drafts) + 0.9,
        sharex=True,
    ) as (figure, panel):  # fmt: skip
        for axes, length in zip(panel, lengths, strict=True):
            for row in table.select(draft_length=length):
                x, y = agreements.index(row["agreement"]), drafts.index(row["num_drafts"])
                colour = VERIFIER_STYLES[row["winner"]].colour
                axes.add_patch(
                    Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, alpha=0.35, edgecolor="white")
                )
                axes.annotate(f"{row['block_efficiency']:.2f}\n{100 * row['share_of_optimum']:.1f} %",
                              (x, y), ha="center", va="center", fontsize=8)  # fmt: skip
            axes.set(xlim=(-0.5, len(agreements) - 0.5), ylim=(-0.5, len(drafts) - 0.5))
            axes.set_xticks(range(len(agreements)), [f"{value:g}" for value in agreements])
            axes.set_yticks(range(len(drafts)), [str(value) for value in drafts])
            axes.set_ylabel("number of drafts K")
            axes.grid(visible=False)
            axes.set_title(f"L = {length}")
        panel[-1].set_xlabel("agreement of the models")
        figure.suptitle(
            "Winner, its tokens per call, its share of the optimum\n"
            f"V = {settings['vocab_size']}, random pairs per cell: {settings['num_pairs']}"
        )
        handles = [
            Patch(facecolor=VERIFIER_STYLES[name].colour, alpha=0.35, label=VERIFIER_STYLES[name].label)
            for name in VERIFIERS if name in table.column("winner")
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    return figure
