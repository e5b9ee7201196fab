"""Repeated timing of alternatives in one process, and what machine it was."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

PACKAGES = ("numpy", "scipy", "cvxpy", "highspy", "python-flint")


def median_seconds(
    alternatives: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = perf_counter,
    untimed: int = 0,
) -> dict[str, float]:
    """The median time of each alternative, in seconds.

    Every alternative runs once untimed (imports, caches), then all take turns ``repeats`` times, so
    that a slow minute of the machine falls on all of them.

    Args:
        alternatives: name -> function without arguments.
        repeats: timed runs of each, at least 5.
        clock: wall time by default; ``process_time`` does not count what other processes take.
        untimed: runs of an alternative before each timed one, so that its data and code lie in the
            processor's caches, and not what the one before it left there.

    Raises:
        ValueError: fewer than 5 repeats.
    """
    if repeats < 5:
        raise ValueError(f"a median needs at least 5 repeats, got {repeats}")
    times: dict[str, list[float]] = {name: [] for name in alternatives}
    for name in alternatives:
        alternatives[name]()
    for _ in range(repeats):
        for name, run in alternatives.items():
            for _ in range(untimed):
                run()
            start = clock()
            run()
            times[name].append(clock() - start)
    return {name: median(values) for name, values in times.items()}


def machine() -> dict[str, Any]:
    """Processor, cores this process may use, and the versions that matter."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES if find_spec(name.removeprefix("python-"))},
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def ratio_entry(
    claim: str, fast: str, slow: str, seconds: Mapping[str, float], **details: Any
) -> dict[str, Any]:
    """One line of the results: how many times faster ``fast`` is than ``slow``."""
    return {
        "claim": claim,
        "fast": fast,
        "fast_seconds": seconds[fast],
        "slow": slow,
        "slow_seconds": seconds[slow],
        "ratio": seconds[slow] / seconds[fast],
        **details,
    }


def arguments(description: str | None) -> argparse.Namespace:
    """``--repeats`` and ``--out``, the same for every benchmark."""
    return argument_parser(description).parse_args()


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    """A parser of ``--repeats`` and ``--out``, for more of them."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--repeats", type=int, default=5, help="timed runs of each alternative, at least 5")
    parser.add_argument("--out", type=Path, help="write the results as JSON to this file")
    return parser


def report(entries: list[dict[str, Any]], repeats: int, out: Path | None) -> None:
    """Print a table of the ratios, and write the JSON if a file was named."""
    from rich.console import Console
    from rich.table import Table

    described = machine()
    table = Table(title=f"{described['processor']}, {described['cores']} cores; medians of {repeats}")
    for column in ("claim", "fast", "ms", "slow", "ms", "ratio"):
        table.add_column(column, justify="right" if column in ("ms", "ratio") else "left")
    for entry in entries:
        fast, slow = entry["fast_seconds"] * 1e3, entry["slow_seconds"] * 1e3
        row = (entry["claim"], entry["fast"], f"{fast:.3f}", entry["slow"], f"{slow:.3f}")
        table.add_row(*row, f"{entry['ratio']:.1f}")
    Console(width=150).print(table)
    write(out, {"machine": described, "repeats": repeats, "results": entries})


def write(out: Path | None, document: Any) -> None:
    """Write the results as JSON, if a file was named; its folder is made."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def exit_status(complaints: Sequence[str]) -> int:
    """Print them on stderr, a line each; 1 if there is one."""
    for line in complaints:
        print(line, file=sys.stderr)
    return 1 if complaints else 0
