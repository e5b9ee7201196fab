"""Exact laws beside a walk of the tree, optima with and without the tree, and what a new process pays first.

CPU seconds on one thread; alternatives take turns in one process, and medians are compared.  Results are
compared before they are timed, and a complaint says where they differ.

- ``law``: ``output_law`` and ``certify`` (without the optimum) of block verification on one path, beside a
  walk of the tree of contexts in python-flint's rationals that is written by hand
- ``greedy law``: the same law of ``greedy_multipath`` with two or three drafts, beside the walk with the law
  of the selected path in the place of the draft
- ``one path``: the optimum of context-free pairs by merged weights, beside the program on the tree, if any
- ``two paths``: the interval of context-free pairs within 1 %, and of the tree within 1e-6
- ``first``: a new process: certify an exact pair, and the first optimum of two paths, with an empty cache of
  numba, a full one, and one that cannot be written to

Exponents are slopes of log seconds over log size, fitted to the rows of the same run.

    PYTHONPATH=. OMP_NUM_THREADS=1 python benchmarks/beside_loops.py --only laws
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from flint import fmpq
from timing import median_seconds

from spectheory import ModelPair, certify, instances, output_law
from spectheory.optima import multi_path_interval, single_path_optimum
from spectheory.optima.context_free.merged_weights import context_free_path_optimum
from spectheory.optima.context_free.promises import context_free_interval

LAWS = ((2, 6), (2, 9), (4, 3), (4, 4), (4, 5), (8, 3))
"""V and L."""
GREEDY = ((4, 3, 2), (3, 4, 2), (8, 2, 2), (4, 2, 3))
"""V, L and K."""
ONE_PATH = (8, 12, 16, 30, 60, 120)
TWO_PATHS = (6, 12, 24)
TREES = (6, 8, 10, 12, 14, 16)
"""L of the two-token pair."""
ONCE = 14
"""Trees this deep are measured once."""

FIRST = {
    "certify": "from spectheory import certify, instances; certify('block', instances.two_token(2))",
    "optimum": "from spectheory import instances, optimum; optimum(instances.random_float(0, 2, 6), 2)",
}


Levels = list[list[list[Any]]]
"""Rows [V^i, V] of every depth i."""


def walk(pair: ModelPair) -> list[list[Any]]:
    """The law of block verification of one path."""
    return law_by_block(
        *([level.tolist() for level in side] for side in (pair.numbers.target, pair.numbers.draft))
    )


def greedy_walk(pair: ModelPair, num_drafts: int) -> list[list[Any]]:
    """The law of greedy multi-path verification: block verification of the path whose ratios rank highest."""
    target, draft = ([level.tolist() for level in side] for side in (pair.numbers.target, pair.numbers.draft))
    size, length, below = pair.vocab_size, pair.draft_length, fmpq(0)
    masses = [[fmpq(0)] * size**depth for depth in range(length + 1)]

    def visit(depth: int, number: int, mass: Any) -> Any:
        """The probability that the selected path goes through the node."""
        nonlocal below
        if depth == length:
            lower, below = below, below + mass
            masses[depth][number] = below**num_drafts - lower**num_drafts
        else:
            p, q = target[depth][number], draft[depth][number]
            for x in sorted(range(size), key=lambda x: (p[x] / q[x], x)):
                masses[depth][number] += visit(depth + 1, number * size + x, mass * q[x])
        return masses[depth][number]

    visit(0, 0, fmpq(1))
    selected = [
        [
            [mass / here for mass in masses[depth + 1][n * size : (n + 1) * size]]
            for n, here in enumerate(level)
        ]
        for depth, level in enumerate(masses[:-1])
    ]
    return law_by_block(target, selected)


def law_by_block(target: Levels, draft: Levels) -> list[list[Any]]:
    """A walk of the tree with the weight and the draft's mass."""
    size, length, zero, one = len(target[0][0]), len(draft), fmpq(0), fmpq(1)
    masses = [[zero] * size ** (depth + 1) for depth in range(length + 1)]

    def visit(depth: int, number: int, mass: Any, weight: Any) -> Any:
        """The probability that the node is drafted and nothing at or below it is accepted."""
        row = target[depth][number]
        if depth == length:
            for token in range(size):
                masses[depth][number * size + token] += mass * weight * row[token]
            return mass * (one - weight)
        drafted, rejected = draft[depth][number], zero
        residual = [max(weight * p - q, zero) for p, q in zip(row, drafted, strict=True)]
        total = sum(residual, zero)
        for token in range(size):
            if drafted[token] > 0:
                reached = min(one, weight * row[token] / drafted[token])
                rejected += visit(depth + 1, number * size + token, mass * drafted[token], reached)
        rest = one - weight + total
        accept = one if depth == 0 else total / rest if rest else zero
        if total:
            for token in range(size):
                masses[depth][number * size + token] += rejected * accept * residual[token] / total
        return rejected * (one - accept)

    visit(0, 0, one, one)
    return masses


def law_rows(repeats: int, complaints: list[str]) -> Iterator[dict[str, Any]]:
    for vocab_size, length in LAWS:
        pair = instances.random_rational(44, vocab_size, length)
        if [list(mass) for mass in output_law("block", pair).numbers] != walk(pair):
            complaints.append(f"law, V = {vocab_size}, L = {length}: the walk gives another law")

        def judged(pair: ModelPair = pair) -> Any:
            return certify("block", pair, with_optimum=False)

        runs = {
            "law": lambda pair=pair: output_law("block", pair),
            "certify": judged,
            "walk": lambda pair=pair: walk(pair),
        }
        seconds = median_seconds(runs, repeats, time.process_time)
        yield {
            "what": "law",
            "shape": f"V = {vocab_size}, L = {length}",
            "size": vocab_size**length,
            "seconds": seconds["law"],
            "beside": seconds["walk"],
            "certify": seconds["certify"],
        }


