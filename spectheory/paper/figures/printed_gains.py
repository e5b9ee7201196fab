from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.drawing import Look, legend_below, note, panels, zero_line
from spectheory.paper.figures.support import LOSSY, bundled_pair, defects_on_two_tokens, interval, whole
from spectheory.paper.printed import Printed, RecomputedGain, gains_over_token, printed_rows
from spectheory.paper.style import GREY, VERIFIER_STYLES
from spectheory.simulation import simulate
from spectheory.verification.first_drafts import OnFirst

ORDERS = {
    "block2024 Table 4": ("block", "greedy_block", "token"),
    "block2024 Table 5": ("spectr", "multi_round", "block", "token"),
    "spectrgbv2026 Table 1": ("spectr_gbv", "spectr", "greedy_block", "token"),
    "spectrgbv2026 Table 4": ("spectr_gbv", "spectr", "greedy_block", "token"),
}
"""How a paper ranks the verifiers of a table, best first; equal numbers are allowed."""
SHIFTS = {"block": -0.15, "greedy_block": 0.15, "spectr": -0.15, "spectr_gbv": 0.15, "multi_round": 0.0}
"""Beside each other, so that intervals do not hide each other."""
BLOCK_TABLES = tuple(f"block2024 Table {number}" for number in (1, 6, 7, 8, 9, 10))
DRAFTERS = {"PALM-2-XXS": "-", "PALM-2-XXXS": ":"}


class Shape(NamedTuple):
    """The setting of a block efficiency."""

    temperature: float
    num_drafts: int
    draft_length: int
    verifier: str


def _plot(findings: Findings) -> Figure:
    rows = findings.table("printed_gains_all").select()
    here = [row for row in findings.table("printed_gains").select() if row["gain_here"] is not None]
    theirs = [row for row in rows if row["table"].startswith("spectrgbv2026")]
    with panels(1, 2, height=3.4) as (figure, (left, right)):
        for draft, line in DRAFTERS.items():
            shown = [row for row in rows if row["table"] in BLOCK_TABLES and row["draft"] == draft]
            _gains(left, shown, "block", f"block, drafter {draft}", line)
        _gains(left, [row for row in rows if row["table"] == "block2024 Table 4"], "greedy_block", None, "-")
        for verifier in ("spectr_gbv", "spectr", "greedy_block"):
            _gains(right, [row for row in theirs if row["table"].endswith("5")], verifier, None, "-")
            _gains(right, [row for row in theirs if row["table"].endswith(("1", "4"))], verifier, None, "")
        _here(left, [row for row in here if row["table"] in (*BLOCK_TABLES, "block2024 Table 4")])
        _here(right, [row for row in here if row["table"].startswith("spectrgbv2026")])
        left.set_title("block2024, one draft")
        right.set_title("spectrgbv2026, up to three drafts")
        left.set(xlabel="draft length L", ylabel="gain over token [%]", xticks=(4, 6, 8))
        right.set(xlabel="draft length L", xticks=(4, 8, 12, 16))
        zero_line(left)
        zero_line(right)
        note(right, f"{100 * (2 * findings.settings['confidence'] - 1):.3g} % intervals")
        legend_below(figure, 3)
    return figure


def _gains(axes: Axes, rows: Sequence[dict[str, Any]], verifier: str, label: str | None, line: str) -> None:
    """Data sets as small points; with a line style, their means by draft length."""
    style = VERIFIER_STYLES[verifier]
    by_length: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        if row["verifier"] == verifier:  # the gain as printed; else from the rounded efficiencies
            gain = row["recomputed_gain"] if row["printed_gain"] is None else row["printed_gain"]
            by_length[row["draft_length"]].append(gain)
    points = [(length, gain) for length, gains in by_length.items() for gain in gains]
    faint: Look = {"color": style.colour, "markersize": 3, "alpha": 0.45, "markeredgewidth": 0}
    axes.plot(*zip(*points, strict=True), style.marker, **faint)
    if line:
        means = sorted((length, mean(gains)) for length, gains in by_length.items())
        look: Look = {"color": style.colour, "marker": style.marker, "label": label or style.label}
        axes.plot(*zip(*means, strict=True), line, **look, markersize=5, markerfacecolor="white")


def _here(axes: Axes, rows: Sequence[dict[str, Any]]) -> None:
    """Gains of the bundled models: crosses in the verifier's colour, one per verifier and length."""
    keys = ("verifier", "draft_length", "gain_here", "gain_here_low", "gain_here_high")
    for verifier, length, gain, low, high in sorted({tuple(row[key] for key in keys) for row in rows}):
        axes.errorbar(
            length + SHIFTS[verifier], gain, yerr=[[gain - low], [high - gain]], fmt="x", markersize=7,
            color=VERIFIER_STYLES[verifier].colour, markeredgewidth=1.8, elinewidth=0.9, capsize=2,
        )  # fmt: skip
    axes.plot([], [], "x", color=GREY, markersize=7, markeredgewidth=1.8, label="bundled models")


