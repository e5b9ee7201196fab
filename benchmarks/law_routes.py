"""Exact laws and certificates by routes (docs/laws.md), beside the same calls of another checkout.

CPU seconds of one process and thread per checkout, the least of three runs, or of one that takes longer than
two seconds; the time to make the pair is left out.

    git worktree add ../before before-subtract
    PYTHONPATH=. python benchmarks/law_routes.py ../before > benchmarks/results/law_routes.md
"""

import json
import os
import subprocess
import sys
from math import log
from time import process_time
from typing import Any

BESIDE = (
    *(("law", name, 2, 2, 1, exact) for name in ("block", "token") for exact in (True, False)),
    *(("law", "multi_round", 2, 2, 2, exact) for exact in (True, False)),
    *(("law", "greedy_multipath", 2, 2, 2, exact) for exact in (True, False)),
    *(("law", name, 2, 16, 1, False) for name in ("block", "token")),
    *(("law", name, 32, 3, 1, False) for name in ("block", "token")),
    ("law", "spectr", 4, 3, 2, False),
    ("law", "mixed_multipath", 4, 3, 2, True),
    ("law", "scored_multipath", 2, 3, 3, True),
    ("law", "multi_round", 2, 8, 2, False),
    ("certify", "block", 4, 8, 1, False),
    ("law", "otm", 2, 7, 2, True),
    ("law", "greedy_multipath", 2, 9, 2, True),
    *(("law", name, 32, 3, 1, True) for name in ("block", "token")),
    ("certify", "block", 4, 8, 1, True),
    ("law", "multi_round", 2, 5, 3, True),
    ("law", "traversal", 4, 4, 2, True),
    ("law", "traversal", 2, 5, 3, True),
    *(("law", name, 2, 16, 1, True) for name in ("block", "token")),
    ("law", "multi_round", 2, 8, 2, True),
)
GROWTH = [
    ("law", name, 2, length, drafts, exact)
    for name, drafts, exact in (
        ("block", 1, True),
        ("multi_round", 2, True),
        ("multi_round", 3, True),
        ("multi_round", 3, False),
        ("greedy_multipath", 2, True),
        ("greedy_multipath", 3, True),
    )
    for length in (8, 10, 12)
]
"""What only routes compute."""
Row = tuple[str, str, int, int, int, bool]


def seconds(row: Row) -> float:
    from spectheory import certify, instances, output_law

    what, name, size, length, drafts, exact = row
    make: Any = instances.random_rational if exact else instances.random_float
    pair = make(5, size, length, **({"zero_probability": 0} if exact else {}))
    assert pair.numbers.draft_path_probs[-1].size
    found = []
    while len(found) < 3 and (not found or found[-1] < 2):
        start = process_time()
        if what == "law":
            output_law(name, pair, drafts, max_tuples=10**8)
        else:
            certify(name, pair, drafts, max_tuples=10**8, with_optimum=False)
        found.append(process_time() - start)
    return min(found)


def timed(folder: str, rows: list[Row]) -> list[float]:
    command = [sys.executable, os.path.abspath(__file__), "--rows", json.dumps(rows)]
    environment = os.environ | {"PYTHONPATH": os.path.abspath(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [float(number) for number in json.loads(done.stdout)]


def text(row: Row) -> str:
    what, name, size, length, drafts, exact = row
    numbers = "rational" if exact else "float64"
    return f"| {what} of `{name}` | {numbers} | {size}, {length}, {drafts} |"


def main() -> None:
    print("Written by `benchmarks/law_routes.py`: CPU seconds, least of three, on one of two shared cores.\n")
    print("| what | numbers | V, L, K | before-subtract | now | ratio |\n|---|---|---|---|---|---|")
    for row in BESIDE:
        old, new = (timed(folder, [row])[0] for folder in (sys.argv[1], "."))
        print(f"{text(row)} {old:.4f} | {new:.4f} | {old / new:.1f} |", flush=True)
    print("\nGrowth with the number of leaves, V = 2: the exponent is that of the last two sizes.\n")
    print("| what | numbers | V, L, K | now | exponent |\n|---|---|---|---|---|")
    grown = timed(".", GROWTH)
    for number, (row, new) in enumerate(zip(GROWTH, grown, strict=True)):
        exponent = f"{log(new / grown[number - 1]) / log(4):.2f}" if row[3] == 12 else ""
        print(f"{text(row)} {new:.4f} | {exponent} |")


if __name__ == "__main__":
    if sys.argv[1] == "--rows":
        print(json.dumps([seconds(tuple(row)) for row in json.loads(sys.argv[2])]))
    else:
        main()
