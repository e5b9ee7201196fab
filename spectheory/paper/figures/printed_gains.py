from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.drawing import Look, legend_below, panels, zero_line
from spectheory.paper.figures.support import (
    LOSSY,
    Shown,
    defects_on_two_tokens,
    gained,
    interval,
    on_common_drafts,
)
from spectheory.paper.printed import Printed, RecomputedGain, gains_over_token, printed_rows
from spectheory.paper.style import BLACK, GREY, VERIFIER_STYLES

ORDERS = {
    "block2024 Table 4": ("block", "greedy_block", "token"),
    "block2024 Table 5": ("spectr", "multi_round", "block", "token"),
    "spectrgbv2026 Table 1": ("spectr_gbv", "spectr", "greedy_block", "token"),
    "spectrgbv2026 Table 4": ("spectr_gbv", "spectr", "greedy_block", "token"),
}
"""How a paper ranks the verifiers of a table, best first; equal numbers are allowed."""
SHIFTS = {"block": 0.25, "spectr": 0.25, "greedy_block": 0.5, "spectr_gbv": 0.75}
"""Of the bundled models: beside the printed gains and beside each other."""
BARS: Look = {"linestyle": "none", "markersize": 6, "elinewidth": 1.2, "capsize": 2.5}
BLOCK_TABLES = tuple(f"block2024 Table {number}" for number in (1, 6, 7, 8, 9, 10))
DRAFTERS = {"PALM-2-XXS": "-", "PALM-2-XXXS": ":"}


class Shape(NamedTuple):
    """The setting of a block efficiency."""

    temperature: float
    num_drafts: int
    draft_length: int
    verifier: str

    @property
    def shown(self) -> Shown:
        return self.verifier, self.num_drafts, self.draft_length


def _plot(findings: Findings) -> Figure:
    rows = findings.table("printed_gains_all").select()
    here = [row for row in findings.table("printed_gains").select() if row["gain_here"] is not None]
    theirs = [row for row in rows if row["table"].startswith("spectrgbv2026")]
    with panels(1, 2, height=3.6, sharey=True) as (figure, (left, right)):
        for draft, line in DRAFTERS.items():
            shown = [row for row in rows if row["table"] in BLOCK_TABLES and row["draft"] == draft]
            _gains(left, shown, "block", line, f", drafter {draft}")
        _gains(left, [row for row in rows if row["table"] == "block2024 Table 4"], "greedy_block", "-")
        for verifier in ("spectr", "greedy_block", "spectr_gbv"):
            _gains(right, [row for row in theirs if row["table"].endswith("5")], verifier, "-")
            _gains(right, [row for row in theirs if row["table"].endswith(("1", "4"))], verifier, "")
        _here(left, [row for row in here if row["table"] in (*BLOCK_TABLES, "block2024 Table 4")])
        _here(right, [row for row in here if row["table"].startswith("spectrgbv2026")])
        label = f"bundled models, {100 * findings.settings['confidence']:g} % intervals"
        right.errorbar([], [], yerr=[], label=label, marker="o", color=BLACK, **BARS)
        left.set_title("block2024, one draft")
        right.set_title("spectrgbv2026, three drafts")
        left.set(xlabel="draft length L", ylabel="gain over token [%]", xticks=(4, 6, 8))
        right.set(xlabel="draft length L", xticks=(4, 8, 12, 16))
        zero_line(left)
        zero_line(right)
        legend_below(figure, 2)
    return figure


def _look(verifier: str) -> Look:
    """Grey and hollow if it is not lossless."""
    style = VERIFIER_STYLES[verifier]
    if verifier in LOSSY:
        return {"marker": style.marker, "color": GREY, "markerfacecolor": "white"}
    return {"marker": style.marker, "color": style.colour}


