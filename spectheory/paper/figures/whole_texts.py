"""Whole texts of the bundled language models: tokens per call and time per token by number of drafts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure

from spectheory.paper.drawing import legend_below, panels, verifier_points
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.bundled import bundled_pair, whole
from spectheory.paper.measured import measurement
from spectheory.paper.printed import PrintedTime, printed_times
from spectheory.paper.style import GREY, VERIFIER_STYLES
from spectheory.simulation import simulate
from spectheory.verification.resolve import find_verifier

ONE_PATH = ("token", "block", "greedy_block")
SEVERAL = ("spectr", "greedy_multipath")
TIMED = "greedy_multipath"
ON_ONE_PATH = "block"
"""What ``TIMED`` is with one draft."""


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"whole_texts": _plot(findings)}


@exhibit(
    title="Whole texts: tokens per call and time per token",
    source="this package; the quantities of greedy2026 Tables 1 and 2 and block2024 Table 4, other models",
    draw=_draw,
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
        num_drafts: the numbers K of verifiers of several paths.
        draft_length: L.
        tokens: of every text.
        num_prompts: how many of the bundled prompts.
        seed: of the drafting and sampling.
        confidence: level of the intervals, which are clustered by prompt.
    """
    from spectheory.models import bundled_prompts

    prompts, rows = bundled_prompts()[:num_prompts], []
    for drafts, names in [(1, ONE_PATH), *((drafts, SEVERAL) for drafts in num_drafts)]:
        simulation = whole(
            simulate(
                bundled_pair(), prompts, names, num_drafts=drafts, draft_length=draft_length,
                max_new_tokens=tokens, seed=seed, confidence=confidence, batch_size=32,
            )
        )  # fmt: skip
        rows += [
            (
                found.verifier, drafts, found.block_efficiency, *found.interval, found.counted,
                *found.counted_interval, found.samples, find_verifier(found.verifier).lossless,
            )
            for found in simulation.estimates
        ]  # fmt: skip
    table = ResultTable(
        "whole_texts",
        (
            "verifier", "num_drafts", "block_efficiency", "low", "high", "counted", "counted_low",
            "counted_high", "calls", "lossless",
        ),
        rows,
        f"Tokens per target call over {len(prompts)} texts of {tokens} tokens, L = {draft_length}, "
        f"{100 * confidence:g}% intervals clustered by prompt. counted: tokens over calls.",
    )  # fmt: skip
    times, by_place = measurement("walltimes"), _by_place(printed_times())
    dearer = [100 * (_call(rows[-1]) / _call(rows[0]) - 1) for rows in by_place.values()]
    printed = ResultTable(
        "whole_texts_printed",
        (*PrintedTime._fields, "ms_per_call", "call_over_one_draft"),
        [
            (*row, _call(row), _call(row) / _call(place[0]))
            for place in by_place.values() for row in place
        ],
        "As printed in greedy2026 Tables 1 and 2, L = 8: other models. ms_per_call: time per token times "
        "tokens per call; last column: over that with one draft.",
    )  # fmt: skip
    return Findings(
        explanation=(
            "Left: every verifier decodes texts of its own, so that points differ by their texts too. Grey "
            "lines are the printed numbers, of large models. Right: time per token over that of block "
            "verification on one path, as printed, and of the bundled models as measured with "
            f"'{times.command}' on {times.machine}. More drafts earn more tokens per call, and every call "
            f"costs more: as printed, {min(dearer):.0f} to {max(dearer):.0f} % more with four drafts than "
            "with one. A CPU takes time for every row that it scores, and several drafts do not pay there. "
            "Greedy block is lossless over the calls, not in each of them."
        ),
        settings={
            "models": "bundled", "num_drafts": list(num_drafts), "draft_length": draft_length,
            "tokens": tokens, "num_prompts": len(prompts), "seed": seed, "confidence": confidence,
        },
        tables=[
            table,
            printed,
            ResultTable(
                "whole_texts_seconds", times.columns, times.rows,
                f"Measured on {times.machine}, not computed again. Shares: of the time, by part.",
            ),
        ],
        checks=_checks(table, printed, by_place),
    )  # fmt: skip


