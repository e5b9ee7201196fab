from collections.abc import Iterable, Mapping, Sequence
from itertools import product

import numpy as np
from matplotlib.figure import Figure

from figures.common.lossless import (
    MOST_TUPLES,
    efficiencies,
    lossless_verifiers,
    needs_tuples,
)
from figures.results import Checks, Findings, ResultTable, result
from figures.style import legend_below, panels
from spectheory.optima import multi_path_interval
from spectheory.optima.bounds import capped_upper_bound
from spectheory.optima.interval.interval import CertifiedInterval
from spectheory.pairs.instances import random_float
from spectheory.verification.curves import VERIFIER_STYLES, verifier_curve

OWN = "scored_multipath"
LEAST_CLOSED = 0.7
LARGEST_LOSS = 0.03
FLOOR = 1e-4
"""In tokens per call; smaller gaps to the optimum are drawn there."""

TICKS = {FLOOR: "≤ $10^{-4}$"} | {10.0**power: f"$10^{{{power}}}$" for power in range(-3, 1)}


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    lengths, drafts = table.distinct("draft_length"), table.distinct("num_drafts")
    size = {"width": 3.0, "height": 2.6, "sharex": True, "sharey": True}
    with panels(len(lengths), len(drafts), **size) as (figure, all_axes):
        for axes, (length, number) in zip(all_axes, product(lengths, drafts), strict=True):
            rows = table.where(draft_length=length, num_drafts=number)
            places, best = rows["agreement"], np.array(rows["optimum"])
            for name in [*filter(rows.columns.__contains__, VERIFIER_STYLES)]:
                values = np.array(rows[name], dtype=float)  # not a number where it was not computed
                verifier_curve(axes, name, places, np.maximum(best - values, FLOOR))
            axes.set(title=f"L = {length}, K = {number}", yscale="log", xticks=places)
        all_axes[0].set_ylim(FLOOR / 1.7, None)
        all_axes[0].set_yticks([*TICKS], [*TICKS.values()])
        for axes in all_axes[:: len(drafts)]:
            axes.set_ylabel("below the optimum\n[tokens per target call]")
        for axes in all_axes[-len(drafts) :]:
            axes.set_xlabel(f"agreement of the models\n(means of {findings.settings['num_pairs']} pairs)")
        legend_below(figure)
    return figure


@result(
    title="The frontier: scored selection, the other verifiers and the optimum",
    source="this package (theory.md Statements 5.14 and 5.18 to 5.20)",
    draw=_draw,
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
    checks, names = Checks(), lossless_verifiers(max(draft_lengths))
    table = ResultTable(
        "frontier", f"Means over {num_pairs} random pairs, V = {vocab_size}, in tokens per target call."
    )
    for length, agreement, drafts in product(draft_lengths, agreements, num_drafts):
        where = f"agreement {agreement}, K = {drafts}, L = {length}"
        pairs = [random_float([seed, n], vocab_size, length, agreement=agreement) for n in range(num_pairs)]
        optima = [multi_path_interval(pair, drafts, relative_gap=1e-5) for pair in pairs]
        earned = [efficiencies(pair, drafts, MOST_TUPLES) for pair in pairs]
        values = {name: np.array([one[name] for one in earned]) for name in earned[0]}
        _expect_at_most_optimal(checks, where, optima, values)
        bounds = np.array([capped_upper_bound(pair, drafts).value for pair in pairs])
        lower = np.array([best.lower for best in optima])
        for number, (bound, least) in enumerate(zip(bounds, lower, strict=True)):
            claim = "the bound of the best cap is never below the optimum"
            checks.expect(claim, bound >= least - 1e-9, f"{where}, pair {number}: {bound} < {least}")
        # The smaller of two bounds on every verifier, so that none is drawn above the optimum.
        optimum = np.minimum([best.upper for best in optima], bounds)
        own, others = values[OWN], _best_of(values, with_tuples=False)
        losses, of_all = np.maximum(others - own, 0), _best_of(values, with_tuples=True)
        closed = _closed(own, others, optimum)
        table.add(
            draft_length=length, num_drafts=drafts, agreement=agreement,
            **{name: float(values[name].mean()) if name in values else None for name in names},
            optimum=float(optimum.mean()), bound=float(bounds.mean()), closed=closed,
            closed_beside_all=_closed(own, of_all, optimum) if values.keys() >= {*names} else None,
            lost=int((losses > 1e-3).sum()), largest_loss=float(losses.max()),
            looseness=float((bounds / lower - 1).mean()),
            largest_looseness=float((bounds / lower - 1).max()),
        )  # fmt: skip
        claim = f"scored selection closes {LEAST_CLOSED:.0%} of the gap in every cell"
        checks.expect(claim, closed is None or closed >= LEAST_CLOSED, f"{where}: {closed}")
        claim = f"it loses to no other verifier by more than {LARGEST_LOSS} on any pair"
        loss = float((of_all - own).max())
        checks.expect(claim, loss <= LARGEST_LOSS, f"{where}: {loss}")
    return Findings(
        "Drawn is what each lossless verifier of i.i.d. drafts misses of the optimum; gaps below 0.0001 "
        "are on the floor. closed: the part of what the best other verifier of a pair leaves to the "
        "optimum that scored selection earns; empty if less than 0.001 is left. lost: pairs on which "
        "another verifier earns over 0.001 more. Both are beside all that need no list of all tuples of "
        f"drafts; closed_beside_all is beside all. A verifier that needs a list of more than {MOST_TUPLES} "
        "tuples is left out. bound: of the best cap, without a solver.",
        tables=[table],
        checks=checks,
    )


def _expect_at_most_optimal(
    checks: Checks, cell: str, optima: Sequence[CertifiedInterval], values: Mapping[str, Iterable[float]]
) -> None:
    """Try on every pair that no verifier's block efficiency is above the optimum."""
    for name, earned in values.items():
        for number, (value, best) in enumerate(zip(earned, optima, strict=True)):
            where = f"{name}, {cell}, pair {number}: {value} > {best.upper}"
            checks.expect("no verifier exceeds the optimum on any pair", value <= best.upper + 1e-9, where)


def _best_of(values: Mapping[str, np.ndarray], *, with_tuples: bool) -> np.ndarray:
    """What the best verifier but scored selection earns on every pair; without ``needs_tuples`` if asked."""
    others = [name for name in values if name != OWN and (with_tuples or not needs_tuples(name))]
    return np.max([values[name] for name in others], axis=0)


def _closed(own: np.ndarray, others: np.ndarray, optimum: np.ndarray) -> float | None:
    left = float((optimum - others).sum())
    return float((own - others).sum()) / left if left > 1e-3 * len(own) else None


if __name__ == "__main__":
    frontier.main()
