from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, panels
from spectheory.optima import optimum
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.optima.bounds.rankings import leaf_order
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.instances import random_rational, sticky_chain
from spectheory.pairs.pair import ModelPair
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES

CURVES = {
    "selected_over_draft": ("selected / draft", VERIFIER_STYLES["greedy_multipath"].colour),
    "target_over_draft": ("target / draft", ACCENT),
}


def global_order(pair: ModelPair) -> np.ndarray:
    """All leaves by the ratio p/q of their whole path, lowest first, ties by number.

    It is not tree-based: greedy2026 §5 would like this order, and calls it difficult.
    """
    length = pair.draft_length
    return SortedByRatio.of(pair.target_path_probs(length), pair.draft_path_probs(length)).order


def _draw(findings: Findings) -> Figure:
    table, along = findings.tables
    with panels(1, 2, height=3.5) as (figure, (left, right)):
        ends = [0.0, *along["draft_mass"]]
        for column, (label, colour) in CURVES.items():
            left.stairs(along[column], ends, color=colour, linewidth=1.8, label=label, baseline=None)
        left.set(xlabel="draft mass, in the order of the ranking", ylabel="ratio", xlim=(0, 1))
        left.set_title("Markov pair: ratios along the ranking")
        left.legend()
        shares = table["tree_based_share"], table["global_order_share"]
        lowest = min(*shares[0], *shares[1]) - 0.02
        right.plot([lowest, 1], [lowest, 1], color=GREY, linewidth=1, linestyle=":")
        right.plot(*shares, "P", color=BLACK, markersize=5, markerfacecolor="white", clip_on=False)
        right.set(xlabel="tree-based order, share of the optimum")
        right.set(ylabel="global order, share of the optimum")
        right.grid(visible=True, axis="both")
        right.set_title(f"{findings.settings['num_drafts']} drafts, random pairs")
    return figure


@result(
    title="Ratios along a ranking",
    source="greedy2026, Eqs. 19–21",
    draw=_draw,
    small={"num_pairs": 12},
)
def monotone_ratios(num_pairs: int = 30, num_drafts: int = 3, seed: int = 47) -> Findings:
    """selected/draft and target/draft along the tree-based ranking by p/q, and the global order by p/q.

    The paper would like the paths ordered by their whole ratio p/q, calls that difficult, and orders the
    tokens of each context by p/q instead.  On enumerated pairs both orders can be compared.

    Args:
        num_pairs: random exact pairs with V = 2, L = 3, besides the drawn one.
    """
    checks = Checks()
    table = ResultTable(
        "monotone_ratios",
        "Block efficiency in tokens per target call, exact, and as shares of the optimum; pair 0 is drawn.",
    )
    along = ResultTable(
        "monotone_ratios_along",
        "Along the ranking of the drawn pair, lowest first: draft mass so far and the ratios of the path.",
    )
    pairs = [sticky_chain(3)]
    pairs += [random_rational([seed, n], 2, 3, zero_probability=0) for n in range(num_pairs)]
    unordered, tree_loses, global_loses = [], [], []
    for number, pair in enumerate(pairs):
        length, order = pair.draft_length, leaf_order(pair)
        target, draft = pair.target_path_probs(length), pair.draft_path_probs(length)
        tree = SkewedDraft.from_order(pair, num_drafts, order)
        by_path = SkewedDraft.from_order(pair, num_drafts, global_order(pair))
        best = optimum(pair, num_drafts).value
        selected = [tree.leaf_law[n] / draft[n] for n in order]
        wanted = [target[n] / draft[n] for n in order]
        if number == 0:
            for mass, chosen, ratio in zip(draft[order].cumsum(), selected, wanted, strict=True):
                along.add(
                    draft_mass=float(mass), selected_over_draft=float(chosen), target_over_draft=float(ratio)
                )
        of_tree, of_paths = (law.block_efficiency(pair) for law in (tree, by_path))
        table.add(
            number=number, tree_based=of_tree, global_order=of_paths, optimum=best,
            tree_based_share=float(of_tree / best), global_order_share=float(of_paths / best),
        )  # fmt: skip
        here = f"pair {number}: {of_tree} and {of_paths}, optimum {best}"
        grows = all(after >= before for before, after in pairwise(selected))
        checks.expect("selected / draft does not fall along the ranking (Eq. 20)", grows, here)
        checks.expect("no order exceeds the optimum", max(of_tree, of_paths) <= best, here)
        unordered += [number] if any(after < before for before, after in pairwise(wanted)) else []
        tree_loses += [number] if of_tree < of_paths else []
        global_loses += [number] if of_paths < of_tree else []
    checks.expect("target / draft does fall along it, on some pair", unordered, "it falls on none")
    claim = "neither order is always the better one"
    checks.expect(claim, tree_loses and global_loses, "one of them is")
    return Findings(
        "How much more often a path is selected than drafted grows along every ranking (Eq. 20). The "
        "ratio target/draft, which should grow too, does not along the tree-based ranking: it falls "
        f"somewhere on {len(unordered)} of {len(pairs)} pairs. The global order by that ratio earns more "
        f"on {len(tree_loses)} pairs, and less on {len(global_loses)}.",
        tables=[table, along],
        checks=checks,
    )


if __name__ == "__main__":
    monotone_ratios.main()