@exhibit(
    "language models",
    title="Gains over token verification, as printed and here",
    source="spectr2023, Table 4; block2024, Tables 1 and 4–10; spectrgbv2026, Tables 1 and 3–5; other models",
    plot=_plot,
    small={"num_prompts": 2, "samples": 2},
)
def printed_gains(
    num_prompts: int = 24, samples: int = 4, seed: int = 19, confidence: float = 0.95
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
            token = ours[shape._replace(num_drafts=1, verifier="token")]
            claim = "here, too, block's interval is nowhere below token's"
            checks.expect(claim, estimate["high"] >= token["low"], f"{shape}: {estimate}")
    measured = ResultTable(
        "printed_gains_measured",
        f"Block efficiency of the bundled models in tokens per target call, {100 * confidence:g}% "
        "intervals over drafts.",
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
        "Points are data sets. Lines are their means on the left, and HumanEval with DeepSeek 6.7B and "
        "1.3B on the right, where greedy block has one draft. The gains of block are the printed ones. "
        "The others are not printed per data set and are recomputed from the printed, rounded block "
        "efficiencies. Crosses are the bundled models with the same K, L and temperature, temperature 1 "
        "where the paper prints none, with intervals "
        "that make no use of the common drafts. The printed numbers are of large models "
        "and whole texts, the estimates of the bundled models and of one call. So sizes need not agree, "
        "and what greedy block's modification costs the next calls is in the printed numbers only. "
        "SpecTr-GBV and greedy block are not lossless as they stand. printed_gains_defect has their "
        "total variation on two tokens.",
        tables=[table, measured, defects, everything],
        checks=checks,
    )


def _shape(row: Printed) -> Shape:
    return Shape(row.temperature or 1.0, row.num_drafts, row.draft_length, row.verifier)


def _by_setting(
    gains: Sequence[RecomputedGain], ours: dict[Shape, dict[str, float]], confidence: float
) -> ResultTable:
    table = ResultTable(
        "printed_gains",
        "Gain in block efficiency over token verification in percent: mean, smallest and largest "
        "over the data sets. printed: where the paper prints it. recomputed: from the rounded block "
        "efficiencies. gain_here: on the bundled models with the same K, L and temperature; low and "
        f"high hold together with confidence {100 * (2 * confidence - 1):.3g}%: from the ends of the "
        "two intervals, as if the drafts were not the same.",
    )
    by_setting: dict[Printed, list[RecomputedGain]] = defaultdict(list)
    for gain in gains:
        by_setting[gain.row._replace(dataset="", block_efficiency=0.0, printed_gain=None)].append(gain)
    for row, found in by_setting.items():
        printed = [gain.row.printed_gain for gain in found if gain.row.printed_gain is not None]
        recomputed = [gain.percent for gain in found]
        shape = _shape(row)
        here, base = ours.get(shape), ours.get(shape._replace(num_drafts=1, verifier="token"))
        known = here is not None and base is not None
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
            gain_here=_percent(here, base, "block_efficiency", "block_efficiency") if known else None,
            gain_here_low=_percent(here, base, "low", "high") if known else None,
            gain_here_high=_percent(here, base, "high", "low") if known else None,
        )
    return table


def _percent(here: Any, base: Any, of_here: str, of_base: str) -> float:
    return 100 * (here[of_here] / base[of_base] - 1)


def _estimates(
    shapes: Sequence[Shape], num_prompts: int, samples: int, seed: int, confidence: float
) -> dict[Shape, dict[str, float]]:
    """Block efficiency and its interval by shape; those of one temperature see the same drafts."""
    from spectheory.models import SamplingOptions, bundled_prompts

    found: dict[Shape, dict[str, float]] = {}
    for temperature in sorted({shape.temperature for shape in shapes}):
        asked = [shape for shape in shapes if shape.temperature == temperature]
        simulation = whole(
            simulate(
                bundled_pair(), bundled_prompts()[:num_prompts],
                [OnFirst(shape.verifier, shape.num_drafts, shape.draft_length) for shape in asked],
                drafts=max(shape.num_drafts for shape in asked),
                draft_length=max(shape.draft_length for shape in asked),
                samples=samples, seed=seed, confidence=confidence, batch_size=16,
                options=SamplingOptions(temperature=temperature),
            )
        )  # fmt: skip
        found |= {shape: interval(one) for shape, one in zip(asked, simulation.estimates, strict=True)}
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
