"""Tokens per call against verified rows per call: fixed and adaptive draft lengths on the bundled models."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from figures.common.bundled import bundled_pair
from figures.results import Checks, Findings, ResultTable, result
from figures.style import BROKEN, legend_below, panels
from spectheory.exact.law import output_law
from spectheory.optima.price_per_row import best_stopping_rule, price_bound
from spectheory.pairs.drafts import Shortened, draft_defect
from spectheory.pairs.drafts.repairs import with_cemetery

FIXED, STOPPED, REPAIRED, BEST = "fixed length", "stop after unlikely", "repair B", "best predictable"
MARKERS = {FIXED: "s", STOPPED: "o", REPAIRED: "^", BEST: "."}
SLACK = 1e-9


def _draw(findings: Findings) -> Figure:
    """One panel; the broken lines are the bound: no rule verifies fewer rows than it accepts tokens."""
    rows = findings.tables[0].select()
    bound, most = rows[0]["bound"], max(row["rows"] for row in rows)
    with panels(1, 1, width=6.4, height=3.6) as (figure, (axes,)):
        for kind, marker in MARKERS.items():
            points = sorted((row["rows"], row["tokens"]) for row in rows if row["kind"] == kind)
            axes.plot(*zip(*points, strict=True), marker=marker, markersize=4, linewidth=1.1, label=kind)
        axes.plot([0, bound - 1, most], [1, bound, bound], label="no rule exceeds", **BROKEN)
        axes.set(xlabel="verified rows per call", ylabel="tokens per call of the target")
        legend_below(figure, 3)
    return figure


@result(
    title="Tokens per call against verified rows per call, with fixed and adaptive draft lengths",
    source="this package (no counterpart in the papers)",
    draw=_draw,
    small={"prompts": (0,), "draft_length": 2, "num_points": 3},
)
def rows_per_call(
    prompts: Sequence[int] = (0, 1, 2, 3), num_tokens: int = 3, draft_length: int = 4, num_points: int = 16
) -> Findings:
    """Block verification with length rules on real conditionals, exact up to rounding (theory.md §8).

    Args:
        prompts: numbers of bundled held-out prompts, over which all numbers are means.
        num_tokens: m; the models are restricted to the m likeliest tokens after the prompt.
        num_points: thresholds of the rules, and prices of a row.
    """
    from spectheory.models import bundled_prompts, restrict
    from spectheory.models.device import cpu_threads

    checks, models = Checks(), bundled_pair()
    with cpu_threads(1):
        pairs = [restrict(models, bundled_prompts()[n], num_tokens, draft_length) for n in prompts]
    bound = float(np.mean([price_bound(pair, 0) for pair in pairs]))
    table = ResultTable("rows_per_call", "Means over the prompts: verified rows and tokens per call.")

    def add(kind: str, setting: float, rule: Any) -> None:
        found = [_with_rule(pair, rule, kind == REPAIRED) for pair in pairs]
        rows, tokens, defect = (float(np.mean(numbers)) for numbers in zip(*found, strict=True))
        table.add(kind=kind, setting=setting, rows=rows, tokens=tokens, bound=bound)
        here = f"{kind} {setting}: {rows} rows, {tokens} tokens, defect {defect}"
        checks.expect("every way is lossless", defect < SLACK, here)
        checks.expect("no rule exceeds the bound", tokens <= min(bound, 1 + rows) + SLACK, here)

    for length in range(1, draft_length + 1):
        add(FIXED, length, lambda tokens, rows, n=length: n)
    for threshold in np.linspace(0.02, 0.9, num_points).round(3).tolist():
        add(STOPPED, threshold, partial(_likely, threshold, 1))
        add(REPAIRED, threshold, partial(_likely, threshold, 0))
    for price in np.linspace(0.02, 0.98, num_points).round(3).tolist():
        add(BEST, price, price)
    for row, best in product(table.select(), table.select(kind=BEST)):
        lead = row["tokens"] - best["tokens"] - best["setting"] * (row["rows"] - best["rows"])
        is_less = row["kind"] == REPAIRED or lead <= SLACK
        checks.expect("no predictable rule beats the best at a price", is_less, f"{row}: above {best}")
    return Findings(
        "The best predictable rule at a price per row knows the target (Statement 8.12 (i)). Repair B counts "
        "a dropped token as a rejection. The broken line is Statement 8.12 (iii): a rule accepts at most as "
        f"many tokens as it verifies, and at most {bound - 1:.4f} per call.",
        [table],
        checks,
    )


def _likely(threshold: float, more: int, tokens: Sequence[int], rows: Any) -> int:
    """The number of drafted tokens before the first unlikely one, and ``more``."""
    unlikely = [row[token] < threshold for token, row in zip(tokens, rows, strict=True)]
    return min(len(tokens), [*unlikely, True].index(True) + more)


def _with_rule(pair: Any, rule: Any, repaired: bool) -> tuple[Any, Any, Any]:
    """Verified rows and tokens per call of block, and the draft defect; if repaired, the total variation."""
    drafts = Shortened(1, rule if callable(rule) else best_stopping_rule(pair, rule))
    rows = sum(len(path) * prob for (path,), prob in drafts.kept_law(pair).items())
    law = output_law("block", with_cemetery(drafts, pair)) if repaired else output_law("block", pair, drafts)
    defect = law.total_variation if repaired else draft_defect(drafts, pair).total_variation
    return rows, law.block_efficiency, defect


if __name__ == "__main__":
    rows_per_call.main()
