"""Ratios along a ranking: what grows by theorem, and what was meant to grow."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from spectheory.optima import optimum
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.optima.bounds.rankings import leaf_order
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.instances import random_rational, sticky_chain
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, BLACK, GREY, VERIFIER_COLOURS


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"monotone_ratios": _plot(findings)}


@exhibit(title="Ratios along a ranking", source="greedy2026, Eqs. 19–21", draw=_draw)
def monotone_ratios(num_pairs: int = 30, num_drafts: int = 3, seed: int = 47) -> Findings:
    """selected/draft and target/draft along the tree-based ranking by p/q, and the global order by p/q.

    The paper would like the paths ordered by their whole ratio p/q, calls that difficult, and orders the
    tokens of each context by p/q instead.  On enumerated pairs both orders can be compared.

    Args:
        num_pairs: random exact pairs with V = 2, L = 3, besides the drawn one.
        num_drafts: K.
        seed: of the pairs.
    """
    shown = sticky_chain(3)
    pairs = [shown]
    pairs += [random_rational([seed, n], 2, 3, zero_probability=0) for n in range(num_pairs)]
    rows, falls, unordered, above, tree_loses, global_loses = [], [], [], [], [], []
    curve = []
    for number, pair in enumerate(pairs):
        length = pair.draft_length
        target, draft = pair.target_path_probs(length), pair.draft_path_probs(length)
        order = leaf_order(pair)
        tree = SkewedDraft.from_order(pair, num_drafts, order)
        by_path = SkewedDraft.from_order(pair, num_drafts, global_order(pair))
        best = optimum(pair, num_drafts).value
        selected = [tree.leaf_law[n] / draft[n] for n in order]
        wanted = [target[n] / draft[n] for n in order]
        if pair is shown:
            masses = draft[order].cumsum()
            curve = [
                (float(mass), float(chosen), float(ratio))
                for mass, chosen, ratio in zip(masses, selected, wanted, strict=True)
            ]
        if any(after < before for before, after in pairwise(selected)):
            falls.append(f"pair {number}")
        if any(after < before for before, after in pairwise(wanted)):
            unordered.append(number)
        values = [law.block_efficiency(pair) for law in (tree, by_path)]
        rows.append((number, *values, best, *(float(value / best) for value in values)))
        if max(values) > best:
            above.append(f"pair {number}: {max(values)} > {best}")
        if values[0] < values[1]:
            tree_loses.append(number)
        if values[1] < values[0]:
            global_loses.append(number)
    count = len(pairs)
    return Findings(
        explanation=(
            "How much more often a path is selected than drafted grows along every ranking (Eq. 20). The "
            "ratio target/draft, which should grow too, does not along the tree-based ranking: it falls "
            f"somewhere on {len(unordered)} of {count} pairs. The global order by that ratio earns more on "
            f"{len(tree_loses)} pairs, and less on {len(global_loses)}."
        ),
        settings={"num_pairs": num_pairs, "num_drafts": num_drafts, "seed": seed},
        tables=[
            ResultTable(
                "monotone_ratios",
                ("number", "tree_based", "global_order", "optimum", "tree_based_share", "global_order_share"),
                rows,
                "Block efficiency in tokens per target call, exact, and as shares of the optimum; pair 0 is "
                "drawn.",
            ),
            ResultTable(
                "monotone_ratios_along",
                ("draft_mass", "selected_over_draft", "target_over_draft"),
                curve,
                "Along the ranking of the drawn pair, lowest first: draft mass so far and the ratios of the "
                "path.",
            ),
        ],
        checks=[
            Check.of("selected / draft does not fall along the ranking (Eq. 20)", count, falls),
            Check.of("target / draft does fall along it, on some pair", count,
                     [] if unordered else ["it falls on none"]),
            Check.of("no order exceeds the optimum", count, above),
            Check.of("neither order is always the better one", count,
                     [] if tree_loses and global_loses else ["one of them is"]),
        ],
    )  # fmt: skip


def global_order(pair: ModelPair) -> np.ndarray:
    """The leaves by their path ratio p/q, lowest first, ties by number.

    Example:
        >>> print(global_order(sticky_chain(1)))
        [0 1]
    """
    length = pair.draft_length
    return SortedByRatio.of(pair.target_path_probs(length), pair.draft_path_probs(length)).order


def _plot(findings: Findings) -> Figure:
    along, table = findings.table("monotone_ratios_along"), findings.table("monotone_ratios")
    with panels(1, 2, height=3.5) as (figure, (left, right)):
        ends = [0.0, *along.column("draft_mass")]
        for column, label, colour in (
            ("selected_over_draft", "selected / draft", VERIFIER_COLOURS["greedy_multipath"]),
            ("target_over_draft", "target / draft", ACCENT),
        ):
            left.stairs(along.column(column), ends, color=colour, linewidth=1.8, label=label, baseline=None)
        left.set(xlabel="draft mass, in the order of the ranking", ylabel="ratio", xlim=(0, 1))
        left.set_title("Markov pair: ratios along the ranking")
        left.legend(frameon=False)
        shares = table.column("tree_based_share"), table.column("global_order_share")
        lowest = min(*shares[0], *shares[1]) - 0.02
        right.plot([lowest, 1], [lowest, 1], color=GREY, linewidth=1, linestyle=":")
        right.plot(*shares, "P", color=BLACK, markersize=5, markerfacecolor="white", clip_on=False)
        right.set(
            xlabel="tree-based order, share of the optimum", ylabel="global order, share of the optimum"
        )
        right.grid(visible=True, axis="both")
        right.set_title(f"{findings.settings['num_drafts']} drafts, random pairs")
    return figure
