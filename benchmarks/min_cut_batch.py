"""The min cut over full vocabularies: one row on the CPU, and 1 000 rows of 32 000 tokens on torch.

Each time is set against a plain sort and a plain copy of the same numbers.  The batch runs in chunks,
so that a few hundred MB suffice beside the rows; it also runs on the GPU if torch sees one.  The exit
status is 1 if α_K and its set at V = 128 256 take more than 50 ms for one K.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from timing import arguments, median_seconds, ratio_entry, report

from spectheory.optima.one_position.min_cut import optimal_acceptance, optimal_acceptance_curve

FULL_VOCABULARY, MOST_DRAFTS = 128_256, 64
ROWS, BATCH_VOCABULARY, BATCH_DRAFTS = 1_000, 32_000, 8
ROWS_AT_ONCE = 50
LIMIT_SECONDS = 0.05


def random_rows(rows: int, vocab_size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A target and a draft, each [rows, V]: uniform on the simplex, independent."""
    found = np.random.default_rng(seed).standard_exponential((2, rows, vocab_size))
    found /= found.sum(axis=-1, keepdims=True)
    return found[0], found[1]


def one_row(repeats: int) -> list[dict[str, Any]]:
    """One K, and all of K = 1..64 with one sort, on numpy at V = 128 256.

    Raises:
        ArithmeticError: the curve and the single cuts disagree.
    """
    target, draft = (rows[0] for rows in random_rows(1, FULL_VOCABULARY, seed=1))
    curve = optimal_acceptance_curve(target, draft, MOST_DRAFTS)
    for num_drafts, cut in enumerate(curve, start=1):
        single = optimal_acceptance(target, draft, num_drafts)
        if single.value != cut.value or (single.tokens != cut.tokens).any():
            raise ArithmeticError(
                f"the curve gives {cut.value} at K = {num_drafts}, alone it is {single.value}"
            )
    ratio = target / draft
    cuts = {f"K={k}": partial(optimal_acceptance, target, draft, k) for k in (1, 8, MOST_DRAFTS)}
    whole = f"K=1..{MOST_DRAFTS}, one sort"
    cuts[whole] = partial(optimal_acceptance_curve, target, draft, MOST_DRAFTS)
    seconds = median_seconds({"sort": partial(np.argsort, ratio, stable=True), **cuts}, repeats)
    return [
        ratio_entry(
            f"min cut V={FULL_VOCABULARY} on numpy",
            "sort",
            name,
            seconds,
            process=MOST_DRAFTS if name == whole else 1,
        )
        for name in cuts
    ]


def batch(device: str, repeats: int) -> list[dict[str, Any]]:
    """1 000 rows of 32 000 tokens in float64 on torch, against copying and sorting them.

    Raises:
        ArithmeticError: torch and numpy disagree by more than 1e-12.
    """
    rows = random_rows(ROWS, BATCH_VOCABULARY, seed=2)
    expected = optimal_acceptance(rows[0][:3], rows[1][:3], BATCH_DRAFTS).value
    target, draft = (torch.from_numpy(side).to(device) for side in rows)
    value = optimal_acceptance(target[:3], draft[:3], BATCH_DRAFTS).value.cpu().numpy()
    if abs(value - expected).max() > 1e-12:
        raise ArithmeticError(f"torch gives {value}, numpy {expected}")

    def by_chunks(run: Callable[[torch.Tensor, torch.Tensor], Any]) -> None:
        for start in range(0, ROWS, ROWS_AT_ONCE):
            run(target[start : start + ROWS_AT_ONCE], draft[start : start + ROWS_AT_ONCE])
        if device == "cuda":
            torch.cuda.synchronize()

    name = f"min cut K={BATCH_DRAFTS}"
    alternatives = {
        "copy both": partial(by_chunks, lambda t, d: (t.clone(), d.clone())),
        "sort one": partial(by_chunks, lambda t, d: torch.sort(t, dim=-1, stable=True)),
        name: partial(by_chunks, lambda t, d: optimal_acceptance(t, d, BATCH_DRAFTS)),
    }
    seconds = median_seconds(alternatives, repeats)
    claim = f"{ROWS} rows V={BATCH_VOCABULARY} on {device}"
    return [ratio_entry(claim, plain, name, seconds, rows=ROWS) for plain in ("sort one", "copy both")]


def measure(repeats: int) -> list[dict[str, Any]]:
    """Both, on every device there is."""
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    return one_row(repeats) + [entry for device in devices for entry in batch(device, repeats)]


def holds(entries: list[dict[str, Any]]) -> bool:
    """Whether one row takes at most 50 ms for one K."""
    return all(
        entry["slow_seconds"] / entry["drafts"] <= LIMIT_SECONDS for entry in entries if "drafts" in entry
    )


if __name__ == "__main__":
    options = arguments(__doc__)
    found = measure(options.repeats)
    report(found, options.repeats, options.out)
    sys.exit(0 if holds(found) else 1)
