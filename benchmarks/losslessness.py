"""Losslessness of whole texts at full stack: 100 000 texts per verifier through the decoding loop.

A tiny pair of language models over three tokens; prompts of four lengths in one batch; the first six tokens
against the target's law, by Pearson's chi-square.  The tests do the same with 6 000 texts
(tests/decoding/test_loop.py).

    PYTHONPATH=. python benchmarks/losslessness.py
"""

import sys
import time
from pathlib import Path

import torch
from timing import write

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from decoding_support import PROMPTS, losslessness, tiny_pair  # noqa: E402
from spectheory.pairs.drafts import DraftProcess, Iid, PrefixTree, WithoutReplacement  # noqa: E402

TEXTS = 100_000
WANTED: tuple[tuple[str, DraftProcess], ...] = (
    ("token", Iid(1)),
    ("block", Iid(1)),
    ("greedy_block", Iid(1)),
    ("spectr", Iid(2)),
    ("multi_round", Iid(2)),
    ("greedy_multipath", Iid(2)),
    ("mixed_multipath", Iid(2)),
    ("scored_multipath", Iid(2)),
    ("traversal", Iid(2)),
    ("otm", Iid(2)),
    ("multi_round", PrefixTree((2, 2))),
    ("multi_round_without_replacement", WithoutReplacement((2, 2))),
)


def main() -> None:
    """Print one line per verifier and write them to results/."""
    torch.set_num_threads(1)
    pair, rows = tiny_pair(), []
    for verifier, process in WANTED:
        start = time.process_time()
        found = losslessness(pair, verifier, TEXTS // len(PROMPTS), process, seed=1)
        rows.append({"verifier": verifier, "process": str(process), "texts": TEXTS, "p_value": found})
        print(
            f"{verifier:32} {process!s:34} p = {found:.4f}  {time.process_time() - start:.1f} s", flush=True
        )
    write(ROOT / "benchmarks" / "results" / "losslessness.json", rows)


if __name__ == "__main__":
    main()
