"""The command ``plan`` held against ``simulate`` on the bundled models, in three settings fixed beforehand.

For every setting the plan is made.  Then every candidate decodes texts again, with other random numbers,
behind the prompts of the finalists.  Two claims are checked, and the exit status is 1 if one fails:

- the tokens per call of the chosen plan, found again, lie within its stated interval;
- the chosen plan earns at least 98 % of the best of the grid per unit of cost.

Run: ``OMP_NUM_THREADS=1 python benchmarks/planning.py --out benchmarks/results/mine.json``.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import torch
from timing import machine

from spectheory.models import LanguageModelPair, SamplingOptions, bundled_prompts
from spectheory.simulation import Budget, plan, simulate
from spectheory.simulation.planning import candidates_of_models

SETTINGS = {
    "few rows, each dear": (Budget(4, cost_ratio=0.1, row_cost=0.05, draft_length=4), 1.0),
    "eight rows at a low temperature": (Budget(8, cost_ratio=0.05, row_cost=0.01, draft_length=6), 0.4),
    "twelve rows, nearly free": (Budget(12, cost_ratio=0.02, row_cost=0.002, draft_length=6), 1.0),
}
VERIFIERS = ("block", "scored_multipath", "multi_round_without_replacement", "naive_sampling")


@click.command()
@click.option("--prompts", default=64, help="How many of the bundled prompts.")
@click.option("--tokens", default=24, help="Of every text.")
@click.option("--seed", default=11)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def main(prompts: int, tokens: int, seed: int, out: Path | None) -> None:
    """Print one JSON object per setting."""
    torch.set_num_threads(1)
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    texts, rows = bundled_prompts()[:prompts], []
    for name, (budget, temperature) in SETTINGS.items():
        asked: dict[str, Any] = {
            "max_new_tokens": tokens, "options": SamplingOptions(temperature=temperature),
        }  # fmt: skip
        found = plan(pair, texts, budget, VERIFIERS, seed=seed, **asked)
        grid = []
        for candidate in candidates_of_models(budget, VERIFIERS):
            again = simulate(
                pair, texts[1::2], [candidate.verifier], drafts=candidate.process,
                draft_length=candidate.draft_length, seed=seed + 100, **asked,
            ).estimates[0]  # fmt: skip
            grid.append(candidate.choice(budget, again.block_efficiency, again.interval))
        grid.sort(key=lambda choice: -choice.speed_up)
        rows.append(_row(name, temperature, found, grid))
        click.echo(json.dumps(rows[-1] | {"grid": len(grid)}))
    if out is not None:
        settings = {"prompts": len(texts), "tokens": tokens, "seed": seed, "verifiers": VERIFIERS}
        document = {"settings": settings, "rows": rows, "machine": machine()}
        out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if all(row["within_interval"] and row["of_the_best"] >= 0.98 for row in rows) else 1)


def _row(name: str, temperature: float, found: Any, grid: list[Any]) -> dict[str, Any]:
    best = found.best
    (same,) = [entry for entry in grid if (entry.verifier, entry.drafts) == (best.verifier, best.drafts)
               and entry.draft_length == best.draft_length]  # fmt: skip
    low, high = best.interval
    return {
        "setting": name,
        "budget": found.budget._asdict(),
        "temperature": temperature,
        "chosen": asdict(best),
        "found_again": asdict(same),
        "within_interval": low <= same.block_efficiency <= high,
        "of_the_best": same.speed_up / grid[0].speed_up,
        "grid": [
            [entry.verifier, entry.drafts, entry.draft_length, round(entry.block_efficiency, 4),
             round(entry.speed_up, 4)]
            for entry in grid
        ],
    }  # fmt: skip


if __name__ == "__main__":
    main()
