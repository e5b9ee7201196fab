from functools import cache

from matplotlib.figure import Figure

from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.measured import measurement
from spectheory.paper.printed import Latency, printed_latencies
from spectheory.paper.style import ACCENT, BLACK, GREY

BATCHES = (1, 2, 4, 8)
LENGTH_COLOURS = {4: BLACK, 8: ACCENT, 16: GREY}
TITLES = ("as printed, on a GPU", "bundled models, on a CPU")


@cache
def measured() -> tuple[Latency, ...]:
    """The bundled models, as ``benchmarks/latency.py`` measured them."""
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


def _plot(findings: Findings) -> Figure:
    rows = [Latency(*row) for row in findings.tables[0].rows]
    is_printed = {row.where for row in printed_latencies()}
    sides = (
        [row for row in rows if row.where in is_printed],
        [row for row in rows if row.where not in is_printed],
    )
    with panels(1, 2, height=3.2) as (figure, all_axes):
        for axes, side, title in zip(all_axes, sides, TITLES, strict=True):
            for model, line in (("target", "-"), ("draft", ":")):
                for length in sorted({row.length for row in side}):
                    shown = [row for row in side if (row.model, row.length) == (model, length)]
                    axes.errorbar(
                        [row.batch for row in shown], [row.relative for row in shown],
                        yerr=[row.deviation for row in shown], linestyle=line, marker="o", markersize=4,
                        capsize=2, elinewidth=0.8, color=LENGTH_COLOURS[length],
                        label=f"{model}, {length} tokens",
                    )  # fmt: skip
            axes.set_title(title)
            axes.set(xlabel="batch", xticks=BATCHES)
        all_axes[0].set(ylabel="latency, target at 1 x 4 = 1", ylim=(0, 2))
        all_axes[1].set_ylim(0, None)
        legend_below(figure, 3)
    return figure


@exhibit(
    "language models",
    title="The latency of one call over batch and length",
    source="spectr2023, Tables 2 and 3; other models, measured on a CPU",
    plot=_plot,
)
def latency() -> Findings:
    """Printed latencies beside those of the bundled models, measured before and read from a file.

    Each is relative to the target's call at batch 1 and length 4.  Nothing is timed here, so that the result
    does not depend on the machine that reproduces it.
    """
    checks, ours = Checks(), measured()
    for row in printed_latencies():
        if row.model == "target":
            claim = "as printed, no call of the target takes longer than 1.42"
            checks.expect(claim, row.relative <= 1.42, f"{row}")
        else:
            claim = "as printed, a call of the draft takes at most 0.2 of the target's"
            checks.expect(claim, row.relative <= 0.2, f"{row}")
    targets = {(row.batch, row.length): row.relative for row in ours if row.model == "target"}
    for row in ours:
        if row.model == "draft":
            claim = "here a call of the draft takes less than half of the target's"
            checks.expect(claim, row.relative < targets[row.batch, row.length] / 2, f"{row}")
        elif row.batch * row.length > 4:
            claim = "here a call of the target grows by less than what it reads"
            checks.expect(claim, row.relative < row.batch * row.length / 4, f"{row}")
    largest = max(relative for (_, length), relative in targets.items() if length <= 8)
    return Findings(
        "spectr2023 assumes that a call of the target takes the same time whatever it reads in parallel, "
        "and prints latencies on a GPU that grow by at most 42 % from 4 tokens to 64. On one thread of a "
        f"CPU the bundled target's grow to {largest:.2f} times. So the drafts that pay on a GPU need "
        "not pay on a CPU. Error bars are standard deviations over calls.",
        tables=[
            ResultTable(
                "latency",
                "Latency of one call, relative to the target's at batch 1 and length 4, with its standard "
                "deviation; length: tokens that are read at once. milliseconds: of CPU time, where measured, "
                f"by '{measurement('latency').command}'.",
                Latency._fields,
                [*printed_latencies(), *ours],
            )
        ],
        checks=checks,
    )
