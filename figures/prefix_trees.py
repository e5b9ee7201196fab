from collections.abc import Mapping, Sequence
from itertools import accumulate, product
from math import prod
from operator import mul
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, legend_below, panels
from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.drafts import PrefixTree
from spectheory.pairs.instances import sticky_chain, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.verification.curves import BLACK, verifier_curve

PAIRS: Mapping[str, ModelPair] = {"two_token": two_token(3), "sticky_chain": sticky_chain(3)}
TITLES = {"two_token": "two-token pair", "sticky_chain": "Markov pair (sticky chain)"}
BY_POSITION = ("spectr", "multi_round")
VERIFIERS = (*BY_POSITION, "conditional_transport")


def shapes(num_leaves: int, draft_length: int) -> list[tuple[int, ...]]:
    """Widths k_1, …, k_L of all trees with so many leaves."""
    divisors = [width for width in range(1, num_leaves + 1) if num_leaves % width == 0]
    return [widths for widths in product(divisors, repeat=draft_length) if prod(widths) == num_leaves]


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    names, trees = table.distinct("pair"), table.distinct("widths")
    with panels(1, len(names), height=1.6 + 0.24 * len(trees), sharey=True) as (figure, all_axes):
        for axes, name in zip(all_axes, names, strict=True):
            _panel(axes, table.where(pair=name))
            axes.set_title(TITLES[name])
        legend_below(figure)
    return figure


def _panel(axes: Axes, table: ResultTable) -> None:
    """One line per shape, grouped by the number of leaves, independent paths first."""
    by_shape = table.where(verifier=VERIFIERS[0])
    places = [-number - 0.7 * leaves for number, leaves in enumerate(by_shape["num_leaves"])]
    optimum_marks: Look = {"color": BLACK, "markersize": 11, "markeredgewidth": 2}
    axes.plot(by_shape["optimum"], places, "|", **optimum_marks, label="optimum (linear program)")
    for verifier in VERIFIERS:
        values = table.where(verifier=verifier)["block_efficiency"]
        filled: Look = {"markerfacecolor": None}
        verifier_curve(axes, verifier, values, places, linestyle="none", markersize=6, **filled, clip_on=True)
    names = zip(by_shape["widths"], by_shape["nodes"], strict=True)
    axes.set_yticks(places, [f"{_shape(w)}   ({nodes} tokens)" for w, nodes in names], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="both")
    axes.set_xlabel("block efficiency [tokens per target call]")


@result(
    title="Shapes of prefix trees with equally many leaves",
    source="spectr2023, Appendix D, Algorithm 4",
    draw=_draw,
    small={"names": ("two_token",), "num_leaves": (1, 2)},
)
def prefix_trees(names: Sequence[str] = tuple(PAIRS), num_leaves: Sequence[int] = (1, 2, 3, 4)) -> Findings:
    """Optimum and block efficiency of SpecTr, multi-round and conditional transport for every tree shape.

    Independent paths are the shape (K, 1, …, 1).  Every other shape hits every antichain less often,
    because paths that share a prefix succeed and fail together (Jensen); so its optimum is at most theirs.

    Args:
        num_leaves: the numbers K of leaves.
    """
    checks = Checks()
    table = ResultTable(
        "prefix_trees",
        "Block efficiency in tokens per target call, draft length 3. nodes: drafted tokens that the target "
        "scores; optimum: linear program over all valid verifiers of these drafts.",
    )
    for name, leaves in product(names, num_leaves):
        pair = PAIRS[name]
        paths: dict[str, Any] = {}
        for widths in reversed(shapes(leaves, pair.draft_length)):  # independent paths first
            process = PrefixTree(widths)
            best = optimum(pair, drafts=process).value
            here = f"{name}, tree {widths}"
            for verifier in VERIFIERS:
                law = output_law(verifier, pair.to_float(), drafts=process)
                value, defect = float(law.block_efficiency), float(law.total_variation)
                table.add(
                    pair=name, num_leaves=leaves, widths=",".join(map(str, widths)),
                    nodes=sum(accumulate(widths, mul)), verifier=verifier, block_efficiency=value,
                    total_variation=round(defect, 12), optimum=best,
                )  # fmt: skip
                earned = f"{here}: {verifier} {value}"
                claim = "every verifier is lossless on every shape"
                checks.expect(claim, defect <= 1e-9, f"{here}: {defect}")
                claim = "no verifier exceeds the optimum of its shape"
                checks.expect(claim, value <= float(best) + 1e-9, f"{earned} > {float(best)}")
                if verifier in BY_POSITION:
                    claim = "no shape serves spectr or multi-round better than independent paths here"
                    checks.expect(claim, value <= paths.setdefault(verifier, value) + 1e-9, earned)
                elif max(widths[:-1]) == 1:
                    claim = "conditional transport is optimal on trees that branch at the last position"
                    checks.expect(claim, value >= float(best) - 1e-9, f"{earned} < {float(best)}")
            claim = "no shape has a larger optimum than as many independent paths"
            checks.expect(claim, best <= paths.setdefault("optimum", best), f"{here}: {float(best)}")
    _expect_of_equally_many_tokens(checks, table)
    return Findings(
        "Shapes are widths by depth; in brackets the drafted tokens that the target scores. With equally "
        "many leaves independent paths (K · 1 · 1) have the largest optimum, and score the most tokens. "
        "Conditional transport attains the optimum of trees that branch at the last position only (1 · 1 · "
        "K).",
        tables=[table],
        checks=checks,
    )


def _shape(widths: str) -> str:
    return widths.replace(",", " · ")


def _expect_of_equally_many_tokens(checks: Checks, table: ResultTable) -> None:
    """Compare trees with independent paths that have fewer leaves and as many scored tokens."""
    for paths in (row for row in table.select() if row["widths"] == f"{row['num_leaves']},1,1"):
        for tree in table.select(pair=paths["pair"], verifier=paths["verifier"], nodes=paths["nodes"]):
            if tree["verifier"] in BY_POSITION and tree["num_leaves"] > paths["num_leaves"]:
                claim = "nor does a tree with more leaves that scores as many tokens"
                holds = tree["block_efficiency"] <= paths["block_efficiency"] + 1e-9
                checks.expect(claim, holds, f"{tree['pair']}, tree {tree['widths']}: {tree['verifier']}")


if __name__ == "__main__":
    prefix_trees.main()
