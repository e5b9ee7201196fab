"""The frontier: scored selection between the other verifiers, the optimum and the capped bound."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
from matplotlib.figure import Figure

from spectheory.optima import multi_path_interval
from spectheory.optima.bounds import SkewedDraft, capped_upper_bound
from spectheory.pairs.instances import random_float
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import legend_below, optimum_curve, panels, verifier_curve
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import GREY
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.path_selection.mixed_multipath import root_mixture
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.verification.algorithms.traversal import Traversal
from spectheory.verification.verifier import Verifier

OTHERS = ("block", "spectr", "greedy_multipath", "mixed_multipath", "traversal")
SHOWN = (*OTHERS, "scored_multipath")
LEAST_CLOSED = 0.7
LARGEST_LOSS = 0.03


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"frontier": _plot(findings.tables[0])}


@exhibit(
    title="The frontier: scored selection, the other verifiers and the optimum",
    source="this package (theory.md Statements 5.14 and 5.18 to 5.20)", draw=_draw,
)  # fmt: skip
def frontier(
    agreements: Sequence[float] = (0.0, 0.3, 0.6, 0.9),
    num_drafts: Sequence[int] = (2, 3, 4),
    draft_lengths: Sequence[int] = (2, 3),
    num_pairs: int = 10,
    seed: int = 77,
    vocab_size: int = 3,
) -> Findings:
    """Mean block efficiency over the same random pairs, cell by cell, with the optimum and an upper bound.

    Args:
        agreements: a; the draft row is a times the target's and 1 − a times an independent one.
        num_drafts: the numbers K.
        draft_lengths: the lengths L.
        num_pairs: random pairs per agreement and length, the same for every K.
        seed: of the pairs.
        vocab_size: V.
    """
    rows, above, below, open_cells, lost = [], [], [], [], []
    for length, drafts, agreement in product(draft_lengths, num_drafts, agreements):
        here = f"L = {length}, K = {drafts}, agreement {agreement}"
        values = []
        for number in range(num_pairs):
            pair = random_float([seed, number], vocab_size, length, agreement=agreement)
            best = multi_path_interval(pair, drafts, relative_gap=1e-5)
            bound = capped_upper_bound(pair, drafts).value
            earned = efficiencies(pair, drafts)
            values.append((*earned.values(), best.lower, bound))
            above += [
                f"{here}, pair {number}: {name} {value} > {best.upper}"
                for name, value in earned.items()
                if value > best.upper + 1e-9
            ]
            if bound < best.lower - 1e-9:
                below.append(f"{here}, pair {number}: {bound} < {best.lower}")
        table = np.array(values)
        own, optimum, bounds = table[:, len(OTHERS)], table[:, -2], table[:, -1]
        others = table[:, : len(OTHERS)].max(axis=1)
        left = float((optimum - others).sum())
        closed = float((own - others).sum()) / left if left > 1e-3 * num_pairs else None
        losses = np.maximum(others - own, 0)
        rows.append((
            length, drafts, agreement, *table.mean(axis=0).tolist(), closed, int((losses > 1e-3).sum()),
            float(losses.max()), float((bounds / optimum - 1).mean()), float((bounds / optimum - 1).max()),
        ))  # fmt: skip
        if closed is not None and closed < LEAST_CLOSED:
            open_cells.append(f"{here}: {closed}")
        if losses.max() > LARGEST_LOSS:
            lost.append(f"{here}: {losses.max()}")
    tried = len(rows) * num_pairs
    return Findings(
        explanation=(
            "Scored selection keeps all drafted paths in the race. It stays close to the optimum where rules "
            "that select token by token, or by a fixed ranking, fall behind. closed: the part of what the "
            "best other verifier of a pair leaves to the optimum that scored selection earns; empty if less "
            "than 0.001 is left. lost: pairs on which another verifier earns over 0.001 more. bound: of the "
            "best cap, without a solver."
        ),
        settings={
            "agreements": list(agreements), "num_drafts": list(num_drafts),
            "draft_lengths": list(draft_lengths), "num_pairs": num_pairs, "seed": seed,
            "vocab_size": vocab_size,
        },
        tables=[
            ResultTable(
                "frontier",
                (
                    "draft_length", "num_drafts", "agreement", *SHOWN, "optimum", "bound", "closed", "lost",
                    "largest_loss", "looseness", "largest_looseness",
                ),
                rows,
                f"Means over {num_pairs} random pairs, V = {vocab_size}, in tokens per target call.",
            )
        ],
        checks=[
            Check.of("no verifier exceeds the optimum on any pair", tried * len(SHOWN), above),
            Check.of("the bound of the best cap is never below the optimum", tried, below),
            Check.of(f"scored selection closes {LEAST_CLOSED:.0%} of the gap in every cell",
                     len(rows), open_cells),
            Check.of(f"it loses to no other verifier by more than {LARGEST_LOSS} on any pair",
                     len(rows), lost),
        ],
    )  # fmt: skip


def efficiencies(pair: ModelPair, num_drafts: int) -> dict[str, float]:
    """Block efficiency of the verifiers of ``SHOWN``, without a list of all tuples of drafts."""
    draft = SkewedDraft.from_leaf_law(pair, pair.draft_path_probs(pair.draft_length))
    ranked = SkewedDraft.from_ranking(pair, num_drafts)
    share = float(root_mixture(pair.target[0], pair.draft[0], num_drafts)[0])
    mixed = SkewedDraft.mixture([share, 1 - share], [draft, ranked])
    scored = ScoredMultipath().skewed_draft(pair, num_drafts)
    laws = {"block": draft, "greedy_multipath": ranked, "mixed_multipath": mixed, "scored_multipath": scored}
    values = {name: float(law.block_efficiency(pair)) for name, law in laws.items()}
    values["spectr"] = position_by_position_efficiency(verifiers["spectr"], pair, num_drafts)
    values["traversal"] = float(Traversal().block_efficiency(pair, num_drafts))
    return {name: values[name] for name in SHOWN}


def position_by_position_efficiency(verifier: Verifier, pair: ModelPair, num_drafts: int) -> float:
    """The block efficiency of a rule that selects token by token (theory.md Statement 5.15), float64.

    After n surviving drafts at a context the rule sees the V^n tuples of their next tokens.  It emits one of
    them, and the drafts that carry it survive: a recursion over contexts and numbers of drafts.
    """
    size, length = pair.vocab_size, pair.draft_length
    below = {n: np.ones(size**length) for n in range(1, num_drafts + 1)}
    for depth in reversed(range(length)):
        target, draft, here = pair.target[depth], pair.draft[depth], {}
        for n in below:
            tuples = np.array(list(product(range(size), repeat=n)))
            shape = (size**depth, len(tuples), n, 1, size)
            draft_rows = np.broadcast_to(draft[:, None, None, None], shape)
            target_rows = np.broadcast_to(target[:, None, None, None], shape)
            # What the target says behind the token has no part in whether the token is accepted.
            target_rows = np.concatenate([target_rows, draft_rows], axis=-2)
            paths = np.broadcast_to(tuples[None, :, :, None], shape[:-1])
            accepted = verifier.outcome(paths, target_rows, draft_rows).stop_probs[..., 1]
            probs = draft[:, tuples].prod(axis=-1)[..., None]
            survivors = (tuples[:, :, None] == tuples[:, None, :]).sum(axis=-1)
            rest = np.stack([below[m].reshape(-1, size) for m in below])[survivors - 1, :, tuples]
            here[n] = 1 + (accepted * probs * np.moveaxis(rest, -1, 0)).sum(axis=(1, 2))
        below = here
    return float(below[num_drafts][0])


def _plot(table: ResultTable) -> Figure:
    lengths, drafts = (list(dict.fromkeys(table.column(key))) for key in ("draft_length", "num_drafts"))
    with panels(len(lengths), len(drafts), width=3.0, height=2.6, sharex=True) as (figure, all_axes):
        for axes, (length, number) in zip(all_axes, product(lengths, drafts), strict=True):
            rows = table.select(draft_length=length, num_drafts=number)
            places = [row["agreement"] for row in rows]
            axes.plot(places, [row["bound"] for row in rows], color=GREY, linestyle=":", label="capped bound")
            for name in SHOWN:
                verifier_curve(axes, name, places, [row[name] for row in rows])
            optimum_curve(axes, places, [row["optimum"] for row in rows])
            axes.set_title(f"L = {length}, K = {number}")
        for axes in all_axes[:: len(drafts)]:
            axes.set_ylabel("block efficiency\n[tokens per target call]")
        for axes in all_axes[-len(drafts) :]:
            axes.set_xlabel("agreement of the models")
        legend_below(figure)
    return figure
