"""Which tree of drafts is best: every shape with a given number of leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, product
from math import prod
from operator import mul

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.drafts import PrefixTree
from spectheory.instances import sticky_chain, two_token
from spectheory.law import output_law
from spectheory.pair import ModelPair
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import BLACK, VERIFIER_STYLES
from spectheory.programs import optimum

PAIRS: Mapping[str, ModelPair] = {"two_token": two_token(3), "sticky_chain": sticky_chain(3)}
TITLES = {"two_token": "two-token pair", "sticky_chain": "Markov pair (sticky chain)"}
VERIFIERS = ("spectr", "multi_round")


def shapes(num_leaves: int, draft_length: int) -> list[tuple[int, ...]]:
    """Widths k_1, …, k_L of all trees with so many leaves.

    Example:
        >>> shapes(4, 2)
        [(1, 4), (2, 2), (4, 1)]
    """
    divisors = [width for width in range(1, num_leaves + 1) if num_leaves % width == 0]
    return [widths for widths in product(divisors, repeat=draft_length) if prod(widths) == num_leaves]


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"prefix_trees": _plot(findings.tables[0])}


@exhibit(
    title="Shapes of prefix trees with equally many leaves",
    source="spectr2023, Appendix D, Algorithm 4",
    draw=_draw,
)
def prefix_trees(names: Sequence[str] = tuple(PAIRS), num_leaves: Sequence[int] = (1, 2, 3, 4)) -> Findings:
    """Optimum and block efficiency of SpecTr and multi-round for every tree shape.

    Independent paths are the shape (K, 1, …, 1).  Every other shape hits every antichain less often,
    because paths that share a prefix succeed and fail together (Jensen); so its optimum is at most theirs.

    Args:
        names: which pairs; the default has all.
        num_leaves: the numbers K of leaves.
    """
    rows, above_optimum, above_paths, defects, not_best, compared = [], [], [], [], [], 0
    for name in names:
        pair = PAIRS[name]
        for leaves in num_leaves:
            best: dict[str, float] = {}
            for widths in reversed(shapes(leaves, pair.draft_length)):  # independent paths first
                process = PrefixTree(widths)
                nodes = sum(accumulate(widths, mul))
                shape, here = ",".join(map(str, widths)), f"{name}, tree {widths}"
                most = optimum(pair, drafts=process).value
                for verifier in VERIFIERS:
                    law = output_law(verifier, pair.to_float(), drafts=process)
                    value, defect = float(law.block_efficiency), float(law.total_variation)
                    rows.append(
                        (name, leaves, shape, nodes, verifier, value, round(defect, 12), most, float(most))
                    )
                    if value > float(most) + 1e-9:
                        above_optimum.append(f"{here}: {verifier} {value} > {float(most)}")
                    if defect > 1e-9:
                        defects.append(f"{here}: {verifier} has defect {defect}")
                    compared += 1
                    if value > best.setdefault(verifier, value) + 1e-9:
                        not_best.append(f"{here}: {verifier} {value} > {best[verifier]}")
                if float(most) > best.setdefault("optimum", float(most)) + 1e-9:
                    above_paths.append(f"{here}: {float(most)} > {best['optimum']}")
    table = ResultTable(
        "prefix_trees",
        (
            "pair", "num_leaves", "widths", "nodes", "verifier", "block_efficiency", "total_variation",
            "optimum", "optimum_float",
        ),
        rows,
        "Block efficiency in tokens per target call, draft length 3. nodes: drafted tokens that the target "
        "scores; optimum: linear program over all valid verifiers of these drafts.",
    )  # fmt: skip
    return Findings(
        explanation=(
            "Shapes are widths by depth; in brackets the drafted tokens that the target scores. With "
            "equally many leaves independent paths (K · 1 · 1) have the largest optimum on every pair. They "
            "also score the most tokens; but the trees that score as many have more leaves and still earn "
            "less here."
        ),
        settings={"names": list(names), "num_leaves": list(num_leaves)},
        tables=[table],
        checks=[
            Check.of("every verifier is lossless on every shape", compared, defects),
            Check.of("no verifier exceeds the optimum of its shape", compared, above_optimum),
            Check.of(
                "no shape has a larger optimum than as many independent paths", compared // 2, above_paths
            ),
            Check.of(
                "on these pairs no shape serves a verifier better than independent paths", compared, not_best
            ),
            *[
                Check.of("nor does a tree with more leaves that scores as many tokens", tried, better)
                for tried, better in [_same_tokens(table)]
                if tried
            ],
        ],
    )


def _same_tokens(table: ResultTable) -> tuple[int, list[str]]:
    """Trees against independent paths with the same number of scored tokens."""
    tried, better = 0, []
    for paths in (row for row in table.select() if row["widths"] == f"{row['num_leaves']},1,1"):
        for tree in table.select(pair=paths["pair"], verifier=paths["verifier"], nodes=paths["nodes"]):
            if tree["num_leaves"] > paths["num_leaves"]:
                tried += 1
                if tree["block_efficiency"] > paths["block_efficiency"] + 1e-9:
                    better.append(f"{tree['pair']}, tree {tree['widths']}: {tree['verifier']}")
    return tried, better


def _plot(table: ResultTable) -> Figure:
    names = list(dict.fromkeys(table.column("pair")))
    trees = list(dict.fromkeys(zip(table.column("num_leaves"), table.column("widths"), strict=True)))
    with panels(1, len(names), height=1.6 + 0.24 * len(trees), sharey=True) as (figure, all_axes):
        for axes, name in zip(all_axes, names, strict=True):
            _panel(axes, table, name)
            axes.set_title(TITLES[name])
        legend_below(figure)
    return figure


def _panel(axes: Axes, table: ResultTable, name: str) -> None:
    """One line per shape, grouped by the number of leaves, independent paths first."""
    by_shape = table.select(pair=name, verifier=VERIFIERS[0])
    place = {}
    for number, row in enumerate(by_shape):
        place[row["widths"]] = -number - 0.7 * row["num_leaves"]
    axes.plot(
        [row["optimum_float"] for row in by_shape], [place[row["widths"]] for row in by_shape], "|",
        color=BLACK, markersize=11, markeredgewidth=2, label="optimum (linear program)",
    )  # fmt: skip
    for verifier in VERIFIERS:
        rows = table.select(pair=name, verifier=verifier)
        style = VERIFIER_STYLES[verifier]
        axes.plot(
            [row["block_efficiency"] for row in rows], [place[row["widths"]] for row in rows],
            linestyle="none", marker=style.marker, color=style.colour, markersize=6, label=style.label,
        )  # fmt: skip
    axes.set_yticks(
        list(place.values()),
        [f"{row['widths'].replace(',', ' · ')}   ({row['nodes']} tokens)" for row in by_shape],
        fontsize=8,
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="both")
    axes.set_xlabel("block efficiency [tokens per target call]")
