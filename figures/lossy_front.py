import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.common.bundled import GREEDY_BLOCK, LOSSY
from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, Look, label_point, named, note, panels_by
from spectheory.exact.law import output_law
from spectheory.optima import lossy_optimum, optimum
from spectheory.pairs.instances import two_token
from spectheory.verification.algorithms import verifiers
from spectheory.verification.curves import GREY, VERIFIER_STYLES, optimum_curve, verifier_curve
from spectheory.verification.defective import defects
from spectheory.verification.verifier import Verifier

PUBLISHED = ("token", "block", "greedy_block", "multi_round", "traversal", "greedy_multipath", "spectr_gbv")
ABOVE, BELOW, RIGHT = (0, 8), (0, -8), (8, 0)
AT = {
    "lenient_acceptance": (8, -7), "block_acceptance_without_weight": ABOVE,
    "block_uncapped_weight": (-9, -6),
    "block_residual_without_weight": (10, -3), "smoothed_residual": (7, -9), "sharpened_bonus": BELOW,
    "next_correction_row": ABOVE, "target_correction": BELOW, "draft_bonus": ABOVE,
    "absolute_residual": BELOW, "greedy_multipath_ties": (8, -9), "distinct_drafts_assumed": BELOW,
    "greedy_multipath_unskewed": ABOVE, "recursive_without_update": (9, -7),
}  # fmt: skip
"""Where the numbers of known-wrong verifiers are if not on the right: offsets in points."""
FIGURE_SPACE, WIDTH = chr(0x2007), 33
"""Blank as wide as a digit, and the letters in a column of names."""
BESIDE = {"greedy_block": (42, -2), "spectr_gbv": (8, -2)}
"""Where the names of published verifiers that deviate are; lossless ones have theirs on the left."""
TOLERANCE = 1e-9
"""Of comparisons with laws in float64; those in rationals agree exactly."""


def _draw(findings: Findings) -> Figure:
    front, points = findings.tables
    label = "block efficiency\n[tokens per target call]"
    with panels_by(front, "num_drafts", label, legend_columns=3, width=5.0, height=5.6) as (figure, parts):
        for axes, drafts, rows in parts:
            _panel(axes, rows, points.where(num_drafts=drafts))
            axes.set_title("One path" if drafts == 1 else f"K = {drafts} drafts")
    return figure


def _panel(axes: Axes, front: ResultTable, points: ResultTable) -> None:
    label = "most that any verifier earns with this deviation"
    optimum_curve(axes, front["total_variation"], front["most"], label)
    wrong = points.where(kind="known-wrong")
    look: Look = {"facecolor": "none", "edgecolor": ACCENT}
    places = wrong["total_variation"], wrong["block_efficiency"]
    axes.scatter(*places, s=22, label="verifiers with a known mistake", clip_on=False, **look)
    _number(axes, dict(zip(wrong["verifier"], zip(*places, strict=True), strict=True)))
    published = points.where(kind="published")
    for name in published["verifier"]:
        row, style = published.where(verifier=name), VERIFIER_STYLES[name]
        filled: Look = {"markerfacecolor": style.colour, "markersize": 7, "zorder": 3, "label": None}
        places = row["total_variation"], row["block_efficiency"]
        verifier_curve(axes, name, *places, linestyle="none", **filled)
        right, up = BESIDE.get(name, (-9, 0))
        looks: Look = {"color": style.colour, "fontweight": "bold", "fontsize": 8.5, "va": "center"}
        side = "left" if name in BESIDE else "right"
        text = named(name, lossless=name not in LOSSY).replace(", ", ",\n").replace(" (", "\n(")
        if right > 20:
            looks["arrowprops"] = {"arrowstyle": "-", "color": style.colour}
        label_point(axes, text, (places[0][0], places[1][0]), (right, up), ha=side, **looks)
    note(axes, "no deviation\non this pair", (0.4, 0.03), ha="right", color=GREY)
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=0)
    axes.set_xlim(-0.46, 0.62)
    axes.set_xticks([0, 0.1, 0.2, 0.3, 0.4, 0.5])
    axes.set(xlabel="deviation: total variation of output and target")


