from collections.abc import Sequence

from matplotlib.figure import Figure

from figures.common.bundled import GREEDY_BLOCK, ONE_PATH
from figures.results import Checks, Findings, ResultTable, result
from figures.style import BROKEN, legend_below, named, panels
from spectheory.exact.law import output_law
from spectheory.optima import single_path_optimum
from spectheory.pairs.instances import random_rational
from spectheory.verification.curves import VERIFIER_STYLES


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    with panels(width=5.4, height=3.6) as (figure, (axes,)):
        axes.axhline(0, **BROKEN, label="optimum (linear program)")
        for name in ("greedy_block", "block", "token"):
            rows, style = table.where(verifier=name), VERIFIER_STYLES[name]
            best = rows["optimum"]
            above = [value - most for value, most in zip(rows["block_efficiency"], best, strict=True)]
            axes.scatter(
                best, above, s=[16 + 600 * x for x in rows["total_variation"]],
                marker=style.marker, facecolor="none", edgecolor=style.colour, linewidth=1.2,
                label=named(name, lossless=name != "greedy_block"),
            )  # fmt: skip
        axes.set(xlabel="optimum of one path [tokens per target call]")
        axes.set(ylabel="block efficiency minus the optimum\n[tokens per target call]")
        axes.set_title("Random pairs, one drafted path")
        legend_below(figure, 2)
    return figure


@result(
    title="The program of one path and who attains it",
    source="greedy2026, Theorem 3.3; block2024, Theorem 2 at i = 1",
    draw=_draw,
    small={"shapes": ((2, 2),), "num_pairs": 5},
)
def one_path_optimum(
    shapes: Sequence[tuple[int, int]] = ((2, 2), (2, 3), (3, 2)), num_pairs: int = 14, seed: int = 23
) -> Findings:
    """Optimum over all valid verifiers of one path, off-path information or not, on random exact pairs.

    Args:
        shapes: (V, L).
    """
    checks = Checks()
    table = ResultTable(
        "one_path_optimum", "Block efficiency in tokens per target call and defect of one call, exact."
    )
    for vocab_size, length in shapes:
        for number in range(num_pairs):
            pair = random_rational([seed, number], vocab_size, length)
            best = single_path_optimum(pair).value
            for name in ONE_PATH:
                law = output_law(name, pair)
                value, defect = law.block_efficiency, law.total_variation
                table.add(
                    vocab_size=vocab_size, draft_length=length, number=number, verifier=name,
                    block_efficiency=value, optimum=best, total_variation=defect,
                )  # fmt: skip
                here = f"{name}, V = {vocab_size}, L = {length}, pair {number}: {value}, optimum {best}"
                if name == "block":
                    claim = "block verification attains the program of one path, exactly"
                    checks.expect(claim, value == best, here)
                if name != "greedy_block":
                    claim = "token and block verification are lossless, exactly"
                    checks.expect(claim, not defect, f"{here}, defect {defect}")
                checks.expect("no lossless verifier exceeds it", defect or value <= best, here)
    return Findings(
        "Random pairs with zeros and ties. Block verification lies on the broken line, exactly. Only greedy "
        f"block is above it. {GREEDY_BLOCK}; here it is unmodified. The area of a point is its defect.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    one_path_optimum.main()
