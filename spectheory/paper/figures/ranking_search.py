"""How good the ranking by p/q is among all tree-based rankings."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from spectheory.optima import best_ranking, count_tree_rankings
from spectheory.pairs.instances import random_rational, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import BLACK, GREY, VERIFIER_COLOURS

COUNTEREXAMPLE = ModelPair.context_free_pair(["13/20", "7/20"], ["2/3", "1/3"], 1)


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"ranking_search": _plot(findings.table("ranking_search"))}


@exhibit(
    title="The ranking by p/q among all rankings",
    source="greedy2026, Definition 5.2, Algorithm 1",
    draw=_draw,
)
def ranking_search(num_pairs: int = 24, num_drafts: Sequence[int] = (2, 3), seed: int = 41) -> Findings:
    """Best, worst and p/q tree-based ranking of random exact pairs, all rankings tried, and the optimum.

    Args:
        num_pairs: random pairs with V = 2 and L = 2, besides two fixed ones.
        num_drafts: the numbers K.
        seed: of the pairs.
    """
    pairs = {"two_token": two_token(2), "two near ratios": COUNTEREXAMPLE}
    pairs |= {f"random {n}": random_rational([seed, n], 2, 2, zero_probability=0) for n in range(num_pairs)}
    rows, out_of_order, not_best, above, partial = [], [], [], [], []
    for name, pair in pairs.items():
        for drafts in num_drafts:
            found = best_ranking(pair, drafts)
            best, worst, greedy = found.best.value, found.worst.value, found.greedy.value
            rows.append((
                name, drafts, worst, greedy, best, found.optimum, float(worst / found.optimum),
                float(greedy / found.optimum), float(best / found.optimum), found.rankings_tried,
            ))  # fmt: skip
            here = f"{name}, K = {drafts}"
            if not worst <= greedy <= best:
                out_of_order.append(f"{here}: {worst}, {greedy}, {best}")
            if best > found.optimum:
                above.append(f"{here}: {best} > {found.optimum}")
            if found.rankings_tried < count_tree_rankings(pair):
                partial.append(here)
            if greedy < best:
                not_best.append(f"{here}: {greedy} < {best}")
    table = ResultTable(
        "ranking_search",
        (
            "pair", "num_drafts", "worst", "greedy", "best", "optimum", "worst_share", "greedy_share",
            "best_share", "rankings_tried",
        ),
        rows,
        "Block efficiency in tokens per target call, exact, and as shares of the optimum over all verifiers.",
    )  # fmt: skip
    count = len(rows)
    refuted = [] if not_best else ["p/q was the best ranking everywhere"]
    return Findings(
        explanation=(
            f"The ranking by p/q was not the best one in {len(not_best)} of {count} cases. It is not the "
            "best at one position either: target (13/20, 7/20), draft (2/3, 1/3), K = 3 earns 889/540 where "
            "the other order earns 911/540. And one ranking, even the best, falls short of the optimum, "
            "which mixes several."
        ),
        settings={"num_pairs": num_pairs, "num_drafts": list(num_drafts), "seed": seed},
        tables=[table],
        checks=[
            Check.of("every tree-based ranking was tried", count, partial),
            Check.of("the ranking by p/q lies between the worst and the best", count, out_of_order),
            Check.of("no ranking exceeds the optimum", count, above),
            Check.of("p/q is not always the best ranking", count, refuted),
        ],
    )


def _plot(table: ResultTable) -> Figure:
    drafts = list(dict.fromkeys(table.column("num_drafts")))
    with panels(1, len(drafts), height=3.3, sharey=True) as (figure, all_axes):
        for axes, number in zip(all_axes, drafts, strict=True):
            rows = sorted(table.select(num_drafts=number), key=lambda row: row["greedy_share"])
            places = range(1, len(rows) + 1)
            axes.vlines(places, [row["worst_share"] for row in rows], [row["best_share"] for row in rows],
                        color=GREY, linewidth=4, alpha=0.4, label="worst to best ranking")  # fmt: skip
            axes.plot(places, [row["greedy_share"] for row in rows], "P", markersize=5, linestyle="none",
                      color=VERIFIER_COLOURS["greedy_multipath"], label="ranking by p/q")  # fmt: skip
            axes.axhline(
                1, color=BLACK, linestyle=(0, (4, 2)), linewidth=1.2, label="optimum (linear program)"
            )
            axes.set(xlabel="pairs, in the order of the ranking by p/q", xticks=[])
            axes.set_title(f"{number} drafts")
        all_axes[0].set_ylabel("share of the optimum")
        legend_below(figure, 3)
    return figure