def greedy_rows(repeats: int, complaints: list[str]) -> Iterator[dict[str, Any]]:
    for vocab_size, length, num_drafts in GREEDY:
        pair = instances.random_rational(5, vocab_size, length, zero_probability=0)
        runs = {
            "law": lambda pair=pair, drafts=num_drafts: output_law("greedy_multipath", pair, drafts),
            "walk": lambda pair=pair, drafts=num_drafts: greedy_walk(pair, drafts),
        }
        if [list(mass) for mass in runs["law"]().numbers] != runs["walk"]():
            complaints.append(f"greedy law, V = {vocab_size}, L = {length}: the walk gives another law")
        seconds = median_seconds(runs, repeats, time.process_time)
        yield {
            "what": "greedy law",
            "shape": f"V = {vocab_size}, L = {length}, K = {num_drafts}",
            "seconds": seconds["law"],
            "beside": seconds["walk"],
        }


def one_path_rows(repeats: int, complaints: list[str]) -> Iterator[dict[str, Any]]:
    for length in ONE_PATH:
        pair, runs = instances.two_token(1), {}
        runs["merged"] = lambda pair=pair, length=length: context_free_path_optimum(pair, length)
        if length <= 8:
            tree = instances.two_token(length)
            runs["tree"] = lambda tree=tree: single_path_optimum(tree)
            if runs["tree"]().value != runs["merged"]().value:
                complaints.append(f"one path, L = {length}: the tree has another optimum")
        seconds = median_seconds(runs, repeats, time.process_time)
        row = {
            "what": "one path",
            "shape": f"V = 2, L = {length}",
            "size": length,
            "seconds": seconds["merged"],
        }
        yield row | ({"beside": seconds["tree"]} if "tree" in seconds else {})


def interval_rows(repeats: int, complaints: list[str]) -> Iterator[dict[str, Any]]:
    pair = instances.two_token(1)
    for length in TWO_PATHS:
        best = context_free_interval(pair, 2, length, relative_gap=1e-2)
        if length == TWO_PATHS[0]:
            tree = multi_path_interval(instances.two_token(length), 2)
            if best.lower > tree.upper or tree.lower > best.upper:
                complaints.append(f"two paths, L = {length}: the intervals of the two ways do not meet")
        runs = {"two paths": lambda length=length: context_free_interval(pair, 2, length, relative_gap=1e-2)}
        seconds = median_seconds(runs, repeats, time.process_time)["two paths"]
        yield {"what": "two paths, 1e-2", "shape": f"V = 2, L = {length}", "size": length, "seconds": seconds}
    for length in TREES:
        tree = instances.random_float(0, 2, length)
        start = time.process_time()
        multi_path_interval(tree, 2)
        seconds = time.process_time() - start
        if length < ONCE:
            runs = {"tree": lambda tree=tree: multi_path_interval(tree, 2)}
            seconds = median_seconds(runs, repeats, time.process_time)["tree"]
        yield {"what": "tree, 1e-6", "shape": f"V = 2, L = {length}", "size": 2**length, "seconds": seconds}


def first_rows(repeats: int) -> Iterator[dict[str, Any]]:
    timed = "import time\n{}\nprint(time.process_time())"
    with tempfile.TemporaryDirectory() as empty:
        for name, code in FIRST.items():
            for cache in ("empty", "full", "cannot be written to"):
                found = []
                for turn in range(min(repeats, 3)):
                    folder = f"{empty}/{turn if cache == 'empty' else 0}{name}"
                    os.makedirs(folder, exist_ok=True)
                    variables = os.environ | {"NUMBA_CACHE_DIR": folder}
                    if cache == "cannot be written to":  # then a temporary folder is used, which may be full
                        variables |= {"NUMBA_CACHE_DIR": "/proc/1/none", "TMPDIR": "/proc/1/none"}
                    answer = subprocess.run(
                        [sys.executable, "-c", timed.format(code)],
                        env=variables,
                        capture_output=True,
                        text=True,
                        check=True,
                    )
                    found.append(float(answer.stdout.split()[-1]))
                row = {
                    "what": f"first {name}",
                    "shape": f"cache: {cache}",
                    "seconds": float(np.median(found)),
                }
                yield row


def exponents(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The slope of log seconds over log size, for everything that has three sizes or more."""
    found = []
    for what in dict.fromkeys(row["what"] for row in rows if "size" in row):
        of_it = [row for row in rows if row["what"] == what]
        if what == "law":
            of_it = [row for row in of_it if row["shape"].startswith("V = 4")]
        sizes, seconds = (np.log([row[key] for row in of_it]) for key in ("size", "seconds"))
        slope = round(float(np.polyfit(sizes, seconds, 1)[0]), 2)
        size = "leaves" if what.startswith(("law", "tree")) else "L"
        found.append({"what": what, "in": size, "from": len(of_it), "exponent": slope})
    return found


def rows(repeats: int, complaints: list[str]) -> Iterator[dict[str, Any]]:
    """All rows, printed as they are measured; where two ways differ, a complaint."""
    parts = (law_rows, greedy_rows, one_path_rows, interval_rows)
    measured = (row for part in parts for row in part(repeats, complaints))
    for row in chain(measured, first_rows(repeats)):
        if "beside" in row:
            row["to_beside"] = round(row["seconds"] / row["beside"], 2)
        if "certify" in row:
            row["certify_to_beside"] = round(row["certify"] / row["beside"], 2)
        row = {key: round(value, 5) if isinstance(value, float) else value for key, value in row.items()}
        print(*(f"{key} {value}" for key, value in row.items()), sep=", ", flush=True)
        yield row
