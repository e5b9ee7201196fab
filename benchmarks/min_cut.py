"""Optimal acceptance: the min cut over a full vocabulary against the transport program over ten tokens.

The cut at V = 128 256, K = 8 must be faster than building and solving the linear program of spectr
Eq. 4 at V = 10, K = 4 (100 000 variables); otherwise the exit status is 1.
"""

import sys
from typing import Any

import numpy as np
from timing import arguments, median_seconds, ratio_entry, report

from spectheory.optima import optimal_acceptance, otm_optimum

FULL_VOCABULARY, FULL_DRAFTS = 128_256, 8
SMALL_VOCABULARY, SMALL_DRAFTS = 10, 4


def random_rows(vocab_size: int, seed: int) -> np.ndarray:
    """A target and a draft row, [2, V]: uniform on the simplex, independent."""
    return np.random.default_rng(seed).dirichlet(np.ones(vocab_size), size=2)


def measure(repeats: int) -> list[dict[str, Any]]:
    """Times of both, after checking that they agree on the small rows.

    Raises:
        ArithmeticError: cut and program disagree by more than 1e-6.
    """
    target, draft = random_rows(FULL_VOCABULARY, seed=1)
    small_target, small_draft = random_rows(SMALL_VOCABULARY, seed=2)
    variables = SMALL_VOCABULARY ** (SMALL_DRAFTS + 1)

    def solve_program() -> Any:
        return otm_optimum(small_target, small_draft, SMALL_DRAFTS, max_variables=variables)

    acceptance = 1 - solve_program().value
    cut = optimal_acceptance(small_target, small_draft, SMALL_DRAFTS).value
    if abs(acceptance - cut) > 1e-6:
        raise ArithmeticError(f"the program gives {acceptance}, the min cut {cut}")
    fast = f"min cut V={FULL_VOCABULARY} K={FULL_DRAFTS}"
    slow = f"program V={SMALL_VOCABULARY} K={SMALL_DRAFTS}"
    seconds = median_seconds(
        {fast: lambda: optimal_acceptance(target, draft, FULL_DRAFTS), slow: solve_program}, repeats
    )
    return [ratio_entry("optimal acceptance", fast, slow, seconds, program_variables=variables)]


def holds(entries: list[dict[str, Any]]) -> bool:
    """Whether the min cut was the faster one."""
    return all(entry["ratio"] > 1 for entry in entries)


if __name__ == "__main__":
    options = arguments(__doc__)
    found = measure(options.repeats)
    report(found, options.repeats, options.out)
    sys.exit(0 if holds(found) else 1)
