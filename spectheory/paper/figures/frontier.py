from collections.abc import Sequence
from itertools import product

import numpy as np
from matplotlib.figure import Figure

from spectheory.optima.bounds import SkewedDraft, capped_upper_bound
from spectheory.pairs.pair import ModelPair
from spectheory.paper import Checks, Findings, ResultTable, exhibit
from spectheory.paper.drawing import legend_below, panels, verifier_curve
from spectheory.paper.figures.random_cells import random_cells
from spectheory.verification.algorithms.path_selection.mixed_multipath import root_mixture
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.verification.algorithms.position_by_position.spectr import SpecTr
from spectheory.verification.algorithms.traversal import Traversal

OTHERS = ("block", "spectr", "greedy_multipath", "mixed_multipath", "traversal")
SHOWN = (*OTHERS, "scored_multipath")
LEAST_CLOSED = 0.7
LARGEST_LOSS = 0.03
FLOOR = 1e-4
"""In tokens per call; smaller gaps to the optimum are drawn there."""

TICKS = {FLOOR: "≤ $10^{-4}$"} | {10.0**power: f"$10^{{{power}}}$" for power in range(-3, 1)}


def _plot(findings: Findings) -> Figure:
    (table,) = findings.tables
    lengths, drafts = table.distinct("draft_length"), table.distinct("num_drafts")
    size = {"width": 3.0, "height": 2.6, "sharex": True, "sharey": True}
    with panels(len(lengths), len(drafts), **size) as (figure, all_axes):
        for axes, (length, number) in zip(all_axes, product(lengths, drafts), strict=True):
            rows = table.where(draft_length=length, num_drafts=number)
            places, best = rows["agreement"], np.array(rows["optimum"])
            for name in SHOWN:
                verifier_curve(axes, name, places, np.maximum(best - rows[name], FLOOR))
            axes.set(title=f"L = {length}, K = {number}", yscale="log", xticks=places)
        all_axes[0].set_ylim(FLOOR / 1.7, None)
        all_axes[0].set_yticks([*TICKS], [*TICKS.values()])
        for axes in all_axes[:: len(drafts)]:
            axes.set_ylabel("below the optimum\n[tokens per target call]")
        for axes in all_axes[-len(drafts) :]:
            axes.set_xlabel(f"agreement of the models\n(means of {findings.settings['num_pairs']} pairs)")
        legend_below(figure)
    return figure


@exhibit(
    "greedy2026",
    title="The frontier: scored selection, the other verifiers and the optimum",
    source="this package (theory.md Statements 5.14 and 5.18 to 5.20)",
    plot=_plot,
    small={"agreements": (0.3, 0.6), "num_drafts": (3,), "draft_lengths": (2,), "num_pairs": 3},
)
def frontier(
    agreements: Sequence[float] = (0.0, 0.3, 0.6, 0.9),
    num_drafts: Sequence[int] = (2, 3, 4),
    draft_lengths: Sequence[int] = (2, 3),
    num_pairs: int = 10,
    seed: int = 77,
    vocab_size: int = 3,
) -> Findings:
    """Mean block efficiency over the same random pairs, cell by cell, with the optimum and an upper bound."""
    checks = Checks()
    table = ResultTable(
        "frontier", f"Means over {num_pairs} random pairs, V = {vocab_size}, in tokens per target call."
    )
    for cell in random_cells(agreements, num_drafts, draft_lengths, num_pairs, seed, vocab_size, 1e-5):
        earned = [efficiencies(pair, cell.num_drafts) for pair in cell.pairs]
        cell.expect_at_most_optimal(checks, {name: [one[name] for one in earned] for name in SHOWN})
        rows = []
        for number, (pair, values, best) in enumerate(zip(cell.pairs, earned, cell.optima, strict=True)):
            bound = capped_upper_bound(pair, cell.num_drafts).value
            rows.append([*values.values(), best.lower, bound])
            claim = "the bound of the best cap is never below the optimum"
            checks.expect(
                claim, bound >= best.lower - 1e-9, f"{cell[:3]}, pair {number}: {bound} < {best.lower}"
            )
        columns = np.array(rows)
        others, own, optimum, bounds = columns[:, :-3].max(axis=1), *columns[:, -3:].T
        left, losses = float((optimum - others).sum()), np.maximum(others - own, 0)
        closed = float((own - others).sum()) / left if left > 1e-3 * num_pairs else None
        table.add(
            draft_length=cell.draft_length, num_drafts=cell.num_drafts, agreement=cell.agreement,
            **dict(zip((*SHOWN, "optimum", "bound"), columns.mean(axis=0).tolist(), strict=True)),
            closed=closed,
            lost=int((losses > 1e-3).sum()), largest_loss=float(losses.max()),
            looseness=float((bounds / optimum - 1).mean()),
            largest_looseness=float((bounds / optimum - 1).max()),
        )  # fmt: skip
        claim = f"scored selection closes {LEAST_CLOSED:.0%} of the gap in every cell"
        checks.expect(claim, closed is None or closed >= LEAST_CLOSED, f"{cell[:3]}: {closed}")
        claim = f"it loses to no other verifier by more than {LARGEST_LOSS} on any pair"
        checks.expect(claim, losses.max() <= LARGEST_LOSS, f"{cell[:3]}: {losses.max()}")
    return Findings(
        "Scored selection keeps all drafted paths in the race. It stays close to the optimum where rules "
        "that select token by token, or by a fixed ranking, fall behind. Drawn is what each verifier misses "
        "of the optimum; gaps below 0.0001 are on the floor. closed: the part of what the "
        "best other verifier of a pair leaves to the optimum that scored selection earns; empty if less "
        "than 0.001 is left. lost: pairs on which another verifier earns over 0.001 more. bound: of the "
        "best cap, without a solver.",
        tables=[table],
        checks=checks,
    )


def efficiencies(pair: ModelPair, num_drafts: int) -> dict[str, float]:
    """Block efficiency of the verifiers of ``SHOWN``, without a list of all tuples of drafts."""
    draft = SkewedDraft.from_leaf_law(pair, pair.draft_path_probs(pair.draft_length))
    ranked = SkewedDraft.from_ranking(pair, num_drafts)
    share = float(root_mixture(pair.target[0], pair.draft[0], num_drafts)[0])
    mixed = SkewedDraft.mixture([share, 1 - share], [draft, ranked])
    scored = ScoredMultipath().skewed_draft(pair, num_drafts)
    laws = {"block": draft, "greedy_multipath": ranked, "mixed_multipath": mixed, "scored_multipath": scored}
    values = {name: float(law.block_efficiency(pair)) for name, law in laws.items()}
    values["spectr"] = SpecTr().block_efficiency(pair, num_drafts)
    values["traversal"] = float(Traversal().block_efficiency(pair, num_drafts))
    return {name: values[name] for name in SHOWN}
