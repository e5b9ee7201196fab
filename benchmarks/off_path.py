"""What a verifier loses that sees the rows along the drafted paths only, on random families of two pairs.

A family is one random rational pair, every second one with zeros, and a second version of everything below
its first token 0.  With ``--agreement`` every draft row is a mixture with the target's row.  The loss is the
sum of the two optima minus the best sum of one on-path verifier, per pair, in rationals.

Run: ``python benchmarks/off_path.py --families 60``.
"""

from fractions import Fraction

import click
import numpy as np

from spectheory.optima import multi_path_optimum, on_path_optimum
from spectheory.pairs.instances import random_rational
from spectheory.pairs.pair import ModelPair

CELLS = ((2, 2, 2), (2, 2, 3), (2, 2, 4), (2, 3, 2), (2, 3, 3), (3, 2, 2), (3, 2, 3))


@click.command()
@click.option("--families", default=60, help="Random families of every V, L and K.")
@click.option("--seed", default=0)
@click.option(
    "--agreement", default="0", help="The weight of the target's row in every draft row, a fraction."
)
def main(families: int, seed: int, agreement: str) -> None:
    """Print one row per V, L and K."""
    click.echo(
        "| V | L | K | families | with a loss | mean loss | largest loss |\n|---|---|---|---|---|---|---|"
    )
    for size, length, num_drafts in CELLS:
        losses = [
            loss(two_versions([seed, size, length, number], size, length, Fraction(agreement)), num_drafts)
            for number in range(families)
        ]
        mean, largest = float(sum(losses)) / families, float(max(losses))
        shown = f"{families} | {sum(value > 0 for value in losses)} | {mean:.5f} | {largest:.5f}"
        click.echo(f"| {size} | {length} | {num_drafts} | {shown} |")


def loss(pairs: tuple[ModelPair, ModelPair], num_drafts: int) -> Fraction:
    """Per pair, exactly."""
    optima = [multi_path_optimum(pair, num_drafts, max_antichains=10**6).value for pair in pairs]
    lost = (sum(optima) - on_path_optimum(pairs, num_drafts).value) / 2
    if lost < 0:
        raise SystemExit(f"an on-path verifier earns more than the optima: {lost}")
    return lost


def two_versions(seed: list[int], size: int, length: int, agreement: Fraction) -> tuple[ModelPair, ModelPair]:
    """A random pair, and the same with other rows below the first token 0."""
    zeros = 0.3 * (seed[-1] % 2)
    first, other = (
        random_rational([*seed, version], size, length, zero_probability=zeros) for version in (0, 1)
    )

    def spliced(levels: tuple[np.ndarray, ...], others: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        rest = zip(levels[1:], others[1:], strict=True)
        below = [np.concatenate([new[: len(new) // size], old[len(old) // size :]]) for old, new in rest]
        return levels[0], *below

    def mixed(target: tuple[np.ndarray, ...], draft: tuple[np.ndarray, ...]) -> ModelPair:
        rows = [agreement * one + (1 - agreement) * two for one, two in zip(target, draft, strict=False)]
        return ModelPair(target, rows, first.vocab)

    second = spliced(first.target, other.target), spliced(first.draft, other.draft)
    return mixed(first.target, first.draft), mixed(*second)


if __name__ == "__main__":
    main()
