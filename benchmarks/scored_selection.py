"""Scored selection: how many exact laws are lossless, what it earns on random pairs, and rules not kept.

- ``certify``: exact output laws of ``scored_multipath``, of the family's other rules and of ``traversal`` on
  random rational pairs with zeros, ties and equal rows; every one must have total variation 0.
- ``table``: the figure ``frontier`` with 30 pairs per cell and drafts of up to 4 tokens.
- ``rules``: other rules on the same pairs.
- ``pooled``: scored selection, ``Recoupled`` over it and ``Pooled`` beside all others, on other pairs.
- ``costs``: a round of scored selection, and what recoupling adds to it, beside copies of the rows.

``headroom.py`` measures it on language models.

Run: ``PYTHONPATH=. python benchmarks/scored_selection.py certify``.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

import click
import numpy as np
from timing import machine, median_seconds, write

from figures.common.lossless import efficiencies
from figures.frontier import frontier
from spectheory.exact.law import output_law
from spectheory.foundation.arrays import Array
from spectheory.optima import multi_path_interval
from spectheory.optima.bounds import capped_upper_bound
from spectheory.pairs.instances import NAMED, random_float, random_rational
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.algorithms.path_selection.score_couplings import intervals, tilted_cuts
from spectheory.verification.algorithms.path_selection.score_levels import (
    MixedLevels,
    ScoreNode,
    lazy_levels,
    proportional_levels,
)
from spectheory.verification.algorithms.path_selection.scored_multipath import ScoredMultipath
from spectheory.verification.algorithms.pooled import Pooled
from spectheory.verification.algorithms.recoupled import Recoupled
from spectheory.verification.algorithms.recoupling_gain import recoupling_gain

OTHERS = ("block", "spectr", "greedy_multipath", "mixed_multipath", "traversal")
"""Whose gap to the optimum is closed.  With ``otm`` it is smaller, and so is ``closed``."""
LEAST_LOSS = 1e-6
"""Smaller differences are rounding."""
MOST_TUPLES = 1000
"""Of drafts, for verifiers whose block efficiency needs a list of them."""
OF_THIS_PACKAGE = ("conditional_transport", "scored_multipath", "recoupled", "pooled")
SMALL = ((2, 1), (2, 2), (3, 1))
SHAPES = ((2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2))


@click.group()
def main() -> None:
    """Measure scored selection."""


# ------------------------------------------------------------------------------- exact laws


@main.command()
@click.option("--seeds", default=12, help="Random pairs of every shape and number of drafts.")
@click.option("--most-tuples", default=4000, help="Larger enumerations are left out.")
def certify(seeds: int, most_tuples: int) -> None:
    """Count exact laws, and fail if one of them is not lossless."""
    tried = {
        "scored_multipath": ScoredMultipath(),
        "lazy levels": ScoredMultipath(lazy_levels, tilted_cuts),
        "proportional levels": ScoredMultipath(proportional_levels, tilted_cuts),
        "intervals": ScoredMultipath(coupling=intervals),
        "traversal": verifiers["traversal"],
    }
    for name, rule in tried.items():
        laws, lossy = 0, []
        pairs = _pairs(seeds if name == "scored_multipath" else max(1, seeds // 6), most_tuples)
        for where, pair, drafts in itertools.chain(pairs, _small_pairs(35 * seeds)):
            laws += 1
            if output_law(rule, pair, drafts).total_variation != 0:
                lossy.append(where)
        click.echo(f"{name}: {laws} exact laws, {len(lossy)} not lossless {lossy[:3] or ''}")
        if lossy:
            raise SystemExit(1)


def _pairs(seeds: int, most_tuples: int) -> Iterator[tuple[str, ModelPair, int]]:
    for name, drafts in itertools.product(NAMED, (1, 2, 3, 4)):
        yield f"{name} K={drafts}", NAMED[name](1), drafts
    for (size, length), drafts, seed in itertools.product(SHAPES, (2, 3, 4), range(seeds)):
        leaves = size**length
        multisets = np.prod([(leaves + i) / (i + 1) for i in range(drafts)])
        if multisets <= most_tuples:
            pair = random_rational([81, size, length, drafts, seed], size, length, equal_row_probability=0.3)
            yield f"V={size} L={length} K={drafts} seed={seed}", pair, drafts


def _small_pairs(count: int) -> Iterator[tuple[str, ModelPair, int]]:
    """Many pairs that cost little, with zeros of both models."""
    for seed in range(count):
        (size, length), drafts = SMALL[seed % len(SMALL)], 2 + seed % 2
        pair = random_rational([82, seed], size, length, zero_probability=0.3, equal_row_probability=0.2)
        yield f"V={size} L={length} K={drafts} small seed={seed}", pair, drafts


# ------------------------------------------------------------------------------- random pairs


@main.command()
@click.option("--pairs", default=30, help="Random pairs per cell.")
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the table as CSV.")
def table(pairs: int, out: Path | None) -> None:
    """The table of the figure ``frontier`` with more pairs and longer drafts, and its checks."""
    found = frontier(draft_lengths=(2, 3, 4), num_pairs=pairs)
    rows = [found.tables[0].columns, *found.tables[0].rows]
    text = "".join(",".join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows)
    click.echo(text)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    if not found.passed:
        raise SystemExit("\n".join(found.failures))


# ---------------------------------------------------------------------------- rules not kept


@main.command()
@click.option("--pairs", default=30, help="Random pairs per cell.")
@click.option("--draft-length", "lengths", multiple=True, default=(2, 3), type=int)
def rules(pairs: int, lengths: tuple[int, ...]) -> None:
    """Other rules on the pairs of ``table``: the part of what the best of ``OTHERS`` leaves to the optimum.

    The share of the proportional levels; the best of these shares for every pair, which no rule can know;
    and a coupling that is half the default and half adjacent intervals of a ranking.
    """
    shares = (0, Fraction(1, 5), Fraction(3, 10), Fraction(2, 5), Fraction(1, 2), 1)
    every = [ScoredMultipath(MixedLevels(Fraction(share))) for share in shares]
    every.append(ScoredMultipath(coupling=half_intervals))
    shown = [*(f"{float(share):g}" for share in shares), "best share", "half intervals"]
    click.echo(f"| L | K | agreement | {' | '.join(shown)} |\n|{'---|' * (len(shown) + 3)}")
    for length, drafts, agreement in itertools.product(lengths, (2, 3, 4), (0.0, 0.3, 0.6)):
        values = []
        for number in range(pairs):
            pair = random_float([77, number], 3, length, agreement=agreement)
            own = [float(rule.skewed_draft(pair, drafts).block_efficiency(pair)) for rule in every]
            own.insert(-1, max(own[:-1]))
            known = efficiencies(pair, drafts)
            others = [known[name] for name in OTHERS]
            optimum = multi_path_interval(pair, drafts, relative_gap=1e-5).lower
            values.append((optimum, max(others), *own))
        optima, best_others, *earned = np.array(values).T
        closed = [(value - best_others).sum() / (optima - best_others).sum() for value in earned]
        click.echo(f"| {length} | {drafts} | {agreement} | {' | '.join(f'{part:.3f}' for part in closed)} |")


# -------------------------------------------------------------------------------- recoupling


@main.command()
@click.option("--pairs", default=200, help="Random pairs per cell.")
@click.option("--draft-length", "length", default=2)
@click.option("--num-drafts", "numbers", multiple=True, default=(2, 3, 4), type=int)
@click.option("--agreement", "agreements", multiple=True, default=(0.0, 0.3, 0.6, 0.9), type=float)
@click.option("--out", type=click.Path(path_type=Path), help="A CSV file to which the rows are appended.")
def pooled(
    pairs: int, length: int, numbers: tuple[int, ...], agreements: tuple[float, ...], out: Path | None
) -> None:
    """Recoupled and pooled selection beside all other verifiers, the optimum and the bound; V = 3.

    The pairs of a cell are ``random_float([78, n], 3, L, agreement)``, n from 0.  The first columns are means
    in tokens per call.  Then comes, for the verifiers of this package, the part that is closed of what the
    best of the others leaves to the optimum; and the same where ``conditional_transport`` is one of the
    others.  Then come, for recoupled and pooled selection, the smallest gain over scored selection, 0 or more
    but for rounding, and the losses to the others: on how many pairs, the largest, and who earns more most
    often; at last the pairs on which pooled selection earns less than recoupled selection.
    """
    base = verifiers["scored_multipath"]
    joint = {"recoupled": Recoupled(base), "pooled": Pooled(base)}
    for drafts, agreement in itertools.product(numbers, agreements):
        values: list[dict[str, float]] = []
        for number in range(pairs):
            pair = random_float([78, number], 3, length, agreement=agreement)
            earned = {"conditional_transport": np.nan} | efficiencies(pair, drafts, MOST_TUPLES)
            earned |= {name: float(it.block_efficiency(pair, drafts)) for name, it in joint.items()}
            earned["optimum"] = multi_path_interval(pair, drafts, relative_gap=1e-5).lower
            values.append(earned | {"bound": capped_upper_bound(pair, drafts).value})
        row = {"draft_length": length, "num_drafts": drafts, "agreement": agreement, "pairs": pairs}
        row |= _compared(values)
        click.echo(json.dumps(row))
        if out is not None:
            head = "" if out.exists() else ",".join(row) + "\n"
            with out.open("a", encoding="utf-8") as file:
                file.write(head + ",".join(map(str, row.values())) + "\n")


def _compared(values: list[dict[str, float]]) -> dict[str, Any]:
    """A row of ``pooled`` behind its first columns."""
    columns = {name: np.array([row[name] for row in values]) for name in values[0]}
    outside = (*OF_THIS_PACKAGE, "optimum", "bound")
    others = {name: part for name, part in columns.items() if name not in outside}
    best = np.max(list(others.values()), axis=0)
    names = [max(others, key=lambda name: others[name][number]) for number in range(len(values))]
    left = float((columns["optimum"] - best).sum())
    more = np.maximum(best, columns["conditional_transport"])  # not a number where it has none
    row: dict[str, Any] = {name: round(float(part.mean()), 4) for name, part in columns.items()}
    for name in OF_THIS_PACKAGE:
        closed = float((columns[name] - best).sum()) / left
        row[f"{name}_closed"] = round(closed, 4) if left > 1e-3 * len(values) else ""
    for name in OF_THIS_PACKAGE[1:]:
        closed = float((columns[name] - more).sum() / (columns["optimum"] - more).sum())
        row[f"{name}_closed_beside_conditional"] = round(closed, 4)
    for name in OF_THIS_PACKAGE[2:]:
        losses = best - columns[name]
        who = Counter(other for other, loss in zip(names, losses, strict=True) if loss > LEAST_LOSS)
        row |= {
            f"{name}_gain": f"{(columns[name] - columns[OF_THIS_PACKAGE[1]]).min():.0e}",
            f"{name}_loses": who.total(),
            f"{name}_largest_loss": round(float(losses.max()), 4),
            f"{name}_loses_to": who.most_common(1)[0][0] if who else "",
        }
    behind = columns["recoupled"] - columns["pooled"]
    row["pooled_behind_recoupled"] = int((behind > LEAST_LOSS).sum())
    row["pooled_largest_behind"] = round(float(behind.max()), 4)
    row["conditional_ahead_of_pooled"] = int(
        (columns["conditional_transport"] - columns["pooled"] > LEAST_LOSS).sum()
    )
    return row


@main.command()
@click.option("--vocab", "sizes", multiple=True, default=(2_048, 32_000), type=int)
@click.option("--num-drafts", "numbers", multiple=True, default=(2, 4), type=int)
@click.option("--draft-length", "length", default=4)
@click.option("--repeats", default=15)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def costs(
    sizes: tuple[int, ...], numbers: tuple[int, ...], length: int, repeats: int, out: Path | None
) -> None:
    """CPU milliseconds of one tuple of drafts on Dirichlet rows in float64, and factors to a copy of them.

    The paths differ from the first token on.
    """
    rule, rows = verifiers["scored_multipath"], []
    for size, drafts in itertools.product(sizes, numbers):
        rng = np.random.default_rng([79, size, drafts])
        targets, draft_rows = (
            rng.dirichlet(np.full(size, 0.1), size=(drafts, count)) for count in (length + 1, length)
        )
        targets[:, 0], draft_rows[:, 0] = (
            targets[0, 0],
            draft_rows[0, 0],
        )  # behind nothing all paths are equal
        paths = draft_rows.argsort(-1)[..., -1]
        paths[:, 0] = draft_rows[0, 0].argsort()[-drafts:]  # and from the first token on different
        given, room = (paths, targets, draft_rows), (np.empty_like(targets), np.empty_like(draft_rows))
        seconds = median_seconds(
            {
                "copy": lambda to=room, of=given: [np.copyto(*both) for both in zip(to, of[1:], strict=True)],
                "scored": lambda of=given: rule.outcome(*(part[None] for part in of)).expected_tokens(),
                "recoupling": lambda of=given: recoupling_gain(rule, *of),
            },
            repeats, process_time,
        )  # fmt: skip
        row: dict[str, Any] = {"vocab_size": size, "num_drafts": drafts, "draft_length": length}
        row |= {f"{name}_ms": round(1e3 * value, 3) for name, value in seconds.items()}
        row |= {f"{name}_copies": round(seconds[name] / seconds["copy"]) for name in ("scored", "recoupling")}
        rows.append(row)
        click.echo(json.dumps(row))
    if out is not None:
        write(out, {"machine": machine(), "repeats": repeats, "rows": rows})


def half_intervals(node: ScoreNode, levels: Array) -> Array:
    """The mean of two plans; it splits the law of the score, as both do."""
    return (tilted_cuts(node, levels) + intervals(node, levels)) / 2


if __name__ == "__main__":
    main()
