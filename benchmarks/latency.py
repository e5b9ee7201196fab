"""The latency of one call of either bundled model over batch and length, as in spectr2023 Tables 2 and 3.

A call reads so many tokens behind 40 that are in the cache, as a call of the decoding loop does.  CPU
milliseconds on one thread, mean and standard deviation over many rounds; in every round each setting is
measured once, in a random order, so that a slow moment of the machine falls on all of them.  The figure
``latency`` draws what is written into ``figures/measurements``.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/latency.py
"""

import random
import time
from itertools import product
from statistics import mean, stdev

import torch
from timing import machine

from figures.common.measured import Measurement
from spectheory.models import LanguageModelPair, bundled_prompts
from spectheory.models.drafting import prefill

BATCHES, LENGTHS, ROUNDS = (1, 2, 4, 8), (4, 8, 16), 200


@torch.no_grad()
def measured(pair: LanguageModelPair, rounds: int) -> Measurement:
    """A row per model, batch and length."""
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
    sizes = {name: sum(one.numel() for one in model.parameters()) for name, model in models.items()}
    return Measurement(
        "PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/latency.py",
        f"{machine()['processor']}, one thread",
        ("model", "parameters", "batch", "length", "milliseconds", "deviation"),
        [
            (model, sizes[model], batch, length, round(mean(found), 4), round(stdev(found), 4))
            for (model, batch, length), found in times.items()
        ],
    )


def main(rounds: int = ROUNDS) -> None:
    """Print a line per setting and write them for the figure."""
    torch.set_num_threads(1)
    found = measured(LanguageModelPair.load("bundled", "bundled", device="cpu"), rounds)
    for row in found.rows:
        print(*row, sep=", ")
    found.write("latency")


if __name__ == "__main__":
    main()
