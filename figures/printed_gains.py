from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.common.bundled import GREEDY_BLOCK, LOSSY, Shown, gained, interval, on_common_drafts
from figures.common.printed import Printed, RecomputedGain, gains_over_token, printed_rows
from figures.results import Checks, Findings, ResultTable, result
from figures.style import AUTHORS, Look, label_point, legend_below, named, note, panels, zero_line
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES
from spectheory.verification.resolve import find_verifier

ORDERS = {
    "block2024 Table 4": ("block", "greedy_block", "token"),
    "block2024 Table 5": ("spectr", "multi_round", "block", "token"),
    "spectrgbv2026 Table 1": ("spectr_gbv", "spectr", "greedy_block", "token"),
    "spectrgbv2026 Table 4": ("spectr_gbv", "spectr", "greedy_block", "token"),
}
"""How a paper ranks the verifiers of a table, best first; equal numbers are allowed."""
PAPERS = {
    "spectr2023": "transformers of 97M and 2M to 20M",
    "block2024": "PALM-2-S with PALM-2-XXS or XXXS",
    "spectrgbv2026": "three model families, temperature 0.4",
}
LONGEST_DRAWN = 16
BARS: Look = {"linestyle": "none", "markersize": 5, "elinewidth": 1.2, "capsize": 2.5}
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


def _draw(findings: Findings) -> Figure:
    confidence = 100 * findings.settings["confidence"]
    rows, here = findings.table("printed_gains_all").select(), findings.table("printed_gains").select()
    shown = {paper: _lines([row for row in rows if row["table"].startswith(paper)]) for paper in PAPERS}
    sizes: Look = {"gridspec_kw": {"height_ratios": [len(lines) for lines in shown.values()]}}
    with panels(len(PAPERS), width=8.4, height=2.15, sharex=True, **sizes) as (figure, all_axes):
        for axes, (paper, lines) in zip(all_axes, shown.items(), strict=True):
            estimates = {
                _line(row): row
                for row in here
                if row["gain_here"] is not None and row["table"].startswith(paper)
            }
            for place, (line, gains) in enumerate(lines.items()):
                _draw_line(axes, -place, line, gains, estimates.get(line))
            axes.set_yticks([-place for place in range(len(lines))], [*map(_line_in_words, lines)])
            axes.margins(y=0.6 / len(lines))
            axes.set_title(f"{AUTHORS[paper]}: {PAPERS[paper]}")
            axes.grid(visible=False, axis="y")
            zero_line(axes, vertical=True)
        look: Look = {"color": BLACK, "linestyle": "none"}
        axes.plot(
            [],
            [],
            "o",
            color=GREY,
            markersize=3,
            alpha=0.6,
            label="as printed: one data set, one pair of models",
        )
        axes.plot([], [], "|", **look, markersize=8, markeredgewidth=2, label="as printed: the mean")
        axes.errorbar(
            [], [], xerr=[], fmt="o", color=BLACK, **BARS,
            label=f"here, on the bundled models, with {confidence:g} % interval, paired by prompt",
        )  # fmt: skip
        if all(row["gain_here_low"] > 0 for row in here if row["gain_here"] is not None):
            note(
                axes,
                "All gains on the bundled models are\nsignificant: no interval holds zero.",
                (0.99, 0.05),
            )
        axes.set_xlabel("gain in tokens per target call over token verification [%]")
        legend_below(figure, 1)
    return figure


class Line(NamedTuple):
    """A line of the picture: a verifier and the drafts it is given."""

    verifier: str
    num_drafts: int
    draft_length: int


def _line(row: Mapping[str, Any]) -> Line:
    return Line(*(row[name] for name in Line._fields))


def _line_in_words(line: Line) -> str:
    lossless = line.verifier == "greedy_block" or line.verifier not in LOSSY  # as it is printed: modified
    return f"{named(line.verifier, lossless)}, K = {line.num_drafts}, L = {line.draft_length}"


