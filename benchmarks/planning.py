"""The command ``plan`` held against ``simulate`` on the bundled models, in three settings fixed beforehand.

For every setting the plan is made.  Then every candidate decodes texts again, with other random numbers,
behind the prompts of the finalists: the grid.  The largest of many estimates is too large by chance, so the
best of the grid and the chosen plan decode once more, several texts behind every prompt.  Two claims are
checked on these texts, and the exit status is 1 if one fails:

- the tokens per call of the chosen plan lie within its stated interval;
- the chosen plan earns at least 98 % of the best of the grid per unit of cost.

Run: ``OMP_NUM_THREADS=1 python benchmarks/planning.py --out benchmarks/results/mine.json``.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import click
import torch
from timing import machine

from spectheory.models import LanguageModelPair, SamplingOptions, bundled_prompts
from spectheory.simulation import Budget, plan, simulate
from spectheory.simulation.planning import Choice, candidates_of_models

SETTINGS = {
    "few rows, each dear": (Budget(4, cost_ratio=0.1, row_cost=0.05, draft_length=4), 1.0),
    "eight rows at a low temperature": (Budget(8, cost_ratio=0.05, row_cost=0.01, draft_length=6), 0.4),
    "twelve rows, nearly free": (Budget(12, cost_ratio=0.02, row_cost=0.002, draft_length=6), 1.0),
}
BEST = 3
"""How many of the grid decode once more."""
VERIFIERS = ("block", "scored_multipath", "multi_round_without_replacement", "naive_sampling")


@click.command()
@click.option("--prompts", default=64, help="How many of the bundled prompts.")
@click.option("--tokens", default=24, help="Of every text.")
@click.option("--seed", default=11)
@click.option("--samples", default=4, help="Texts per prompt of the best of the grid and of the chosen plan.")
@click.option(
    "--grids", type=click.Path(path_type=Path, exists=True), help="Go on from a file with the grids."
)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def main(prompts: int, tokens: int, seed: int, samples: int, grids: Path | None, out: Path | None) -> None:
    """Print one JSON object per setting."""
    torch.set_num_threads(1)
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    texts = bundled_prompts()[:prompts]
    known = [] if grids is None else json.loads(grids.read_text(encoding="utf-8"))["rows"]
    rows = []
    for number, (name, (budget, temperature)) in enumerate(SETTINGS.items()):
        asked = {"max_new_tokens": tokens, "options": SamplingOptions(temperature=temperature)}
        candidates = {
            _named(entry.choice(budget, 1.0)): entry for entry in candidates_of_models(budget, VERIFIERS)
        }

        def decode(named: Key, seed: int, **more: Any) -> Choice:
            candidate = candidates[named]  # noqa: B023
            found = simulate(
                pair, texts[1::2], [candidate.verifier], drafts=candidate.process,
                draft_length=candidate.draft_length, seed=seed, **asked, **more,  # noqa: B023
            ).estimates[0]  # fmt: skip
            return candidate.choice(budget, found.block_efficiency, found.interval)  # noqa: B023

        if known:
            chosen = Choice(**{**known[number]["chosen"]})
            grid = [Key(*entry[:3]) for entry in known[number]["grid"]]
            estimates = known[number]["grid"]
        else:
            chosen = plan(pair, texts, budget, VERIFIERS, seed=seed, **asked).best
            found = sorted((decode(key, seed + 100) for key in candidates), key=lambda it: -it.speed_up)
            grid = [_named(entry) for entry in found]
            estimates = [[*_named(it), round(it.block_efficiency, 4), round(it.speed_up, 4)] for it in found]
        again = [
            decode(key, seed + 200, samples=samples) for key in dict.fromkeys([_named(chosen), *grid[:BEST]])
        ]
        best = max(again, key=lambda entry: entry.speed_up)
        low, high = chosen.interval or (0.0, 0.0)
        rows.append({
            "setting": name, "budget": budget._asdict(), "temperature": temperature, "chosen": asdict(chosen),
            "again": [asdict(entry) for entry in again],
            "within_interval": low <= again[0].block_efficiency <= high,
            "of_the_best": again[0].speed_up / best.speed_up, "grid": estimates,
        })  # fmt: skip
        click.echo(json.dumps(rows[-1]))
    if out is not None:
        settings = {"prompts": len(texts), "tokens": tokens, "seed": seed, "samples": samples}
        document = {"settings": settings | {"verifiers": VERIFIERS}, "rows": rows, "machine": machine()}
        out.write_text(json.dumps(document, ensure_ascii=False) + "\n", encoding="utf-8")
    sys.exit(0 if all(row["within_interval"] and row["of_the_best"] >= 0.98 for row in rows) else 1)


class Key(NamedTuple):
    """What tells a candidate from the others."""

    verifier: str
    drafts: str
    draft_length: int


def _named(choice: Choice) -> Key:
    assert choice.verifier is not None
    return Key(choice.verifier, choice.drafts, choice.draft_length)


if __name__ == "__main__":
    main()
