from functools import cache
from itertools import product
from math import prod

from matplotlib.figure import Figure

from figures.common.measured import measurement
from figures.common.printed import Latency, printed_latencies
from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, label_point, legend_below, panels
from spectheory.verification.curves import BLACK, GREY

MODELS = {"target": "-", "draft": "--"}
LENGTHS = {4: (BLACK, "o"), 8: (ACCENT, "s"), 16: (GREY, "^")}
TICKS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
TITLES = ("As printed, on a GPU", "Bundled models, on a CPU")


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


def _draw(findings: Findings) -> Figure:
    rows = [Latency(*row) for row in findings.tables[0].rows]
    is_printed = {row.where for row in printed_latencies()}
    sides = (
        [row for row in rows if row.where in is_printed],
        [row for row in rows if row.where not in is_printed],
    )
    read = sorted({row.batch * row.length for row in rows})
    with panels(1, 2, height=3.5, sharex=True, sharey=True) as (figure, all_axes):
        for axes, side, title in zip(all_axes, sides, TITLES, strict=True):
            axes.plot(read, [tokens / read[0] for tokens in read], color=GREY, linestyle=":", linewidth=1.2)
            axes.axhline(1, color=GREY, linestyle=":", linewidth=1.2)
            label_point(axes, "proportional", (16, 4), (-4, 4), ha="right", fontsize=8, color=GREY)
            label_point(axes, "constant", (read[-1], 1), (0, 4), ha="right", fontsize=8, color=GREY)
            for (model, line), (length, (colour, marker)) in product(MODELS.items(), LENGTHS.items()):
                shown = [row for row in side if (row.model, row.length) == (model, length)]
                if shown:
                    axes.errorbar(
                        [row.batch * length for row in shown], [row.relative for row in shown],
                        yerr=[row.deviation for row in shown], linestyle=line, marker=marker, markersize=5,
                        capsize=2, elinewidth=0.8, linewidth=1.3, color=colour,
                        label=f"{model}, length {length}",
                    )  # fmt: skip
            axes.set_title(title)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log", base=2)
            axes.set(xlabel="tokens read at once, batch × length", ylim=(1 / 16, 8))
            axes.set_xticks(read, [str(tokens) for tokens in read])
            axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
            axes.minorticks_off()
        all_axes[0].set_ylabel("latency over that of the target\nwith batch 1, length 4 (± 1 s.d.)")
        legend_below(figure, 3)
    return figure


@result(
    title="The latency of one call over batch and length",
    source="spectr2023, Tables 2 and 3; other models, measured on a CPU",
    draw=_draw,
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
    most = max(targets, key=prod)
    printed = max(printed_latencies(), key=lambda row: (row.model == "target", row.batch * row.length))
    tokens, same = printed.batch * printed.length, targets[printed.batch, printed.length]
    return Findings(
        "spectr2023 assumes that a call of the target takes the same time whatever it reads in parallel, "
        f"and prints latencies on a GPU that grow from 4 tokens to {tokens} by "
        f"{100 * (printed.relative - 1):.0f} %. On one thread of a CPU the bundled target takes {same:.2f} "
        f"times as long at {tokens} tokens, and {targets[most]:.2f} times at {prod(most)}. So the drafts "
        "that pay on a GPU need not pay on a CPU. Error bars are standard deviations over calls.",
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


if __name__ == "__main__":
    latency.main()
