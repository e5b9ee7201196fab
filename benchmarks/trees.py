"""Verifiers of prefix trees beside the optimum, on random pairs with V = 3 and L = 2.

The pairs of a cell are ``random_float([78, n], 3, 2, agreement)``, n from 0.  The columns are means in tokens
per call, and on how many pairs ``conditional_transport`` earns less than the best of the others.

Run: ``OMP_NUM_THREADS=1 python benchmarks/trees.py``.
"""

from itertools import product

import click
import numpy as np

from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.drafts import PrefixTree
from spectheory.pairs.instances import random_float

OTHERS = ("spectr", "multi_round", "otm", "traversal")
NAMES = (*OTHERS, "conditional_transport")
TREES = ((1, 2), (1, 3), (2, 1), (2, 2), (3, 1))


@click.command()
@click.option("--pairs", default=30, help="Random pairs per cell.")
@click.option("--agreement", "agreements", multiple=True, default=(0.0, 0.3, 0.6), type=float)
def main(pairs: int, agreements: tuple[float, ...]) -> None:
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


if __name__ == "__main__":
    main()
