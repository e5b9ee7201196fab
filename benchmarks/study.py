"""The study of ``spectheory study`` on SmolLM2, with the costs of calls here: the numbers of ``equal_rows``.

48 prompts, 16 of prose, code and chat each; texts of 64 tokens, judged at every 32nd; three draft models,
four budgets, two temperatures.  It takes about an hour and a half of CPU on an AMD EPYC.

Run: ``spectheory models fetch smollm2`` and ``OMP_NUM_THREADS=1 python benchmarks/study.py CHECKPOINT``.
The same command goes on from the checkpoint.
"""

from pathlib import Path
from typing import Any

import click
from timing import machine

from spectheory.paper import read_study_prompts, study
from spectheory.paper.equal_rows import TOKEN
from spectheory.paper.measured import Measurement
from spectheory.paper.study_results import EVERYWHERE, best_verifiers

DRAFTS = ("smollm2-draft", "target:last-4", "prompt:ngram-3")
SETTINGS: dict[str, Any] = {"first": 16, "every": 32}
COLUMNS = (
    "domain", "temperature", "draft", "drafts", "verifier", "nodes", "block_efficiency", "low", "high",
    "gain", "gain_low", "gain_high", "lead", "lead_low", "lead_high", "contexts",
    "ceiling", "missed", "missed_low", "missed_high",
    "cost_ratio", "row_cost", "speed_up", "acceptance",
)  # fmt: skip


@click.command()
@click.argument("checkpoint", type=click.Path(path_type=Path))
@click.option("--jobs", default=1)
def main(checkpoint: Path, jobs: int) -> None:
    """Print the tables, and write the measurement; by domain it has the best verifiers only."""
    found = study(
        "smollm2", DRAFTS, read_study_prompts(), checkpoint=checkpoint, jobs=jobs, device="cpu",
        measure_costs=True, **SETTINGS,
    )  # fmt: skip
    for table in found.tables():
        click.echo(table)
    best = best_verifiers([row for row in found.rows() if row["domain"] == EVERYWHERE])
    rows = [
        tuple(_rounded(row[name]) for name in COLUMNS)
        for row in found.rows()
        if row["domain"] == EVERYWHERE or row["verifier"] in (TOKEN, best.get((row["draft"], row["drafts"])))
    ]
    command = "OMP_NUM_THREADS=1 python benchmarks/study.py CHECKPOINT"
    Measurement(command, f"{found.headline()}, {machine()['processor']}", COLUMNS, rows).write("study")


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return " ".join(f"{number:.4f}" for number in value)
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