def _checks(
    table: ResultTable, printed: ResultTable, by_place: dict[tuple[str, ...], list[PrintedTime]]
) -> list[Check]:
    apart = [
        f"{row}" for row in table.select()
        if row["counted_high"] < row["low"] or row["high"] < row["counted_low"]
    ]  # fmt: skip
    estimates = {(row["verifier"], row["num_drafts"]): row for row in table.select()}
    below = [
        f"{verifier} with {drafts}: {row}"
        for (verifier, drafts), row in estimates.items()
        if drafts > 1 and row["high"] < estimates["token" if verifier == "spectr" else ON_ONE_PATH, 1]["low"]
    ]
    best = [f"{where}" for where, rows in by_place.items() if min(rows, key=_time).num_drafts != 3]
    dearer = [
        f"{where}: {earlier} and {later}" for where, rows in by_place.items()
        for earlier, later in pairwise([rows[0], *rows[3:]]) if _call(later) < 1.25 * _call(earlier)
    ]  # fmt: skip
    return [
        Check.of("the two ways of counting agree: their intervals meet", len(table.rows), apart),
        Check.of(
            "several drafts are nowhere seen to earn less than one", len(estimates) - len(ONE_PATH), below
        ),
        Check.of("as printed, three drafts take the least time per token", len(by_place), best),
        Check.of("as printed, a call with four drafts costs 25 % more than with one", len(by_place), dearer),
    ]


def _by_place(rows: Sequence[PrintedTime]) -> dict[tuple[str, ...], list[PrintedTime]]:
    """By models and data set, K = 1 first."""
    found: dict[tuple[str, ...], list[PrintedTime]] = defaultdict(list)
    for row in rows:
        found[row[:3]].append(row)
    return found


def _time(row: PrintedTime) -> float:
    return row.ms_per_token


def _call(row: PrintedTime) -> float:
    """Milliseconds of a call of the target with all that belongs to it."""
    return row.ms_per_token * row.block_efficiency


def _plot(findings: Findings) -> Figure:
    table, printed, times = (
        findings.table(name) for name in ("whole_texts", "whole_texts_printed", "whole_texts_seconds")
    )
    places = dict.fromkeys((row["draft"], row["dataset"]) for row in printed.select())
    with panels(1, 2, height=3.7) as (figure, (left, right)):
        for number, (draft, dataset) in enumerate(places):
            rows = printed.select(draft=draft, dataset=dataset)
            drafts = [row["num_drafts"] for row in rows]
            look: dict[str, Any] = {"color": GREY, "linewidth": 0.9, "alpha": 0.7}
            label = "greedy2026, OPT 6.7B, as printed" if number == 0 else None
            left.plot(drafts, [row["block_efficiency"] for row in rows], label=label, **look)
            right.plot(drafts, [row["ms_per_token"] / rows[0]["ms_per_token"] for row in rows], **look)
        for name in ONE_PATH:
            row = table.select(verifier=name)[0]
            style = VERIFIER_STYLES[name]
            left.axhspan(row["low"], row["high"], color=style.colour, alpha=0.12, linewidth=0)
            left.axhline(
                row["block_efficiency"], color=style.colour, linewidth=1.4, label=f"{style.label}, one path"
            )
        for number, name in enumerate(SEVERAL):
            rows = table.select(verifier=name)
            values, lows, highs = ([row[key] for row in rows] for key in ("block_efficiency", "low", "high"))
            shifted = [row["num_drafts"] + 0.08 * (number - 0.5) for row in rows]
            verifier_points(left, name, shifted, values, lows, highs)
        one = times.select(verifier=ON_ONE_PATH)[0]["ms_per_token"]
        timed = times.select(verifier=TIMED)
        ratios = [1, *(row["ms_per_token"] / one for row in timed)]
        style = VERIFIER_STYLES[TIMED]
        right.plot([1, *(row["num_drafts"] for row in timed)], ratios, style.marker, color=style.colour)
        right.axhline(1, color=GREY, linestyle=":", linewidth=1)
        drafts = sorted({1, *table.column("num_drafts"), *printed.column("num_drafts")})
        left.set(
            xlabel="number of drafts K", ylabel="block efficiency [tokens per target call]", xticks=drafts
        )
        right.set(xlabel="number of drafts K", ylabel="time per token over that with K = 1", xticks=drafts)
        level = f"{100 * findings.settings['confidence']:g} % intervals, bands for one path"
        left.annotate(level, (0.98, 0.02), xycoords="axes fraction", ha="right", fontsize=8)
        left.set_title(f"Whole texts, L = {findings.settings['draft_length']}")
        right.set_title("Time of greedy multi-path")
        legend_below(figure, 3)
    return figure
