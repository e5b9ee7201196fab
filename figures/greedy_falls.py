from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from matplotlib.figure import Figure

from figures.common.printed import printed_times
from figures.results import Checks, Findings, ResultTable, result
from figures.style import BROKEN, panels_by
from spectheory.exact.law import output_law
from spectheory.optima import multi_path_interval
from spectheory.optima.bounds.rankings import leaf_order
from spectheory.optima.bounds.skewed_draft import SkewedDraft
from spectheory.pairs.instances import sticky_chain, two_token, uniform_equal
from spectheory.pairs.pair import ModelPair
from spectheory.verification.curves import GREY, verifier_curve

PAIRS: Mapping[str, Callable[[int], ModelPair]] = {
    "two_token": two_token, "sticky_chain": sticky_chain, "uniform_equal": uniform_equal,
}  # fmt: skip
TITLES = {
    "two_token": "two-token pair",
    "sticky_chain": "Markov pair",
    "uniform_equal": "two fair coins, equal models",
}
EXACT_LAW_UP_TO = 4  # the law by enumeration, as the second route


def _draw(findings: Findings) -> Figure:
    table = findings.table("greedy_falls")
    label = "block efficiency [tokens per target call]"
    with panels_by(table, "pair", label, width=2.7, height=3.3) as (figure, parts):
        for axes, name, rows in parts:
            drafts = rows["num_drafts"]
            axes.plot(drafts, rows["optimum"], **BROKEN, label="optimum")
            verifier_curve(axes, "block", drafts, rows["block"], marker="", label="block, one path")
            verifier_curve(axes, "greedy_multipath", drafts, rows["greedy_multipath"])
            axes.axhline(rows["limit"][0], color=GREY, linestyle=":", linewidth=1.2, label="limit")
            axes.set_xscale("log", base=2)
            axes.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
            axes.set(xlabel="number of drafts K")
            axes.set_title(TITLES[name], fontsize=9)
    return figure


@result(
    title="Greedy multi-path falls as drafts are added",
    source="greedy2026, Table 1, section 6",
    draw=_draw,
    small={"names": ("two_token", "uniform_equal"), "num_drafts": (1, 2, 4, 16)},
)
def greedy_falls(
    names: Sequence[str] = tuple(PAIRS), num_drafts: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
) -> Findings:
    """Block efficiency of greedy multi-path over K, exactly, its limit, block on one path, and the optimum.

    As K grows the selected path becomes the highest-ranked leaf.  The limit is what block verification
    earns against a draft that always proposes it.
    """
    checks = Checks()
    table = ResultTable(
        "greedy_falls",
        "Block efficiency in tokens per target call, draft length 2; block on one path; the limit "
        f"of many drafts. Exact, greedy_multipath up to K = {EXACT_LAW_UP_TO}; the optimum from above within "
        "1e-6.",
    )
    fallen = False
    for name in names:
        pair = PAIRS[name](2)
        block, limit = output_law("block", pair).block_efficiency, limit_of_many_drafts(pair)
        values = []
        for drafts in num_drafts:
            value = SkewedDraft.from_ranking(pair, drafts).block_efficiency(pair)
            best = multi_path_interval(pair, drafts).upper
            values.append(value)
            claim = "neither exceeds the optimum"
            checks.expect(claim, max(block, value) <= best, f"{name}, K = {drafts}: {value} > {best}")
            table.add(
                pair=name, num_drafts=drafts, block=block, limit=limit,
                greedy_multipath=value if drafts <= EXACT_LAW_UP_TO else float(value),
                optimum=best,
            )  # fmt: skip
            if drafts <= EXACT_LAW_UP_TO:
                enumerated = output_law("greedy_multipath", pair, drafts).block_efficiency
                claim = "the closed form (Eq. 16) equals the enumerated law, exactly"
                checks.expect(claim, enumerated == value, f"{name}, K = {drafts}: {enumerated} and {value}")
        fallen |= any(later < earlier for earlier, later in pairwise(values))
        gap = abs(float(values[-1] - limit))
        # a leaf of draft mass m is missed with probability (1 - m)^K
        missed = (1 - float(pair.draft_path_probs(2)[leaf_order(pair)[-1]])) ** num_drafts[-1]
        claim = "it tends to what the highest-ranked path earns"
        checks.expect(
            claim, gap <= 3 * missed + 1e-12, f"{name}: {gap} from the limit at K = {num_drafts[-1]}"
        )
    claim = "it does not always grow: there is a pair on which it falls"
    checks.expect(claim, fallen, "it fell on no pair")
    by_place: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in printed_times():
        by_place[row.target, row.draft, row.dataset].append(row.block_efficiency)
    printed = ResultTable(
        "greedy_falls_printed",
        "As printed in greedy2026 Table 1: other models, so nothing to be equal to.",
        ("target", "draft", "dataset", "K_1", "K_2", "K_3", "K_4"),
        [(*place, *values) for place, values in by_place.items()],
    )
    for place, values in by_place.items():
        claim = "every row of the printed table grows with K"
        checks.expect(claim, sorted(values) == values, f"{place}: {values}")
    return Findings(
        "The paper's Table 1 grows with K on its models. In general greedy multi-path can fall, below "
        "block verification on one path and towards what its highest-ranked path earns: 19/9 on the "
        "two-token pair.",
        tables=[table, printed],
        checks=checks,
    )


def limit_of_many_drafts(pair: ModelPair) -> Any:
    """Block efficiency against the draft that always proposes the highest-ranked leaf.

    Example:
        >>> print(limit_of_many_drafts(two_token(2)))
        19/9
    """
    law = pair.draft_path_probs(pair.draft_length) * 0
    law[leaf_order(pair)[-1]] = Fraction(1)
    return SkewedDraft.summed(pair, law).block_efficiency(pair)


if __name__ == "__main__":
    greedy_falls.main()
