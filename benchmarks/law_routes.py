"""Exact laws and certificates by routes (docs/laws.md), beside the same calls of another checkout.

CPU seconds of one process and thread per checkout, the least of three runs, or of one that takes longer than
two seconds; the time to make the pair is left out.  First uses run in new processes, and all
their time counts; ``first`` as second argument prints their table only.  ``growth`` as first argument prints
the growth with the number of leaves only, and draws it in a file.

    git worktree add ../before 01fa827e
    PYTHONPATH=. python benchmarks/law_routes.py ../before > benchmarks/results/law_routes.md
    PYTHONPATH=. python benchmarks/law_routes.py growth benchmarks/results/law_routes.png
"""

import json
import os
import resource
import subprocess
import sys
from itertools import groupby
from math import log
from pathlib import Path
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
    for length in (4, 6, 8, 10, 12)
]
"""What only routes compute."""
FIRST_USES = {
    "`spectheory --help`": "--help",
    "`optimum(pair)`, V = 2, L = 3, float64": "s.optimum(s.instances.random_float(5, 2, 3))",
    "`optimum(pair, 2)`, V = 2, L = 3, float64": "s.optimum(s.instances.random_float(5, 2, 3), 2)",
    "`optimum(pair, 2)`, V = 2, L = 6, float64": "s.optimum(s.instances.random_float(5, 2, 6), 2)",
    '`certify("block", pair)`, V = 2, L = 2, rational': 's.certify("block", s.instances.two_token(2))',
    "`simulate`, two calls after each of 64 prompts": (
        's.simulate(s.models.LanguageModelPair.load("bundled", "bundled"), s.models.bundled_prompts(), '
        '["block"], samples=2)'
    ),
    "`spectheory simulate`, 64 texts of 32 tokens": "simulate --verifier block",
}
"""Commands and Python expressions."""
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


def first_use(folder: str, what: str) -> float:
    """CPU seconds of a new process, the least of three; compiled loops are in the cache."""
    command = (
        ["-c", f"import spectheory as s; {what}"]
        if what.endswith(")")
        else ["-m", "spectheory", *what.split()]
    )
    environment = os.environ | {"PYTHONPATH": os.path.abspath(folder), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    found = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found[1:])


def print_first_uses() -> None:
    print("\n| first use | before-subtract | now | ratio |\n|---|---|---|---|")
    for name, what in FIRST_USES.items():
        old, new = (first_use(folder, what) for folder in (sys.argv[1], "."))
        print(f"| {name} | {old:.2f} | {new:.2f} | {old / new:.1f} |", flush=True)


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
    print_growth()
    print_first_uses()


def print_growth() -> list[float]:
    print("\nGrowth with the number of leaves, V = 2: the exponent is that of the last two sizes.\n")
    print("| what | numbers | V, L, K | now | exponent |\n|---|---|---|---|---|")
    grown = timed(".", GROWTH)
    for number, (row, new) in enumerate(zip(GROWTH, grown, strict=True)):
        exponent = f"{log(new / grown[number - 1]) / log(4):.2f}" if row[3] == 12 else ""
        print(f"{text(row)} {new:.4f} | {exponent} |")
    return grown


def draw_growth(grown: list[float], path: Path) -> None:
    """Seconds by leaves, log-log, with a line of every verifier, and one of exponent 1."""
    from figures.style import figure_bytes, legend_below, panels  # which the other checkout may lack

    with panels(1, 1, width=5.0, height=4.2) as (figure, (axes,)):
        axes.set(xscale="log", yscale="log", xlabel="leaves, $2^L$", ylabel="CPU seconds of the exact law")
        for (_, name, _, _, drafts, exact), times in groupby(
            zip(GROWTH, grown, strict=True), lambda one: (*one[0][:3], None, *one[0][4:])
        ):
            places, seconds = zip(*((2 ** row[3], time) for row, time in times), strict=True)
            label = f"{name}, K = {drafts}" + ("" if exact else ", float64")
            axes.plot(places, seconds, "o-" if exact else "o:", label=label, markersize=4)
        axes.plot(places, [seconds[-1] * place / places[-1] for place in places], "k--", label="exponent 1")
        legend_below(figure, 2)
    path.write_bytes(figure_bytes(figure, "png"))


if __name__ == "__main__":
    if sys.argv[1] == "--rows":
        print(json.dumps([seconds(tuple(row)) for row in json.loads(sys.argv[2])]))
    elif sys.argv[2:] == ["first"]:
        print_first_uses()
    elif sys.argv[1] == "growth":
        draw_growth(print_growth(), Path(sys.argv[2]))
    else:
        main()
