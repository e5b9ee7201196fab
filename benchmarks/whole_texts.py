"""Tokens per call of the target over whole texts of the bundled pair, the analogue of greedy2026 Table 1.

Verifiers by number of drafts, each with a 95 % interval clustered by prompt, Rao-Blackwell and counted, and
the ratio of their variances.  ``spectheory simulate --tokens 64 --batch-size 32`` prints the same estimates.

    PYTHONPATH=. python benchmarks/whole_texts.py

With ``--measured FILE`` nothing is computed: what ``spectheory simulate`` measured on SmolLM2 goes from a
file of results/ into ``figures/measurements``, as data of the figure ``whole_texts``.
"""

import json
import time
from pathlib import Path
from typing import Any

import click
from timing import write

from figures.common.measured import Measurement
from spectheory.models import bundled_prompts
from spectheory.models.language_model import UnloadedPair
from spectheory.simulation import simulate

TOKENS, DRAFT_LENGTH, BATCH_SIZE = 64, 8, 32
VERIFIERS, NUM_DRAFTS = ["token", "block", "spectr", "greedy_multipath"], [1, 2, 3, 4]


@click.command()
@click.option("--measured", type=click.Path(exists=True, path_type=Path), help="A file with SmolLM2's texts.")
def main(measured: Path | None) -> None:
    """Print a line per verifier and K and write them to results/."""
    if measured is not None:
        on_smollm2(json.loads(measured.read_text(encoding="utf-8"))).write("smollm2_whole_texts")
        return
    start, rows = time.process_time(), []
    simulation = simulate(
        UnloadedPair.find("bundled", "bundled", device="cpu"), bundled_prompts(), VERIFIERS,
        drafts=NUM_DRAFTS, draft_length=DRAFT_LENGTH, max_new_tokens=TOKENS, batch_size=BATCH_SIZE,
        jobs=1,
    )  # fmt: skip
    seconds = time.process_time() - start
    for found in simulation.estimates:
        ratio = (found.counted_standard_error / found.standard_error) ** 2
        rows.append(
            {
                "verifier": found.verifier,
                "num_drafts": found.num_drafts,
                "block_efficiency": found.block_efficiency,
                "interval": found.interval,
                "counted": found.counted,
                "counted_interval": found.counted_interval,
                "variance_ratio": ratio,
                "calls": found.samples,
            }
        )
        low, high = found.interval
        print(
            f"{found.verifier:17} K={found.num_drafts}  {found.block_efficiency:.3f} "
            f"({low:.3f} to {high:.3f})  counted {found.counted:.3f}  variance ratio {ratio:.2f}"
        )
    print(f"{seconds:.0f} CPU seconds")
    document = {
        "tokens": TOKENS, "draft_length": DRAFT_LENGTH, "prompts": len(bundled_prompts()),
        "seconds": seconds, "rows": rows,
    }  # fmt: skip
    write(Path(__file__).parent / "results" / "whole_texts.json", document)


def on_smollm2(document: dict[str, Any]) -> Measurement:
    """Tokens per call of all verifiers on SmolLM2, for the figure ``whole_texts``."""
    settings, machine = document["settings"], document["machine"]
    texts = f"{settings['prompts']} prompts, texts of {settings['max_new_tokens']} tokens"
    models = f"{settings['target']} with the draft {settings['draft']}"
    shape = ("num_drafts", "draft_length", "confidence")
    return Measurement(
        document["command"],
        f"{models}, {texts}, {machine.get('device', machine['processor'])}",
        ("verifier", *shape, "calls", "block_efficiency", "low", "high"),
        [
            (row["verifier"], *(settings[name] for name in shape), row["calls"], *row["block_efficiency"])
            for row in document["rows"]
        ],
    )


if __name__ == "__main__":
    main()
