"""Lossy relaxations of one path against the front of all verifiers, exactly, on random pairs.

A relaxation is token verification that also accepts a token for sure where it meets a criterion (typical:
p(x) is at least a share of exp(-entropy); margin: at least a share of the largest; top-k: among the k
likeliest), or block verification against a mixture w p + (1 - w) q (ensemble).  Of each it prints, as means
over the pairs: total variation and KL divergence of the completed output from the target, those of the first
token, the block efficiency, and the largest that any verifier reaches at the same total variation (theory.md
Statement 5.22).

Run: ``python benchmarks/lossy.py --pairs 20``.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import count, islice
from typing import Any

import click
import numpy as np

from spectheory import ModelPair, OutputLaw, from_loop, output_law
from spectheory.auditing.subjects.relaxations import Relaxation, mixture
from spectheory.optima import lossy_optimum
from spectheory.pairs.instances import random_rational

Criterion = Callable[[np.ndarray, int], bool]


def typical(share: float) -> Criterion:
    """p(x) ≥ share · exp(-H(p))."""

    def accepts(row: np.ndarray, token: int) -> bool:
        entropy = -sum(float(p) * math.log(p) for p in row if p > 0)
        return float(row[token]) >= share * math.exp(-entropy)

    return accepts


def margin(share: str) -> Criterion:
    """p(x) ≥ share · max p."""
    return lambda row, token: bool(row[token] >= Fraction(share) * max(row))


def top(size: int) -> Criterion:
    """x is among the likeliest tokens of p."""
    return lambda row, token: int((row > row[token]).sum()) < size


def relaxed(criterion: Criterion) -> Any:
    """Token verification that also accepts what meets the criterion."""

    def verify(paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray) -> Any:
        stops, reach = target_rows[..., 0] * 0, target_rows[0, 0, 0] * 0 + 1
        rows = target_rows.copy()
        for depth, token in enumerate(paths[0]):
            p, q = target_rows[0, depth], draft_rows[0, depth]
            accept = 1 if criterion(p, int(token)) else min(1, p[token] / q[token])
            stops[0, depth] = reach * (1 - accept)
            residual = np.maximum(p - q, 0 * p)
            if residual.sum() > 0:
                rows[0, depth] = residual / residual.sum()
            reach = reach * accept
        stops[0, -1] = reach
        return stops, rows

    return from_loop(verify)


def relaxations() -> dict[str, Callable[[ModelPair], OutputLaw]]:
    """Output laws by name; what is completed is completed with the target itself."""
    found: dict[str, Callable[[ModelPair], OutputLaw]] = {"none: block": partial(output_law, "block")}
    criteria = {f"typical {share}": typical(share) for share in (0.9, 0.6, 0.3)}
    criteria |= {f"margin {share}": margin(share) for share in ("9/10", "1/2", "1/5")}
    criteria |= {f"top-{size}": top(size) for size in (1, 2)}
    found |= {name: partial(output_law, relaxed(criterion)) for name, criterion in criteria.items()}
    found |= {f"ensemble {w}": partial(ensemble, mixture(Fraction(w))) for w in ("9/10", "3/4", "1/2")}
    return found


def ensemble(mixture: Relaxation, pair: ModelPair) -> OutputLaw:
    """Block verification against the mixture."""
    return replace(output_law("block", mixture.stated(pair)), pair=pair)


def divergence(law: np.ndarray, target: np.ndarray) -> float:
    """KL(law || target) in nats; the target is positive."""
    return sum(float(c) * math.log(c / p) for c, p in zip(law, target, strict=True) if c > 0)


def distances(law: np.ndarray, target: np.ndarray) -> list[float]:
    """[total variation, KL]."""
    return [float(abs(law - target).sum() / 2), divergence(law, target)]


def measured(law: OutputLaw, pair: ModelPair) -> list[float]:
    """Block and first token: total variation and KL; block efficiency, and the front's at that distance."""
    completed = law.completed_law
    first = completed.reshape(pair.vocab_size, -1).sum(axis=1)
    block = distances(completed, pair.target_path_probs(pair.draft_length + 1))
    best = lossy_optimum(pair, law.total_variation).value
    if law.block_efficiency > best:
        raise SystemExit(f"a verifier passes the front: {law.block_efficiency} > {best}")
    return [*block, *distances(first, pair.target[0][0]), float(law.block_efficiency), float(best)]


@click.command()
@click.option("--pairs", default=20, help="Random rational pairs without zeros, V = 3, L = 2, one path.")
def main(pairs: int) -> None:
    """Print one row per relaxation."""
    click.echo("| relaxation | block TV | block KL | token TV | token KL | tokens per call | front |")
    click.echo("|" + 7 * "---|")
    every = (random_rational([461, number], 3, 2) for number in count())
    drawn = list(islice((pair for pair in every if all((rows > 0).all() for rows in pair.target)), pairs))
    for name, law_of in relaxations().items():
        means = np.mean([measured(law_of(pair), pair) for pair in drawn], axis=0)
        click.echo(f"| {name} | " + " | ".join(f"{mean:.4f}" for mean in means) + " |")


if __name__ == "__main__":
    main()
