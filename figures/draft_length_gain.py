from collections import Counter, defaultdict
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from figures.common.bundled import at_least
from figures.results import Checks, Findings, ResultTable, result
from figures.style import ACCENT, AUTHORS, Look, legend_below, panels
from spectheory.exact.law import output_law
from spectheory.pairs.contexts import all_contexts
from spectheory.pairs.instances import random_float, sticky_chain, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.verification.curves import BLACK, GREY

PRINTED = {
    "PALM-2-XXS": {4: (2.89, 2.99, 3.36), 6: (3.23, 3.43, 6.10), 8: (3.41, 3.70, 8.30)},
    "PALM-2-XXXS": {4: (2.35, 2.43, 3.16), 6: (2.50, 2.63, 5.07), 8: (2.57, 2.73, 6.27)},
}
"""Block efficiency of token and block and the gain in percent by drafter and draft length.

The averages that block2024 prints in Tables 6, 7, 1 and 8, 9, 10; its Figure 4 has the efficiencies.
"""
DRAWN = {
    "two_token": ("two-token pair", BLACK, "o-"),
    "sticky_chain": ("Markov pair", GREY, "s--"),
    "lost_lead": ("pair whose gain shrinks", BLACK, "^:"),
}
DRAFTERS = {"PALM-2-XXS": "s", "PALM-2-XXXS": "D"}


def lost_lead(draft_length: int) -> ModelPair:
    """The two-token pair for two tokens, continued so that block verification loses part of its gain.

    Block verification accepts more than token verification on the path AB.  After AB the draft proposes
    tokens that the target never emits.  After the other blocks both models are equal.
    """
    both = {context: (["1/2", "1/2"],) * 2 for context in all_contexts(2, draft_length)}
    for context in both:
        if len(context) < 2:
            both[context] = ["1/3", "2/3"], ["2/3", "1/3"]
        elif context[:2] == (0, 1):
            both[context] = ["0", "1"], ["1", "0"]
    target = {context: rows[0] for context, rows in both.items()}
    draft = {context: rows[1] for context, rows in both.items() if len(context) < draft_length}
    return ModelPair.from_contexts(target, draft, draft_length)


def _draw(findings: Findings) -> Figure:
    table, printed = findings.table("draft_length_gain"), findings.table("draft_length_gain_printed")
    random = findings.table("draft_length_gain_quartiles").where(pairs="random")
    with panels(width=6.4, height=4.0) as (figure, (axes,)):
        lengths = random["draft_length"]
        low, high = ([100 * gain for gain in random[name]] for name in ("lower_quartile", "upper_quartile"))
        band: Look = {"color": GREY, "alpha": 0.25, "linewidth": 0}
        axes.fill_between(lengths, low, high, **band, label="random pairs, middle half")
        for name, (label, colour, line) in DRAWN.items():
            rows = table.where(pair=name)
            gains = [100 * gain for gain in rows["relative_gain"]]
            look: Look = {"color": colour, "markersize": 4, "markerfacecolor": "white"}
            axes.plot(rows["draft_length"], gains, line, **look, label=label)
        for drafter, marker in DRAFTERS.items():
            rows = printed.where(drafter=drafter)
            look = {"color": ACCENT, "linestyle": "none", "markersize": 6, "zorder": 3}
            label = f"{AUTHORS['block2024']}, drafter {drafter}"
            axes.plot(rows["draft_length"], rows["gain_in_percent"], marker, **look, label=label)
        axes.set(xlabel="draft length L", ylabel="gain of block over token [%]", xticks=lengths)
        axes.set_ylim(bottom=0)
        legend_below(figure, 2)
    return figure


