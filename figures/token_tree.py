from typing import Any

import networkx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, as_float, result
from figures.style import ACCENT, Look, label_point, panels
from spectheory.exact.law import output_law
from spectheory.foundation.arrays import hit_probability
from spectheory.optima import antichains, optimum
from spectheory.optima.multi_path import count_antichains, named_antichains
from spectheory.pairs.contexts import Context
from spectheory.pairs.instances import two_token
from spectheory.verification.curves import BLACK, GREY


def _draw(findings: Findings) -> Figure:
    nodes, chains = findings.tables
    ratios: Look = {"width_ratios": [1.45, 1]}
    with panels(1, 2, height=3.7, width=3.9, gridspec_kw=ratios) as (figure, (left, right)):
        _tree(left, nodes)
        _limits(right, chains, nodes.where(in_antichain=True)["node"], findings.settings["num_drafts"])
    return figure


def _tree(axes: Axes, table: ResultTable) -> None:
    rows = {row["node"]: row for row in table.select()}
    tree = networkx.DiGraph()
    tree.add_nodes_from(rows)
    tree.add_edges_from((name[:-1] or "∅", name) for name in rows if name != "∅")
    deepest = max(row["depth"] for row in rows.values())
    leaves = [name for name in rows if rows[name]["depth"] == deepest]
    places: dict[str, tuple[float, float]] = {name: (float(n), -deepest) for n, name in enumerate(leaves)}
    for name in reversed(list(networkx.topological_sort(tree))):
        children = list(tree.successors(name))
        if children:
            places[name] = (float(np.mean([places[child][0] for child in children])), -rows[name]["depth"])
    chosen = [name for name in rows if rows[name]["in_antichain"]]
    networkx.draw_networkx_edges(tree, places, ax=axes, arrows=False, edge_color=GREY, width=1)
    networkx.draw_networkx_nodes(
        tree, places, ax=axes, node_size=330, linewidths=1.2, edgecolors=BLACK,
        node_color=[ACCENT if name in chosen else "white" for name in tree],
    )  # fmt: skip
    for name, point in places.items():
        bold: Look = {"fontsize": 9, "fontweight": "bold", "color": "white" if name in chosen else BLACK}
        axes.annotate(name[-1], point, ha="center", va="center", **bold)
        offset, across = ((0, -16), "center") if name in leaves else ((14, 3), "left")
        label_point(
            axes, f"{as_float(rows[name]['mass']):.3f}", point, offset, ha=across, va="center",
            fontsize=7.5, color=ACCENT if name in chosen else GREY,
        )  # fmt: skip
    axes.set_axis_off()
    axes.margins(x=0.06, y=0.16)
    axes.set_title("P(accepted text starts with the node)")


def _limits(axes: Axes, table: ResultTable, chosen: list[str], drafts: int) -> None:
    masses = np.linspace(0, 1, 101)
    axes.plot(masses, hit_probability(masses, drafts), color=BLACK, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.plot(table["draft"], table["mass"], "o", color=GREY, markersize=2.5, alpha=0.6)
    shown = next(row for row in table.select() if sorted(row["nodes"]) == sorted(chosen))
    draft, mass = as_float(shown["draft"]), as_float(shown["mass"])
    axes.plot(draft, mass, "o", color=ACCENT, markersize=7)
    axes.annotate(
        f"Σ x = {mass:.3f}\n= $1 - (1 - {draft:.3f})^{drafts}$", (draft, mass), xytext=(0.02, 0.93),
        textcoords="data", color=ACCENT, fontsize=8.5,
        arrowprops={"arrowstyle": "-", "color": ACCENT, "linewidth": 0.8},
    )  # fmt: skip
    axes.set(xlabel="draft mass q(T)", ylabel="mass Σ x(a)", xlim=(0, 1.02), ylim=(0, 1.05))
    axes.set_title(f"All {len(table.rows)} antichains T")


@result(
    title="The token tree and its antichains",
    source="greedy2026, Theorem 4.3, Eq. 12",
    draw=_draw,
    small={"draft_length": 2},
)
def token_tree(draft_length: int = 3, num_drafts: int = 2) -> Findings:
    """Node masses of the optimal verifier on the two-token pair, and every antichain's constraint, exactly.

    x(a) is the probability that the accepted text starts with a.  For an antichain T these events exclude
    one another, and each needs a draft through T: Σ_{a∈T} x(a) ≤ 1 − (1 − q(T))^K.  The picture has the
    largest antichain among those that meet their limit with the fewest leaves.
    """
    checks, pair = Checks(), two_token(draft_length)
    law = output_law("optimal_multipath", pair, num_drafts)
    masses: dict[Context, Any] = {
        pair.context(depth, number): mass
        for depth, level in enumerate(law.accepted_masses)
        for number, mass in enumerate(level)
    }
    drafted: dict[Context, Any] = {
        pair.context(depth, number): probability
        for depth in range(draft_length + 1)
        for number, probability in enumerate(pair.draft_path_probs(depth))
    }
    chains = named_antichains(pair, antichains(2, draft_length))
    table = ResultTable(
        "token_tree_antichains",
        "Every antichain: draft mass, mass, and the limit 1 − (1 − draft)^K. Exact.",
    )
    tight = []
    for chain in chains:
        mass, draft = (sum((values[a] for a in chain), start=masses[()] * 0) for values in (masses, drafted))
        limit = hit_probability(draft, num_drafts)
        names = [name_of(a) for a in chain]
        table.add(nodes=names, draft=draft, mass=mass, limit=limit, tight=mass == limit)
        claim = "every antichain's constraint holds (Eq. 12)"
        checks.expect(claim, mass <= limit, f"{chain}: {mass} > {limit}")
        if mass == limit and 0 < draft < 1:
            tight.append(chain)
    shown = max(tight, key=lambda chain: (len({len(a) for a in chain}), len(chain)))
    nodes = ResultTable(
        "token_tree",
        "Every node: its probability under the draft, and P(the accepted text starts with it) under "
        "the optimal verifier. Exact.",
    )
    for a, mass in masses.items():
        nodes.add(node=name_of(a), depth=len(a), draft=drafted[a], mass=mass, in_antichain=a in shown)
    counted = count_antichains(2, draft_length)
    claim = "there are N_L = 1 + N_{L−1}^2 antichains"
    checks.expect(claim, counted == len(chains), f"{len(chains)} listed, {counted} counted")
    efficiency, best = sum(masses.values()), optimum(pair, num_drafts).value
    claim = "the masses add up to the optimum (Theorem 4.3)"
    checks.expect(claim, efficiency == best, f"{efficiency}, optimum {best}")
    pushed = sum(masses[a] for a in shown) + (1 - masses[shown[0]]) / 2
    breaks = pushed > hit_probability(sum(drafted[a] for a in shown), num_drafts)
    claim = "half of the rest on top of one node of the antichain breaks its constraint"
    checks.expect(claim, breaks, "it does not")
    return Findings(
        f"Two-token pair, {num_drafts} drafts. Left: how often the optimal verifier's accepted text "
        "starts with each node; the filled nodes are an antichain whose constraint is tight. Right: all "
        "antichains below the limit.",
        tables=[nodes, table],
        checks=checks,
    )


def name_of(context: Context) -> str:
    """AB for (0, 1), ∅ for the root.

    Example:
        >>> name_of((0, 1)), name_of(())
        ('AB', '∅')
    """
    return "".join("AB"[token] for token in context) or "∅"


if __name__ == "__main__":
    token_tree.main()
