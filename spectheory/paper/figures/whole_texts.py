from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from matplotlib.figure import Figure

from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.drawing import (
    Look,
    estimates,
    legend_below,
    note,
    panels,
    verifier_points,
)
from spectheory.paper.figures.support import ONE_PATH, bundled_pair, counted, interval, whole
from spectheory.paper.measured import measurement
from spectheory.paper.printed import PrintedTime, printed_times
from spectheory.paper.style import GREY, VERIFIER_STYLES
from spectheory.simulation import simulate
from spectheory.verification.resolve import find_verifier

SEVERAL = ("spectr", "greedy_multipath")
TIMED = "greedy_multipath"
ON_ONE_DRAFT = {"spectr": "token", "greedy_multipath": "block"}


def _plot(findings: Findings) -> Figure:
    table, printed, times = findings.tables
    with panels(1, 2, height=3.7) as (figure, (left, right)):
        label: str | None = "greedy2026, OPT 6.7B, as printed"
        for draft, dataset in dict.fromkeys((row["draft"], row["dataset"]) for row in printed.select()):
            rows = printed.where(draft=draft, dataset=dataset)
            look: Look = {"color": GREY, "linewidth": 0.9}
            drafts, per_token = rows["num_drafts"], rows["ms_per_token"]
            left.plot(drafts, rows["block_efficiency"], label=label, alpha=0.7, **look)
            right.plot(drafts, [time / per_token[0] for time in per_token], alpha=0.7, **look)
            label = None
        for number, name in enumerate((*ONE_PATH, *SEVERAL)):
            rows = table.where(verifier=name)
            shift = 0.09 * (number - (1 if name in ONE_PATH else 3.5))
            places = [drafts + shift for drafts in rows["num_drafts"]]
            verifier_points(left, name, places, *estimates(rows))
        one, timed = times.where(verifier=ON_ONE_DRAFT[TIMED])["ms_per_token"][0], times.where(verifier=TIMED)
        ratios, style = [1, *(time / one for time in timed["ms_per_token"])], VERIFIER_STYLES[TIMED]
        right.plot([1, *timed["num_drafts"]], ratios, style.marker, color=style.colour)
        right.axhline(1, color=GREY, linestyle=":", linewidth=1)
        ticks = sorted({1, *table["num_drafts"], *printed["num_drafts"]})
        left.set(ylabel="block efficiency [tokens per target call]")
        right.set(ylabel="time per token over that with K = 1")
        for axes in (left, right):
            axes.set(xlabel="number of drafts K", xticks=ticks)
        note(left, f"{100 * findings.settings['confidence']:g} % intervals")
        left.set_title(f"Whole texts, L = {findings.settings['draft_length']}")
        right.set_title("Time of greedy multi-path")
        legend_below(figure, 3)
    return figure


@exhibit(
    "language models",
    title="Whole texts: tokens per call and time per token",
    source="this package; the quantities of greedy2026 Tables 1 and 2 and block2024 Table 4, other models",
    plot=_plot,
    small={"num_drafts": (2,), "draft_length": 2, "tokens": 4, "num_prompts": 3},
)
def whole_texts(
    num_drafts: Sequence[int] = (2, 3, 4),
    draft_length: int = 8,
    tokens: int = 32,
    num_prompts: int = 24,
    seed: int = 23,
    confidence: float = 0.95,
) -> Findings:
    """Texts decoded call after call; block efficiency is tokens over calls of the target.

    Greedy block has its modification of the rows behind accepted drafts here.  Seconds are not computed:
    they are measured by benchmarks/decoding_speed.py, and the table names the machine.

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
        simulation = whole(
            simulate(
                bundled_pair(), prompts, names, drafts=drafts, draft_length=draft_length,
                max_new_tokens=tokens, seed=seed, confidence=confidence, batch_size=32,
            )
        )  # fmt: skip
        for one in simulation.estimates:
            table.add(
                verifier=one.verifier, num_drafts=drafts, **interval(one), **counted(one), calls=one.samples,
                lossless=find_verifier(one.verifier).lossless,
            )  # fmt: skip
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
    dearer = [100 * (_call(rows[-1]) / _call(rows[0]) - 1) for rows in by_place]
    printed = ResultTable(
        "whole_texts_printed",
        "As printed in greedy2026 Tables 1 and 2, L = 8: other models. ms_per_call: time per token times "
        "tokens per call; last column: over that with one draft.",
        (*PrintedTime._fields, "ms_per_call", "call_over_one_draft"),
        [(*row, _call(row), _call(row) / _call(rows[0])) for rows in by_place for row in rows],
    )
    seconds = ResultTable(
        "whole_texts_seconds",
        f"Measured on {times.machine}, not computed again. Shares: of the time, by part.",
        times.columns,
        list(times.rows),
    )
    return Findings(
        "Left: every verifier decodes texts of its own, so that points differ by their texts "
        f"too.{_meeting(table)} Grey lines are the printed numbers, of large models. Right: time per token "
        "over that of block verification on one path, as printed, and of the bundled models as measured "
        f"with '{times.command}' on {times.machine}. As printed, more drafts earn more tokens per call, "
        f"and every call costs more: {min(dearer):.0f} to {max(dearer):.0f} % more with four drafts than "
        "with one. A CPU takes time for every row that it scores, and several drafts do not pay there. "
        "Greedy block is lossless over the calls, not in each of them.",
        tables=[table, printed, seconds],
        checks=checks,
    )


def _meeting(table: ResultTable) -> str:
    """A sentence on the two largest K, if their intervals meet for every verifier."""
    *_, fewer, more = table.distinct("num_drafts")
    ends = [[table.select(verifier=name, num_drafts=k) for k in (fewer, more)] for name in SEVERAL]
    if all(one and one[0]["low"] <= two[0]["high"] and two[0]["low"] <= one[0]["high"] for one, two in ends):
        return f" Differences between K = {fewer} and {more} are within the intervals."
    return ""


def _by_place(checks: Checks) -> list[list[PrintedTime]]:
    """The printed times by models and data set, K = 1 first, with the claims on them."""
    found: dict[tuple[str, ...], list[PrintedTime]] = defaultdict(list)
    for row in printed_times():
        found[row[:3]].append(row)
    for where, rows in found.items():
        best = min(rows, key=lambda row: row.ms_per_token)
        checks.expect(
            "as printed, three drafts take the least time per token", best.num_drafts == 3, f"{where}"
        )
        for earlier, later in pairwise([rows[0], *rows[3:]]):
            claim = "as printed, a call with four drafts costs 25 % more than with one"
            checks.expect(claim, _call(later) >= 1.25 * _call(earlier), f"{where}: {earlier} and {later}")
    return list(found.values())


def _call(row: PrintedTime) -> float:
    """Milliseconds of a call of the target with all that belongs to it."""
    return row.ms_per_token * row.block_efficiency
