"""Verifiers of prefix trees beside the optimum, and optima of trees of one size; random pairs, V = 3.

``verifiers``: L = 2.  The pairs of a cell are ``random_float([78, n], 3, 2, agreement)``, n from 0.  The
columns are means in tokens per call, and on how many pairs ``conditional_transport`` earns less than the best
of the others.

``shapes``: every tree with a width per depth, at most four tokens deep, on which a call scores six drafted
tokens.  The pairs are ``random_rational([79, n], 3, 4)``, cut at the depth of the tree; the draft rows are
mixed with the target's.  The columns are mean optima, exact for every pair, with independent draws, without
replacement, and of the likeliest tokens.

Run: ``OMP_NUM_THREADS=1 python benchmarks/trees.py verifiers``.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import click
import numpy as np

from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.drafts import PrefixTree, TopTree, WithoutReplacement
from spectheory.pairs.instances import random_float, random_rational
from spectheory.pairs.pair import ModelPair

OTHERS = ("spectr", "multi_round", "otm", "traversal")
NAMES = (*OTHERS, "conditional_transport")
DEEPEST = 4
TREES = ((1, 2), (1, 3), (2, 1), (2, 2), (3, 1))


@click.group()
def main() -> None:
    """Print a table."""


@main.command("verifiers")
@click.option("--pairs", default=30, help="Random pairs per cell.")
@click.option("--agreement", "agreements", multiple=True, default=(0.0, 0.3, 0.6), type=float)
def of_verifiers(pairs: int, agreements: tuple[float, ...]) -> None:
    """Print a row per tree and agreement."""
    click.echo(f"| tree | agreement | {' | '.join(f'`{name}`' for name in NAMES)} | optimum | below |")
    click.echo("|---" * (len(NAMES) + 4) + "|")
    for widths, agreement in product(TREES, agreements):
        rows, drafts = [], PrefixTree(widths)
        for number in range(pairs):
            pair = random_float([78, number], 3, 2, agreement=agreement)
            values = [float(output_law(name, pair, drafts).block_efficiency) for name in NAMES]
            rows.append([*values, float(optimum(pair, drafts).value)])
        columns = np.array(rows)
        below = int((columns[:, -2] < columns[:, :-2].max(axis=1) - 1e-9).sum())
        means = " | ".join(f"{mean:.3f}" for mean in columns.mean(axis=0))
        click.echo(f"| {widths} | {agreement} | {means} | {below} |")


@main.command()
@click.option("--pairs", default=12, help="Random pairs per cell.")
@click.option("--agreement", "agreements", multiple=True, default=("0", "1/2"), type=Fraction)
@click.option("--rows", default=6, help="Drafted tokens that a call scores.")
def shapes(pairs: int, agreements: tuple[Fraction, ...], rows: int) -> None:
    """Print a row per tree and agreement."""
    click.echo("| tree | agreement | independent | without replacement | likeliest |\n|---|---|---|---|---|")
    for agreement in agreements:
        found = [mixed(random_rational([79, number], 3, DEEPEST), agreement) for number in range(pairs)]
        for widths in trees_of(rows):
            cut = [pair.truncate(len(widths)) for pair in found]
            means = []
            for kind in (PrefixTree, WithoutReplacement, TopTree):
                values = [float(optimum(pair, kind(widths)).value) for pair in cut if kind(widths).fits(pair)]
                means.append(f"{np.mean(values):.3f}" if len(values) == pairs else "")
            click.echo(f"| {widths} | {float(agreement):g} | {' | '.join(means)} |")


def mixed(pair: ModelPair, agreement: Fraction) -> ModelPair:
    """The pair with draft rows that are partly the target's, and positive."""
    even = Fraction(1, pair.vocab_size)
    draft = [
        agreement * target + (1 - agreement) * (even + row) / 2
        for target, row in zip(pair.target[:-1], pair.draft, strict=True)
    ]
    return ModelPair(pair.target, tuple(draft), pair.vocab)


def trees_of(rows: int, nodes: int = 1, depth: int = 0) -> Iterator[tuple[int, ...]]:
    """All widths with this many drafted tokens below ``nodes`` nodes."""
    if rows == 0:
        yield ()
    elif depth < DEEPEST:
        for width in range(1, rows // nodes + 1):
            for below in trees_of(rows - nodes * width, nodes * width, depth + 1):
                yield width, *below


if __name__ == "__main__":
    main()
