"""Verifiers that sort rows: a round with the radix sort, with torch's sort, and a plain copy of the rows.

One round is ``outcome()`` and one ``sample()``.  All three take turns in one process on one thread, in CPU
time.  Stops and tokens of both rounds are compared; exit status 1 where they differ.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/beside_loops.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from timing import arguments, exit_status, machine, median_seconds, write

from spectheory.foundation import arrays
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms import verifiers

SHAPES = ((32_000, 1, 4), (32_000, 8, 4), (128_256, 1, 4), (128_256, 8, 4), (8_192, 8, 2), (262_144, 1, 8))
"""V, batch size and K; four drafted tokens, float32."""
NAMES = ("greedy_multipath", "mixed_multipath", "spectr")


def round_of(name: str, vocab_size: int, batch_size: int, num_drafts: int) -> tuple[Callable[[], Any], Any]:
    """A round on random rows, and the target's rows."""
    generator = torch.Generator().manual_seed(0)

    def rows(depths: int) -> torch.Tensor:
        logits = 2 * torch.randn(batch_size, num_drafts, depths, vocab_size, generator=generator)
        found = logits.softmax(-1)
        found[:, :, 0] = found[:, :1, 0]  # all paths begin at one context
        return found

    target, draft = rows(5), rows(4)
    paths = torch.randint(vocab_size, (batch_size, num_drafts, 4), generator=generator)
    verifier = verifiers[name].bind(Iid(num_drafts))
    return lambda: verifier.outcome(paths, target, draft).sample(torch.Generator().manual_seed(1)), target


def with_torchs_sort(run: Callable[[], Any]) -> Any:
    """The same round where no row is long enough for the radix sort."""
    worth = arrays.SORT_WORTH_A_LOOP
    arrays.SORT_WORTH_A_LOOP = float("inf")
    try:
        return run()
    finally:
        arrays.SORT_WORTH_A_LOOP = worth


def main() -> int:
    given = arguments(__doc__)
    torch.set_num_threads(1)
    found, complaints = [], []
    for name in NAMES:
        for vocab_size, batch_size, num_drafts in SHAPES:
            run, rows = round_of(name, vocab_size, batch_size, num_drafts)
            one, other = run(), with_torchs_sort(run)
            same = all(
                torch.equal(getattr(one, of), getattr(other, of)) for of in ("path_index", "length", "token")
            )
            if not same:
                complaints.append(f"{name}, V = {vocab_size}: the two sorts give different rounds")
            seconds = median_seconds(
                {"radix": run, "torch": lambda run=run: with_torchs_sort(run), "copy": rows.clone},
                given.repeats,
                time.process_time,
            )
            found.append(
                {
                    "verifier": name,
                    "vocab_size": vocab_size,
                    "batch_size": batch_size,
                    "num_drafts": num_drafts,
                    "milliseconds": {key: round(1e3 * value, 3) for key, value in seconds.items()},
                    "radix_to_copy": round(seconds["radix"] / seconds["copy"], 1),
                    "torch_to_copy": round(seconds["torch"] / seconds["copy"], 1),
                    "torch_to_radix": round(seconds["torch"] / seconds["radix"], 2),
                }
            )
            print(*(f"{key} {value}" for key, value in found[-1].items()), sep=", ", flush=True)
    write(given.out, {"machine": machine(), "repeats": given.repeats, "results": found})
    return exit_status(complaints)


if __name__ == "__main__":
    sys.exit(main())
