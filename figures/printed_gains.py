from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.common.bundled import GREEDY_BLOCK, LOSSY, Shown, gained, interval, on_common_drafts
from figures.common.printed import Printed, gains_by_setting, gains_over_token, printed_rows, rankings
from figures.results import Checks, Findings, ResultTable, result
from figures.style import AUTHORS, Look, legend_below, named, note, panels, zero_line
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES

PAPERS = {
    "spectr2023": "transformers of 97M and 2M to 20M",
    "block2024": "PALM-2-S with PALM-2-XXS or XXXS",
    "spectrgbv2026": "three model families, temperature 0.4",
}
LONGEST_DRAWN = 16
SETTING = ("table", "target", "draft", "verifier", "temperature", "num_drafts", "draft_length")
BARS: Look = {"linestyle": "none", "markersize": 5, "elinewidth": 1.2, "capsize": 2.5}
SMALL: Look = {"color": GREY, "markersize": 3, "alpha": 0.6}
TICK: Look = {"color": BLACK, "linestyle": "none", "markersize": 8, "markeredgewidth": 2}
BLOCK_TABLES = tuple(f"block2024 Table {number}" for number in (1, 6, 7, 8, 9, 10))
DRAFTERS = ("PALM-2-XXS", "PALM-2-XXXS")


class Shape(NamedTuple):
    """The setting of a block efficiency."""

    temperature: float
    num_drafts: int
    draft_length: int
    verifier: str

    @staticmethod
    def of(row: Printed) -> "Shape":
        return Shape(row.temperature or 1.0, row.num_drafts, row.draft_length, row.verifier)


def _draw(findings: Findings) -> Figure:
    confidence = 100 * findings.settings["confidence"]
    rows, here = findings.table("printed_gains_all").select(), findings.table("printed_gains").select()
    shown = {paper: _lines([row for row in rows if row["table"].startswith(paper)]) for paper in PAPERS}
    sizes: Look = {"gridspec_kw": {"height_ratios": [len(lines) for lines in shown.values()]}}
    with panels(len(PAPERS), width=8.4, height=2.15, sharex=True, **sizes) as (figure, all_axes):
        for axes, (paper, lines) in zip(all_axes, shown.items(), strict=True):
            known = [row for row in here if row["gain_here"] is not None and row["table"].startswith(paper)]
            estimates = {(row["verifier"], row["num_drafts"], row["draft_length"]): row for row in known}
            for place, (line, gains) in enumerate(lines.items()):
                _draw_line(axes, -place, line, gains, estimates.get(line))
            printed = {name: named(name, name != "spectr_gbv") for name, _, _ in lines}  # greedy is modified
            words = [f"{printed[name]}, K = {drafts}, L = {length}" for name, drafts, length in lines]
            axes.set_yticks([-place for place in range(len(lines))], words)
            axes.margins(y=0.6 / len(lines))
            axes.set_title(f"{AUTHORS[paper]}: {PAPERS[paper]}")
            axes.grid(visible=False, axis="y")
            zero_line(axes, vertical=True)
        axes.plot([], [], "o", **SMALL, label="as printed: one data set, one pair of models")
        axes.plot([], [], "|", **TICK, label="as printed: the mean")
        label = f"here, on the bundled models, with {confidence:g} % interval, paired by prompt"
        axes.errorbar([], [], xerr=[], fmt="o", color=BLACK, **BARS, label=label)
        if all(row["gain_here_low"] > 0 for row in here if row["gain_here"] is not None):
            text = "All gains on the bundled models are\nsignificant: no interval holds zero."
            note(axes, text, (0.99, 0.05))
        axes.set_xlabel("gain in tokens per target call over token verification [%]")
        legend_below(figure, 1)
    return figure


def _lines(rows: Sequence[Mapping[str, Any]]) -> dict[Shown, list[float]]:
    """By verifier, K and L: the gains of a paper, as printed or recomputed; a data set counts once."""
    found: dict[Shown, dict[tuple[str, ...], float]] = defaultdict(dict)
    for row in rows:
        if row["verifier"] != "token" and row["draft_length"] <= LONGEST_DRAWN:
            gain = row["recomputed_gain"] if row["printed_gain"] is None else row["printed_gain"]
            line = row["verifier"], row["num_drafts"], row["draft_length"]
            found[line].setdefault((row["target"], row["draft"], row["dataset"]), gain)
    return {line: [*found[line].values()] for line in sorted(found)}


