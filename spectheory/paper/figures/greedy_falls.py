"""More drafts, fewer tokens: the fall of greedy multi-path block verification."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.optima import multi_path_interval
from spectheory.optima.bounds.rankings import leaf_order
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.instances import sticky_chain, two_token, uniform_equal
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import legend_below, panels, verifier_curve
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.printed import printed_times
from spectheory.paper.style import BLACK, GREY

PAIRS: Mapping[str, Callable[[], ModelPair]] = {
    "two_token": lambda: two_token(2),
    "sticky_chain": lambda: sticky_chain(2),
    "uniform_equal": lambda: uniform_equal(2),
}
TITLES = {
    "two_token": "two-token pair",
    "sticky_chain": "Markov pair",
    "uniform_equal": "two fair coins, equal models",
}
EXACT_LAW_UP_TO = 4  # the law by enumeration, as the second route


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"greedy_falls": _plot(findings.table("greedy_falls"))}


@exhibit(
    title="Greedy multi-path falls as drafts are added", source="greedy2026, Table 1, section 6", draw=_draw
)
def greedy_falls(
    names: Sequence[str] = tuple(PAIRS), num_drafts: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
) -> Findings:
    """Block efficiency of greedy multi-path over K, exactly, its limit, block on one path, and the optimum.

    As K grows the selected path becomes the highest-ranked leaf.  The limit is what block verification
    earns against a draft that always proposes it.

    Args:
        names: which pairs; the default has all.
        num_drafts: the numbers K.
    """
    rows, differ, away, fallen, routes = [], [], [], [], 0
    for name in names:
        pair = PAIRS[name]()
        block = output_law("block", pair).block_efficiency
        limit = limit_of_many_drafts(pair)
        values = []
        for drafts in num_drafts:
            value = SkewedDraft.from_ranking(pair, drafts).block_efficiency(pair)
            best = multi_path_interval(pair, drafts)
            rows.append((
                name, drafts, value if drafts <= EXACT_LAW_UP_TO else None, float(value), block, float(block),
                limit, float(limit), best.lower,
            ))  # fmt: skip
            values.append(value)
            if drafts <= EXACT_LAW_UP_TO:
                routes += 1
                enumerated = output_law("greedy_multipath", pair, drafts).block_efficiency
                if enumerated != value:
                    differ.append(f"{name}, K = {drafts}: {enumerated} and {value}")
        if any(later < earlier for earlier, later in pairwise(values)):
            fallen.append(name)
        gap = abs(float(values[-1] - limit))
        # a leaf of draft mass m is missed with probability (1 - m)^K
        if gap > (pair.draft_length + 1) * (1 - _top_mass(pair)) ** num_drafts[-1] + 1e-12:
            away.append(f"{name}: {gap} from the limit at K = {num_drafts[-1]}")
    printed: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in printed_times():
        printed[row.target, row.draft, row.dataset].append(row.block_efficiency)
    grows = [f"{place}: {values}" for place, values in printed.items() if sorted(values) != values]
    refuted = [] if fallen else ["it fell on no pair"]
    return Findings(
        explanation=(
            "The paper's Table 1 grows with K on its models. In general greedy multi-path can fall, below "
            "block verification on one path and towards what its highest-ranked path earns: 19/9 on the "
            "two-token pair."
        ),
        settings={"names": list(names), "num_drafts": list(num_drafts)},
        tables=[
            ResultTable(
                "greedy_falls",
                (
                    "pair", "num_drafts", "greedy_multipath", "greedy_multipath_float", "block",
                    "block_float",
                    "limit", "limit_float", "optimum_float",
                ),
                rows,
                "Block efficiency in tokens per target call, draft length 2; block on one path; the limit "
                "of many drafts. Exact, the optimum from below within 1e-6.",
            ),
            ResultTable(
                "greedy_falls_printed",
                ("target", "draft", "dataset", "K_1", "K_2", "K_3", "K_4"),
                [(*place, *values) for place, values in printed.items()],
                "As printed in greedy2026 Table 1: other models, so nothing to be equal to.",
            ),
        ],
        checks=[
            Check.of("the closed form (Eq. 16) equals the enumerated law, exactly", routes, differ),
            Check.of("every row of the printed table grows with K", len(printed), grows),
            Check.of("it does not always grow: there is a pair on which it falls", len(names), refuted),
            Check.of("it tends to what the highest-ranked path earns", len(names), away),
        ],
    )  # fmt: skip


def limit_of_many_drafts(pair: ModelPair) -> Any:
    """Block efficiency against the draft that always proposes the highest-ranked leaf.

    Example:
        >>> print(limit_of_many_drafts(two_token(2)))
        19/9
    """
    law = pair.draft_path_probs(pair.draft_length) * 0
    law[leaf_order(pair)[-1]] = Fraction(1)
    return SkewedDraft.summed(pair, law).block_efficiency(pair)


def _top_mass(pair: ModelPair) -> float:
    return float(pair.draft_path_probs(pair.draft_length)[leaf_order(pair)[-1]])


def _plot(table: ResultTable) -> Figure:
    names = list(dict.fromkeys(table.column("pair")))
    with panels(1, len(names), width=2.7, height=3.3, sharey=True) as (figure, all_axes):
        for axes, name in zip(all_axes, names, strict=True):
            rows = table.select(pair=name)
            drafts = [row["num_drafts"] for row in rows]
            axes.plot(drafts, [row["optimum_float"] for row in rows], color=BLACK, linestyle=(0, (4, 2)),
                      linewidth=1.2, label="optimum")  # fmt: skip
            verifier_curve(axes, "block", drafts, [row["block_float"] for row in rows], marker="",
                           label="block, one path")  # fmt: skip
            verifier_curve(axes, "greedy_multipath", drafts, [row["greedy_multipath_float"] for row in rows])
            axes.axhline(rows[0]["limit_float"], color=GREY, linestyle=":", linewidth=1.2, label="limit")
            axes.set_xscale("log", base=2)
            axes.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
            axes.set(xlabel="number of drafts K")
            axes.set_title(TITLES[name], fontsize=9)
        all_axes[0].set_ylabel("block efficiency [tokens per target call]")
        legend_below(figure)
    return figure
