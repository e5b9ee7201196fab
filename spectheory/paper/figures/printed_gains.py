"""What the papers measured: gains over token verification as printed, beside those of the bundled models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.bundled import bundled_pair, whole
from spectheory.paper.figures.full_vocabulary import DEFECT_COLUMNS, defects_on_two_tokens
from spectheory.paper.figures.nested import OnFirst
from spectheory.paper.printed import Printed, RecomputedGain, gains_over_token, printed_rows
from spectheory.paper.style import GREY, VERIFIER_STYLES
from spectheory.simulation import simulate

ORDERS = {
    "block2024 Table 4": ("block", "greedy_block", "token"),
    "block2024 Table 5": ("spectr", "multi_round", "block", "token"),
    "spectrgbv2026 Table 1": ("spectr_gbv", "spectr", "greedy_block", "token"),
    "spectrgbv2026 Table 4": ("spectr_gbv", "spectr", "greedy_block", "token"),
}
"""How a paper ranks the verifiers of a table, best first; equal numbers are allowed."""
SHIFTS = {"block": -0.15, "greedy_block": 0.15, "spectr": -0.15, "spectr_gbv": 0.15, "multi_round": 0.0}
"""Beside each other, so that intervals do not hide each other."""
LOSSY = ("greedy_block", "spectr_gbv")
BLOCK_TABLES = tuple(f"block2024 Table {number}" for number in (1, 6, 7, 8, 9, 10))
Shape = tuple[float, int, int, str]
"""Temperature, K, L, verifier."""


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"printed_gains": _plot(findings)}


@exhibit(
    title="Gains over token verification, as printed and here",
    source="spectr2023, Table 4; block2024, Tables 1 and 4–10; spectrgbv2026, Tables 1 and 3–5; other models",
    draw=_draw,
)
def printed_gains(
    num_prompts: int = 24, samples: int = 4, seed: int = 19, confidence: float = 0.95
) -> Findings:
    """Printed gains in block efficiency by verifier, K and L, and estimates at the same ones.

    Where a paper prints no temperature, the estimate is at temperature 1.  Lengths beyond 8 are not
    estimated.

    Args:
        num_prompts: how many of the bundled prompts.
        samples: draws per prompt.
        seed: of the drafting and sampling.
        confidence: level of each interval.
    """
    gains = gains_over_token()
    ours = _estimates(sorted({_shape(row) for row in printed_rows() if row.draft_length <= 8}),
                      num_prompts, samples, seed, confidence)  # fmt: skip
    everything = [(*gain.row, gain.percent) for gain in gains]
    by_setting: dict[Printed, list[RecomputedGain]] = defaultdict(list)
    for gain in gains:
        by_setting[gain.row._replace(dataset="", block_efficiency=0.0, printed_gain=None)].append(gain)
    rows = []
    for row, found in by_setting.items():
        printed = [one.row.printed_gain for one in found if one.row.printed_gain is not None]
        percents = [one.percent for one in found]
        here, base = (ours.get(_shape(one)) for one in (row, row._replace(verifier="token", num_drafts=1)))
        rows.append((
            row.table, row.target, row.draft, row.verifier, row.temperature, row.num_drafts, row.draft_length,
            *((mean(printed), min(printed), max(printed)) if printed else (None, None, None)),
            mean(percents), min(percents), max(percents), len(percents),
            *((None, None, None) if here is None or base is None else _ratios(here, base)),
        ))  # fmt: skip
    misordered, compared = _misordered(printed_rows())
    not_more = [f"{one.row}" for one in gains if one.row.verifier == "block" and one.percent <= 0]
    means = {(row[2], row[6]): row[7] or row[10] for row in rows if row[0] in BLOCK_TABLES}
    lengths = (4, 6, 8)
    falls = [
        f"{draft}: {means[draft, long]} at {long}"
        for draft in ("PALM-2-XXS", "PALM-2-XXXS")
        for short, long in pairwise(lengths)
        if means[draft, long] <= means[draft, short]
    ]
    below = [
        f"{shape}: {ours[shape]}"
        for shape in ours
        if shape[3] == "block" and ours[shape][2] < ours[(*shape[:1], 1, shape[2], "token")][1]
    ]
    return Findings(
        explanation=(
            "Points are data sets. Lines are their means on the left, and HumanEval with DeepSeek 6.7B and "
            "1.3B on the right, where greedy block has one draft. The gains of block are the printed ones. "
            "The others are not printed per data set and are recomputed from the printed, rounded block "
            "efficiencies. Crosses are the bundled models with the same K, L and temperature, temperature 1 "
            "where the paper prints none, with intervals "
            "that make no use of the common drafts. The printed numbers are of large models "
            "and whole texts, the estimates of the bundled models and of one call. So sizes need not agree, "
            "and what greedy block's modification costs the next calls is in the printed numbers only. "
            "SpecTr-GBV and greedy block are not lossless as they stand. printed_gains_defect has their "
            "total variation on two tokens."
        ),
        settings={
            "models": "bundled", "num_prompts": num_prompts, "samples_per_prompt": samples, "seed": seed,
            "confidence": confidence,
        },
        tables=[
            ResultTable(
                "printed_gains",
                (
                    "table", "target", "draft", "verifier", "temperature", "num_drafts", "draft_length",
                    "printed_gain", "printed_smallest", "printed_largest",
                    "recomputed_gain", "recomputed_smallest", "recomputed_largest", "datasets", "gain_here",
                    "gain_here_low", "gain_here_high",
                ),
                rows,
                "Gain in block efficiency over token verification in percent: mean, smallest and largest "
                "over the data sets. printed: where the paper prints it. recomputed: from the rounded block "
                "efficiencies. gain_here: on the bundled models with the same K, L and temperature; low and "
                f"high hold together with confidence {100 * (2 * confidence - 1):.3g}%: from the ends of the "
                "two intervals, as if the drafts were not the same.",
            ),
            ResultTable(
                "printed_gains_measured",
                ("temperature", "num_drafts", "draft_length", "verifier", "block_efficiency", "low", "high"),
                [(*shape, *values) for shape, values in ours.items()],
                f"Block efficiency of the bundled models in tokens per target call, {100 * confidence:g}% "
                "intervals over drafts.",
            ),
            ResultTable(
                "printed_gains_defect", DEFECT_COLUMNS,
                defects_on_two_tokens(LOSSY, sorted({shape[0] for shape in ours})),
                "Total variation, exact, on the bundled models restricted to two tokens after the first "
                "prompt, for the K and L that can be enumerated. It is not that of the estimates.",
            ),
            ResultTable(
                "printed_gains_all",
                (*Printed._fields, "recomputed_gain"),
                everything,
                "Every printed block efficiency, its gain over token verification in percent where it is "
                "printed, and the gain recomputed from the rounded block efficiencies.",
            ),
        ],
        checks=[
            Check.of("the printed order of the verifiers holds on every data set", compared, misordered),
            Check.of("block is above token in every printed row",
                     sum(one.row.verifier == "block" for one in gains), not_more),
            Check.of("the mean printed gain of block grows with the draft length", 4, falls),
            Check.of("here, too, block's interval is nowhere below token's",
                     sum(shape[3] == "block" for shape in ours), below),
        ],
    )  # fmt: skip


def _shape(row: Printed) -> Shape:
    return (row.temperature or 1.0, row.num_drafts, row.draft_length, row.verifier)


def _ratios(here: tuple[float, float, float], base: tuple[float, float, float]) -> tuple[float, ...]:
    """Gain in percent, and the least and largest that the two intervals allow."""
    pairs = ((here[0], base[0]), (here[1], base[2]), (here[2], base[1]))
    return tuple(100 * (value / over - 1) for value, over in pairs)


def _estimates(
    shapes: Sequence[Shape], num_prompts: int, samples: int, seed: int, confidence: float
) -> dict[Shape, tuple[float, float, float]]:
    """Block efficiency and its interval by shape; those of one temperature see the same drafts."""
    from spectheory.models import SamplingOptions, bundled_prompts

    found = {}
    for temperature in sorted({shape[0] for shape in shapes}):
        asked = [shape for shape in shapes if shape[0] == temperature]
        simulation = whole(
            simulate(
                bundled_pair(), bundled_prompts()[:num_prompts],
                [OnFirst(verifier, drafts, length) for _, drafts, length, verifier in asked],
                num_drafts=max(shape[1] for shape in asked), draft_length=max(shape[2] for shape in asked),
                samples=samples, seed=seed, confidence=confidence, batch_size=16,
                options=SamplingOptions(temperature=temperature),
            )
        )  # fmt: skip
        for shape, estimate in zip(asked, simulation.estimates, strict=True):
            found[shape] = (estimate.block_efficiency, *estimate.interval)
    return found


def _misordered(rows: Sequence[Printed]) -> tuple[list[str], int]:
    """Data sets on which the printed numbers contradict the printed order, and how many were compared."""
    tables: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.table in ORDERS:
            tables[row.table, row.target, row.dataset][row.verifier] = row.block_efficiency
    wrong = [
        f"{where}: {values}"
        for where, values in tables.items()
        if any(values[better] < values[worse] for better, worse in pairwise(ORDERS[where[0]]))
    ]
    return wrong, len(tables)


def _plot(findings: Findings) -> Figure:
    rows = findings.table("printed_gains_all").select()
    here = [row for row in findings.table("printed_gains").select() if row["gain_here"] is not None]
    with panels(1, 2, height=3.4) as (figure, (left, right)):
        for draft, line in (("PALM-2-XXS", "-"), ("PALM-2-XXXS", ":")):
            shown = [row for row in rows if row["table"] in BLOCK_TABLES and row["draft"] == draft]
            _gains(left, shown, "block", f"block, drafter {draft}", line)
        _gains(left, [row for row in rows if row["table"] == "block2024 Table 4"], "greedy_block", None, "-")
        theirs = [row for row in rows if row["table"].startswith("spectrgbv2026")]
        for verifier in ("spectr_gbv", "spectr", "greedy_block"):
            _gains(right, [row for row in theirs if row["table"].endswith("5")], verifier, None, "-")
            _gains(right, [row for row in theirs if row["table"].endswith(("1", "4"))], verifier, None, "")
        _here(left, [row for row in here if row["table"] in (*BLOCK_TABLES, "block2024 Table 4")])
        _here(right, [row for row in here if row["table"].startswith("spectrgbv2026")])
        left.set_title("block2024, one draft")
        right.set_title("spectrgbv2026, up to three drafts")
        left.set(xlabel="draft length L", ylabel="gain over token [%]", xticks=(4, 6, 8))
        right.set(xlabel="draft length L", xticks=(4, 8, 12, 16))
        for axes in (left, right):
            axes.axhline(0, color=GREY, linewidth=0.8)
        together = 2 * findings.settings["confidence"] - 1
        right.annotate(f"{100 * together:.3g} % intervals", (0.98, 0.02), xycoords="axes fraction",
                       ha="right", fontsize=8)  # fmt: skip
        legend_below(figure, 3)
    return figure


def _gains(axes: Axes, rows: Sequence[dict[str, Any]], verifier: str, label: str | None, line: str) -> None:
    """Data sets as small points; with a line style, their means by draft length."""
    style = VERIFIER_STYLES[verifier]
    shown = [row for row in rows if row["verifier"] == verifier]
    axes.plot(
        [row["draft_length"] for row in shown], [_gain(row) for row in shown], style.marker,
        color=style.colour, markersize=3, alpha=0.45, markeredgewidth=0,
    )  # fmt: skip
    if line:
        lengths = sorted({row["draft_length"] for row in shown})
        means = [mean(_gain(row) for row in shown if row["draft_length"] == length) for length in lengths]
        axes.plot(
            lengths, means, line, color=style.colour, marker=style.marker, markersize=5,
            markerfacecolor="white", label=label or style.label,
        )  # fmt: skip


def _gain(row: dict[str, Any]) -> float:
    """As printed; where it is not printed, from the rounded efficiencies."""
    return float(row["recomputed_gain"] if row["printed_gain"] is None else row["printed_gain"])


def _here(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    """Gains of the bundled models: crosses in the verifier's colour, one per verifier and length."""
    keys = ("verifier", "draft_length", "gain_here", "gain_here_low", "gain_here_high")
    for verifier, length, gain, low, high in sorted({tuple(row[key] for key in keys) for row in rows}):
        axes.errorbar(
            length + SHIFTS[verifier], gain, yerr=[[gain - low], [high - gain]], fmt="x", markersize=7,
            color=VERIFIER_STYLES[verifier].colour, markeredgewidth=1.8, elinewidth=0.9, capsize=2,
        )  # fmt: skip
    axes.plot([], [], "x", color=GREY, markersize=7, markeredgewidth=1.8, label="bundled models")
