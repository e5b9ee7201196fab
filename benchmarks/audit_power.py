"""How many of the known mistakes does a χ² test with 10^5 samples on one context-free row miss?

    python benchmarks/audit_power.py [SAMPLES]

Each sampler of ``spectheory.auditing.subjects.specimens`` draws with torch's own numbers on one pair whose
rows do not depend on the context.  The test is on the first three tokens of the completed output together,
which is more than the tests of serving engines look at.  Prints a Markdown table with the audit's verdict.
"""

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from spectheory import audit, sampled_verdict
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.signatures import TEMPERATURE, with_point_mass_drafts
from spectheory.auditing.subjects.specimens import SPECIMENS
from spectheory.pairs.pair import ModelPair

PAIR = ModelPair.context_free_pair(["2/5", "3/10", "1/5", "1/10"], ["1/10", "1/5", "3/10", "2/5"], 2)


def drawing(function: Callable[..., Any], signature: str) -> Callable[..., list[int]]:
    """The sampler as ``sampled_verdict`` calls it, with its own random numbers; one seed for all draws."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)  # of the samplers that draw from a global generator
    random.seed(0)

    def draw(paths: np.ndarray, target: np.ndarray, draft: np.ndarray, rng: Any) -> list[int]:
        drafted = torch.from_numpy(paths)
        rows, drafts = (torch.from_numpy(part).float() for part in (target, draft))
        if signature == "coins":
            coins = torch.rand(paths.shape[1] + 1, generator=generator)
            return function(drafted[0], rows[0], drafts[0], coins[:-1], coins[-1])
        if signature == "evaluate_posterior":
            root = torch.zeros((1, 1), dtype=torch.long)
            _, accepted, row = function(
                rows.log() * TEMPERATURE,
                torch.cat([root, drafted], dim=-1),
                lambda ids, logits: logits / TEMPERATURE,
            )
            return [*drafted[0, :accepted].tolist(), int(torch.multinomial(row.flatten(), 1))]
        return function(drafted, rows, drafts, generator)

    return draw


def main() -> None:
    """One row per sampler."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    missed = 0
    print(f"| sampler | χ² with {samples} samples | p-value | audit |\n|---|---|---|---|", flush=True)
    for name, (function, signature) in SPECIMENS.items():
        pair = with_point_mass_drafts(PAIR) if signature == "evaluate_posterior" else PAIR
        found = sampled_verdict(drawing(function, signature), pair, samples=samples)
        missed += not found.is_rejected
        verdict = audit(Shipped(function, signature), stop_at_first=True).verdict
        seen = "rejected" if found.is_rejected else "passes"
        print(f"| `{name}` | {seen} | {found.p_value:.2g} | {verdict} |", flush=True)
    print(f"\nThe test misses {missed} of {len(SPECIMENS)} mistakes.")


if __name__ == "__main__":
    main()
