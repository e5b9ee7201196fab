"""How much of the rest a rule of the family could earn: the best split of the score at the root, and a limit.

Two drafted tokens, V = 3, fresh pairs of the kind of ``scored_selection.py table``.  A rule splits the score
among the first tokens before any row behind them is read.  For every number of drafts and agreement:

- ``closed``: what the default rule earns, as the part of what the best of ``OTHERS`` leaves to the optimum.
- ``best split``: the same with the split at the root that is best on average over the law of the rows behind
  the first tokens, a linear program over rows that are drawn anew.  No verifier knows that law.
- ``limit``: with 99 % confidence no rule of the family has a larger ``closed`` in the population the
  pairs are drawn from.  The value of the program of theory.md Statement 5.23 is in the mean at least what any
  rule earns.  One program per pair, over rows of its own, gives independent terms of that mean; the limit is
  a one-sided Fieller limit of a ratio of two means, with Student's quantile.

Run: ``PYTHONPATH=. python benchmarks/on_path_splits.py``.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import click
import highspy
import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student

from figures.common.lossless import efficiencies
from spectheory.foundation.arrays import Array, power_sum
from spectheory.optima import multi_path_interval
from spectheory.pairs.instances import random_float
from spectheory.verification.algorithms.path_selection.scored import ScoreSplit, ScoreState
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath

OTHERS = ("block", "spectr", "greedy_multipath", "mixed_multipath", "traversal")
"""Whose gap to the optimum is closed.  With ``otm`` it is smaller, and so are ``closed`` and ``limit``."""
CELLS, LIMIT_CELLS = 32, 128
GAP = 1e-4
"""Tokens per call at which a program counts as solved; it is reported at its upper end."""
CONFIDENCE = 0.99


class SplitAtTheRoot(ScoredMultipath):
    """The default rule behind a given plan for the root, [V, M]."""

    def __init__(self, plan: np.ndarray) -> None:
        super().__init__()
        self.plan = plan

    def cell_edges(self, target_row: Array, draft_row: Array, num_drafts: int) -> Array:
        return np.linspace(0, 1, self.plan.shape[1] + 1)[None]

    def split(self, state: ScoreState, target_row: Array, draft_row: Array) -> ScoreSplit:
        if len(draft_row) == 1:
            return ScoreSplit(self.plan[None], np.arange(draft_row.shape[1])[None])
        return super().split(state, target_row, draft_row)


@click.command()
@click.option("--pairs", default=1000, help="Random pairs per cell.")
@click.option("--seed", default=78, help="Of the pairs.")
@click.option("--num-drafts", multiple=True, default=(2, 3, 4))
@click.option("--agreement", "agreements", multiple=True, default=(0.0, 0.3, 0.6))
def main(pairs: int, seed: int, num_drafts: tuple[int, ...], agreements: tuple[float, ...]) -> None:
    """Print one row per number of drafts and agreement."""
    click.echo("| K | agreement | closed | largest loss | best split | largest loss | limit |")
    click.echo("|---|---|---|---|---|---|---|")
    for drafts, agreement in product(num_drafts, agreements):
        drawn = NextRows.drawn([991], agreement, 6)
        values = []
        for number in range(pairs):
            pair = random_float([seed, number], 3, 2, agreement=agreement)
            known = efficiencies(pair, drafts)
            own, others = known["scored_multipath"], [known[name] for name in OTHERS]
            root = pair.target[0][0], pair.draft[0][0]
            optimum = multi_path_interval(pair, drafts, relative_gap=1e-5).lower
            score = cell_means(CELLS, drafts)
            _, plan = best_split(*root, drawn, score)
            best = float(SplitAtTheRoot(plan).skewed_draft(pair, drafts).block_efficiency(pair))
            anew = NextRows.drawn([seed, number, 1], agreement, 6)
            limit, _ = best_split(*root, anew, cell_ends(LIMIT_CELLS, drafts))
            limit += control(plan, *root, NextRows.of(pair.target[1], pair.draft[1]), anew, score)
            values.append((optimum, max(others), own, best, limit))
        optima, others_best, *earned, limits = np.array(values).T
        left = optima - others_best
        closed = [float((value - others_best).sum() / left.sum()) for value in earned]
        most = largest_part(optima - limits, left)
        if max(closed) > most:
            raise SystemExit(
                f"K = {drafts}, agreement {agreement}: a rule closes {max(closed)}, above {most}"
            )
        parts = zip(closed, earned, strict=True)
        shown = [f"{part:.3f} | {(others_best - value).max():.4f}" for part, value in parts]
        concluded = f"{most:.3f}" if most < 1 else "no conclusion"
        click.echo(f"| {drafts} | {agreement} | {' | '.join(shown)} | {concluded} |")


def largest_part(missing: np.ndarray, left: np.ndarray) -> float:
    """The part of what is left that no rule exceeds, from what it misses and what is left on every pair.

    1 - E[missing]/E[left] is at most the answer with probability ``CONFIDENCE``, as far as the mean of
    missing - (1 - part) left is normal.  The lower end of that mean is concave in the part, and rises to 0 at
    the answer.  The answer is infinite where what is left cannot be told from nothing.
    """
    quantile = student.ppf(CONFIDENCE, len(left) - 1) / np.sqrt(len(left))

    def lower_end(part: float) -> float:
        terms = missing - (1 - part) * left
        return float(terms.mean() - quantile * terms.std(ddof=1))

    return float(brentq(lower_end, -10, 2)) if lower_end(2) > 0 else np.inf


# ------------------------------------------------------------------------- the program of Statement 5.23


class Score(NamedTuple):
    """A law of φ = K s^(K-1) on finitely many values: values and masses, [M] each."""

    values: np.ndarray
    masses: np.ndarray


def cell_means(cells: int, num_drafts: int) -> Score:
    """Equal cells of the score, φ its mean in the cell: what a rule earns that does not look into cells."""
    edges = np.linspace(0, 1, cells + 1)
    return Score(power_sum(edges[1:], edges[:-1], num_drafts), np.full(cells, 1 / cells))


def cell_ends(cells: int, num_drafts: int) -> Score:
    """Every φ spread to the two ends of its cell, its mean kept: no less than any rule earns (K ≥ 2)."""
    ends = num_drafts * np.linspace(0, 1, cells + 1) ** (num_drafts - 1)
    means, masses = cell_means(cells, num_drafts)
    upper = masses * (means - ends[:-1]) / np.diff(ends)
    return Score(ends, np.append(0, upper) + np.append(masses - upper, 0))


class NextRows(NamedTuple):
    """What of S pairs of rows decides the min cut: its candidates, [S, V+1] each.

    Attributes:
        tops: draft mass of the n tokens with the largest p/q, n = 0, .., V.
        rest: target mass of the others.
    """

    tops: np.ndarray
    rest: np.ndarray

    @staticmethod
    def of(targets: np.ndarray, drafts: np.ndarray) -> NextRows:
        order = np.argsort(-targets / drafts, axis=1)
        sums = [np.take_along_axis(rows, order, axis=1).cumsum(axis=1)[:, :-1] for rows in (drafts, targets)]
        none, every = np.zeros((len(order), 1)), np.ones((len(order), 1))
        return NextRows(np.hstack([none, sums[0], every]), np.hstack([every, 1 - sums[1], none]))

    @staticmethod
    def drawn(seed: list[int], agreement: float, depth: int) -> NextRows:
        """The 3^depth rows at a depth of a random pair; all its rows are independent and of one law."""
        pair = random_float(seed, 3, depth + 1, agreement=agreement)
        return NextRows.of(pair.target[depth], pair.draft[depth])


def min_cuts(law: np.ndarray, share: float, rows: NextRows, score: Score) -> tuple[np.ndarray, ...]:
    """min_T [F(q(T)) + t p(T^c)] for every pair of rows: the value, |T|, and where in φ the slope of F is."""
    above = np.append(law[::-1].cumsum()[::-1][1:], 0)
    whole = np.append((law * score.values)[::-1].cumsum()[::-1][1:], 0)
    value = np.minimum(np.searchsorted(-above, -rows.tops), len(law) - 1)
    cuts = whole[value] + score.values[value] * (rows.tops - above[value]) + share * rows.rest
    each, least = np.arange(len(cuts)), cuts.argmin(axis=1)
    return cuts[each, least], least, value[each, least]


def efficiency(
    plan: np.ndarray,
    target: np.ndarray,
    draft: np.ndarray,
    rows: NextRows,
    score: Score,
    *,
    each: bool = False,
) -> float:
    """1 + Σ_x q_x (t_x + what is served behind x): the mean over all rows, or with row x behind token x."""
    shares = np.minimum(target / draft, plan @ score.values)
    below = [min_cuts(law, share, rows, score)[0] for law, share in zip(plan, shares, strict=True)]
    behind = [served[x] if each else served.mean() for x, served in enumerate(below)]
    return float(1 + draft @ (shares + behind))


def control(
    plan: np.ndarray, target: np.ndarray, draft: np.ndarray, own: NextRows, anew: NextRows, score: Score
) -> float:
    """What a plan earns with the pair's own rows behind the tokens, less what it earns on the program's.

    Its mean is 0 for a plan that knows neither of them, and it is about what chance adds to the pair's
    optimum, less what chance adds to the program.
    """
    return efficiency(plan, target, draft, own, score, each=True) - efficiency(
        plan, target, draft, anew, score
    )


class CutProgram:
    """The program of ``best_split`` with the cuts so far, warm from one solution to the next.

    Attributes:
        laws: the columns of ν, [V, M].
        gain: of every column, the negative of its cost.
    """

    def __init__(self, target: np.ndarray, draft: np.ndarray, score: Score) -> None:
        size, count = len(draft), len(score.values)
        self.laws = np.arange(size * count).reshape(size, count)
        self._served = self.laws.size + np.arange(size)
        self._below = self._served + size
        self.gain = np.concatenate([np.zeros(self.laws.size), draft, draft])
        most = np.full(len(self.gain), highspy.kHighsInf)
        most[self._served] = target / draft
        self._solver = highspy.Highs()
        self._solver.setOptionValue("output_flag", False)
        for slope, end in zip(self.gain, most, strict=True):
            self._solver.addCol(-slope, 0, end, 0, np.array([], np.int32), np.array([]))
        for value, mass in enumerate(score.masses):
            self._add(mass, mass, self.laws[:, value], draft)
        for law, served in zip(self.laws, self._served, strict=True):
            self._add(1, 1, law, np.ones(count))
            self._add(-highspy.kHighsInf, 0, np.append(law, served), np.append(-score.values, 1))
        self.cut(0, np.zeros(count), 1)

    def _add(self, lower: float, upper: float, columns: np.ndarray, factors: np.ndarray) -> None:
        self._solver.addRow(lower, upper, len(columns), columns.astype(np.int32), factors)

    def cut(self, constant: float, factors: np.ndarray, share: float) -> None:
        """h_x ≤ constant + factors ν_x + share t_x for every x."""
        for law, served, below in zip(self.laws, self._served, self._below, strict=True):
            columns = np.concatenate([law, [served, below]])
            self._add(-highspy.kHighsInf, constant, columns, np.concatenate([-factors, [-share, 1]]))

    def solve(self) -> np.ndarray:
        """An optimal point; from a basis in which the simplex method loses its way it starts anew."""
        optimal = highspy.HighsModelStatus.kOptimal
        self._solver.run()
        if self._solver.getModelStatus() != optimal:
            self._solver.clearSolver()
            self._solver.run()
        status = self._solver.getModelStatus()
        if status != optimal:
            raise SystemExit(self._solver.modelStatusToString(status))
        return np.array(self._solver.getSolution().col_value)


def best_split(
    target: np.ndarray, draft: np.ndarray, rows: NextRows, score: Score
) -> tuple[float, np.ndarray]:
    """The program of theory.md Statement 5.23, by cuts: an upper end of its value, and a plan within ``GAP``.

    Maximise 1 + Σ_x q_x (t_x + h_x) over laws ν_x with Σ_x q_x ν_x = ν, t_x ≤ min(p_x/q_x, ∫ φ dν_x) and

        h_x ≤ mean_s [ c_s q_s(T_s) + ∫ (φ - c_s)^+ dν_x + t_x p_s(T_s^c) ]     for all c_s and T_s.

    Every such cut holds for every x.  So any number of them bounds the value from above.  Cuts are
    taken half-way between the program's point and the best plan so far.

    Args:
        target, draft: rows at the root, [V].
        rows: S pairs of rows behind a token.
        score: the law ν of φ.
    """
    program = CutProgram(target, draft, score)
    excess = np.maximum(score.values - score.values[:, None], 0)
    plan = np.tile(score.masses, (len(draft), 1))
    value = efficiency(plan, target, draft, rows, score)
    while True:
        point = program.solve()
        if 1 + program.gain @ point <= value + GAP:
            return float(1 + program.gain @ point), plan
        tried = (point[program.laws] + plan) / 2
        shares = np.minimum(target / draft, tried @ score.values)
        reached = 1 + draft @ shares
        for x, law in enumerate(tried):
            least, tokens, level = min_cuts(law, shares[x], rows, score)
            reached += draft[x] * least.mean()
            each = np.arange(len(level))
            program.cut(
                float((score.values[level] * rows.tops[each, tokens]).mean()),
                np.bincount(level, minlength=len(score.values)) / len(level) @ excess,
                float(rows.rest[each, tokens].mean()),
            )
        if reached > value:
            value, plan = reached, tried


if __name__ == "__main__":
    main()
