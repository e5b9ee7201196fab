"""The optimum of several paths against every verifier, over the number of drafts and their length."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.instances import sticky_chain, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import legend_below, optimum_curve, panels, verifier_curve
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit

PAIRS: Mapping[str, Callable[[int], ModelPair]] = {"two_token": two_token, "sticky_chain": sticky_chain}
TITLES = {"two_token": "two-token pair", "sticky_chain": "Markov pair"}
VERIFIERS = (
    "token", "block", "multi_round", "spectr", "otm", "greedy_multipath", "mixed_multipath",
    "optimal_multipath",
)  # fmt: skip
ONE_PATH = ("token", "block")
PUBLISHED = VERIFIERS[:-2]


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"several_paths": _plot(findings.tables[0])}


@exhibit(
    title="The optimum of several paths and every verifier",
    source="greedy2026, Theorems 4.3 and 4.6", draw=_draw,
)  # fmt: skip
def several_paths(
    names: Sequence[str] = tuple(PAIRS),
    num_drafts: Sequence[int] = (1, 2, 3, 4),
    draft_lengths: Sequence[int] = (1, 2, 3),
) -> Findings:
    """Block efficiency of every lossless verifier and the optimum of Theorem 4.3, for each K and L.

    Args:
        names: which pairs; the default has all.
        num_drafts: the numbers K.
        draft_lengths: the lengths L.
    """
    rows, above, lossy, falls, missed, one_path, other, exact, more = [], [], [], [], [], [], [], 0, 0
    for name in names:
        for length in draft_lengths:
            pair = PAIRS[name](length)
            previous = None
            for drafts in num_drafts:
                best = optimum(pair, drafts).value
                here = f"{name}, L = {length}, K = {drafts}"
                if previous is not None and best < previous:
                    falls.append(f"{here}: {float(best)} < {float(previous)}")
                previous, efficiency = best, {}
                for verifier in VERIFIERS:
                    own = 1 if verifier in ONE_PATH else drafts
                    law = output_law(verifier, pair.to_float(), own)
                    value, defect = float(law.block_efficiency), float(law.total_variation)
                    efficiency[verifier] = value
                    rows.append((
                        name, length, drafts, verifier, value, round(defect, 12), best, float(best),
                    ))  # fmt: skip
                    if value > float(best) + 1e-9:
                        above.append(f"{here}: {verifier} {value} > {float(best)}")
                    if defect > 1e-9:
                        lossy.append(f"{here}: {verifier} has defect {defect}")
                exact += 1
                if abs(efficiency["optimal_multipath"] - float(best)) > 1e-7:
                    missed.append(f"{here}: {efficiency['optimal_multipath']} < {float(best)}")
                if drafts > 2:
                    more += 1
                    if efficiency["otm"] < max(efficiency[verifier] for verifier in PUBLISHED) - 1e-9:
                        other.append(here)
                if drafts == 1 and abs(efficiency["greedy_multipath"] - efficiency["block"]) > 1e-9:
                    one_path.append(here)
    table = ResultTable(
        "several_paths",
        (
            "pair", "draft_length", "num_drafts", "verifier", "block_efficiency", "total_variation",
            "optimum", "optimum_float",
        ),
        rows,
        "Block efficiency in tokens per target call; optimum: exact, over all valid verifiers. token and "
        "block look at one path and are the same for every K.",
    )  # fmt: skip
    checks = [
        Check.of("every verifier here is lossless", len(rows), lossy),
        Check.of("none exceeds the optimum", len(rows), above),
        Check.of("a selected path that is block-verified attains it (Theorem 4.6)", exact, missed),
        Check.of("the optimum does not fall as K grows", exact, falls),
    ]
    if more:
        claim = "with more than two drafts OTM earns most of the published verifiers, on these pairs"
        checks.append(Check.of(claim, more, other))
    if 1 in num_drafts:
        claim = "greedy multi-path on one path is block verification (section 5)"
        checks.append(Check.of(claim, len(names) * len(draft_lengths), one_path))
    return Findings(
        explanation=(
            "No published verifier attains the optimum at every K and L. Greedy multi-path attains it for "
            "two drafts of the two-token pair and falls behind for more, where OTM is the best of the "
            "published ones. The optimal one selects a path by the program's law and block-verifies it."
        ),
        settings={
            "names": list(names), "num_drafts": list(num_drafts), "draft_lengths": list(draft_lengths),
        },
        tables=[table],
        checks=checks,
    )  # fmt: skip


def _plot(table: ResultTable) -> Figure:
    names = list(dict.fromkeys(table.column("pair")))
    most_drafts, longest = max(table.column("num_drafts")), max(table.column("draft_length"))
    with panels(len(names), 2, height=2.9, sharey="row") as (figure, all_axes):
        for row_number, name in enumerate(names):
            over_drafts, over_lengths = all_axes[2 * row_number : 2 * row_number + 2]
            for axes, over, fixed in (
                (over_drafts, "num_drafts", {"draft_length": longest}),
                (over_lengths, "draft_length", {"num_drafts": most_drafts}),
            ):
                for verifier in VERIFIERS[:-1]:
                    rows = table.select(pair=name, verifier=verifier, **fixed)
                    options = {"marker": ""} if verifier in ONE_PATH and over == "num_drafts" else {}
                    verifier_curve(
                        axes, verifier,
                        [row[over] for row in rows], [row["block_efficiency"] for row in rows],
                        **options,
                    )  # fmt: skip
                optimum_curve(axes, [row[over] for row in rows], [row["optimum_float"] for row in rows])
                axes.set_xticks([row[over] for row in rows])
                axes.set_xlabel({"num_drafts": "number of drafts K", "draft_length": "draft length L"}[over])
            over_drafts.set_ylabel("block efficiency\n[tokens per target call]")
            over_drafts.set_title(f"{TITLES[name]}, draft length {longest}")
            over_lengths.set_title(f"{TITLES[name]}, {most_drafts} drafts")
        legend_below(figure)
    return figure
