"""Drafts and verifiers at equal numbers of target rows: what ``benchmarks/study.py`` measured."""

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import isotonic_regression

from figures.common.lossless import labels, lossless_verifiers
from figures.common.measured import measurement
from figures.results import Checks, Findings, ResultTable, result
from figures.style import label_point, panels
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES

SOURCE, EVERYWHERE, DRAFT_LENGTH = "study", "all", 4
INDEPENDENT, LIKELIEST = "independent", "likeliest"
COLUMNS = (
    "domain", "temperature", "draft", "drafts", "verifier", "nodes", "block_efficiency", "low", "high",
    "gain", "gain_low", "gain_high", "lead", "lead_low", "lead_high", "contexts", "ceiling", "missed",
    "missed_low", "missed_high",
)  # fmt: skip
PROCESSES = {
    INDEPENDENT: "independent paths",
    "distinct": "distinct first tokens",
    "branching": "branching trees",
    LIKELIEST: "likeliest nodes",
}
DRAFTS_IN_WORDS = {"target:last-4": "target on its last 4 tokens", "prompt:ngram-3": "look-up of 3-grams"}
LINE_GAP = 23
"""Points between the names of two curves, of two lines each."""


def best_verifiers(rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """By draft model and process: who earns most at the largest budget, at all temperatures together."""
    most = max((row["nodes"] for row in rows), default=0)
    earned: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        if row["nodes"] == most:
            sums = earned.setdefault((row["draft"], row["drafts"]), {})
            sums[row["verifier"]] = sums.get(row["verifier"], 0) + row["block_efficiency"]
    return {key: max(sums, key=lambda name: sums[name]) for key, sums in earned.items()}


def most_on_independent(row: Mapping[str, Any]) -> Any:
    """The upper end of the ceiling of independent paths, from what the row's verifier misses of it.

    The estimate of the ceiling alone can be below what a verifier earns on the same drafts.
    """
    return None if row["missed_high"] is None else row["block_efficiency"] + row["missed_high"]


def _draw(findings: Findings) -> Figure:
    """A panel per temperature and draft model: of ``PROCESSES`` the best verifiers (``best_verifiers``).

    The best process of a panel is thick, with its interval.  No lossless verifier exceeds the
    ceilings of independent paths, which are hatched from the estimate to its upper end
    (``most_on_independent``).
    """
    rows = findings.tables[0].select()
    heats, drafts = (list(dict.fromkeys(row[name] for row in rows)) for name in ("temperature", "draft"))
    budgets = sorted({row["nodes"] for row in rows if row["drafts"] == LIKELIEST})
    best = best_verifiers(rows)
    with panels(len(heats), len(drafts), sharey=True, sharex=True, height=2.9) as (figure, all_axes):
        shown = [*product(heats, drafts)]
        for axes, (heat, draft) in zip(all_axes, shown, strict=True):
            curves = {
                drafted: [
                    row for row in rows
                    if (row["temperature"], row["draft"], row["drafts"], row["verifier"])
                    == (heat, draft, drafted, best[draft, drafted])
                ]
                for drafted in PROCESSES if (draft, drafted) in best
            }  # fmt: skip
            axes.set_xscale("log", base=2)
            _draw_panel(axes, curves)
            axes.set_xticks(budgets, map(str, budgets))
            axes.set_xlim(budgets[0] / 1.15, budgets[-1] * 20)
            axes.minorticks_off()
            if heat == heats[0]:
                axes.set_title(f"draft: {DRAFTS_IN_WORDS.get(draft, draft)}")
            if heat == heats[-1]:
                axes.set_xlabel("drafted tokens per call of the target", x=0.35)
            if draft == drafts[0]:
                axes.set_ylabel(f"temperature {heat:g}\ntokens per call of the target")
        figure.supxlabel(
            f"thick: most tokens per call with {budgets[-1]} drafted tokens; shaded: its interval; "
            "hatched: what no lossless verifier of independent paths exceeds, its estimate to its upper end",
            fontsize=8,
        )
        figure.draw_without_rendering()  # so that the limits that all panels share are known
        for axes in all_axes:
            _spread(axes)
    return figure


def _draw_panel(axes: Axes, curves: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """The curves of one draft model at one temperature, by process, named where they end."""
    first = max(curves, key=lambda drafted: curves[drafted][-1]["block_efficiency"])
    ceiling = [most_on_independent(row) for row in curves.get(INDEPENDENT, ())]
    for drafted, curve in curves.items():
        style, leads = VERIFIER_STYLES[curve[0]["verifier"]], drafted == first
        places, values = ([row[name] for row in curve] for name in ("nodes", "block_efficiency"))
        if leads:
            low, high = ([row[end] for row in curve] for end in ("low", "high"))
            axes.fill_between(places, low, high, color=style.colour, alpha=0.12, linewidth=0)
        axes.plot(
            places, values, color=style.colour, marker=style.marker, markersize=5 if leads else 3.5,
            linewidth=2.6 if leads else 1.1, zorder=3 if leads else 2,
        )  # fmt: skip
        label_point(
            axes, f"{style.label}\n({PROCESSES[drafted]})", (places[-1], values[-1]), (8, 0), va="center",
            fontsize=7.5, color=style.colour, fontweight="bold" if leads else "normal",
        )  # fmt: skip
    if ceiling and None not in ceiling:
        places, estimate = ([row[name] for row in curves[INDEPENDENT]] for name in ("nodes", "ceiling"))
        axes.fill_between(
            places, estimate, ceiling, facecolor="none", edgecolor=GREY, hatch="///", linewidth=0
        )
        label_point(
            axes, "ceiling of independent paths,\nestimate to upper end", (places[-1], ceiling[-1]), (8, 0),
            va="center", fontsize=7.5, color=BLACK,
        )  # fmt: skip


def _spread(axes: Axes) -> None:
    """Move the names of the curves apart where they would overlap, as little as possible."""
    names = sorted(axes.texts, key=lambda text: text.xy[1])  # type: ignore[attr-defined]
    low, high = axes.get_ylim()
    points_per_unit = 72 * axes.get_window_extent().height / axes.figure.dpi / (high - low)
    steps = LINE_GAP * np.arange(len(names))
    at = np.array([text.xy[1] * points_per_unit for text in names])  # type: ignore[attr-defined]
    for text, offset in zip(names, isotonic_regression(at - steps).x + steps - at, strict=True):
        text.set_position((8, offset))


@result(
    title="Drafts and verifiers at equal numbers of target rows, on SmolLM2",
    source="this package (no counterpart in the papers)",
    draw=_draw,
)
def equal_rows() -> Findings:
    """The study on SmolLM2, measured before and read from a file."""
    checks, found = Checks(), measurement(SOURCE)
    table = ResultTable("equal_rows", f"{found.machine}. Tokens per call of the target, with 95 % intervals.")
    curves: dict[tuple[str, str], list[float]] = {}
    for row in found.select(domain=EVERYWHERE):
        table.add(**{name: row[name] for name in COLUMNS})
        inside = row["low"] <= row["block_efficiency"] <= row["high"]
        checks.expect("every mean lies in its interval", inside, str(row))
        if row["drafts"] == LIKELIEST:
            curve = str(row["temperature"]), str(row["draft"])
            curves.setdefault(curve, []).append(row["block_efficiency"])
        elif row["missed"] is not None:
            below = row["missed_high"] > 0
            checks.expect("no verifier is above the ceiling beyond its error", below, str(row))
    independent = [row for row in table.select(drafts=INDEPENDENT) if row["missed"] is not None]
    best = best_verifiers(independent)
    drawn = {
        (row["temperature"], row["draft"], row["nodes"]): most_on_independent(row)
        for row in independent
        if row["verifier"] == best[row["draft"], INDEPENDENT]
    }
    for row in independent:
        most = drawn[row["temperature"], row["draft"], row["nodes"]]
        claim = "no verifier of independent paths is above the ceiling that is drawn"
        checks.expect(claim, row["block_efficiency"] <= most, f"{row}: above {most}")
    judged = {row["verifier"] for row in independent}
    missing = [name for name in lossless_verifiers(DRAFT_LENGTH) if name not in judged]
    for (heat, draft), values in curves.items():
        rises = all(one <= two for one, two in pairwise(values))
        checks.expect("more likeliest nodes earn no less", rises, f"{draft} at {heat}: {values}")
    return Findings(
        "At the same tokens of texts that the target writes, behind every prompt one per temperature, every "
        "draft model drafts by every process; the interval of a difference is that of `lead` in the table. "
        "Of each draft model and process the verifier that earns the most is drawn; the process that earns "
        "the most with all tokens is thick, and its 95 % interval is shaded. Delayed and hub trees, which "
        "earn less, are in the table alone. No lossless verifier exceeds the ceiling of independent paths. "
        "It is estimated, so that a verifier may stand above `ceiling`; the hatched band goes from the "
        "estimate to its upper end: what the verifier that is drawn earns, and the upper end of what it "
        "misses (`missed_high`). Of "
        f"independent paths {labels(missing)} are not judged. "
        "With the likeliest nodes nobody exceeds naive sampling. Measured by "
        f"`{found.command}`.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    equal_rows.main()
