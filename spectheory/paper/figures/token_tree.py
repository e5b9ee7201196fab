"""The tree of drafted tokens with an antichain, and the inequality that it stands for."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.optima import antichains, count_antichains, optimum
from spectheory.optima.multi_path import named_antichains
from spectheory.pairs.contexts import Context
from spectheory.pairs.instances import two_token
from spectheory.paper.drawing import panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, BLACK, GREY


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"token_tree": _plot(findings)}


@exhibit(title="The token tree and its antichains", source="greedy2026, Theorem 4.3, Eq. 12", draw=_draw)
def token_tree(draft_length: int = 3, num_drafts: int = 2) -> Findings:
    """Node masses of the optimal verifier on the two-token pair, and every antichain's constraint, exactly.

    x(a) is the probability that the accepted text starts with a.  For an antichain T these events exclude
    one another, and each needs a draft through T: Σ_{a∈T} x(a) ≤ 1 − (1 − q(T))^K.  The picture has the
    largest antichain among those that meet their limit with the fewest leaves.

    Args:
        draft_length: L.
        num_drafts: K.
    """
    pair = two_token(draft_length)
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
    rows, violated, tight = [], [], []
    for chain in chains:
        mass, draft = (sum((values[a] for a in chain), start=masses[()] * 0) for values in (masses, drafted))
        limit = 1 - (1 - draft) ** num_drafts
        rows.append((
            [name_of(a) for a in chain], draft, float(draft), mass, float(mass), limit, float(limit),
            mass == limit,
        ))  # fmt: skip
        if mass > limit:
            violated.append(f"{chain}: {mass} > {limit}")
        if mass == limit and 0 < draft < 1:
            tight.append(chain)
    shown = max(tight, key=lambda chain: (len({len(a) for a in chain}), len(chain)))
    nodes = [(name_of(a), len(a), drafted[a], masses[a], float(masses[a]), a in shown) for a in masses]
    counted = count_antichains(2, draft_length)
    miscounted = [] if counted == len(chains) else [f"{len(chains)} listed, {counted} counted"]
    efficiency = sum(masses.values())
    best = optimum(pair, num_drafts).value
    missed = [] if efficiency == best else [f"{efficiency} < {best}"]
    pushed = dict(masses)
    pushed[shown[0]] += (1 - pushed[shown[0]]) / 2
    seen = sum(pushed[a] for a in shown) > 1 - (1 - sum(drafted[a] for a in shown)) ** num_drafts
    return Findings(
        explanation=(
            f"Two-token pair, {num_drafts} drafts. Left: how often the optimal verifier's accepted text "
            "starts with each node; the filled nodes are an antichain whose constraint is tight. Right: all "
            "antichains below the limit."
        ),
        settings={"draft_length": draft_length, "num_drafts": num_drafts},
        tables=[
            ResultTable(
                "token_tree",
                ("node", "depth", "draft", "mass", "mass_float", "in_antichain"),
                nodes,
                "Every node: its probability under the draft, and P(the accepted text starts with it) under "
                "the optimal verifier. Exact.",
            ),
            ResultTable(
                "token_tree_antichains",
                ("nodes", "draft", "draft_float", "mass", "mass_float", "limit", "limit_float", "tight"),
                rows,
                "Every antichain: draft mass, mass, and the limit 1 − (1 − draft)^K. Exact.",
            ),
        ],
        checks=[
            Check.of("every antichain's constraint holds (Eq. 12)", len(chains), violated),
            Check.of("there are N_L = 1 + N_{L−1}^2 antichains", 1, miscounted),
            Check.of("the masses add up to the optimum (Theorem 4.3)", 1, missed),
            Check.of("half of the rest on top of one node of the antichain breaks its constraint", 1,
                     [] if seen else ["it does not"]),
        ],
    )  # fmt: skip


def name_of(context: Context) -> str:
    """AB for (0, 1), ∅ for the root.

    Example:
        >>> name_of((0, 1)), name_of(())
        ('AB', '∅')
    """
    return "".join("AB"[token] for token in context) or "∅"


def _plot(findings: Findings) -> Figure:
    with panels(1, 2, height=3.7, width=3.9, gridspec_kw={"width_ratios": [1.45, 1]}) as (
        figure,
        (left, right),
    ):
        _tree(left, findings.table("token_tree"))
        _limits(right, findings.table("token_tree_antichains"), findings)
    return figure


def _tree(axes: Axes, table: ResultTable) -> None:
    rows = {row["node"]: row for row in table.select()}
    tree = networkx.DiGraph()
    for name in rows:
        tree.add_node(name)
        if name != "∅":
            tree.add_edge(name[:-1] or "∅", name)
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
    for name, (x, y) in places.items():
        token = name if name == "∅" else name[-1]
        axes.annotate(token, (x, y), ha="center", va="center", fontsize=9, fontweight="bold",
                      color="white" if name in chosen else BLACK)  # fmt: skip
        below = rows[name]["depth"] == deepest
        axes.annotate(f"{rows[name]['mass_float']:.3f}", (x, y), xytext=(0, -16) if below else (14, 3),
                      textcoords="offset points", ha="center" if below else "left", va="center", fontsize=7.5,
                      color=ACCENT if name in chosen else GREY)  # fmt: skip
    axes.set_axis_off()
    axes.margins(x=0.06, y=0.16)
    axes.set_title("P(accepted text starts with the node)")


def _limits(axes: Axes, table: ResultTable, findings: Findings) -> None:
    drafts = findings.settings["num_drafts"]
    masses = np.linspace(0, 1, 101)
    axes.plot(masses, 1 - (1 - masses) ** drafts, color=BLACK, linewidth=1.2, linestyle=(0, (4, 2)))
    axes.plot(
        table.column("draft_float"), table.column("mass_float"), "o", color=GREY, markersize=2.5, alpha=0.6
    )
    chosen = [row["node"] for row in findings.table("token_tree").select(in_antichain=True)]
    shown = next(row for row in table.select() if sorted(row["nodes"]) == sorted(chosen))
    axes.plot(shown["draft_float"], shown["mass_float"], "o", color=ACCENT, markersize=7)
    axes.annotate(
        f"Σ x = {shown['mass_float']:.3f}\n= $1 - (1 - {shown['draft_float']:.3f})^{drafts}$",
        (shown["draft_float"], shown["mass_float"]), xytext=(0.02, 0.93), textcoords="data",
        color=ACCENT, fontsize=8.5,
        arrowprops={"arrowstyle": "-", "color": ACCENT, "linewidth": 0.8},
    )  # fmt: skip
    axes.set(xlabel="draft mass q(T)", ylabel="mass Σ x(a)", xlim=(0, 1.02), ylim=(0, 1.05))
    axes.set_title(f"All {len(table.rows)} antichains T")
