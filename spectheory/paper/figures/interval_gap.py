from collections.abc import Sequence
from itertools import cycle
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spectheory.optima import multi_path_interval, optimum
from spectheory.pairs.instances import random_float, two_token
from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.drawing import Look, label_point, panels
from spectheory.paper.measured import measurement
from spectheory.paper.style import ACCENT, BLACK, GREY

LOOKS = ((BLACK, "o-"), (GREY, "s-"), (ACCENT, "^-"))
METHODS = {"interval": (BLACK, "o-"), "leaf-set cuts": (GREY, "s--")}
RECOMPUTED_LEAVES = 300
"""Measured intervals of trees up to this size are computed again."""


def _plot(findings: Findings) -> Figure:
    table, times = findings.tables
    goal = findings.settings["relative_gap"]
    with panels(1, 2, height=3.7) as (figure, (left, right)):
        for leaves, (colour, line) in zip(table.distinct("leaves"), cycle(LOOKS), strict=False):
            rows = table.where(leaves=leaves)
            label = f"{leaves} leaves (V = {rows['vocab_size'][0]}, L = {rows['draft_length'][0]})"
            left.plot(rows["round"], rows["relative_gap"], line, color=colour, markersize=3.5, label=label)
        left.axhline(goal, color=GREY, linestyle=":", linewidth=1.2, label="gap asked for")
        left.set(xlabel="round of the interior-point method", ylabel="(upper − lower) / lower", yscale="log")
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_title(f"Certified relative gap, {findings.settings['num_drafts']} drafts")
        for method, (colour, line) in METHODS.items():
            _times(right, sorted(times.select(method=method), key=_leaves), method, colour, line, goal)
        right.set(xscale="log", yscale="log", xlabel="leaves of the tree, V to the power of L")
        right.set(ylabel="seconds", xlim=(None, 1e5))
        drafts, asked = max(times["num_drafts"]), min(times["gap_asked"])
        right.set_title(f"Seconds to a gap of {asked:.0e}, {drafts} drafts")
        left.legend(fontsize=8)
        right.legend(fontsize=8)
    return figure


def _times(axes: Axes, rows: list[dict[str, Any]], method: str, colour: str, line: str, goal: float) -> None:
    """Seconds by leaves; hollow and with their gap where the method missed the one that was asked for."""
    missed = [row for row in rows if row["status"] != "optimal"]
    look: Look = {"color": colour, "markersize": 4}
    axes.plot([*map(_leaves, rows)], [row["seconds"] for row in rows], line, label=method, **look)
    hollow: Look = {"color": colour, "markerfacecolor": "white"}
    axes.plot([*map(_leaves, missed)], [row["seconds"] for row in missed], line[0], **hollow)
    for row in rows:
        if row in missed or row["gap_asked"] > goal:
            text = f"gap {(row['upper'] - row['lower']) / row['lower']:.0e}"
            across, offset = ("right", (-7, -3)) if row in missed[:1] else ("left", (6, -3))
            label_point(axes, text, (_leaves(row), row["seconds"]), offset, ha=across, fontsize=8)


def _leaves(row: dict[str, Any]) -> int:
    return int(row["vocab_size"] ** row["draft_length"])


@exhibit(
    "greedy2026",
    title="The optimum at scale: certified from both sides in every round",
    source="this package (theory.md §5; greedy2026 calls the optimum intractable)",
    plot=_plot,
    small={"shapes": ((3, 2), (4, 2)), "relative_gap": 1e-4},
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
        relative_gap: at which the search stops.
    """
    checks = Checks()
    table = ResultTable(
        "interval_gap",
        f"Certified bounds on the best block efficiency of {num_drafts} paths, tokens per target call.",
    )
    for vocab_size, length in shapes:
        pair = random_float([seed, vocab_size, length], vocab_size, length, agreement=0.2)
        rounds: list[tuple[int, float, float]] = []
        found = multi_path_interval(
            pair, num_drafts, relative_gap=relative_gap, progress=lambda *bounds, to=rounds: to.append(bounds)
        )
        leaves, before = vocab_size**length, (0.0, float("inf"))
        for number, lower, upper in rounds:
            table.add(
                vocab_size=vocab_size, draft_length=length, leaves=leaves, round=number, lower=lower,
                upper=upper, relative_gap=(upper - lower) / lower,
            )  # fmt: skip
            here = f"{leaves} leaves, round {number}: {lower} and {upper}"
            checks.expect("the bounds never cross", lower <= upper, here)
            checks.expect("neither is ever loosened", lower >= before[0] and upper <= before[1], here)
            before = lower, upper
        checks.expect("the gap asked for is reached", found.status == "optimal", f"{leaves}: {found.status}")
    for length in (1, 2, 3):
        exact, interval = optimum(two_token(length), 2).value, multi_path_interval(two_token(length), 2)
        checks.expect(
            "the interval contains the exact optimum where that is known",
            interval.lower <= exact <= interval.upper,
            f"L = {length}: {exact} outside [{interval.lower}, {interval.upper}]",
        )
    times = measurement("optimum_at_scale")
    for row in times.select(status="optimal"):
        if _leaves(row) <= RECOMPUTED_LEAVES:
            sizes = (row[key] for key in ("seed", "vocab_size", "draft_length", "concentration", "agreement"))
            again = multi_path_interval(random_float(*sizes), row["num_drafts"])
            checks.expect(
                "measured intervals of small trees are still the ones found",
                again.lower <= row["upper"] and row["lower"] <= again.upper,
                f"{row}: now [{again.lower}, {again.upper}]",
            )
    seconds = ResultTable(
        "interval_gap_seconds",
        f"Seconds to a certified relative gap, measured on {times.machine}, not computed again.",
        times.columns,
        list(times.rows),
    )
    return Findings(
        "Both bounds hold in every round, whatever the search does next. Seconds were measured with "
        f"'{times.command}' on {times.machine}; a hollow point is of a method that missed the gap in "
        "the time that it was given. Leaf-set cuts add the most violated constraint of the leaf form to "
        "a linear program, round by round.",
        tables=[table, seconds],
        checks=checks,
    )
