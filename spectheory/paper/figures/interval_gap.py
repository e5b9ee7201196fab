"""The certified interval around the optimum of many paths, round by round, and its time by leaves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spectheory.optima import multi_path_interval, optimum
from spectheory.pairs.instances import random_float, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.measured import measurement
from spectheory.paper.style import ACCENT, BLACK, GREY

LOOKS = ((BLACK, "o-"), (GREY, "s-"), (ACCENT, "^-"))
METHODS = {"interval": (BLACK, "o-"), "leaf-set cuts": (GREY, "s--")}
RECOMPUTED_LEAVES = 300
"""Measured intervals of trees up to this size are computed again."""


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"interval_gap": _plot(findings)}


@exhibit(
    title="The optimum at scale: certified from both sides in every round",
    source="this package (theory.md §5; greedy2026 calls the optimum intractable)",
    draw=_draw,
)
def interval_gap(
    shapes: Sequence[tuple[int, int]] = ((6, 3), (10, 3), (6, 4)),
    num_drafts: int = 4,
    relative_gap: float = 1e-6,
    seed: int = 61,
) -> Findings:
    """Lower and upper bounds of the multi-path optimum after every interior-point round.

    Args:
        shapes: (V, L) of random pairs of agreement 1/5.
        num_drafts: K.
        relative_gap: at which the search stops.
        seed: of the pairs.
    """
    rows, crossed, loosened, open_left = [], [], [], []
    for vocab_size, length in shapes:
        pair = random_float([seed, vocab_size, length], vocab_size, length, agreement=0.2)
        status, rounds = _rounds(pair, num_drafts, relative_gap)
        leaves = vocab_size**length
        before = (0.0, float("inf"))
        for number, lower, upper in rounds:
            rows.append((vocab_size, length, leaves, number, lower, upper, (upper - lower) / lower))
            if lower > upper:
                crossed.append(f"{leaves} leaves, round {number}: {lower} > {upper}")
            if lower < before[0] or upper > before[1]:
                loosened.append(f"{leaves} leaves, round {number}")
            before = lower, upper
        if status != "optimal":
            open_left.append(f"{leaves} leaves: {status}")
    outside, small = [], 0
    for length in (1, 2, 3):
        exact = optimum(two_token(length), 2).value
        interval = multi_path_interval(two_token(length), 2)
        small += 1
        if not interval.lower <= exact <= interval.upper:
            outside.append(f"L = {length}: {exact} outside [{interval.lower}, {interval.upper}]")
    times, measured, apart = measurement("optimum_at_scale"), 0, []
    for row in times.select(status="optimal"):
        if row["vocab_size"] ** row["draft_length"] <= RECOMPUTED_LEAVES:
            sizes = (row[key] for key in ("seed", "vocab_size", "draft_length", "concentration", "agreement"))
            again = multi_path_interval(random_float(*sizes), row["num_drafts"])
            measured += 1
            if not (again.lower <= row["upper"] and row["lower"] <= again.upper):
                apart.append(f"{row}: now [{again.lower}, {again.upper}]")
    table = ResultTable(
        "interval_gap",
        ("vocab_size", "draft_length", "leaves", "round", "lower", "upper", "relative_gap"),
        rows,
        f"Certified bounds on the best block efficiency of {num_drafts} paths, tokens per target call.",
    )
    return Findings(
        explanation=(
            "Both bounds hold in every round, whatever the search does next. Seconds were measured with "
            f"'{times.command}' on {times.machine}; a hollow point is of a method that missed the gap in "
            "the time that it was given. Leaf-set cuts add the most violated constraint of the leaf form to "
            "a linear program, round by round."
        ),
        settings={
            "shapes": [list(shape) for shape in shapes], "num_drafts": num_drafts,
            "relative_gap": relative_gap, "seed": seed,
        },
        tables=[
            table,
            ResultTable(
                "interval_gap_seconds", times.columns, times.rows,
                f"Seconds to a certified relative gap, measured on {times.machine}, not computed again.",
            ),
        ],
        checks=[
            Check.of("the bounds never cross", len(rows), crossed),
            Check.of("neither is ever loosened", len(rows), loosened),
            Check.of("the gap asked for is reached", len(shapes), open_left),
            Check.of("the interval contains the exact optimum where that is known", small, outside),
            Check.of("measured intervals of small trees are still the ones found", measured, apart),
        ],
    )  # fmt: skip


def _rounds(
    pair: ModelPair, num_drafts: int, relative_gap: float
) -> tuple[str, list[tuple[int, float, float]]]:
    """How the search ended, and (round, lower, upper) of all its rounds."""
    rounds: list[tuple[int, float, float]] = []

    def keep(number: int, lower: float, upper: float) -> None:
        rounds.append((number, lower, upper))

    found = multi_path_interval(pair, num_drafts, relative_gap=relative_gap, progress=keep)
    return found.status, rounds


def _plot(findings: Findings) -> Figure:
    table, times = findings.table("interval_gap"), findings.table("interval_gap_seconds")
    goal = findings.settings["relative_gap"]
    with panels(1, 2, height=3.7) as (figure, (left, right)):
        for leaves, (colour, line) in zip(dict.fromkeys(table.column("leaves")), cycle(LOOKS), strict=False):
            rows = table.select(leaves=leaves)
            shape = f"V = {rows[0]['vocab_size']}, L = {rows[0]['draft_length']}"
            left.plot([row["round"] for row in rows], [row["relative_gap"] for row in rows], line,
                      color=colour, markersize=3.5, label=f"{leaves} leaves ({shape})")  # fmt: skip
        left.axhline(goal, color=GREY, linestyle=":", linewidth=1.2, label="gap asked for")
        left.set_yscale("log")
        left.set(xlabel="round of the interior-point method", ylabel="(upper − lower) / lower")
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_title(f"Certified relative gap, {findings.settings['num_drafts']} drafts")
        for method, (colour, line) in METHODS.items():
            rows = sorted(times.select(method=method), key=_leaves)
            right.plot([_leaves(row) for row in rows], [row["seconds"] for row in rows], line,
                       color=colour, markersize=4, label=method)  # fmt: skip
            missed = [row for row in rows if row["status"] != "optimal"]
            right.plot([_leaves(row) for row in missed], [row["seconds"] for row in missed], line[0],
                       color=colour, markerfacecolor="white")  # fmt: skip
            for row in rows:
                if row["status"] != "optimal" or row["gap_asked"] > goal:
                    first = row is missed[0] if missed else False
                    right.annotate(f"gap {(row['upper'] - row['lower']) / row['lower']:.0e}",
                                   (_leaves(row), row["seconds"]), xytext=(-7 if first else 6, -3),
                                   textcoords="offset points", ha="right" if first else "left",
                                   fontsize=8)  # fmt: skip
        right.set(xscale="log", yscale="log", xlabel="leaves of the tree, V to the power of L",
                  ylabel="seconds", xlim=(None, 1e5))  # fmt: skip
        drafts, asked = max(times.column("num_drafts")), min(times.column("gap_asked"))
        right.set_title(f"Seconds to a gap of {asked:.0e}, {drafts} drafts")
        left.legend(frameon=False, fontsize=8)
        right.legend(frameon=False, fontsize=8)
    return figure


def _leaves(row: dict[str, Any]) -> int:
    return int(row["vocab_size"] ** row["draft_length"])
