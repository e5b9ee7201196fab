from collections.abc import Sequence
from itertools import groupby, pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.common.bundled import GREEDY_BLOCK, ONE_PATH, bundled_pair, counted, interval, whole
from figures.common.measured import Measurement, measurement
from figures.common.printed import PrintedTime, printed_times
from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, estimates, label_point, legend_below, note, panels, verifier_band
from spectheory.simulation import simulate
from spectheory.verification.curves import GREY, VERIFIER_STYLES
from spectheory.verification.resolve import find_verifier

SEVERAL = ("spectr", "greedy_multipath")
ON_ONE_DRAFT = {"spectr": "token", "greedy_multipath": "block"}
BASE, TIMED = "block", "greedy_multipath"
PRINTED: Look = {"color": GREY, "linewidth": 0.9, "alpha": 0.7}


def _draw(findings: Findings) -> Figure:
    table, printed, times, real = findings.tables
    with panels(3, width=6.4, height=3.1) as (figure, (top, middle, bottom)):
        _in_order(top, real)
        _by_drafts(middle, table, printed)
        _seconds(bottom, printed, times)
        middle.set_title(f"Small bundled models, L = {findings.settings['draft_length']}")
        note(middle, f"{100 * findings.settings['confidence']:g} % intervals of the means")
        ticks = sorted({1, *table["num_drafts"], *printed["num_drafts"]})
        for axes in (middle, bottom):
            axes.set(xlabel="number of drafts K", xticks=ticks)
        legend_below(figure, 2)
    return figure


def _in_order(axes: Axes, real: ResultTable) -> None:
    """The verifiers on a real model, the best on top, and the interval of block verification as a band."""
    rows = sorted(real.select(), key=lambda row: row["block_efficiency"])
    (base,) = real.select(verifier=BASE)
    axes.axvspan(base["low"], base["high"], color=VERIFIER_STYLES[BASE].colour, alpha=0.12, linewidth=0)
    for place, row in enumerate(rows):
        style, value = VERIFIER_STYLES[row["verifier"]], row["block_efficiency"]
        ends = [[value - row["low"]], [row["high"] - value]]
        look: Look = {"fmt": style.marker, "color": style.colour, "capsize": 3, "markersize": 6}
        axes.errorbar([value], [place], xerr=ends, **look)
    labels = {row["verifier"]: VERIFIER_STYLES[row["verifier"]].label for row in rows}
    names = [labels[name] + " (one draft)" * find_verifier(name).single_path for name in labels]
    axes.set_yticks(range(len(rows)), names)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("block efficiency [tokens per target call]")
    drafts = f"K = {base['num_drafts']} drafts of {base['draft_length']} tokens"
    axes.set_title(f"SmolLM2-135M, {drafts}, lossless verifiers")
    text = (
        f"bars: {100 * base['confidence']:g} % intervals of the means\nband: that of block verification\n"
        "Every verifier writes its own texts, so\ndifferences within the bars say nothing.\n"
        "On common drafts: figure paired_gains."
    )
    note(axes, text, (0.99, 0.05))


def _by_drafts(axes: Axes, table: ResultTable, printed: ResultTable) -> None:
    for number, rows in enumerate(_printed_curves(printed)):
        label = None if number else "greedy multi-path as printed, OPT 6.7B"
        axes.plot(rows["num_drafts"], rows["block_efficiency"], label=label, **PRINTED)
    for name in (*ONE_PATH, *SEVERAL):
        rows = table.where(verifier=name)
        verifier_band(axes, name, rows["num_drafts"], *estimates(rows))
    axes.set(ylabel="block efficiency\n[tokens per target call]")


def _seconds(axes: Axes, printed: ResultTable, times: ResultTable) -> None:
    for rows in _printed_curves(printed):
        relative = [time / rows["ms_per_token"][0] for time in rows["ms_per_token"]]
        axes.plot(rows["num_drafts"], relative, **PRINTED)
    one, timed = times.where(verifier=ON_ONE_DRAFT[TIMED])["ms_per_token"][0], times.where(verifier=TIMED)
    ratios, style = [1, *(time / one for time in timed["ms_per_token"])], VERIFIER_STYLES[TIMED]
    axes.plot([1, *timed["num_drafts"]], ratios, marker=style.marker, color=style.colour, linewidth=1)
    look: Look = {"offset": (0, 5), "fontsize": 8, "va": "bottom"}
    text = "bundled models,\non a CPU"
    label_point(axes, text, (2, ratios[1]), color=style.colour, ha="center", **look)
    label_point(axes, "as printed, on a GPU", (3, 1), color=GREY, ha="right", **look)
    axes.axhline(1, color=GREY, linestyle=":", linewidth=1)
    axes.set(ylabel="time per token,\nrelative to one draft")
    axes.set_title("Time of greedy multi-path")


def _printed_curves(printed: ResultTable) -> list[ResultTable]:
    """By draft model and data set."""
    places = dict.fromkeys((row["draft"], row["dataset"]) for row in printed.select())
    return [printed.where(draft=draft, dataset=dataset) for draft, dataset in places]


