"""The latency of one call of either bundled model over batch and length, as in spectr2023 Tables 2 and 3.

A call reads so many tokens behind 40 that are in the cache, as a call of the decoding loop does.  CPU
milliseconds on one thread, mean and standard deviation over many rounds; in every round each setting is
measured once, in a random order, so that a slow moment of the machine falls on all of them.  The exhibit
``latency`` draws what is written to spectheory/paper/latency.csv.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/latency.py
"""

from __future__ import annotations

import csv
import random
import time
from itertools import product
from pathlib import Path
from statistics import mean, stdev

import torch
from timing import machine

from spectheory.models import LanguageModelPair, bundled_prompts, prefill

BATCHES, LENGTHS, ROUNDS = (1, 2, 4, 8), (4, 8, 16), 200
COLUMNS = (
    "machine",
    "torch",
    "model",
    "parameters",
    "batch",
    "length",
    "milliseconds",
    "deviation",
    "rounds",
)
OUT = Path(__file__).parents[1] / "spectheory" / "paper" / "latency.csv"


@torch.no_grad()
def measured(pair: LanguageModelPair, rounds: int) -> list[dict[str, object]]:
    """One row per model, batch and length."""
    prompts = [pair.encode(text)[:41] for text in bundled_prompts()[: max(BATCHES)]]
    prefilled = {batch: prefill(pair, prompts[:batch]) for batch in BATCHES}
    models = {"target": pair.target_model, "draft": pair.draft_model}
    cells = list(product(models, BATCHES, LENGTHS))
    times: dict[tuple[str, int, int], list[float]] = {cell: [] for cell in cells}
    order = random.Random(0)
    for number in range(rounds + 5):
        order.shuffle(cells)
        for model, batch, length in cells:
            reading = getattr(prefilled[batch], model)
            paths = torch.full((batch, 1, length - 1), 7)  # with the last token of the text: ``length``
            start = time.process_time()
            reading.follow(prefilled[batch].texts, paths, first=0)
            if number >= 5:  # the first rounds warm up
                times[model, batch, length].append(1_000 * (time.process_time() - start))
    return [
        {
            "machine": f"{machine()['processor']}, one thread", "torch": torch.__version__, "model": model,
            "parameters": sum(parameter.numel() for parameter in models[model].parameters()),
            "batch": batch, "length": length, "milliseconds": round(mean(found), 4),
            "deviation": round(stdev(found), 4), "rounds": rounds,
        }
        for (model, batch, length), found in times.items()
    ]  # fmt: skip


def main(rounds: int = ROUNDS) -> None:
    """Print a line per setting and write the file."""
    torch.set_num_threads(1)
    rows = measured(LanguageModelPair.load("bundled", "bundled", device="cpu"), rounds)
    for row in rows:
        print(*row.values(), sep=", ")
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
