"""What compiled loops, selection and memos save: CPU time before and after, in turns in one process.

Each case runs on one thread.  "before" is the same code with the new way switched off, or what stood there;
"beside" is a yardstick.  Results are compared first; exit status 1 where they differ.

- ``sort``: ``outcome()`` and one ``sample()`` of verifiers that sort rows, with torch's sort and with the
  radix sort of ``row_kernels``, beside a copy of the target's rows into memory that is there
- ``half``: the same on rows in bfloat16, beside a round on float32
- ``select``: the 50 most likely tokens, and the order of all as for top-p, by torch's stable sort and by
  ``most_likely``, beside a copy
- ``exact law``: of a path selection, from all tuples and from every path once

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/beside_loops.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import torch
from timing import arguments, exit_status, machine, median_seconds, write

from spectheory import instances, output_law
from spectheory.exact import law
from spectheory.foundation import arrays
from spectheory.models.sampling import most_likely
from spectheory.pairs.drafts import Iid
from spectheory.verification.algorithms import verifiers

SHAPES = ((32_000, 1, 4), (32_000, 8, 4), (128_256, 1, 4), (128_256, 8, 4), (8_192, 8, 2), (262_144, 1, 8))
"""V, batch size and K; four drafted tokens, float32."""
NAMES = ("greedy_multipath", "mixed_multipath", "spectr")
LAWS = ((4, 3, 2), (3, 4, 2), (8, 2, 2), (4, 2, 3))
"""V, L and K."""


def round_of(
    name: str, vocab_size: int, batch_size: int, num_drafts: int, dtype: torch.dtype = torch.float32
) -> tuple[Callable[[], Any], Any]:
    """A round on random rows, and the target's rows."""
    generator = torch.Generator().manual_seed(0)

    def rows(depths: int) -> torch.Tensor:
        logits = 2 * torch.randn(batch_size, num_drafts, depths, vocab_size, generator=generator)
        found = logits.softmax(-1).to(dtype)
        found[:, :, 0] = found[:, :1, 0]  # all paths begin at one context
        return found

    target, draft = rows(5), rows(4)
    paths = torch.randint(vocab_size, (batch_size, num_drafts, 4), generator=generator)
    verifier = verifiers[name].bind(Iid(num_drafts))

    def run() -> list[Any]:
        drawn = verifier.outcome(paths, target, draft).sample(torch.Generator().manual_seed(1))
        return [drawn.path_index.tolist(), drawn.length.tolist(), drawn.token.tolist()]

    return run, target


@contextmanager
def switched_off(module: Any, constant: str) -> Any:
    """What is worth it from this size on is worth it nowhere."""
    usual = getattr(module, constant)
    setattr(module, constant, float("inf"))
    try:
        yield
    finally:
        setattr(module, constant, usual)


def without(run: Callable[[], Any], module: Any, constant: str) -> Callable[[], Any]:
    def run_without() -> Any:
        with switched_off(module, constant):
            return run()

    return run_without


def copy_of(rows: torch.Tensor) -> Callable[[], Any]:
    room = torch.empty_like(rows)
    return lambda: room.copy_(rows)


def cases() -> Any:
    """(what, shape, before, after, beside), functions without arguments; ``beside`` may be missing."""
    for name in NAMES:
        for shape in SHAPES:
            run, rows = round_of(name, *shape)
            yield f"sort: {name}", shape, without(run, arrays, "SORT_WORTH_A_LOOP"), run, copy_of(rows)
    for name in NAMES:
        for shape in SHAPES[:2]:
            run, _ = round_of(name, *shape, torch.bfloat16)
            beside, _ = round_of(name, *shape)
            yield f"half: {name}", shape, without(run, arrays, "SORT_WORTH_A_LOOP"), run, beside
    for vocab_size, batch_size, _ in SHAPES[1:4:2]:
        scores = torch.randn(batch_size, vocab_size, generator=torch.Generator().manual_seed(0)).double()
        for count in (50, vocab_size):
            yield (
                f"select: {'top-k' if count == 50 else 'top-p'}",
                (vocab_size, batch_size, 1),
                lambda scores=scores, count=count: (
                    scores.sort(dim=-1, descending=True, stable=True).indices[..., :count]
                ).tolist(),
                lambda scores=scores, count=count: most_likely(scores, count).tolist(),
                copy_of(scores),
            )
    for name in NAMES[:2]:
        for shape in LAWS:
            pair = instances.random_rational(5, *shape[:2], zero_probability=0)

            def run(name: str = name, pair: Any = pair, num_drafts: int = shape[2]) -> Any:
                return output_law(name, pair, num_drafts).numbers

            def same(run: Callable[[], Any] = run) -> Any:
                return [mass.tolist() for mass in run()]

            yield f"exact law: {name}", shape, without(same, law, "WORTH_A_MIXTURE"), same, None


def main() -> int:
    given = arguments(__doc__)
    torch.set_num_threads(1)
    found, complaints = [], []
    for what, shape, before, after, beside in cases():
        if before() != after():
            complaints.append(f"{what}, {shape}: the two ways give different results")
        runs = {"before": before, "after": after} | ({} if beside is None else {"beside": beside})
        seconds = median_seconds(runs, given.repeats, time.process_time)
        row: dict[str, Any] = {"what": what, "shape": " × ".join(map(str, shape))}
        row |= {f"{name}_ms": round(1e3 * value, 3) for name, value in seconds.items()}
        row["before_to_after"] = round(seconds["before"] / seconds["after"], 2)
        if beside is not None:
            row["after_to_beside"] = round(seconds["after"] / seconds["beside"], 2)
        found.append(row)
        print(*(f"{key} {value}" for key, value in row.items()), sep=", ", flush=True)
    write(given.out, {"machine": machine(), "repeats": given.repeats, "results": found})
    return exit_status(complaints)


if __name__ == "__main__":
    sys.exit(main())
