"""An optimal plan of one position at full vocabulary: how long it takes to find and to use.

Dirichlet rows of concentration 0.05, the draft's mixed with the target's by the agreement, in float64.
Before a time is printed the acceptance of the plan is compared with the min cut, and every law with 1.
Times are CPU seconds of one process, medians over the repeats.

Run: ``python benchmarks/one_position_plan.py``.
"""

from statistics import median
from time import process_time

import click
import numpy as np

from spectheory.optima import optimal_acceptance, optimal_rankings


@click.command()
@click.option("--vocab-size", default=32_000)
@click.option("--num-drafts", "drafts", multiple=True, default=(2, 4, 8, 16), type=int)
@click.option("--agreement", default=0.7)
@click.option("--repeats", default=5)
def main(vocab_size: int, drafts: tuple[int, ...], agreement: float, repeats: int) -> None:
    """Print one row per number of drafts."""
    click.echo("| K | α_K | cut times | plan [s] | law given the drafts [ms] |\n|---|---|---|---|---|")
    for num_drafts in drafts:
        plans, laws = [], []
        for seed in range(repeats):
            rng = np.random.default_rng([vocab_size, seed])
            target, other = rng.dirichlet(np.full(vocab_size, 0.05), size=2)
            draft = agreement * target + (1 - agreement) * other
            draft /= draft.sum()
            start = process_time()
            plan = optimal_rankings(target, draft, num_drafts)
            plans.append(process_time() - start)
            best = optimal_acceptance(target, draft, num_drafts).value
            if abs(plan.acceptance - best) > 1e-12:
                raise SystemExit(f"the plan accepts with {plan.acceptance}, the min cut says {best}")
            drawn = rng.choice(vocab_size, num_drafts, p=draft).tolist()
            start = process_time()
            law = plan.law_given(drawn)
            laws.append(process_time() - start)
            if abs(law.sum() - 1) > 1e-12 or (law < 0).any():
                raise SystemExit(f"no law given {drawn}")
        found = f"{plan.acceptance:.4f} | {len(set(plan.cut_times.tolist()))}"
        click.echo(f"| {num_drafts} | {found} | {median(plans):.2f} | {1e3 * median(laws):.1f} |")


if __name__ == "__main__":
    main()
