"""The short benchmarks: a table on the terminal, JSON with ``--out``, exit status 1 if a claim fails.

- The rational law of block verification at V = 4, L = 4, on python-flint's numbers, and in float64.
- Optimal acceptance by the min cut at V = 128 256, K = 8, beside building and solving the transport program
  of spectr Eq. 4 at V = 10, K = 4, which has 100 000 variables.  The cut must be faster.
"""

import sys
from typing import Any

import numpy as np
from timing import arguments, median_seconds, ratio_entry, report

from spectheory import instances
from spectheory.exact.law import output_law
from spectheory.optima import optimal_acceptance, otm_optimum

FULL_VOCABULARY, FULL_DRAFTS = 128_256, 8
SMALL_VOCABULARY, SMALL_DRAFTS = 10, 4


def law(repeats: int) -> dict[str, Any]:
    """Times in both arithmetics, after checking that they agree.

    Raises:
        ArithmeticError: the laws differ.
    """
    pair = instances.random_rational(44, vocab_size=4, draft_length=4)
    in_float = pair.to_float()
    exact = output_law("block", pair).block_efficiency
    if abs(output_law("block", in_float).block_efficiency - float(exact)) > 1e-12:
        raise ArithmeticError("float64 and rationals disagree")
    runs = {
        "float64": lambda: output_law("block", in_float), "rationals": lambda: output_law("block", pair),
    }  # fmt: skip
    seconds = median_seconds(runs, repeats)
    return ratio_entry("law of block, V=4 L=4", "float64", "rationals", seconds)


def min_cut(repeats: int) -> dict[str, Any]:
    """Times of the cut and the program, after checking that they agree on the small rows.

    Raises:
        ArithmeticError: they disagree by more than 1e-6.
    """
    target, draft = random_rows(FULL_VOCABULARY, seed=1)
    small = random_rows(SMALL_VOCABULARY, seed=2)
    variables = SMALL_VOCABULARY ** (SMALL_DRAFTS + 1)

    def solve_program() -> Any:
        return otm_optimum(*small, SMALL_DRAFTS, max_variables=variables)

    acceptance, cut = 1 - solve_program().value, optimal_acceptance(*small, SMALL_DRAFTS).value
    if abs(acceptance - cut) > 1e-6:
        raise ArithmeticError(f"the program gives {acceptance}, the min cut {cut}")
    fast = f"min cut V={FULL_VOCABULARY} K={FULL_DRAFTS}"
    slow = f"program V={SMALL_VOCABULARY} K={SMALL_DRAFTS}"
    runs = {fast: lambda: optimal_acceptance(target, draft, FULL_DRAFTS), slow: solve_program}
    return ratio_entry("optimal acceptance", fast, slow, median_seconds(runs, repeats))


def random_rows(vocab_size: int, seed: int) -> np.ndarray:
    """A target and a draft row, [2, V]: uniform on the simplex, independent."""
    return np.random.default_rng(seed).dirichlet(np.ones(vocab_size), size=2)


if __name__ == "__main__":
    options = arguments(__doc__)
    cut = min_cut(options.repeats)
    report([cut, law(options.repeats)], options.repeats, options.out)
    sys.exit(0 if cut["ratio"] > 1 else 1)
