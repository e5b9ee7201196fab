"""What of the rest could be had on-path: scored selection with the best split of the score at the root.

Two drafted tokens, V = 3.  The split of the score among the first tokens is chosen before any row behind
them is read.  Here it is chosen best on average over the law those rows are drawn from, a linear program
over rows that are drawn anew.  No verifier knows that law.  Behind the first token the split is the default
one, which serves the last position at the min cut.  Both are measured on the pairs of ``scored_selection.py
table``, as the part of what the best other verifier leaves to the optimum.

Run: ``python benchmarks/on_path_splits.py``.
"""

from __future__ import annotations

from itertools import product

import click
import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from spectheory.algorithms.path_selection.scored import ScoreSplit, ScoreState
from spectheory.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.arrays import Array, power_sum
from spectheory.instances import random_float
from spectheory.paper.figures.frontier import efficiencies
from spectheory.programs import multi_path_interval

CELLS, VIOLATED = 32, 1e-7
EDGES = np.linspace(0, 1, CELLS + 1)


class SplitAtTheRoot(ScoredMultipath):
    """The default rule behind a given plan for the root, [V, M]."""

    def __init__(self, plan: np.ndarray) -> None:
        super().__init__()
        self.plan = plan

    def cell_edges(self, target_row: Array, draft_row: Array, num_drafts: int) -> Array:
        return EDGES[None]

    def split(self, state: ScoreState, target_row: Array, draft_row: Array) -> ScoreSplit:
        if len(draft_row) == 1:
            return ScoreSplit(self.plan[None], np.arange(draft_row.shape[1])[None])
        return super().split(state, target_row, draft_row)


@click.command()
@click.option("--pairs", default=30, help="Random pairs per cell.")
@click.option("--samples", default=100, help="Pairs of rows behind a token that the split is chosen for.")
@click.option("--seed", default=77, help="Of the pairs.")
def main(pairs: int, samples: int, seed: int) -> None:
    """Print one row per agreement and number of drafts."""
    click.echo("| K | agreement | closed | largest loss | closed, best split | largest loss |")
    click.echo("|---|---|---|---|---|---|")
    for num_drafts, agreement in product((2, 3, 4), (0.0, 0.3, 0.6)):
        drawn = [random_float([991, number], 3, 1, agreement=agreement) for number in range(samples)]
        rows = np.array([pair.target[0][0] for pair in drawn]), np.array([p.draft[0][0] for p in drawn])
        values = []
        for number in range(pairs):
            pair = random_float([seed, number], 3, 2, agreement=agreement)
            own, *others = reversed(efficiencies(pair, num_drafts).values())
            plan = best_split(pair.target[0][0], pair.draft[0][0], *rows, num_drafts)
            best = SplitAtTheRoot(plan).skewed_draft(pair, num_drafts).block_efficiency(pair)
            optimum = multi_path_interval(pair, num_drafts, relative_gap=1e-5).lower
            values.append((optimum, max(others), own, float(best)))
        optima, others_best, *earned = np.array(values).T
        left = (optima - others_best).sum()
        shown = [
            f"{(value - others_best).sum() / left:.3f} | {(others_best - value).max():.4f}"
            for value in earned
        ]
        click.echo(f"| {num_drafts} | {agreement} | {' | '.join(shown)} |")


def best_split(
    target: np.ndarray, draft: np.ndarray, next_targets: np.ndarray, next_drafts: np.ndarray, num_drafts: int
) -> np.ndarray:
    """Laws μ_x [V, M] that serve most at the next two positions, on average over the rows behind them.

    Maximise Σ_x q_x (t_x + mean_s u_xs) over Σ_x q_x μ_x uniform, t_x ≤ min(p_x/q_x, ∫ φ dμ_x) and every

        u_xs ≤ F_x(z_i) + t_x Σ_{j>i} p_j,   i = 0, .., V,

    p and z of the rows s behind x.  F_x(z), the φ-mass of the top z of μ_x, is the minimum over c of
    c z + ∫ (φ - c)^+ dμ_x.  These cuts are added as they are violated.

    Args:
        target, draft: rows at the root, [V].
        next_targets, next_drafts: rows behind a token, [S, V].
        num_drafts: K.
    """
    size, samples = len(draft), len(next_drafts)
    rates = power_sum(EDGES[1:], EDGES[:-1], num_drafts)
    order = np.argsort(-next_targets / next_drafts, axis=1)
    tops = np.cumsum(np.take_along_axis(next_drafts, order, axis=1), axis=1)[:, :-1]
    rest = 1 - np.cumsum(np.take_along_axis(next_targets, order, axis=1), axis=1)[:, :-1]
    masses, served, below = np.split(
        np.arange(size * (CELLS + 1 + samples)), [size * CELLS, size * CELLS + size]
    )
    masses, below = masses.reshape(size, CELLS), below.reshape(size, samples)
    columns = below.size + served.size + masses.size

    def line(parts: list[tuple[np.ndarray, np.ndarray | float]]) -> csr_array:
        row = np.zeros((1, columns))
        for places, values in parts:
            row[0, places] = values
        return csr_array(row)

    split = [line([(masses[:, cell], draft)]) for cell in range(CELLS)]
    laws = [line([(masses[x], 1.0)]) for x in range(size)]
    equal = vstack([*split, *laws]), np.append(np.full(CELLS, 1 / CELLS), np.ones(size))
    cuts = [line([(served[x : x + 1], 1.0), (masses[x], -rates)]) for x in range(size)]
    for x, s in product(range(size), range(samples)):
        cuts.append(line([(below[x, s : s + 1], 1.0), (served[x : x + 1], -1.0)]))
        cuts.append(line([(below[x, s : s + 1], 1.0), (masses[x], -rates)]))
    limits = [0.0] * len(cuts)
    gain = np.zeros(columns)
    gain[served], gain[below] = draft, (draft / samples)[:, None]
    most = np.full(columns, np.inf)
    most[served] = target / draft
    while True:
        found = linprog(
            -gain, vstack(cuts), limits, *equal, bounds=np.stack([np.zeros(columns), most], axis=1)
        )
        if found.status != 0:
            raise SystemExit(found.message)
        violated = 0
        for x, i in product(range(size), range(tops.shape[1])):
            law, u, t = found.x[masses[x]], found.x[below[x]], found.x[served[x]]
            above = np.cumsum(law[::-1])[::-1] - law
            reached = np.clip(tops[:, i, None] - above, 0, law) @ rates
            for s in np.flatnonzero(u > reached + t * rest[:, i] + VIOLATED):
                c = rates[np.argmax(above < tops[s, i])]
                parts = [(below[x, s : s + 1], 1.0), (served[x : x + 1], -rest[s, i])]
                cuts.append(line([*parts, (masses[x], -np.maximum(rates - c, 0))]))
                limits.append(c * tops[s, i])
                violated += 1
        if not violated:
            return found.x[masses]


if __name__ == "__main__":
    main()