@result(
    title="Whole texts: tokens per call and time per token",
    source="this package; the quantities of greedy2026 Tables 1 and 2 and block2024 Table 4, other models",
    draw=_draw,
    small={"num_drafts": (2,), "draft_length": 2, "tokens": 4, "num_prompts": 3},
)
def whole_texts(
    num_drafts: Sequence[int] = (2, 3, 4),
    draft_length: int = 8,
    tokens: int = 64,
    num_prompts: int = 64,
    seed: int = 23,
    confidence: float = 0.95,
) -> Findings:
    """Texts decoded call after call; block efficiency is tokens over calls of the target.

    Greedy block has its modification of the rows behind accepted drafts here.  Seconds are not computed:
    they are measured by benchmarks/decoding_speed.py, and the table names the machine.  The texts of SmolLM2
    were measured before too, and are read from a file.

    Args:
        tokens: of every text.
        confidence: level of the intervals, which are clustered by prompt.
    """
    from spectheory.models import bundled_prompts

    checks, prompts = Checks(), bundled_prompts()[:num_prompts]
    table = ResultTable(
        "whole_texts",
        f"Tokens per target call over {len(prompts)} texts of {tokens} tokens, L = {draft_length}, "
        f"{100 * confidence:g}% intervals clustered by prompt. counted: tokens over calls.",
    )
    least_on_one_draft = {}
    for drafts, names in [(1, ONE_PATH), *((drafts, SEVERAL) for drafts in num_drafts)]:
        shape: Look = {"drafts": drafts, "draft_length": draft_length, "max_new_tokens": tokens}
        how: Look = {"seed": seed, "confidence": confidence, "batch_size": 32}
        simulation = whole(simulate(bundled_pair(), prompts, names, **shape, **how))
        for one in simulation.estimates:
            sampled = interval(one) | counted(one) | {"calls": one.samples}
            lossless = find_verifier(one.verifier).lossless
            table.add(verifier=one.verifier, num_drafts=drafts, **sampled, lossless=lossless)
            (low, high), (least, most) = one.interval, one.counted_interval
            here = f"{one.verifier} with {drafts}: {table.rows[-1]}"
            claim = "the two ways of counting agree: their intervals meet"
            checks.expect(claim, least <= high and low <= most, here)
            if drafts == 1:
                least_on_one_draft[one.verifier] = low
            else:
                claim = "several drafts are nowhere seen to earn less than one"
                checks.expect(claim, high >= least_on_one_draft[ON_ONE_DRAFT[one.verifier]], here)
    times, by_place = measurement("walltimes"), _by_place(checks)
    printed = ResultTable(
        "whole_texts_printed",
        "As printed in greedy2026 Tables 1 and 2, L = 8: other models. ms_per_call: time per token times "
        "tokens per call; last column: over that with one draft.",
        (*PrintedTime._fields, "ms_per_call", "call_over_one_draft"),
        [(*row, row.ms_per_call, row.ms_per_call / rows[0].ms_per_call) for rows in by_place for row in rows],
    )
    text = f"Measured on {times.machine}, not computed again. Shares: of the time, by part."
    seconds = ResultTable("whole_texts_seconds", text, times.columns, list(times.rows))
    real = measurement("smollm2_whole_texts")
    over_texts = _on_a_real_model(checks, real)
    return Findings(
        f"Above: {real.machine}, by '{real.command}'. Differences on common drafts are in paired_gains. "
        "In the middle: the same on the bundled models; grey lines are printed, of large models. Below: time "
        f"per token over that of block verification, as printed, and by '{times.command}' on "
        f"{times.machine}. {GREEDY_BLOCK}, and here it is modified.",
        tables=[table, printed, seconds, over_texts],
        checks=checks,
    )


def _on_a_real_model(checks: Checks, real: Measurement) -> ResultTable:
    """The measured means of all verifiers, with the claims on them."""
    text = f"{real.machine}. Tokens per target call, with intervals of the means clustered by prompt."
    table = ResultTable("whole_texts_smollm2", text, real.columns, list(real.rows))
    (base,) = table.select(verifier=BASE)
    for row in table.select():
        inside = row["low"] <= row["block_efficiency"] <= row["high"]
        checks.expect("on a real model every mean lies in its interval", inside, str(row))
        verifier = find_verifier(row["verifier"])
        if not verifier.single_path and row["verifier"] != "naive_sampling":
            claim = "all intervals of several paths but naive sampling are above that of block"
            checks.expect(f"on a real model {claim}", row["low"] > base["high"], f"{row} and {base}")
    return table


def _by_place(checks: Checks) -> list[list[PrintedTime]]:
    """The printed times by models and data set, K = 1 first, with the claims on them."""
    found = [list(rows) for _, rows in groupby(printed_times(), key=lambda row: row[:3])]
    for rows in found:
        best = min(rows, key=lambda row: row.ms_per_token)
        claim = "as printed, three drafts take the least time per token"
        checks.expect(claim, best.num_drafts == 3, f"{best}")
        for earlier, later in pairwise([rows[0], *rows[3:]]):
            claim = "as printed, a call with four drafts costs 25 % more than with one"
            checks.expect(claim, later.ms_per_call >= 1.25 * earlier.ms_per_call, f"{earlier} and {later}")
    return found


if __name__ == "__main__":
    whole_texts.main()
