"""Tokens per call of the target over whole texts of the bundled pair, the analogue of greedy2026 Table 1.

Verifiers by number of drafts, each with a 95 % interval clustered by prompt, Rao-Blackwell and counted.  A
verifier of one path is run once; at K = 1 `spectr` is `token` and `greedy_multipath` is `block`.

    PYTHONPATH=. python benchmarks/whole_texts.py
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from spectheory.models import LanguageModelPair, bundled_prompts
from spectheory.montecarlo import simulate

TOKENS, DRAFT_LENGTH, BATCH_SIZE = 64, 8, 32
WANTED = [("token", 1), ("block", 1)]
WANTED += [(name, num_drafts) for name in ("spectr", "greedy_multipath") for num_drafts in (2, 3, 4)]


def main() -> None:
    """Print a line per verifier and K and write them to results/."""
    pair, rows = LanguageModelPair.load("bundled", "bundled", device="cpu"), []
    for verifier, num_drafts in WANTED:
        start = time.process_time()
        (found,) = simulate(
            pair, bundled_prompts(), [verifier], num_drafts=num_drafts, draft_length=DRAFT_LENGTH,
            max_new_tokens=TOKENS, batch_size=BATCH_SIZE,
        ).estimates  # fmt: skip
        ratio = (found.counted_standard_error / found.standard_error) ** 2
        row = {
            "verifier": verifier,
            "num_drafts": num_drafts,
            "block_efficiency": found.block_efficiency,
            "interval": found.interval,
            "counted": found.counted,
            "counted_interval": found.counted_interval,
            "variance_ratio": ratio,
            "calls": found.samples,
            "seconds": time.process_time() - start,
        }
        rows.append(row)
        low, high = found.interval
        print(
            f"{verifier:17} K={num_drafts}  {found.block_efficiency:.3f} ({low:.3f} to {high:.3f})  "
            f"counted {found.counted:.3f}  variance ratio {ratio:.2f}  {row['seconds']:.1f} s",
            flush=True,
        )
    document = {
        "tokens": TOKENS, "draft_length": DRAFT_LENGTH, "prompts": len(bundled_prompts()), "rows": rows,
    }  # fmt: skip
    path = Path(__file__).parent / "results" / "whole_texts.json"
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
