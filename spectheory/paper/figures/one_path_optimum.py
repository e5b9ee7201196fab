"""The program of one path against the verifiers of one path, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.optima import single_path_optimum
from spectheory.pairs.instances import random_rational
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import BLACK, VERIFIER_STYLES

VERIFIERS = ("token", "block", "greedy_block")


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"one_path_optimum": _plot(findings.tables[0])}


@exhibit(
    title="The program of one path and who attains it",
    source="greedy2026, Theorem 3.3; block2024, Theorem 2 at i = 1",
    draw=_draw,
)
def one_path_optimum(
    shapes: Sequence[tuple[int, int]] = ((2, 2), (2, 3), (3, 2)), num_pairs: int = 14, seed: int = 23
) -> Findings:
    """Optimum over all valid verifiers of one path, off-path information or not, on random exact pairs.

    Args:
        shapes: (V, L).
        num_pairs: random pairs per shape.
        seed: of the pairs.
    """
    rows, missed, above, lossy = [], [], [], []
    for vocab_size, length in shapes:
        for number in range(num_pairs):
            pair = random_rational([seed, number], vocab_size, length)
            best = single_path_optimum(pair).value
            for name in VERIFIERS:
                law = output_law(name, pair)
                value, defect = law.block_efficiency, law.total_variation
                rows.append((
                    vocab_size, length, number, name, value, float(value), best, float(best),
                    defect, float(defect),
                ))  # fmt: skip
                here = f"{name}, V = {vocab_size}, L = {length}, pair {number}"
                if name == "block" and value != best:
                    missed.append(f"{here}: {value} < {best}")
                if defect == 0 and value > best:
                    above.append(f"{here}: {value} > {best}")
                if name != "greedy_block" and defect:
                    lossy.append(f"{here}: {defect}")
    table = ResultTable(
        "one_path_optimum",
        (
            "vocab_size", "draft_length", "number", "verifier", "block_efficiency", "block_efficiency_float",
            "optimum", "optimum_float", "total_variation", "total_variation_float",
        ),
        rows,
        "Block efficiency in tokens per target call and defect of one call, exact.",
    )  # fmt: skip
    pairs = len(shapes) * num_pairs
    return Findings(
        explanation=(
            "Random pairs with zeros and ties. Block verification lies on the diagonal, exactly. Only greedy "
            "block is above it, where it is not lossless on its own; the area of a point is its defect."
        ),
        settings={"shapes": [list(shape) for shape in shapes], "num_pairs": num_pairs, "seed": seed},
        tables=[table],
        checks=[
            Check.of("block verification attains the program of one path, exactly", pairs, missed),
            Check.of("token and block verification are lossless, exactly", 2 * pairs, lossy),
            Check.of("no lossless verifier exceeds it", len(rows), above),
        ],
    )


def _plot(table: ResultTable) -> Figure:
    with panels(width=4.6, height=4.4) as (figure, (axes,)):
        ends = [min(table.column("optimum_float")), max(table.column("optimum_float"))]
        axes.plot(
            ends, ends, color=BLACK, linestyle=(0, (4, 2)), linewidth=1.2, label="optimum (linear program)"
        )
        for name in ("greedy_block", "block", "token"):
            rows, style = table.select(verifier=name), VERIFIER_STYLES[name]
            axes.scatter(
                [row["optimum_float"] for row in rows], [row["block_efficiency_float"] for row in rows],
                s=[16 + 600 * row["total_variation_float"] for row in rows], marker=style.marker,
                facecolor="none", edgecolor=style.colour, linewidth=1.2, label=style.label,
            )  # fmt: skip
        axes.set(
            xlabel="optimum of one path [tokens per target call]",
            ylabel="block efficiency [tokens per target call]",
        )
        axes.grid(visible=True, axis="both")
        axes.set_title("Random pairs, one drafted path")
        legend_below(figure, 2)
    return figure
