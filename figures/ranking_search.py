from collections.abc import Sequence
from itertools import product
from operator import itemgetter

from matplotlib.figure import Figure

from figures.common.tree_rankings import best_ranking, count_tree_rankings
from figures.results import Checks, Findings, ResultTable, result
from figures.style import BROKEN, Look, panels_by
from spectheory.optima import path_selection_optimum
from spectheory.pairs.instances import random_rational, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.verification.curves import GREY, VERIFIER_STYLES

COUNTEREXAMPLE = ModelPair.context_free_pair(["13/20", "7/20"], ["2/3", "1/3"], 1)


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    colour = VERIFIER_STYLES["greedy_multipath"].colour
    by_drafts = panels_by(table, "num_drafts", "share of the optimum", legend_columns=3, height=3.3)
    with by_drafts as (figure, parts):
        for axes, number, rows in parts:
            shares = zip(rows["greedy_share"], rows["worst_share"], rows["best_share"], strict=True)
            greedy, worst, best = zip(*sorted(shares, key=itemgetter(0)), strict=True)
            places = range(1, len(greedy) + 1)
            bar: Look = {"color": GREY, "linewidth": 4, "alpha": 0.4}
            axes.vlines(places, worst, best, **bar, label="worst to best ranking")
            axes.plot(places, greedy, "P", markersize=5, color=colour, label="ranking by p/q")
            axes.axhline(1, **BROKEN, label="optimum (linear program)")
            axes.set(xlabel="pairs, in the order of the ranking by p/q", xticks=[])
            axes.set_title(f"{number} drafts")
    return figure


@result(
    title="The ranking by p/q among all rankings",
    source="greedy2026, Definition 5.2, Algorithm 1",
    draw=_draw,
    small={"num_pairs": 2, "num_drafts": (3,)},
)
def ranking_search(num_pairs: int = 24, num_drafts: Sequence[int] = (2, 3), seed: int = 41) -> Findings:
    """Best, worst and p/q tree-based ranking of random exact pairs, all rankings tried, and the optimum.

    Args:
        num_pairs: random pairs with V = 2 and L = 2, besides two fixed ones.
    """
    checks = Checks()
    table = ResultTable(
        "ranking_search",
        "Block efficiency in tokens per target call, exact, and as shares of the optimum over all verifiers.",
    )
    pairs = {"two_token": two_token(2), "two near ratios": COUNTEREXAMPLE}
    pairs |= {f"random {n}": random_rational([seed, n], 2, 2, zero_probability=0) for n in range(num_pairs)}
    not_best = 0
    for (name, pair), drafts in product(pairs.items(), num_drafts):
        found, optimum = best_ranking(pair, drafts), path_selection_optimum(pair, drafts).value
        best, worst, greedy = found.best.value, found.worst.value, found.greedy.value
        values = {"worst": worst, "greedy": greedy, "best": best}
        shares = {f"{key}_share": float(value / optimum) for key, value in values.items()}
        table.add(
            pair=name, num_drafts=drafts, **values, optimum=optimum, **shares,
            rankings_tried=found.rankings_tried,
        )  # fmt: skip
        here = f"{name}, K = {drafts}: {worst}, {greedy}, {best}, optimum {optimum}"
        every = found.rankings_tried == count_tree_rankings(pair)
        checks.expect("every tree-based ranking was tried", every, here)
        claim = "the ranking by p/q lies between the worst and the best"
        checks.expect(claim, worst <= greedy <= best, here)
        checks.expect("no ranking exceeds the optimum", best <= optimum, here)
        not_best += greedy < best
    claim = "p/q is not always the best ranking"
    checks.expect(claim, not_best, "p/q was the best ranking everywhere")
    return Findings(
        f"The ranking by p/q was not the best one in {not_best} of {len(table.rows)} cases. It is not "
        "the best at one position either: target (13/20, 7/20), draft (2/3, 1/3), K = 3 earns 889/540 "
        "where the other order earns 911/540. And one ranking, even the best, falls short of the "
        "optimum, which mixes several.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    ranking_search.main()