def _lines(rows: Sequence[Mapping[str, Any]]) -> dict[Line, list[float]]:
    """The gains of a paper: as printed, else from the rounded efficiencies; a data set counts once."""
    found: dict[Line, dict[tuple[str, ...], float]] = defaultdict(dict)
    for row in rows:
        if row["verifier"] != "token" and row["draft_length"] <= LONGEST_DRAWN:
            gain = row["recomputed_gain"] if row["printed_gain"] is None else row["printed_gain"]
            found[_line(row)].setdefault((row["target"], row["draft"], row["dataset"]), gain)
    return {line: [*found[line].values()] for line in sorted(found)}


def _draw_line(
    axes: Axes, place: int, line: Line, gains: Sequence[float], here: Mapping[str, Any] | None
) -> None:
    """The printed gains of a verifier, and below them the one here with its interval."""
    axes.plot(gains, [place + 0.12] * len(gains), "o", color=GREY, markersize=3, alpha=0.6)
    axes.plot([mean(gains)], [place + 0.12], "|", color=BLACK, markersize=8, markeredgewidth=2)
    if here is None:
        return
    gain, low, high = (here[name] for name in ("gain_here", "gain_here_low", "gain_here_high"))
    style = VERIFIER_STYLES[line.verifier]
    look: Look = {"color": style.colour, "marker": style.marker, **BARS}
    axes.errorbar([gain], [place - 0.2], xerr=[[gain - low], [high - gain]], **look)
    if low <= 0 <= high:
        label_point(axes, "not significant", (high, place - 0.2), (4, 0), va="center", fontsize=7)


@result(
    title="Gains over token verification, as printed and here",
    source="block2024, Tables 1, 4 and 6–10; spectrgbv2026, Tables 1, 4 and 5; other models",
    draw=_draw,
    small={"num_prompts": 2, "samples": 2},
)
def printed_gains(
    num_prompts: int = 64, samples: int = 16, seed: int = 19, confidence: float = 0.95
) -> Findings:
    """Printed gains in block efficiency by verifier, K and L, and estimates at the same ones.

    Where a paper prints no temperature, the estimate is at temperature 1.  Lengths beyond 8 are not
    estimated, nor are verifiers that are printed with their modification of the target: the estimates are of
    single calls, which have none.
    """
    checks, gains = Checks(), gains_over_token()
    _expect_printed_orders(checks)
    for gain in gains:
        if gain.row.verifier == "block":
            checks.expect("block is above token in every printed row", gain.percent > 0, f"{gain.row}")
    shapes = sorted({_shape(row) for row in printed_rows() if row.draft_length <= 8 and not _modified(row)})
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
    return Findings(
        "Every line is a verifier with K drafts of L tokens. Small points are printed, one data set and one "
        "pair of models each; the tick is their mean, and papers print no intervals. Gains of block are the "
        "printed ones; the others follow from printed, rounded block efficiencies. Points with bars are the "
        "bundled models at the same K, L and temperature (1 where none is printed): the difference from "
        f"token on the same drafts, paired by prompt, in percent of the mean of token. {_significant(ours)} "
        f"The bundled models are small and of one call, so sizes need not agree. {GREEDY_BLOCK}. So it is "
        "printed, as is SpecTr-GBV, which is not lossless with it either. The modification costs tokens in "
        "the next calls, and a single call has none: so these two have no point here. whole_texts has the "
        "modified greedy block on the bundled models.",
        tables=[table, measured, everything],
        checks=checks,
    )


def _significant(ours: Mapping[Shape, Mapping[str, Any]]) -> str:
    """A sentence on the gains whose intervals exclude zero."""
    gains = [one for one in ours.values() if one.get("gain") is not None]
    above = sum(one["gain_low"] > 0 for one in gains)
    return (
        f"Of {len(gains)} intervals {above} are above zero; one that holds zero is marked as not significant."
    )


def _modified(row: Printed) -> bool:
    """Whether the verifier is printed with a modification of the target in the next calls."""
    return find_verifier(row.verifier).modified_target_rows is not None


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


if __name__ == "__main__":
    printed_gains.main()