def _gains(axes: Axes, rows: Sequence[dict[str, Any]], verifier: str, line: str, drafter: str = "") -> None:
    """Data sets as small points; with a line style, their means by draft length."""
    by_length: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["verifier"] == verifier:  # the gain as printed; else from the rounded efficiencies
            gain = row["recomputed_gain"] if row["printed_gain"] is None else row["printed_gain"]
            by_length[row["draft_length"]].append(gain)
    points = [(length, gain) for length, gains in by_length.items() for gain in gains]
    faint: Look = {"markersize": 3, "alpha": 0.45, "linestyle": "none"}
    axes.plot(*zip(*points, strict=True), **(_look(verifier) | faint))
    if line:
        means = sorted((length, mean(gains)) for length, gains in by_length.items())
        remark = " (not lossless)" if verifier in LOSSY else drafter
        look: Look = {"label": VERIFIER_STYLES[verifier].label + remark, "markersize": 5, "linewidth": 1.4}
        axes.plot(*zip(*means, strict=True), **(_look(verifier) | look), linestyle=line)


def _here(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    """Gains of the bundled models with their intervals, one per verifier and length."""
    keys = ("verifier", "draft_length", "gain_here", "gain_here_low", "gain_here_high")
    for verifier, length, gain, low, high in sorted({tuple(row[key] for key in keys) for row in rows}):
        ends = [[gain - low], [high - gain]]
        axes.errorbar(length + SHIFTS[verifier], gain, yerr=ends, **_look(verifier), **BARS)


@exhibit(
    "language models",
    title="Gains over token verification, as printed and here",
    source="block2024, Tables 1, 4 and 6–10; spectrgbv2026, Tables 1, 4 and 5; other models",
    plot=_plot,
    small={"num_prompts": 2, "samples": 2},
)
def printed_gains(
    num_prompts: int = 64, samples: int = 16, seed: int = 19, confidence: float = 0.95
) -> Findings:
    """Printed gains in block efficiency by verifier, K and L, and estimates at the same ones.

    Where a paper prints no temperature, the estimate is at temperature 1.  Lengths beyond 8 are not
    estimated.
    """
    checks, gains = Checks(), gains_over_token()
    _expect_printed_orders(checks)
    for gain in gains:
        if gain.row.verifier == "block":
            checks.expect("block is above token in every printed row", gain.percent > 0, f"{gain.row}")
    shapes = sorted({_shape(row) for row in printed_rows() if row.draft_length <= 8})
    ours = _estimates(shapes, num_prompts, samples, seed, confidence)
    table = _by_setting(gains, ours, confidence)
    means = {
        (row["draft"], row["draft_length"]): row["printed_gain"] or row["recomputed_gain"]
        for row in table.select()
        if row["table"] in BLOCK_TABLES
    }
    for draft in DRAFTERS:
        for short, long in pairwise((4, 6, 8)):
            where = f"{draft}: {means[draft, long]} at {long}"
            claim = "the mean printed gain of block grows with the draft length"
            checks.expect(claim, means[draft, long] > means[draft, short], where)
    for shape, estimate in ours.items():
        if shape.verifier == "block":
            claim = "here, too, no interval of block's gain is below zero"
            checks.expect(claim, estimate["gain_high"] >= 0, f"{shape}: {estimate}")
    measured = ResultTable(
        "printed_gains_measured",
        f"Block efficiency of the bundled models in tokens per target call, {100 * confidence:g}% "
        "intervals over drafts, and the gain over token verification in percent.",
    )
    for shape, estimate in ours.items():
        measured.add(**shape._asdict(), **estimate)
    everything = ResultTable(
        "printed_gains_all",
        "Every printed block efficiency, its gain over token verification in percent where it is "
        "printed, and the gain recomputed from the rounded block efficiencies.",
        (*Printed._fields, "recomputed_gain"),
        [(*gain.row, gain.percent) for gain in gains],
    )
    temperatures = sorted({shape.temperature for shape in ours})
    defects = defects_on_two_tokens("printed_gains_defect", LOSSY, temperatures)
    return Findings(
        "Small points are data sets; lines are their means on the left, and HumanEval with DeepSeek 6.7B "
        "and 1.3B on the right, where greedy block has one draft. Gains of block are the printed ones; the "
        "others follow from printed, rounded block efficiencies. Points with bars are the bundled models "
        "at the same K, L and temperature (1 where none is printed): the difference from token on the same "
        "drafts, paired by prompt, in percent of the mean of token. They are small and of one call, so "
        "sizes need not agree, and what greedy block's modification costs the next calls is in the printed "
        "numbers only. Grey and hollow is not lossless; printed_gains_defect has the total variation on "
        "two tokens.",
        tables=[table, measured, defects, everything],
        checks=checks,
    )


def _shape(row: Printed) -> Shape:
    return Shape(row.temperature or 1.0, row.num_drafts, row.draft_length, row.verifier)


def _by_setting(
    gains: Sequence[RecomputedGain], ours: dict[Shape, dict[str, Any]], confidence: float
) -> ResultTable:
    table = ResultTable(
        "printed_gains",
        "Gain in block efficiency over token verification in percent: mean, smallest and largest "
        "over the data sets. printed: where the paper prints it. recomputed: from the rounded block "
        "efficiencies. gain_here: on the bundled models with the same K, L and temperature, with a "
        f"{100 * confidence:g}% interval: the difference on the same drafts, paired by prompt, in percent of "
        "the mean of token.",
    )
    by_setting: dict[Printed, list[RecomputedGain]] = defaultdict(list)
    for gain in gains:
        by_setting[gain.row._replace(dataset="", block_efficiency=0.0, printed_gain=None)].append(gain)
    for row, found in by_setting.items():
        printed = [gain.row.printed_gain for gain in found if gain.row.printed_gain is not None]
        recomputed = [gain.percent for gain in found]
        here = ours.get(_shape(row), {})
        names = ("table", "target", "draft", "verifier", "temperature", "num_drafts", "draft_length")
        table.add(
            **{name: getattr(row, name) for name in names},
            printed_gain=mean(printed) if printed else None,
            printed_smallest=min(printed, default=None),
            printed_largest=max(printed, default=None),
            recomputed_gain=mean(recomputed),
            recomputed_smallest=min(recomputed),
            recomputed_largest=max(recomputed),
            datasets=len(recomputed),
            gain_here=here.get("gain"),
            gain_here_low=here.get("gain_low"),
            gain_here_high=here.get("gain_high"),
        )
    return table


def _estimates(
    shapes: Sequence[Shape], num_prompts: int, samples: int, seed: int, confidence: float
) -> dict[Shape, dict[str, Any]]:
    """Block efficiency by shape, and the gain over token in percent; one temperature has the same drafts."""
    from spectheory.models import bundled_prompts

    found: dict[Shape, dict[str, Any]] = {}
    for temperature in sorted({shape.temperature for shape in shapes}):
        asked = {shape.shown: shape for shape in shapes if shape.temperature == temperature}
        estimates = on_common_drafts(
            [*asked], "token", bundled_prompts()[:num_prompts], temperature, samples=samples, seed=seed,
            confidence=confidence,
        )  # fmt: skip
        for shown, one in estimates.items():
            token = estimates["token", 1, shown[2]].block_efficiency
            found[asked[shown]] = interval(one) | gained(one, token / 100)
    return found


def _expect_printed_orders(checks: Checks) -> None:
    """Try whether the printed numbers contradict the printed order, data set by data set."""
    tables: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
    for row in printed_rows():
        if row.table in ORDERS:
            tables[row.table, row.target, row.dataset][row.verifier] = row.block_efficiency
    for where, values in tables.items():
        ordered = all(values[better] >= values[worse] for better, worse in pairwise(ORDERS[where[0]]))
        claim = "the printed order of the verifiers holds on every data set"
        checks.expect(claim, ordered, f"{where}: {values}")
