from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from matplotlib.figure import Figure

from figures.common.lossless import OPTIMAL, is_published, lossless_verifiers
from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, legend_below, panels
from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.instances import sticky_chain, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms import verifiers
from spectheory.verification.curves import optimum_curve, verifier_curve

PAIRS: Mapping[str, Callable[[int], ModelPair]] = {"two_token": two_token, "sticky_chain": sticky_chain}
TITLES = {"two_token": "two-token pair", "sticky_chain": "Markov pair"}
LABELS = {"num_drafts": "number of drafts K", "draft_length": "draft length L"}


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    names, most, longest = table.distinct("pair"), max(table["num_drafts"]), max(table["draft_length"])
    sides = (
        ("num_drafts", {"draft_length": longest}, f"draft length {longest}"),
        ("draft_length", {"num_drafts": most}, f"{most} drafts"),
    )
    with panels(len(names), 2, height=2.9, sharey="row") as (figure, all_axes):
        for axes, (name, (over, fixed, title)) in zip(all_axes, product(names, sides), strict=True):
            for verifier in (one for one in table.distinct("verifier") if one != OPTIMAL):
                rows = table.where(pair=name, verifier=verifier, **fixed)
                flat = verifiers[verifier].single_path and over == "num_drafts"
                look: Look = {"marker": ""} if flat else {}
                verifier_curve(axes, verifier, rows[over], rows["block_efficiency"], **look)
            optimum_curve(axes, rows[over], rows["optimum"])
            axes.set(xticks=rows[over], xlabel=LABELS[over])
            axes.set_title(f"{TITLES.get(name, name)}, {title}")
        for axes in all_axes[::2]:
            axes.set_ylabel("block efficiency\n[tokens per target call]")
        legend_below(figure)
    return figure


@result(
    title="The optimum of several paths and every verifier",
    source="greedy2026, Theorems 4.3 and 4.6",
    draw=_draw,
    small={"names": ("two_token",), "num_drafts": (1, 2, 3), "draft_lengths": (1, 2)},
)
def several_paths(
    names: Sequence[str] = tuple(PAIRS),
    num_drafts: Sequence[int] = (1, 2, 3, 4),
    draft_lengths: Sequence[int] = (1, 2, 3),
    pair: str | None = None,
) -> Findings:
    """Block efficiency of every lossless verifier of these drafts and the optimum of Theorem 4.3.

    Args:
        pair: a pair file, in place of the pairs named, with its own draft length.
    """
    shown = [(name, PAIRS[name](length)) for name, length in product(names, draft_lengths)]
    if pair is not None:
        shown = [(pair, ModelPair.load(pair))]
    checks, lossless = Checks(), lossless_verifiers(max(models.draft_length for _, models in shown))
    table = ResultTable(
        "several_paths",
        "Block efficiency in tokens per target call; optimum: exact, over all valid verifiers. token and "
        "block look at one path and are the same for every K.",
    )
    for name, models in shown:
        previous: Any = 0
        length = models.draft_length
        for drafts in num_drafts:
            best, here = optimum(models, drafts).value, f"{name}, L = {length}, K = {drafts}"
            earned = {}
            for verifier in (*lossless, OPTIMAL):
                law = output_law(
                    verifier, models.to_float(), 1 if verifiers[verifier].single_path else drafts
                )
                value, defect = float(law.block_efficiency), float(law.total_variation)
                earned[verifier] = value
                table.add(
                    pair=name, draft_length=length, num_drafts=drafts, verifier=verifier,
                    block_efficiency=value, total_variation=round(defect, 12), optimum=best,
                )  # fmt: skip
                where = f"{here}: {verifier} {value}, defect {defect}"
                checks.expect("every verifier here is lossless", defect <= 1e-9, where)
                checks.expect("none exceeds the optimum", value <= float(best) + 1e-9, f"{where} > {best}")
            where = f"{here}: {earned}, optimum {float(best)}"
            claim = "a selected path that is block-verified attains it (Theorem 4.6)"
            checks.expect(claim, abs(earned[OPTIMAL] - float(best)) <= 1e-7, where)
            checks.expect("the optimum does not fall as K grows", best >= previous, where)
            previous = best
            if drafts > 2 and pair is None:
                claim = "with more than two drafts OTM earns most of the published verifiers, on these pairs"
                most = max(earned[verifier] for verifier in filter(is_published, lossless))
                checks.expect(claim, earned["otm"] >= most - 1e-9, where)
            if drafts == 1:
                claim = "greedy multi-path on one path is block verification (section 5)"
                checks.expect(claim, abs(earned["greedy_multipath"] - earned["block"]) <= 1e-9, where)
    return Findings(
        "No published verifier attains the optimum at every K and L. Greedy multi-path attains it for "
        "two drafts of the two-token pair and falls behind for more, where OTM is the best of the "
        "published ones. The optimal one selects a path by the program's law and block-verifies it.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    several_paths.main()
