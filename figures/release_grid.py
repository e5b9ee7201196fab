import re
from collections import defaultdict
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, panels

DOCS = Path(__file__).parents[1] / "docs"
ROW = re.compile(r"^\| `([^`]+)` \| ([^|]*) \| (.*) \|$", re.MULTILINE)
COLOURS = {
    "lossless": ("L", "#1e7a43"),
    "not lossless": ("N", "#b03a2e"),
    "equals its stated relaxation": ("R", "#2267a0"),
    "undecided": ("?", "#8a6508"),
    "not audited": ("·", "#9aa3ad"),
}
"""Verdict -> its letter and its colour, as on the site's scoreboard."""


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    samplers = table.distinct("sampler")[::-1]
    most = max(len(table.where(sampler=name).rows) for name in samplers)
    with panels(width=8.6, height=0.34 * len(samplers) + 0.9) as (figure, (axes,)):
        for place, name in enumerate(samplers):
            for column, row in enumerate(table.select(sampler=name)):
                letter, colour = COLOURS[row["verdict"]]
                corner = column - 0.47, place - 0.44
                axes.add_patch(Rectangle(corner, 0.94, 0.88, color=colour, linewidth=0))
                look: Look = {"ha": "center", "va": "center", "color": "white"}
                axes.text(column, place + 0.12, letter, fontsize=8, fontweight="bold", **look)
                axes.text(column, place - 0.22, row["release"], fontsize=5.5, **look)
        axes.set(xlim=(-0.6, most - 0.4), ylim=(-0.6, len(samplers) - 0.4), xticks=[])
        axes.set_yticks(range(len(samplers)), samplers, fontsize=8)
        axes.set_title("Samplers of six libraries, the newest release on the left", fontsize=10)
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
        for verdict, (letter, colour) in COLOURS.items():
            axes.scatter([], [], marker="s", color=colour, s=60, label=f"{letter}  {verdict}")
        figure.legend(loc="outside lower center", ncols=len(COLOURS), fontsize=8)
    return figure


def verdicts(page: str) -> list[tuple[str, str, str]]:
    """Sampler, release and verdict of every row of the first table of a page of audits."""
    text = (DOCS / page).read_text(encoding="utf-8")
    first = text[text.index("\n| sampler |") :].split("\n\n")[0]
    found = []
    for name, releases, rest in ROW.findall(first):
        verdict = next(cell for cell in rest.split(" | ") if cell.strip() in COLOURS).strip()
        found += [(name, release.split()[-1], verdict) for release in releases.split(", ")]
    return found


@result(
    title="Is it lossless? Released samplers by release",
    source="docs/audits.md and docs/audits_by_release.md",
    draw=_draw,
)
def release_grid() -> Findings:
    """The verdicts of stored audits, release by release."""
    checks = Checks()
    newest = {name: (release, verdict) for name, release, verdict in verdicts("audits.md")}
    by_sampler: dict[str, dict[str, str]] = defaultdict(dict)
    for name, release, verdict in verdicts("audits_by_release.md"):
        by_sampler[name].setdefault(release, verdict)
    table = ResultTable("release_grid", "Verdicts on released files: the newest on all pairs, others on two.")
    for name, told in by_sampler.items():
        release, verdict = newest[name]
        claim = "on few pairs an audit says of the newest release what it says on all"
        if told.get(release, "not audited") != "not audited":
            checks.expect(claim, told[release] == verdict, f"{name} {release}: {told[release]}, {verdict}")
        for each, judged in ({release: verdict} | told | {release: verdict}).items():
            table.add(sampler=name, release=each, verdict=judged)
    return Findings(
        "Every square is a release of a sampler. The newest was asked about all pairs, the others about two, "
        "so a green square there rests on less. Grey: the release has no such sampler, or it asks for more "
        "than the stand-in models have.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    release_grid.main()
