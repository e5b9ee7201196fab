from collections.abc import Sequence
from itertools import cycle
from statistics import median
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from figures.common.measured import Measurement, measurement
from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, Look, label_point, note, panels
from spectheory.optima import multi_path_interval, optimum
from spectheory.pairs.instances import random_float, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.verification.curves import BLACK, GREY

LOOKS = ((BLACK, "o-"), (GREY, "s-"), (ACCENT, "^-"))
METHODS = {"interval": (BLACK, "o-"), "leaf-set cuts": (ACCENT, "s--")}
NAMED = {"interval": ("interior point", 4, -74), "leaf-set cuts": ("leaf-set cuts", -16, 2)}
"""The methods in words, with offsets from their last points."""
RECOMPUTED_LEAVES = 300
"""Measured intervals of the first pairs up to this size are computed again."""


def _draw(findings: Findings) -> Figure:
    table, times = findings.tables
    goal, pairs = findings.settings["relative_gap"], findings.settings["pairs"]
    with panels(1, 2, height=3.7) as (figure, (left, right)):
        for leaves, (colour, line) in zip(table.distinct("leaves"), cycle(LOOKS), strict=False):
            rows = table.where(leaves=leaves)
            label = f"{leaves} leaves (V = {rows['vocab_size'][0]}, L = {rows['draft_length'][0]})"
            low, high = rows["smallest"], rows["largest"]
            left.fill_between(rows["round"], low, high, color=colour, alpha=0.14, linewidth=0)
            end = 1 + sum(gap > goal for gap in rows["median"])
            places, values = rows["round"][:end], rows["median"][:end]
            left.plot(places, values, line, color=colour, markersize=3.5, label=label)
        left.axhline(goal, color=GREY, linestyle=":", linewidth=1.2)
        label_point(left, "gap asked for", (0, goal), (0, 3), fontsize=8, color=GREY)
        left.set(xlabel="round of the interior-point method", ylabel="relative gap: (upper − lower) / lower")
        left.set(yscale="log", ylim=(goal / 3, None))
        left.xaxis.set_major_locator(MaxNLocator(integer=True))
        left.set_title(f"Certified gap, {findings.settings['num_drafts']} drafts")
        note(left, f"lines: medians of {pairs}\nrandom pairs\nshaded: all of them", (0.98, 0.62))
        for method, (colour, line) in METHODS.items():
            _times(right, sorted(times.select(method=method), key=_leaves), colour, line)
        right.set(xscale="log", yscale="log", ylabel="seconds of CPU time")
        right.set_xlabel("leaves of the tree, $V^L$")
        drafts, asked = max(times["num_drafts"]), min(times["gap_asked"])
        right.set_title(f"Time to a gap of {_power(asked, bold=True)}, {drafts} drafts")
        note(right, "line, shaded: V = 2\nbars: V = 3 and 10")
        left.legend(fontsize=8)
    return figure


def _times(axes: Axes, rows: list[dict[str, Any]], colour: str, line: str) -> None:
    """Seconds by leaves; where the method ran out of time, hollow and with the gap that it left.

    The line is of trees of two tokens; others take other times with as many leaves.
    """
    solved = [row for row in rows if row["reached"] == row["pairs"]]
    missed = [row for row in rows if row["reached"] < row["pairs"]]
    look: Look = {"color": colour, "markersize": 4}
    binary, others = ([row for row in solved if (row["vocab_size"] == 2) == two] for two in (True, False))
    low, high = ([row[name] for row in binary] for name in ("smallest", "largest"))
    axes.fill_between([*map(_leaves, binary)], low, high, color=colour, alpha=0.14, linewidth=0)
    axes.plot([*map(_leaves, binary)], [row["median"] for row in binary], line, **look)
    for row in others:
        value = row["median"]
        bar = [[value - row["smallest"]], [row["largest"] - value]]
        axes.errorbar([_leaves(row)], [value], yerr=bar, fmt=line[0], capsize=2.5, elinewidth=1.2, **look)
    last = _leaves(solved[-1]), solved[-1]["median"]
    name, right, up = NAMED[rows[0]["method"]]
    label_point(axes, name, last, (right, up), ha="right", color=colour, fontsize=9, fontweight="bold")
    if not missed:
        return
    limit = min(row["median"] for row in missed)
    axes.axhline(limit, color=GREY, linestyle=":", linewidth=1.2)
    label_point(axes, f"time limit, {limit:.0f} s", (_leaves(rows[0]), limit), (0, -11), fontsize=8)
    axes.plot([*map(_leaves, missed)], [limit] * len(missed), line[0], **look, markerfacecolor="white")
    text = "stopped at a gap of\n" + " and ".join(_power(row["gap_left"]) for row in missed)
    label_point(axes, text, (_leaves(missed[-1]), limit), (0, -6), fontsize=8, va="top", ha="center")


def _leaves(row: dict[str, Any]) -> int:
    return int(row["vocab_size"] ** row["draft_length"])


def _power(number: float, bold: bool = False) -> str:
    r"""One digit and a power of ten, for a picture.

    Example:
        >>> _power(0.00432), _power(1e-6, bold=True)
        ('$4\\cdot 10^{-3}$', '$\\mathbf{10^{-6}}$')
    """
    digit, power = f"{number:.0e}".split("e")
    text = ("" if digit == "1" else f"{digit}\\cdot ") + f"10^{{{int(power)}}}"
    return f"$\\mathbf{{{text}}}$" if bold else f"${text}$"


