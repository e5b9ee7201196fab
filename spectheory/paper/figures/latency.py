"""What one call of a model costs over batch and length, as spectr2023 prints it and of the bundled models."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.measured import measurement
from spectheory.paper.style import ACCENT, BLACK, GREY

PRINTED = {
    "spectr2023 Table 2": {
        4: ((1.00, 0.16), (1.01, 0.15), (1.06, 0.10), (1.10, 0.16)),
        8: ((1.01, 0.18), (1.09, 0.25), (1.10, 0.09), (1.42, 0.4)),
    },
    "spectr2023 Table 3": {
        4: ((0.18, 0.02), (0.19, 0.04), (0.18, 0.09), (0.20, 0.13)),
        8: ((0.17, 0.04), (0.19, 0.05), (0.16, 0.02), (0.18, 0.04)),
    },
}
"""Table -> length -> latency with standard deviation at batches 1, 2, 4, 8."""
BATCHES = (1, 2, 4, 8)
SIDES = {"spectr2023 Table 2": "target", "spectr2023 Table 3": "draft"}
LENGTH_COLOURS = {4: BLACK, 8: ACCENT, 16: GREY}


class Latency(NamedTuple):
    """One call of one model.

    Attributes:
        where: the printed table, or the machine of the bundled models.
        model: ``"target"`` or ``"draft"``.
        parameters: of the model.
        batch, length: how many texts are read at once, and how many tokens of each.
        relative, deviation: mean and standard deviation, relative to the target's call at batch 1, length 4.
        milliseconds: the mean; None where it is not printed.
    """

    where: str
    model: str
    parameters: int
    batch: int
    length: int
    relative: float
    deviation: float
    milliseconds: float | None


@cache
def measured() -> tuple[Latency, ...]:
    """The bundled models, as ``benchmarks/latency.py`` measured them.

    Example:
        >>> measured()[0].relative
        1.0
    """
    found = measurement("latency")
    (first,) = found.select(model="target", batch=1, length=4)
    unit = first["milliseconds"]
    return tuple(
        Latency(
            found.machine, row["model"], row["parameters"], row["batch"], row["length"],
            row["milliseconds"] / unit, row["deviation"] / unit, row["milliseconds"],
        )
        for row in found.select()
    )  # fmt: skip


def printed() -> tuple[Latency, ...]:
    """spectr2023 Tables 2 and 3, of models with 97 and 6 million parameters on a GPU."""
    return tuple(
        Latency(table, SIDES[table], parameters, batch, length, *value, None)
        for (table, lengths), parameters in zip(PRINTED.items(), (97_000_000, 6_000_000), strict=True)
        for length, values in lengths.items()
        for batch, value in zip(BATCHES, values, strict=True)
    )


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"latency": _plot(findings)}


@exhibit(
    title="The latency of one call over batch and length",
    source="spectr2023, Tables 2 and 3; other models, measured on a CPU",
    draw=_draw,
)
def latency() -> Findings:
    """Printed latencies beside those of the bundled models, measured before and read from a file.

    Each is relative to the target's call at batch 1 and length 4.  Nothing is timed here, so that the result
    does not depend on the machine that reproduces it.
    """
    theirs, ours = printed(), measured()
    grown = [row for row in ours if row.model == "target" and row.batch * row.length > 4]
    dear = [f"{row}" for row in theirs if row.model == "draft" and row.relative > 0.2]
    long = [f"{row}" for row in theirs if row.model == "target" and row.relative > 1.42]
    faster = [f"{row}" for row in grown if row.relative >= row.batch * row.length / 4]
    below = {(row.batch, row.length): row.relative for row in ours if row.model == "target"}
    costly = [
        f"{row}" for row in ours
        if row.model == "draft" and row.relative >= below[row.batch, row.length] / 2
    ]  # fmt: skip
    largest = max(row.relative for row in ours if row.model == "target" and row.length <= 8)
    return Findings(
        explanation=(
            "spectr2023 assumes that a call of the target takes the same time whatever it reads in parallel, "
            "and prints latencies on a GPU that grow by at most 42 % from 4 tokens to 64. On one thread of a "
            f"CPU the bundled target's grow to {largest:.2f} times. So the drafts that pay on a GPU need "
            "not pay on a CPU. Error bars are standard deviations over calls."
        ),
        settings={"machine": ours[0].where, "command": measurement("latency").command},
        tables=[
            ResultTable(
                "latency",
                Latency._fields,
                [*theirs, *ours],
                "Latency of one call, relative to the target's at batch 1 and length 4, with its standard "
                "deviation; length: tokens that are read at once. milliseconds: of CPU time, where measured.",
            )
        ],
        checks=[
            Check.of("as printed, no call of the target takes longer than 1.42", 8, long),
            Check.of("as printed, a call of the draft takes at most 0.2 of the target's", 8, dear),
            Check.of("here a call of the target grows by less than what it reads", len(grown), faster),
            Check.of("here a call of the draft takes less than half of the target's", len(below), costly),
        ],
    )


def _plot(findings: Findings) -> Figure:
    rows = findings.table("latency").select()
    with panels(1, 2, height=3.2) as (figure, (left, right)):
        _panel(left, [row for row in rows if row["where"] in PRINTED], "as printed, on a GPU")
        _panel(right, [row for row in rows if row["where"] not in PRINTED], "bundled models, on a CPU")
        left.set_ylabel("latency, target at 1 x 4 = 1")
        left.set_ylim(0, 2)
        right.set_ylim(0, None)
        legend_below(figure, 3)
    return figure


def _panel(axes: Axes, rows: list[dict[str, Any]], title: str) -> None:
    for model, line in (("target", "-"), ("draft", ":")):
        for length in sorted({row["length"] for row in rows}):
            shown = [row for row in rows if (row["model"], row["length"]) == (model, length)]
            axes.errorbar(
                [row["batch"] for row in shown], [row["relative"] for row in shown],
                yerr=[row["deviation"] for row in shown], linestyle=line, marker="o", markersize=4, capsize=2,
                elinewidth=0.8, color=LENGTH_COLOURS[length], label=f"{model}, {length} tokens",
            )  # fmt: skip
    axes.set_title(title)
    axes.set(xlabel="batch", xticks=BATCHES)
