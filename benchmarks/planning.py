"""The command ``plan`` held against ``simulate`` on the bundled models, in three settings fixed beforehand.

``restricted``: the bundled models on three tokens behind three prompts.  The plan of the enumerated pair is
exact.  ``simulate`` decodes with the models themselves, drafts and verifier of every choice of the plan.  Two
claims are checked: the exact tokens per call lie within the interval of ``simulate``, which all of them do
with the stated confidence together; and the chosen plan earns at least 98 % of the best of the grid.

``texts``: whole texts at full vocabulary.  For every setting the plan is made.  Then every candidate decodes
texts again, with other random numbers, behind the prompts of the finalists: the grid.  The largest of many
estimates is too large by chance, so the best of the grid and the chosen plan decode once more, several texts
behind every prompt.  On these texts the tokens per call of the chosen plan are to lie within its stated
interval, and it is to earn at least 98 % of the best of the grid per unit of cost.

The exit status is 1 if a claim fails.  Confidence trees are not drafted from few tokens, and left out there.

Run: ``OMP_NUM_THREADS=1 python benchmarks/planning.py restricted --out benchmarks/results/mine.json``.
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import click
import torch
from timing import machine

from spectheory.models import LanguageModelPair, SamplingOptions, bundled_prompts, prefill, restrict
from spectheory.models.drafting import most_likely_at_prompts
from spectheory.pairs.drafts import (
    ConfidenceTree,
    DraftProcess,
    Iid,
    PrefixTree,
    ShapedTree,
    WithoutReplacement,
)
from spectheory.simulation import Budget, plan, plan_pair, simulate
from spectheory.simulation.planning import Choice, candidates_of_models

SETTINGS = {
    "few rows, each dear": (Budget(4, cost_ratio=0.1, row_cost=0.05, draft_length=4), 1.0),
    "eight rows at a low temperature": (Budget(8, cost_ratio=0.05, row_cost=0.01, draft_length=6), 0.4),
    "twelve rows, nearly free": (Budget(12, cost_ratio=0.02, row_cost=0.002, draft_length=6), 1.0),
}
RESTRICTED = {
    0: Budget(4, cost_ratio=0.05, row_cost=0.02, draft_length=2),
    21: Budget(6, cost_ratio=0.1, row_cost=0.01, draft_length=3),
    42: Budget(6, cost_ratio=0.02, row_cost=0.05, draft_length=3),
}
"""The number of the prompt and the budget."""
ROUNDING = 1e-6
"""Rows in float32 sum to 1 within this."""
GRID = 100
"""The most choices of a plan that are simulated."""
BEST = 3
"""How many of the grid decode once more."""
VERIFIERS = ("block", "scored_multipath", "multi_round_without_replacement", "naive_sampling")


@click.group()
def main() -> None:
    """Hold plans against simulations."""


@main.command()
@click.option("--draws", default=640, help="Of every choice, a multiple of 16.")
@click.option("--confidence", default=0.95, help="Of all intervals of a setting together.")
@click.option("--seed", default=11)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def restricted(draws: int, confidence: float, seed: int, out: Path | None) -> None:
    """Print one JSON object per setting."""
    torch.set_num_threads(1)
    models, texts, rows = LanguageModelPair.load("bundled", "bundled", device="cpu"), bundled_prompts(), []
    for number, budget in RESTRICTED.items():
        ids = models.encode(texts[number])
        tokens = most_likely_at_prompts(prefill(models, [ids]), 3)
        pair = restrict(models, ids, tokens, budget.draft_length)
        found, grid = plan_pair(pair, budget, VERIFIERS, most=1_000), []
        choices = [entry for entry in found.choices if "confidence" not in entry.drafts][:GRID]
        for choice in choices:
            process = process_of_text(choice.drafts)
            again = simulate(
                models, [ids] * 16, [choice.verifier], drafts=process, draft_length=choice.draft_length,
                samples=draws // 16, seed=seed, restriction=tokens,
                confidence=1 - (1 - confidence) / len(choices),
            ).estimates[0]  # fmt: skip
            grid.append((choice, again))
        earned = [
            choice.speed_up * again.block_efficiency / choice.block_efficiency for choice, again in grid
        ]
        within = [
            again.interval[0] - ROUNDING <= choice.block_efficiency <= again.interval[1] + ROUNDING
            for choice, again in grid
        ]
        rows.append({
            "prompt": number, "budget": budget._asdict(), "tried": found.tried,
            "within_interval": sum(within), "of": len(grid), "of_the_best": earned[0] / max(earned),
            "grid": [
                [choice.verifier, choice.drafts, choice.draft_length, float(choice.block_efficiency),
                 again.block_efficiency, *again.interval, choice.speed_up]
                for choice, again in grid
            ],
        })  # fmt: skip
        click.echo(json.dumps(rows[-1]))
    _write(out, {"draws": draws, "confidence": confidence, "seed": seed}, rows)
    sys.exit(
        0 if all(row["within_interval"] == row["of"] and row["of_the_best"] >= 0.98 for row in rows) else 1
    )


@main.command()
@click.option("--prompts", default=64, help="How many of the bundled prompts.")
@click.option("--tokens", default=24, help="Of every text.")
@click.option("--seed", default=11)
@click.option("--samples", default=4, help="Texts per prompt of the best of the grid and of the chosen plan.")
@click.option(
    "--grids", type=click.Path(path_type=Path, exists=True), help="Go on from a file with the grids."
)
@click.option("--out", type=click.Path(path_type=Path), help="Where to write the numbers as JSON.")
def texts(prompts: int, tokens: int, seed: int, samples: int, grids: Path | None, out: Path | None) -> None:
    """Print one JSON object per setting."""
    torch.set_num_threads(1)
    pair = LanguageModelPair.load("bundled", "bundled", device="cpu")
    held = bundled_prompts()[:prompts]
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
                pair, held[1::2], [candidate.verifier], drafts=candidate.process,
                draft_length=candidate.draft_length, seed=seed, **asked, **more,  # noqa: B023
            ).estimates[0]  # fmt: skip
            return candidate.choice(budget, found.block_efficiency, found.interval)  # noqa: B023

        if known:
            chosen = Choice(**{**known[number]["chosen"]})
            grid = [Key(*entry[:3]) for entry in known[number]["grid"]]
            estimates = known[number]["grid"]
        else:
            chosen = plan(pair, held, budget, VERIFIERS, seed=seed, **asked).best
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
    _write(out, {"prompts": len(held), "tokens": tokens, "seed": seed, "samples": samples}, rows)
    sys.exit(0 if all(row["within_interval"] and row["of_the_best"] >= 0.98 for row in rows) else 1)


def _write(out: Path | None, settings: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    if out is not None:
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        about = json.dumps({"settings": settings | {"verifiers": VERIFIERS}, "machine": machine()})
        out.write_text(f'{about[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def process_of_text(text: str) -> DraftProcess:
    """The process that ``Choice.drafts`` names."""
    name, _, numbers = text.partition(":")
    shape = tuple(map(int, numbers.split(",")))
    kinds = (Iid, PrefixTree, WithoutReplacement, ShapedTree, ConfidenceTree)
    kind: Any = next(kind for kind in kinds if kind.name == name)
    return kind(*shape) if kind in (Iid, ConfidenceTree) else kind(shape)


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
