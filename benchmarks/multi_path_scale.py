"""Time to a certified gap on the multi-path optimum, against the number of leaves.

Three methods on the same random pairs in the same run:

- ``interval``: ``multi_path_interval`` (interior point with adaptive chords);
- ``antichain LP``: the program with every antichain listed, through HiGHS; refused beyond 100 000;
- ``leaf-set cuts``: the leaf form with one most violated leaf set per round, warm-started HiGHS.

Four parts: ``listed``, every tree whose antichains can be listed and the next ones, which are refused
(K = 2, independent rows); ``scaling``, 15 pairs of one family for every size up to 10 000 leaves (K = 4),
where a method that runs out of time on the first pair of a size has no more of it; ``families``, the interval
alone on six families and four K; ``shapes``, the interval alone on flat and deep trees of about 1 000 and
10 000 leaves, of which the slowest are named at the end.  A fifth one, ``--part large``, takes up to 2^20
leaves and twenty minutes of CPU, and fits how the time grows.

Pairs are ``instances.random_float(seed, V, L, concentration, agreement)``: Dirichlet rows, the draft's
row mixed from the target's and an independent one.  Every case runs in a process of its own, so
that its peak memory is known.  Seconds are of CPU time, on which other work hardly tells.

Run: ``PYTHONPATH=. OPENBLAS_NUM_THREADS=1 python benchmarks/multi_path_scale.py --out FILE.json``; the plot
is written beside it.  With ``--part`` the other parts stay as they are in that file, and with
``--redraw`` all of them.  One BLAS thread is also the fastest setting on a machine that does other work at
the same time.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import highspy
import numpy as np
from rich.console import Console
from rich.table import Table
from timing import write

from figures.style import ACCENT, Look, figure_bytes, label_point, legend_below, note, panels
from spectheory import instances
from spectheory.foundation.errors import ComputationError, EnumerationTooLargeError
from spectheory.optima import multi_path_program, solve
from spectheory.optima.bounds.context_tree import ContextTree
from spectheory.optima.bounds.dual_scores import certified_bound_of_slacks
from spectheory.optima.bounds.level_sets import LevelSets
from spectheory.optima.bounds.lower_bounds import certified_bound_of_draft
from spectheory.optima.interval.interval import multi_path_interval
from spectheory.optima.multi_path import MAX_ANTICHAINS, count_antichains
from spectheory.pairs.contexts import split_by_depth
from spectheory.pairs.pair import ModelPair
from spectheory.verification.curves import BLACK, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = ("listed", "scaling", "families", "shapes", "large")
PAIRS = 15
"""Pairs of every size in the part ``scaling``."""
SCALING_SHAPES = ((2, 2), (2, 3), (2, 5), (2, 8), (2, 9), (10, 3), (2, 11), (3, 7), (2, 12), (10, 4))
CONCENTRATIONS, AGREEMENTS, NUM_DRAFTS = (0.3, 1.0), (0.0, 0.5, 0.9), (2, 3, 4, 8)
SHAPES = (((1_000, 1), (32, 2), (10, 3), (4, 5), (2, 10)), ((7_000, 1), (100, 2), (10, 4), (4, 7), (2, 13)))
SHAPE_CONCENTRATIONS, SHAPE_AGREEMENTS, SHAPE_NUM_DRAFTS = (0.3, 1.0, 10.0), (0.0, 0.5), (2, 4, 16)
LARGE_SHAPES = ((2, 14), (2, 16), (2, 18), (2, 20), (10, 4), (10, 5), (10, 6))
BASELINE_LEAVES = 1_000
"""Leaf-set cuts are not run on larger trees."""
LISTED_SHAPES = (*((V, 1) for V in range(2, 18)), (2, 2), (2, 3), (2, 4), (3, 2), (4, 2))
"""All trees with at most 100 000 antichains, and two with more: (17, 1) has 131 071, (2, 4) has 458 329."""
STYLES = {"interval": (BLACK, "o"), "antichain LP": ("#B5542B", "s"), "leaf-set cuts": (ACCENT, "^")}
NAMES = {
    "interval": "interior point, from both sides", "antichain LP": "program with all antichains",
    "leaf-set cuts": "leaf-set cuts",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One run: a method on a pair of a family, to a relative gap, within a time limit in seconds."""

    part: str
    method: str
    vocab_size: int
    draft_length: int
    num_drafts: int
    concentration: float
    agreement: float
    relative_gap: float
    time_limit: float
    seed: int = 1

    @property
    def leaves(self) -> int:
        """V^L."""
        return self.vocab_size**self.draft_length

    @property
    def antichains(self) -> int:
        """The rows of the antichain program: non-empty antichains of the tree."""
        return count_antichains(self.vocab_size, self.draft_length) - 1

    def pair(self) -> ModelPair:
        """The models of the case."""
        return instances.random_float(
            self.seed, self.vocab_size, self.draft_length, self.concentration, self.agreement
        )