@result(
    title="The optimum at scale: certified from both sides in every round",
    source="this package (theory.md §5; greedy2026 calls the optimum intractable)",
    draw=_draw,
    small={"shapes": ((3, 2), (4, 2)), "relative_gap": 1e-4, "pairs": 3},
)
def interval_gap(
    shapes: Sequence[tuple[int, int]] = ((6, 3), (10, 3), (6, 4)),
    num_drafts: int = 4,
    relative_gap: float = 1e-6,
    pairs: int = 15,
    seed: int = 61,
) -> Findings:
    """Lower and upper bounds of the multi-path optimum after every interior-point round.

    Args:
        shapes: (V, L) of random pairs of agreement 1/5.
        relative_gap: at which the search stops.
        pairs: of every shape.
    """
    checks = Checks()
    table = ResultTable(
        "interval_gap",
        f"Relative gap between certified bounds on the best block efficiency of {num_drafts} paths: median, "
        f"smallest and largest of {pairs} random pairs. A search that has ended keeps its last gap.",
    )
    for vocab_size, length in shapes:
        searches = []
        for number in range(pairs):
            pair = random_float([seed, vocab_size, length, number], vocab_size, length, agreement=0.2)
            searches.append(_gaps(checks, pair, num_drafts, relative_gap))
        for rounds in range(max(map(len, searches))):
            gaps = [gaps[min(rounds, len(gaps) - 1)] for gaps in searches]
            size = {"vocab_size": vocab_size, "draft_length": length, "leaves": vocab_size**length}
            searching = sum(rounds < len(gaps) for gaps in searches)
            table.add(**size, round=rounds, **_summary(gaps), searching=searching)
    for length in (1, 2, 3):
        exact, interval = optimum(two_token(length), 2).value, multi_path_interval(two_token(length), 2)
        claim = "the interval contains the exact optimum where that is known"
        inside = interval.lower <= exact <= interval.upper
        checks.expect(claim, inside, f"L = {length}: {exact} outside [{interval.lower}, {interval.upper}]")
    times = measurement("optimum_at_scale")
    for row in times.select(status="optimal", seed=1):
        if _leaves(row) <= RECOMPUTED_LEAVES:
            sizes = (row[key] for key in ("seed", "vocab_size", "draft_length", "concentration", "agreement"))
            again = multi_path_interval(random_float(*sizes), row["num_drafts"])
            claim = "measured intervals of small trees are still the ones found"
            meet = again.lower <= row["upper"] and row["lower"] <= again.upper
            checks.expect(claim, meet, f"{row}: now [{again.lower}, {again.upper}]")
    return Findings(
        "Both bounds hold in every round, whatever the search does next. Seconds were measured with "
        f"'{times.command}' on {times.machine}. A hollow point is of a method that ran out of time on the "
        "first pair of a size. Leaf-set cuts add the most violated constraint of the leaf form, each round.",
        tables=[table, _seconds(times)],
        checks=checks,
    )


def _gaps(checks: Checks, pair: ModelPair, num_drafts: int, relative_gap: float) -> list[float]:
    """The relative gap after every round of a search, with the claims on its bounds."""
    bounds: list[tuple[int, float, float]] = []

    keep: Look = {"progress": lambda *now: bounds.append(now)}
    found = multi_path_interval(pair, num_drafts, relative_gap=relative_gap, **keep)
    leaves, before = pair.vocab_size**pair.draft_length, (0.0, float("inf"))
    for number, lower, upper in bounds:
        here = f"{leaves} leaves, round {number}: {lower} and {upper}"
        checks.expect("the bounds never cross", lower <= upper, here)
        checks.expect("neither is ever loosened", lower >= before[0] and upper <= before[1], here)
        before = lower, upper
    checks.expect("the gap asked for is reached", found.status == "optimal", f"{leaves}: {found.status}")
    return [(upper - lower) / lower for _, lower, upper in bounds]


def _seconds(times: Measurement) -> ResultTable:
    """The measured seconds by method and size."""
    table = ResultTable(
        "interval_gap_seconds",
        f"Seconds of CPU time to a certified relative gap, measured on {times.machine}, not computed again: "
        "median, smallest and largest of the pairs of a size. reached: on how many; gap_left: the largest.",
    )
    size, rows = ("method", "vocab_size", "draft_length", "num_drafts", "gap_asked"), times.select()
    for kind in dict.fromkeys(tuple(row[name] for name in size) for row in rows):
        of_size = [row for row in rows if tuple(row[name] for name in size) == kind]
        table.add(
            **dict(zip(size, kind, strict=True)),
            pairs=len(of_size),
            reached=sum(row["status"] == "optimal" for row in of_size),
            **_summary([row["seconds"] for row in of_size]),
            gap_left=max((row["upper"] - row["lower"]) / row["lower"] for row in of_size),
        )
    return table


def _summary(values: Sequence[float]) -> dict[str, float]:
    return {"median": median(values), "smallest": min(values), "largest": max(values)}


if __name__ == "__main__":
    interval_gap.main()
