from collections.abc import Mapping, Sequence
from itertools import product
from math import sqrt
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures.common.lossless import MOST_TUPLES, efficiencies, is_published
from figures.common.random_cells import random_cells
from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, panels
from spectheory.verification.curves import VERIFIER_STYLES

ROUNDING = 1e-9
TITLES = {"published": "Published verifiers", "all": "With those of this package"}


def _draw(findings: Findings) -> Figure:
    table = findings.table("winners")
    lengths, drafts = table.distinct("draft_length"), table.distinct("num_drafts")
    agreements = table.distinct("agreement")
    size: Look = {"width": 0.78 * len(agreements) + 0.5, "height": 0.55 * len(drafts) + 0.5}
    with panels(len(lengths), 2, **size, sharex=True, sharey=True) as (figure, all_axes):
        for axes, (length, among) in zip(all_axes, product(lengths, TITLES), strict=True):
            for row in table.select(draft_length=length, among=among):
                _cell(axes, agreements.index(row["agreement"]), drafts.index(row["num_drafts"]), row)
            axes.set(xlim=(-0.5, len(agreements) - 0.5), ylim=(-0.5, len(drafts) - 0.5))
            axes.set_xticks(range(len(agreements)), [f"{value:g}" for value in agreements])
            axes.set_yticks(range(len(drafts)), [str(value) for value in drafts])
            axes.tick_params(length=0)
            axes.grid(visible=False)
            axes.set_title(f"{TITLES[among]}, L = {length}")
        for axes in all_axes[::2]:
            axes.set_ylabel("drafts K")
        settings = findings.settings
        figure.supxlabel(
            f"agreement of the models; means of {settings['num_pairs']} pairs on a vocabulary of "
            f"{settings['vocab_size']}\n"
            "per cent of the optimum; ≈ and pale: the lead is not clear, or two are equal",
            fontsize=8,
        )
    return figure


def _cell(axes: Axes, x: int, y: int, row: dict[str, Any]) -> None:
    """The winner and its share of the optimum; pale and with a sign where the lead is not clear."""
    style, clear = VERIFIER_STYLES[row["winner"]], row["clear"]
    look: Look = {"facecolor": style.colour, "alpha": 0.4 if clear else 0.15, "edgecolor": "white"}
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **look))
    name = style.label.replace(" ", "\n")
    text = f"{'' if clear else '≈ '}{name}\n{100 * row['share_of_optimum']:.1f} %"
    axes.annotate(text, (x, y), ha="center", va="center", fontsize=7, linespacing=1.05)


@result(
    title="Who wins: agreement of the models, number of drafts and their length",
    source="this package; compares spectr2023 Algorithm 3, block2024 Algorithm 2 and greedy2026 Algorithm 1",
    draw=_draw,
    small={"agreements": (0.0, 0.8), "num_drafts": (2,), "draft_lengths": (2,), "num_pairs": 3},
)
def winners(
    agreements: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9),
    num_drafts: Sequence[int] = (2, 3, 4),
    draft_lengths: Sequence[int] = (1, 2, 3),
    num_pairs: int = 50,
    seed: int = 31,
    vocab_size: int = 2,
) -> Findings:
    """Mean block efficiency of all lossless verifiers over the same random pairs, cell by cell.

    Args:
        num_drafts: K; with one draft block verification is optimal.
    """
    checks = Checks()
    best = ResultTable(
        "winners",
        "The verifier with the largest mean block efficiency, among the published ones and among all, and "
        "the mean of its shares of the optimum. lead: over the runner-up, a mean of paired differences, "
        "with its standard error; clear: more than two of them.",
    )
    table = ResultTable("winners_all", f"Means over {num_pairs} random pairs, V = {vocab_size}.")
    below_block: list[bool] = []
    for cell in random_cells(agreements, num_drafts, draft_lengths, num_pairs, seed, vocab_size, 1e-6):
        each = [efficiencies(pair, cell.num_drafts, MOST_TUPLES) for pair in cell.pairs]
        values = {name: np.array([one[name] for one in each]) for name in each[0]}
        cell.expect_at_most_optimal(checks, values)
        optima = np.array([float(one.upper) for one in cell.optima])
        shares = {name: earned / optima for name, earned in values.items()}
        for name, earned in values.items():
            table.add(
                **cell.columns, verifier=name, block_efficiency=float(earned.mean()),
                share_of_optimum=float(shares[name].mean()), smallest_share=float(shares[name].min()),
            )  # fmt: skip
        for among, names in {"published": [*filter(is_published, values)], "all": [*values]}.items():
            first = _ranked(values, names)
            share = float(shares[first["winner"]].mean())
            best.add(**cell.columns, among=among, **first, share_of_optimum=share)
        below_block += (values["greedy_multipath"] < values["block"] - ROUNDING).tolist()
    claim = "several paths do not always pay: greedy multi-path can earn less than block on one"
    checks.expect(claim, any(below_block), "greedy multi-path never earned less than block on one path")
    return Findings(
        "Every cell is named after the verifier with the largest mean over the same random pairs, with the "
        "part of the optimum that it earns. Pale and ≈: the lead over the runner-up is within two standard "
        f"errors. A verifier that needs a list of more than {MOST_TUPLES} tuples of drafts is left out.",
        tables=[best, table],
        checks=checks,
    )


def _ranked(values: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, Any]:
    """The first by mean and its paired lead over the second; of equal ones the earlier name."""
    ranking = sorted(names, key=lambda name: -round(float(values[name].mean()), 9))
    first, second = ranking[:2]
    leads = values[first] - values[second]
    lead, error = float(leads.mean()), float(leads.std(ddof=1)) / sqrt(len(leads))
    return {
        "winner": first, "block_efficiency": float(values[first].mean()), "runner_up": second, "lead": lead,
        "lead_error": error, "clear": bool(lead > 2 * error + ROUNDING),
    }  # fmt: skip


if __name__ == "__main__":
    winners.main()