@dataclass(frozen=True)
class Result:
    """What a run reached; ``peak_megabytes`` counts the interpreter and its imports too."""

    case: Case
    status: str
    seconds: float
    lower: float
    upper: float
    rounds: int
    segments: int
    peak_megabytes: float

    @property
    def relative_gap(self) -> float:
        """(upper - lower) / lower."""
        return (self.upper - self.lower) / self.lower


def leaf_set_cuts(case: Case, pair: ModelPair) -> tuple[str, float, float, int]:
    """max Σ x with x(a) ≤ r(a), x(a, t) ≤ p(t|a) x(a), Σ r = 1 and a growing list of r(S) ≤ f(q(S)).

    Every round adds the most violated leaf set.  Bounds: the rows' multipliers are slacks, the point
    scaled into the program is feasible, both certified as for ``multi_path_interval``.

    Returns:
        (status, lower, upper, rounds).
    """
    started = time.process_time()
    V, L = case.vocab_size, case.draft_length
    tree = ContextTree.of(pair)
    sizes = [V**depth for depth in range(L + 1)]
    first = np.concatenate([[0], np.cumsum(sizes)])  # x of depth d starts at first[d], r at first[L + 1]
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    for column in range(first[-1] + sizes[-1]):
        solver.addVar(1.0 if column == 0 else 0.0, 1.0)
        solver.changeColCost(column, -1.0 if column < first[-1] else 0.0)
    for depth in range(1, L + 1):
        for node in range(sizes[depth]):
            parent = first[depth - 1] + node // V
            conditional = -float(tree.target_rows[depth - 1].flat[node])
            solver.addRow(-highspy.kHighsInf, 0.0, 2, [first[depth] + node, parent], [1.0, conditional])
    for depth in range(1, L + 1):
        below = V ** (L - depth)
        for node in range(sizes[depth]):
            leaves = first[-1] + np.arange(node * below, (node + 1) * below)
            columns = np.concatenate([[first[depth] + node], leaves])
            solver.addRow(-highspy.kHighsInf, 0.0, len(columns), columns, np.append(1.0, -np.ones(below)))
    solver.addRow(1.0, 1.0, sizes[-1], first[-1] + np.arange(sizes[-1]), np.ones(sizes[-1]))

    lower, upper, rounds = 1.0, float(L + 1), 0
    while time.process_time() - started < case.time_limit:
        solver.setOptionValue("time_limit", solver.getRunTime() + case.time_limit)
        solver.run()
        rounds += 1
        solution = solver.getSolution()
        law = np.maximum(np.array(solution.col_value)[first[-1] :], 0.0)
        slacks = np.maximum(-np.array(solution.row_dual)[: first[-1] - 1], 0.0)
        z = split_by_depth(np.append(0.0, slacks), V, L)
        lower = max(lower, certified_bound_of_draft(tree, case.num_drafts, law).value)
        upper = min(upper, certified_bound_of_slacks(tree, case.num_drafts, z).value)
        if upper - lower <= case.relative_gap * lower:
            return "optimal", lower, upper, rounds
        sets = LevelSets.of(law, tree.draft_probs[-1], case.num_drafts)
        if sets.is_feasible(tolerance=1e-12):
            return "stalled", lower, upper, rounds
        worst = int(np.argmax(sets.shares))
        members, limit = sets.leaves(worst), float(sets.limits[worst])
        solver.addRow(-highspy.kHighsInf, limit, len(members), first[-1] + members, np.ones(len(members)))
    return "time limit", lower, upper, rounds


