"""The exact law of every released sampler beside draws of the same code with numbers of its own.

    python benchmarks/audit_sampled.py [SAMPLES] [CACHE] [SAMPLER ...]

One drafted path of a pair of three tokens with unequal residuals, two drafted tokens.  Draws come from the
generators of torch; kernels run in the same interpreter.  Prints a Markdown table: the p-value of a χ² test
of the draws against the law that the audit computes, and against that law after a tenth of its mass has moved
from the likeliest output to the others, which a test of this size sees.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from scipy.stats import chisquare

from spectheory import instances
from spectheory.audit.intercept import Journal
from spectheory.audit.kernels import interpreting
from spectheory.audit.libraries import SUBJECTS, load_subject
from spectheory.audit.replay import Tape
from spectheory.audit.signatures import Call
from spectheory.contexts import prefix_numbers, rows_along

LEFT_OUT = {"transformers-gemma4": "drafts as well"}


def main() -> None:
    """One row per sampler."""
    samples = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    cache = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    pair = instances.two_residual_tokens(2)
    paths = np.array([[0, 0]])
    prefixes = prefix_numbers(paths, pair.vocab_size)
    target, draft = rows_along(pair.target, prefixes), rows_along(pair.draft, prefixes)
    print("| sampler | draws | p-value | of a law that is off by 1/10 |\n|---|---|---|---|")
    for name in sys.argv[3:] or [name for name in SUBJECTS if name not in LEFT_OUT]:
        sampler = load_subject(name, cache)
        law, undecided = sampler.output_masses(paths, target, draft)
        if undecided:
            continue
        call = Call(paths, target, draft, Tape([]), Journal())
        torch.manual_seed(0)
        with interpreting():
            counts = Counter(tuple(sampler.signature.call(sampler.sampler, call)) for _ in range(samples))
        outputs = [output for output, mass in law.items() if samples * mass >= 1]
        observed = np.array([counts[output] for output in outputs])
        exact = np.array([float(law[output]) for output in outputs])
        off = exact.copy()
        off[exact.argmax()] -= 0.1
        off[np.arange(len(off)) != exact.argmax()] += 0.1 / (len(off) - 1)
        p_values = [
            chisquare(observed, probs / probs.sum() * observed.sum()).pvalue for probs in (exact, off)
        ]
        print(f"| `{name}` | {samples} | {p_values[0]:.2g} | {p_values[1]:.2g} |", flush=True)


if __name__ == "__main__":
    main()
