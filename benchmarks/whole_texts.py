"""Tokens per call of the target over whole texts of the bundled pair, the analogue of greedy2026 Table 1.

Verifiers by number of drafts, each with a 95 % interval clustered by prompt, Rao-Blackwell and counted, and
the ratio of their variances.  ``spectheory simulate --tokens 64 --batch-size 32`` prints the same estimates.

    PYTHONPATH=. python benchmarks/whole_texts.py
"""

import time
from pathlib import Path

from timing import write

from spectheory.models import UnloadedPair, bundled_prompts
from spectheory.simulation import simulate

TOKENS, DRAFT_LENGTH, BATCH_SIZE = 64, 8, 32
VERIFIERS, NUM_DRAFTS = ["token", "block", "spectr", "greedy_multipath"], [1, 2, 3, 4]


def main() -> None:
    """Print a line per verifier and K and write them to results/."""
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


if __name__ == "__main__":
    main()