def run(case: Case) -> Result:
    """One case, in this process; drawing the pair is not part of its time."""
    pair = case.pair()
    started = time.process_time()
    status, lower, upper, rounds, segments = "optimal", 1.0, float("inf"), 0, 0
    if case.method == "interval":
        best = multi_path_interval(
            pair, case.num_drafts, relative_gap=case.relative_gap, time_limit=case.time_limit
        )
        status, lower, upper, rounds, segments = (
            best.status,
            best.lower,
            best.upper,
            best.rounds,
            best.segments,
        )
    elif case.method == "antichain LP":
        try:
            listed = solve(multi_path_program(pair, case.num_drafts))
            lower, upper = listed.lower, listed.upper
        except (EnumerationTooLargeError, ComputationError) as error:
            status = type(error).__name__
    else:
        status, lower, upper, rounds = leaf_set_cuts(case, pair)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Result(case, status, seconds, lower, upper, rounds, segments, peak)


def all_cases(largest: int, large_gap: float) -> list[Case]:
    """The listed part (small trees), the scaling part (one family) and the families part."""
    cases = []
    for V, L in LISTED_SHAPES:
        cases += [Case("listed", method, V, L, 2, 1.0, 0.0, 1e-6, 30.0) for method in STYLES]
    most_leaves = {"interval": largest, "leaf-set cuts": BASELINE_LEAVES}
    for V, L in SCALING_SHAPES:
        leaves = V**L
        for method, most in most_leaves.items():
            if leaves <= min(most, largest):
                gap = 1e-6 if leaves < 10_000 else large_gap
                cases += [
                    Case("scaling", method, V, L, 4, 1.0, 0.5, gap, 30.0, seed)
                    for seed in range(1, PAIRS + 1)
                ]
    for L, gap in ((3, 1e-6), (4, large_gap)):
        if largest < 10**L:
            continue
        for concentration in CONCENTRATIONS:
            for agreement in AGREEMENTS:
                cases += [
                    Case("families", "interval", 10, L, num_drafts, concentration, agreement, gap, 120.0)
                    for num_drafts in NUM_DRAFTS
                ]
    for shapes, gap in zip(SHAPES, (1e-6, large_gap), strict=True):
        grid = product(shapes, SHAPE_CONCENTRATIONS, SHAPE_AGREEMENTS, SHAPE_NUM_DRAFTS)
        cases += [
            Case("shapes", "interval", V, L, num_drafts, concentration, agreement, gap, 120.0)
            for (V, L), concentration, agreement, num_drafts in grid
            if largest >= V**L
        ]
    cases += [Case("large", "interval", V, L, 2, 1.0, 0.0, 1e-6, 3_600.0) for V, L in LARGE_SHAPES]
    return cases


def exponents(results: Sequence[Result]) -> list[str]:
    """One line per vocabulary of the part ``large``: the slope of log seconds over log leaves."""
    lines = []
    for V in dict.fromkeys(V for V, _ in LARGE_SHAPES):
        done = [r for r in results if r.case.part == "large" and r.case.vocab_size == V]
        if len(done) > 2:
            sizes, seconds = np.log([(r.case.leaves, r.seconds) for r in done]).T
            lines.append(f"V = {V}: time grows as leaves^{np.polyfit(sizes, seconds, 1)[0]:.2f}")
    return lines