def _number(axes: Axes, places: Mapping[str, tuple[float, float]]) -> None:
    """Number the known-wrong verifiers from the top down, and name them below; one number for one point."""
    together: dict[tuple[float, ...], list[str]] = {}
    for name, place in places.items():
        together.setdefault(tuple(round(value, 2) for value in place), []).append(name)
    blocks: list[list[str]] = []
    ordered = sorted(together.values(), key=lambda names: (-places[names[0]][1], places[names[0]][0]))
    for number, names in enumerate(ordered, 1):
        offset = next((AT[name] for name in names if name in AT), RIGHT)
        beside: Look = {"ha": "center", "va": "center", "color": ACCENT, "fontweight": "bold"}
        label_point(axes, str(number), places[names[0]], offset, fontsize=7, **beside)
        words, first = ", ".join(names).replace("_", " "), f"{number:>2}".replace(" ", FIGURE_SPACE)
        indent = 2 * FIGURE_SPACE + "  "
        blocks.append(textwrap.wrap(words, WIDTH, initial_indent=f"{first}  ", subsequent_indent=indent))
    columns: tuple[list[str], list[str]] = ([], [])
    for block in blocks:
        columns[2 * len(columns[0]) >= sum(map(len, blocks))].extend(block)
    for left, lines in zip((0, 0.5), columns, strict=True):
        look: Look = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "top"}
        axes.annotate("\n".join(lines), (left, 0), (0, -40), color=ACCENT, fontsize=7.5, **look)


@result(
    title="What a deviation from the target can buy",
    source="this package (theory.md Statement 5.22)",
    draw=_draw,
    small={"draft_length": 1, "steps": 4},
)
def lossy_front(draft_length: int = 2, num_drafts: Sequence[int] = (1, 2), steps: int = 24) -> Findings:
    """The largest block efficiency by total variation, and where verifiers are; the two-token pair.

    Args:
        steps: in which the total variation goes from 0 to 1/2.
    """
    checks, pair = Checks(), two_token(draft_length)
    front = ResultTable(
        "lossy_front",
        f"The largest block efficiency, tokens per target call. Two-token pair, L = {draft_length}, exact.",
    )
    points = ResultTable(
        "lossy_verifiers",
        "Verifiers, their total variation from the target, and the most that any earns with it.",
    )
    for drafts in num_drafts:
        here, values = f"K = {drafts}", []
        for budget in (Fraction(step, 2 * steps) for step in range(steps + 1)):
            values.append(lossy_optimum(pair, budget, drafts).value)
            front.add(num_drafts=drafts, total_variation=budget, most=values[-1])
        best = optimum(pair, drafts).value
        claim = "the front starts at the optimum of the lossless verifiers"
        checks.expect(claim, values[0] == best, f"{here}: {values[0]} and {best}")
        gains = [after - before for before, after in pairwise(values)]
        concave = gains == sorted(gains, reverse=True) and gains[-1] >= 0
        checks.expect("it is concave and does not fall", concave, f"{here}: steps {[*map(str, gains)]}")
        everything = lossy_optimum(pair, 1, drafts).value
        claim = "with a total variation of 1 all drafts can be accepted"
        checks.expect(claim, everything == draft_length + 1, f"{here}: {everything}")
        for kind, name, verifier in _tried(drafts):
            law = output_law(verifier, pair, drafts)
            if law.undefined:
                continue
            distance, tokens = law.total_variation, law.block_efficiency
            most = lossy_optimum(pair, Fraction(distance), drafts).value
            points.add(
                num_drafts=drafts, kind=kind, verifier=name, total_variation=distance,
                block_efficiency=tokens, most=most,
            )  # fmt: skip
            where = f"{name}, {here}: {tokens} > {most}"
            checks.expect("no verifier is above it", tokens <= most + TOLERANCE, where)
    return Findings(
        "The curve is the most that any verifier earns whose output is within a total variation of the "
        "target. It starts at the optimum of the lossless verifiers, and ends where every draft is "
        "accepted. Of the verifiers with a known mistake most earn less than the best lossless one; their "
        "numbers are explained below the panels by their names in spectheory.defects. "
        f"{GREEDY_BLOCK}; here it is unmodified.",
        tables=[front, points],
        checks=checks,
    )


def _tried(num_drafts: int) -> list[tuple[str, str, Verifier]]:
    """Published verifiers and known-wrong ones that take this number of drafts; of one path at K = 1 only."""
    known = [("published", name, verifiers[name]) for name in PUBLISHED]
    wrong = [("known-wrong", name, verifier) for name, verifier in defects.items()]
    return [entry for entry in known + wrong if entry[2].single_path == (num_drafts == 1)]


if __name__ == "__main__":
    lossy_front.main()