@result(
    title="The gain of block over token verification against the draft length",
    source="block2024, Figures 4 and 5, section 6.1",
    draw=_draw,
    small={"max_length": 5, "num_random": 3},
)
def draft_length_gain(max_length: int = 8, num_random: int = 60, seed: int = 17) -> Findings:
    """Relative gain in block efficiency of block over token verification for draft lengths 1..L.

    P(τ ≥ i) of both verifiers does not depend on how many tokens are drafted behind the i-th, so one
    law gives all lengths.  The paper observes that the relative gain grows with the draft length.

    Args:
        max_length: L.
        num_random: random pairs of each kind, context-free and not.
    """
    checks = Checks()
    table = ResultTable(
        "draft_length_gain",
        "Block efficiency in tokens per target call, exact, and block / token − 1.",
    )
    pairs: list[tuple[str, ModelPair]] = [
        ("two_token", two_token(max_length)), ("sticky_chain", sticky_chain(max_length)),
        ("lost_lead", lost_lead(max_length)),
    ]  # fmt: skip
    for number in range(num_random):
        rng = np.random.default_rng([seed, number])
        target, draft = rng.dirichlet(np.ones(2), size=2)
        pairs.append(("random context-free", ModelPair.context_free_pair(target, draft, max_length)))
        pairs.append(("random", random_float([seed, number], 2, max_length)))
    falls: Counter[str] = Counter()
    tried: dict[str, list[list[float]]] = defaultdict(list)
    for number, (name, pair) in enumerate(pairs):
        token, block = (_efficiencies(verifier, pair) for verifier in ("token", "block"))
        gains = [float(b / t - 1) for t, b in zip(token, block, strict=True)]
        fallen = any(after < before - 1e-12 for before, after in pairwise(gains))
        falls[name] += fallen
        tried[name].append(gains)
        here = f"pair {number} ({name}): {[round(gain, 6) for gain in gains]}"
        claim = "block verification never earns less than token verification"
        checks.expect(claim, min(gains) >= -1e-12, here)
        if name not in {"random", "lost_lead"}:
            claim = "on context-free and Markov pairs that were tried the relative gain never shrinks"
            checks.expect(claim, not fallen, here)
        if name in DRAWN:
            for length, (t, b, gain) in enumerate(zip(token, block, gains, strict=True), 1):
                table.add(pair=name, draft_length=length, token=t, block=b, relative_gain=gain)
    claim = "it does not always grow: there is a pair on which it shrinks"
    checks.expect(claim, falls["lost_lead"], "the gain of the pair does not shrink")
    summary = ResultTable(
        "draft_length_gain_random",
        "How many pairs have a relative gain that shrinks from one draft length to the next.",
    )
    by_length = ResultTable(
        "draft_length_gain_quartiles", "Relative gains over the random pairs of a kind, by draft length."
    )
    for name, rows in tried.items():
        summary.add(pairs=name, tried=len(rows), gain_shrinks_somewhere=falls[name])
        columns = ("mean", "lower_quartile", "median", "upper_quartile")
        for length, found in enumerate(zip(*rows, strict=True) if name.startswith("random") else (), 1):
            numbers = [np.mean(found), *np.quantile(found, (0.25, 0.5, 0.75))]
            rounded = (round(float(number), 12) + 0.0 for number in numbers)  # no negative zero
            by_length.add(pairs=name, draft_length=length, **dict(zip(columns, rounded, strict=True)))
    printed = ResultTable(
        "draft_length_gain_printed",
        "Block efficiency and gain as printed in block2024 Tables 1 and 6–10, averages over "
        "datasets; other models, so nothing to be equal to.",
        ("drafter", "draft_length", "token", "block", "gain_in_percent"),
        [(drafter, length, *row) for drafter, rows in PRINTED.items() for length, row in rows.items()],
    )
    return Findings(
        "The paper saw the relative gain grow with the draft length on its models. It shrinks on "
        f"{falls['random context-free']} of {num_random} random context-free pairs and on "
        f"{falls['random']} of {num_random} others. In general it can shrink: the third pair gains 1/19 "
        "at two tokens, and less at every length beyond. The band is the middle half of the random pairs "
        "that are not context-free. Squares and diamonds are printed averages over data sets.",
        tables=[table, summary, by_length, printed],
        checks=checks,
    )


def _efficiencies(verifier: str, pair: ModelPair) -> list[Any]:
    return list(accumulate(at_least(output_law(verifier, pair).length_probs)))[1:]


if __name__ == "__main__":
    draft_length_gain.main()