def slowest(results: Sequence[Result]) -> list[str]:
    """One line per size of trees: the slowest case of the part ``shapes``, of how many."""
    lines = []
    for size, shapes in zip(("about 1 000", "about 10 000"), SHAPES, strict=True):
        of_shapes = [r for r in results if r.case.part == "shapes"]
        done = [r for r in of_shapes if (r.case.vocab_size, r.case.draft_length) in shapes]
        if not done:
            continue
        worst = max(done, key=lambda result: result.seconds)
        reached = sum(result.status == "optimal" for result in done)
        median = sorted(result.seconds for result in done)[len(done) // 2]
        lines.append(
            f"{size} leaves, gap {worst.case.relative_gap:g}, {len(done)} trees: reached on {reached}, "
            f"median {median:.2f} s, within 5 s {sum(result.seconds <= 5 for result in done)}, slowest "
            f"{worst.seconds:.2f} s (V = {worst.case.vocab_size}, L = {worst.case.draft_length}, "
            f"K = {worst.case.num_drafts}, concentration {worst.case.concentration:g}, "
            f"agreement {worst.case.agreement:g}, gap {worst.relative_gap:.1e})"
        )
    return lines


def machine() -> dict[str, object]:
    """What the times were measured on."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "load_average_at_start": os.getloadavg(),
        "openblas_num_threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
    }


def table_of(results: Sequence[Result]) -> Table:
    """All results as one rich table."""
    table = Table(title="Multi-path optimum: certified bounds")
    for heading in ("part", "method", "leaves", "V", "L", "K", "Dirichlet", "agreement", "seconds"):
        table.add_column(heading, justify="left" if heading in ("part", "method") else "right")
    for heading in ("lower", "relative gap", "rounds", "segments", "MB", "status"):
        table.add_column(heading, justify="left" if heading == "status" else "right")
    for result in results:
        case = result.case
        table.add_row(
            case.part,
            case.method,
            str(case.leaves),
            str(case.vocab_size),
            str(case.draft_length),
            str(case.num_drafts),
            f"{case.concentration:g}",
            f"{case.agreement:g}",
            f"{result.seconds:.2f}",
            f"{result.lower:.6f}",
            f"{result.relative_gap:.1e}",
            str(result.rounds),
            str(result.segments),
            f"{result.peak_megabytes:.0f}",
            result.status,
        )
    return table


def plot(results: Sequence[Result], path: Path) -> None:
    """Two panels, log-log: seconds by listed antichains, and by leaves."""
    with panels(1, 2, width=5.0, height=4.2) as (figure, (left, right)):
        for axes in (left, right):
            axes.set(xscale="log", yscale="log", ylabel="seconds to a certified relative gap of $10^{-6}$")
        _plot_listed(left, [result for result in results if result.case.part == "listed"])
        _plot_scaling(right, [result for result in results if result.case.part in ("scaling", "families")])
        legend_below(figure, 2)
    path.write_bytes(figure_bytes(figure, "png"))


def _plot_listed(axes: Axes, listed: Sequence[Result]) -> None:
    """Every method by the number of antichains, deeper trees apart; a cross where the list is refused."""
    for method, (color, marker) in STYLES.items():
        done = [r for r in listed if r.case.method == method and r.status == "optimal"]
        done.sort(key=lambda result: result.case.antichains)
        for one_level in (True, False):
            shown = [r for r in done if (r.case.draft_length == 1) == one_level]
            places = [r.case.antichains for r in shown], [r.seconds for r in shown]
            look: Look = {"color": color, "linewidth": 1.2, "linestyle": "-" if one_level else "none"}
            look |= {"label": NAMES[method]} if one_level else {"markerfacecolor": "white"}
            axes.plot(*places, marker, **look)
    note(axes, "lines: L = 1; hollow: L = 2, 3, 4", (0.02, 0.95), ha="left")
    refused = [r.case.antichains for r in listed if r.status == "EnumerationTooLargeError"]
    slowest = max(result.seconds for result in listed)
    color, _ = STYLES["antichain LP"]
    axes.plot(refused, [2 * slowest] * len(refused), "x", color=color, markersize=9)
    axes.axvline(MAX_ANTICHAINS, color=color, linestyle=":", linewidth=1.2)
    text = f"not listed beyond\n{MAX_ANTICHAINS:,} antichains".replace(",", " ")
    label_point(axes, text, (MAX_ANTICHAINS, 2 * slowest), (-5, 0), ha="right", va="center", color=color)
    axes.set(xlabel="non-empty antichains of the tree", ylim=(None, 5 * slowest))
    axes.set_title("All trees that can be listed, K = 2 drafts")


def _plot_scaling(axes: Axes, results: Sequence[Result]) -> None:
    """Medians and ranges of both methods that need no list, by leaves; hollow: not reached.

    Lines are of V = 2; trees of more tokens take other times with as many leaves.
    """
    for method in ("interval", "leaf-set cuts"):
        color, marker = STYLES[method]
        chosen = [r for r in results if r.case.part == "scaling" and r.case.method == method]
        for binary in (True, False):
            by_leaves: dict[int, list[float]] = {}
            for result in sorted(chosen, key=lambda result: result.case.leaves):
                if result.status == "optimal" and (result.case.vocab_size == 2) == binary:
                    by_leaves.setdefault(result.case.leaves, []).append(result.seconds)
            ends = [[end(seconds) for seconds in by_leaves.values()] for end in (min, max)]
            medians = [*map(np.median, by_leaves.values())]
            if binary:
                axes.fill_between([*by_leaves], ends[0], ends[1], color=color, alpha=0.15, linewidth=0)
                axes.plot([*by_leaves], medians, marker, linestyle="-", color=color)
            elif by_leaves:
                bars = np.abs(np.subtract(ends, medians))
                axes.errorbar([*by_leaves], medians, yerr=bars, fmt=marker, color=color, capsize=3)
        missed = [r for r in chosen if r.status != "optimal"]
        if missed:
            at = [r.case.leaves for r in missed], [r.seconds for r in missed]
            axes.plot(*at, marker, color=color, markerfacecolor="white")
            text = f"not reached in {missed[0].case.time_limit:g} s"
            label_point(axes, text, (at[0][-1], at[1][-1]), (7, 0), va="center", color=color)
    families = [result for result in results if result.case.part == "families"]
    label = f"{NAMES['interval']}, six other families, K = 2, 3, 4 and 8"
    places = [result.case.leaves for result in families], [result.seconds for result in families]
    axes.plot(*places, ".", color=GREY, alpha=0.6, label=label)
    text = f"K = 4: medians of {PAIRS} pairs, and all\nof them: shaded around lines for\n"
    text += "V = 2, as bars for V = 3 and 10"
    note(axes, text, (0.02, 0.8), ha="left")
    axes.set(xlabel="leaves of the tree, $V^L$")
    axes.set_title("Trees of up to 10 000 leaves")


@click.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="JSON file; the plot goes beside it as PNG.",
)
@click.option("--largest", default=16_384, show_default=True, help="Largest number of leaves.")
@click.option("--large-gap", default=1e-6, show_default=True, help="Relative gap asked at 10 000 leaves.")
@click.option(
    "--part", "parts", type=click.Choice(PARTS), multiple=True, default=PARTS[:4], help="Only these."
)
@click.option("--redraw", is_flag=True, help="Measure nothing; draw what --out holds.")
def main(out: Path | None, largest: int, large_gap: float, parts: Sequence[str], redraw: bool) -> None:
    """Run all cases, print a table, and write results to --out."""
    console, described = Console(width=170), machine()
    document: dict[str, Any] = {"machine": described}
    kept: list[Result] = []
    parts = () if redraw else parts
    if set(parts) < set(PARTS) and out is not None:
        document = json.loads(out.read_text(encoding="utf-8"))
        kept = [_from_json(entry) for entry in document["results"] if entry["case"]["part"] not in parts]
        document["machine_of_part"] = document.get("machine_of_part", {}) | dict.fromkeys(parts, described)
    console.print(described)
    results = [
        *kept,
        *_measured([case for case in all_cases(largest, large_gap) if case.part in parts], console),
    ]
    results.sort(key=lambda result: PARTS.index(result.case.part))
    console.print(table_of(results))
    for line in (*slowest(results), *exponents(results)):
        console.print(line)
    write(out, document | {"results": [_as_json(result) for result in results]})
    if out is not None:
        plot(results, out.with_suffix(".png"))


def _measured(cases: Sequence[Case], console: Console) -> Iterator[Result]:
    """The results of the cases, but no second one of a size on which the method ran out of time."""
    # every case is forked from here, so neither the solvers' imports nor compiled loops are part of its time
    for method, L in (("antichain LP", 1), ("interval", 3)) if cases else ():
        run(Case("warm-up", method, 2, L, 2, 1.0, 0.0, 1e-6, 30.0))
    too_large = set()
    for case in cases:
        kind = case.part, case.method, case.vocab_size, case.draft_length
        if kind in too_large:
            continue
        with multiprocessing.get_context("fork").Pool(1) as pool:
            done = pool.apply(run, (case,))
        if case.part == "scaling" and done.status == "time limit":
            too_large.add(kind)
        console.print(
            f"{case.part} {case.method}: {case.leaves} leaves, K={case.num_drafts}, {done.seconds:.2f} s"
        )
        yield done


def _as_json(result: Result) -> dict[str, object]:
    """The result and its relative gap; a refused program has no upper bound, hence null for both."""
    entry = asdict(result) | {"relative_gap": result.relative_gap}
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in entry.items()
    }


def _from_json(entry: dict[str, Any]) -> Result:
    """The inverse of ``_as_json``."""
    numbers = {name: entry[name] for name in ("status", "seconds", "rounds", "segments", "peak_megabytes")}
    lower, upper = (math.nan if entry[name] is None else entry[name] for name in ("lower", "upper"))
    return Result(Case(**entry["case"]), **numbers, lower=lower, upper=upper)


if __name__ == "__main__":
    main()
