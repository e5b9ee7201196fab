from collections import Counter
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from spectheory.exact.law import output_law
from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.drawing import Look, panels
from spectheory.paper.figures.random_cells import random_cells
from spectheory.paper.style import VERIFIER_STYLES

VERIFIERS = ("block", "multi_round", "spectr", "greedy_multipath")


def _plot(findings: Findings) -> Figure:
    table, settings = findings.table("winners"), findings.settings
    keys = ("agreement", "num_drafts", "draft_length")
    agreements, drafts, lengths = map(table.distinct, keys)
    width, height = max(0.9 * len(agreements) + 1.2, 4.8), 0.55 * len(drafts) + 0.9
    with panels(len(lengths), 1, width=width, height=height, sharex=True) as (figure, all_axes):
        for axes, length in zip(all_axes, lengths, strict=True):
            for row in table.select(draft_length=length):
                x, y = agreements.index(row["agreement"]), drafts.index(row["num_drafts"])
                look: Look = {"facecolor": VERIFIER_STYLES[row["winner"]].colour, "alpha": 0.35}
                axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **look, edgecolor="white"))
                text = f"{row['block_efficiency']:.2f}\n{100 * row['share_of_optimum']:.1f} %"
                axes.annotate(text, (x, y), ha="center", va="center", fontsize=8)
            axes.set(xlim=(-0.5, len(agreements) - 0.5), ylim=(-0.5, len(drafts) - 0.5))
            axes.set_xticks(range(len(agreements)), [f"{value:g}" for value in agreements])
            axes.set_yticks(range(len(drafts)), [str(value) for value in drafts])
            axes.set_ylabel("number of drafts K")
            axes.grid(visible=False)
            axes.set_title(f"L = {length}")
        all_axes[-1].set_xlabel("agreement of the models")
        figure.suptitle(
            "Winner, its tokens per call, its share of the optimum\n"
            f"V = {settings['vocab_size']}, random pairs per cell: {settings['num_pairs']}"
        )
        styles = [VERIFIER_STYLES[name] for name in VERIFIERS if name in table.column("winner")]
        handles = [Patch(facecolor=style.colour, alpha=0.35, label=style.label) for style in styles]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return figure


@exhibit(
    "greedy2026",
    title="Who wins: agreement of the models, number of drafts and their length",
    source="this package; compares spectr2023 Algorithm 3, block2024 Algorithm 2 and greedy2026 Algorithm 1",
    plot=_plot,
    small={"agreements": (0.0, 0.8), "num_drafts": (1, 2), "draft_lengths": (2,), "num_pairs": 3},
)
def winners(
    agreements: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
    num_drafts: Sequence[int] = (1, 2, 3),
    draft_lengths: Sequence[int] = (1, 2, 3),
    num_pairs: int = 8,
    seed: int = 31,
    vocab_size: int = 2,
) -> Findings:
    """Mean block efficiency of published lossless verifiers over the same random pairs, cell by cell."""
    checks = Checks()
    best = ResultTable(
        "winners",
        "The verifier with the largest mean block efficiency, and the mean of its shares of the optimum.",
    )
    table = ResultTable("winners_all", f"Means over {num_pairs} random pairs, V = {vocab_size}.")
    below_block: list[bool] = []
    for cell in random_cells(agreements, num_drafts, draft_lengths, num_pairs, seed, vocab_size, 1e-6):
        values = {
            name: [
                float(output_law(name, pair, 1 if name == "block" else cell.num_drafts).block_efficiency)
                for pair in cell.pairs
            ]
            for name in VERIFIERS
        }
        cell.expect_at_most_optimal(checks, values)
        summary = {}
        for name, earned in values.items():
            shares = [value / one.value for value, one in zip(earned, cell.optima, strict=True)]
            means = {"block_efficiency": float(np.mean(earned)), "share_of_optimum": float(np.mean(shares))}
            summary[name] = means
            table.add(**cell.columns, verifier=name, **means, smallest_share=min(shares))
        # with one draft greedy multi-path is block: the earlier name
        winner = max(summary, key=lambda name: round(summary[name]["block_efficiency"], 9))
        best.add(**cell.columns, winner=winner, **summary[winner])
        if cell.num_drafts > 1:
            both = zip(values["greedy_multipath"], values["block"], strict=True)
            below_block += [value < block - 1e-9 for value, block in both]
    claim = "several paths do not always pay: greedy multi-path can earn less than block on one"
    checks.expect(claim, any(below_block), "greedy multi-path never earned less than block on one path")
    won = Counter(row["winner"] for row in best.select() if row["num_drafts"] > 1)
    wins = ", ".join(f"{VERIFIER_STYLES[name].label} wins {count}" for name, count in won.items())
    return Findings(
        "Every cell names the verifier with the largest mean block efficiency over the same random "
        f"pairs and what part of the optimum it earns. Cells with several paths: {wins or 'none'}. "
        "Greedy multi-path earns less than block verification of a single path in "
        f"{sum(below_block)} of {len(below_block)} cases.",
        tables=[best, table],
        checks=checks,
    )