def _draw_line(axes: Axes, place: int, line: Shown, gains: Sequence[float], here: Any) -> None:
    """The printed gains of a verifier, and below them the one here with its interval."""
    axes.plot(gains, [place + 0.12] * len(gains), "o", **SMALL)
    axes.plot([mean(gains)], [place + 0.12], "|", **TICK)
    if here is not None:
        gain, low, high = (here[name] for name in ("gain_here", "gain_here_low", "gain_here_high"))
        style = VERIFIER_STYLES[line[0]]
        ends = [[gain - low], [high - gain]]
        axes.errorbar([gain], [place - 0.2], xerr=ends, color=style.colour, marker=style.marker, **BARS)


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

    Where a paper prints no temperature, the estimate is at temperature 1.  Lengths above 8 are not estimated,
    nor are verifiers that are printed with their modification of the target: a single call has none.
    """
    checks, gains = Checks(), gains_over_token()
    for place, values, ordered in rankings(printed_rows()):
        claim = "the printed order of the verifiers holds on every data set"
        checks.expect(claim, ordered, f"{place}: {values}")
    for gain in gains:
        if gain.row.verifier == "block":
            checks.expect("block is above token in every printed row", gain.percent > 0, f"{gain.row}")
    shown = [row for row in printed_rows() if row.draft_length <= 8 and row.verifier not in LOSSY]
    shapes = sorted({*map(Shape.of, shown)})
    ours = _estimates(shapes, num_prompts, samples=samples, seed=seed, confidence=confidence)
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
    measured = ResultTable(
        "printed_gains_measured",
        f"Block efficiency of the bundled models in tokens per target call, {100 * confidence:g}% "
        "intervals over drafts, and the gain over token verification in percent.",
    )
    for shape, estimate in ours.items():
        if shape.verifier == "block":
            claim = "here, too, no interval of block's gain is below zero"
            checks.expect(claim, estimate["gain_high"] >= 0, f"{shape}: {estimate}")
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
        "pair of models each; the tick is their mean. Points with bars are the bundled models at the same K, "
        f"L and temperature: small models, and single calls, so sizes need not agree. {GREEDY_BLOCK}. So it "
        "is printed, as is SpecTr-GBV; a single call has no modification, so these two have no point here.",
        tables=[table, measured, everything],
        checks=checks,
    )


def _by_setting(gains: Sequence[Any], ours: Mapping[Shape, Any], confidence: float) -> ResultTable:
    table = ResultTable(
        "printed_gains",
        "Gain in block efficiency over token verification in percent: mean, smallest and largest "
        "over the data sets. printed: where the paper prints it. recomputed: from the rounded block "
        "efficiencies. gain_here: on the bundled models with the same K, L and temperature, with a "
        f"{100 * confidence:g}% interval: the difference on the same drafts, paired by prompt, in percent of "
        "the mean of token.",
    )
    for row, found in gains_by_setting(gains).items():
        here = ours.get(Shape.of(row), {})
        table.add(
            **{name: getattr(row, name) for name in SETTING},
            **_spread("printed", [one.row.printed_gain for one in found if one.row.printed_gain is not None]),
            **_spread("recomputed", [one.percent for one in found]),
            datasets=len(found),
            **{f"gain_here{end}": here.get(f"gain{end}") for end in ("", "_low", "_high")},
        )
    return table


def _spread(name: str, values: Sequence[float]) -> dict[str, float | None]:
    found = (mean(values), min(values), max(values)) if values else (None, None, None)
    return dict(zip((f"{name}_gain", f"{name}_smallest", f"{name}_largest"), found, strict=True))


def _estimates(shapes: Sequence[Shape], num_prompts: int, **how: Any) -> dict[Shape, dict[str, Any]]:
    """Block efficiency by shape, and the gain over token in percent; one temperature has the same drafts."""
    from spectheory.models import bundled_prompts

    found: dict[Shape, dict[str, Any]] = {}
    for temperature in sorted({shape.temperature for shape in shapes}):
        here = [shape for shape in shapes if shape.temperature == temperature]
        asked = {(shape.verifier, shape.num_drafts, shape.draft_length): shape for shape in here}
        prompts = bundled_prompts()[:num_prompts]
        estimates = on_common_drafts([*asked], "token", prompts, temperature, **how)
        for shown, one in estimates.items():
            token = estimates["token", 1, shown[2]].block_efficiency
            found[asked[shown]] = interval(one) | gained(one, token / 100)
    return found


if __name__ == "__main__":
    printed_gains.main()
