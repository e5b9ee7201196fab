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
            _times(right, sorted(times.select(method=method), key=_leaves), method, colour, line)
        right.set(xscale="log", yscale="log", xlabel="leaves $V^L$", ylabel="seconds")
        drafts, asked = max(times["num_drafts"]), min(times["gap_asked"])
        right.set_title(f"Seconds to a gap of {_power(asked, bold=True)}, {drafts} drafts")
        left.legend(fontsize=8)
        right.legend(fontsize=8)
    return figure


def _times(axes: Axes, rows: list[dict[str, Any]], method: str, colour: str, line: str) -> None:
    """Seconds by leaves; where the method ran out of time, hollow and with the gap that it left."""
    solved, missed = ([row for row in rows if (row["status"] == "optimal") == done] for done in (True, False))
    look: Look = {"color": colour, "markersize": 4}
    axes.plot([*map(_leaves, solved)], [row["seconds"] for row in solved], line, label=method, **look)
    if not missed:
        return
    limit = min(row["seconds"] for row in missed)
    axes.axhline(limit, color=GREY, linestyle=":", linewidth=1.2)
    label_point(axes, f"time limit, {limit:.0f} s", (_leaves(rows[0]), limit), (0, -11), fontsize=8)
    axes.plot([*map(_leaves, missed)], [limit] * len(missed), line[0], **look, markerfacecolor="white")
    for row, (across, offset) in zip(missed, (("right", -2), ("left", 2)), strict=False):
        text = f"gap {_power((row['upper'] - row['lower']) / row['lower'])}"
        label_point(axes, text, (_leaves(row), limit), (offset, -13), ha=across, fontsize=8)


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
        f"'{times.command}' on {times.machine}, one pair per size. A hollow point is of a method that ran "
        "out of time. Leaf-set cuts add the most violated constraint of the leaf form to a linear program, "
        "round by round.",
        tables=[table, seconds],
        checks=checks,
    )
