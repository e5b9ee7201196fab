"""The gain of block over token verification as the draft grows, and a pair where it shrinks."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from spectheory.exact.law import output_law
from spectheory.pairs.contexts import Context, numbered_context
from spectheory.pairs.instances import random_float, sticky_chain, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.acceptance_length import at_least
from spectheory.paper.style import BLACK, GREY

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


def lost_lead_pair(draft_length: int) -> ModelPair:
    """The two-token pair for two tokens; then block's lead, the path AB, dies and all others go on together.

    After AB the draft proposes what the target never emits.  After the other blocks both models are equal.

    Example:
        >>> print(lost_lead_pair(3).target[2][1], lost_lead_pair(3).draft[2][1])
        [Fraction(0, 1) Fraction(1, 1)] [Fraction(1, 1) Fraction(0, 1)]
    """

    def rows(context: Context) -> tuple[list[str], list[str]]:
        if len(context) < 2:
            return ["1/3", "2/3"], ["2/3", "1/3"]
        return (["0", "1"], ["1", "0"]) if context[:2] == (0, 1) else (["1/2", "1/2"], ["1/2", "1/2"])

    contexts = [numbered_context(n, depth, 2) for depth in range(draft_length + 1) for n in range(2**depth)]
    target = {context: rows(context)[0] for context in contexts}
    draft = {context: rows(context)[1] for context in contexts if len(context) < draft_length}
    return ModelPair.from_contexts(target, draft, draft_length)


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"draft_length_gain": _plot(findings)}


@exhibit(
    title="The gain of block over token verification against the draft length",
    source="block2024, Figures 4 and 5, section 6.1", draw=_draw,
)  # fmt: skip
def draft_length_gain(max_length: int = 8, num_random: int = 60, seed: int = 17) -> Findings:
    """Relative gain in block efficiency of block over token verification for draft lengths 1..L.

    P(τ ≥ i) of both verifiers does not depend on how many tokens are drafted behind the i-th, so one
    law gives all lengths.  The paper observes that the relative gain grows with the draft length.

    Args:
        max_length: L.
        num_random: random pairs of each kind, context-free and not.
        seed: of the random pairs.
    """
    pairs: list[tuple[str, ModelPair]] = [
        ("two_token", two_token(max_length)), ("sticky_chain", sticky_chain(max_length)),
        ("lost_lead", lost_lead_pair(max_length)),
    ]  # fmt: skip
    for number in range(num_random):
        rng = np.random.default_rng([seed, number])
        target, draft = rng.dirichlet(np.ones(2), size=2)
        pairs.append(("random context-free", ModelPair.context_free_pair(target, draft, max_length)))
        pairs.append(("random", random_float([seed, number], 2, max_length)))
    rows, negative, falls_free = [], [], []
    falls: dict[str, int] = {}
    last: dict[str, list[float]] = {}
    for number, (name, pair) in enumerate(pairs):
        token, block = (_efficiencies(verifier, pair) for verifier in ("token", "block"))
        gains = [float(b / t - 1) for t, b in zip(token, block, strict=True)]
        if min(gains) < -1e-12:
            negative.append(f"pair {number} ({name}): {min(gains)}")
        fallen = any(after < before - 1e-12 for before, after in pairwise(gains))
        falls[name] = falls.get(name, 0) + fallen
        last.setdefault(name, []).append(gains[-1])
        if fallen and name not in {"random", "lost_lead"}:
            falls_free.append(f"pair {number} ({name}): {[round(gain, 6) for gain in gains]}")
        if name in DRAWN:
            rows += [
                (name, length, t, b, gain)
                for length, (t, b, gain) in enumerate(zip(token, block, gains, strict=True), 1)
            ]
    printed = [
        (drafter, length, *numbers)
        for drafter, by_length in PRINTED.items()
        for length, numbers in by_length.items()
    ]
    summary = [(name, len(last[name]), count, float(np.mean(last[name]))) for name, count in falls.items()]
    shrinks = [] if falls["lost_lead"] else ["the gain of the pair does not shrink"]
    return Findings(
        explanation=(
            "The paper saw the relative gain grow with the draft length on its models. It shrinks on "
            f"{falls['random context-free']} of {num_random} random context-free pairs and on "
            f"{falls['random']} of {num_random} others. In general it can shrink: the third pair gains 1/19 "
            "at two tokens, and less at every length beyond."
        ),
        settings={"max_length": max_length, "num_random": num_random, "seed": seed},
        tables=[
            ResultTable(
                "draft_length_gain", ("pair", "draft_length", "token", "block", "relative_gain"), rows,
                "Block efficiency in tokens per target call, exact, and block / token − 1.",
            ),
            ResultTable(
                "draft_length_gain_random",
                ("pairs", "tried", "gain_shrinks_somewhere", "mean_gain_at_the_end"),
                summary,
                "How many pairs have a relative gain that shrinks from one draft length to the next.",
            ),
            ResultTable(
                "draft_length_gain_printed",
                ("drafter", "draft_length", "token", "block", "gain_in_percent"),
                printed,
                "Block efficiency and gain as printed in block2024 Tables 1 and 6–10, averages over "
                "datasets; other models, so nothing to be equal to.",
            ),
        ],
        checks=[
            Check.of("block verification never earns less than token verification", len(pairs), negative),
            Check.of("on context-free and Markov pairs that were tried the relative gain never shrinks",
                     num_random + 2, falls_free),
            Check.of("it does not always grow: there is a pair on which it shrinks", 1, shrinks),
        ],
    )  # fmt: skip


def _efficiencies(verifier: str, pair: ModelPair) -> list[Any]:
    """E[tau+1] for draft lengths 1..L."""
    return list(accumulate(at_least(output_law(verifier, pair).length_probs)))[1:]


def _plot(findings: Findings) -> Figure:
    table, printed = findings.table("draft_length_gain"), findings.table("draft_length_gain_printed")
    with panels(1, 2, height=3.5) as (figure, (left, right)):
        for name, (label, colour, line) in DRAWN.items():
            rows = table.select(pair=name)
            lengths = [row["draft_length"] for row in rows]
            left.plot(lengths, [100 * row["relative_gain"] for row in rows], line, color=colour, markersize=4,
                      markerfacecolor="white", label=label)  # fmt: skip
        left.set(xlabel="draft length", ylabel="gain of block over token [%]", xticks=lengths)
        left.set_title("Enumerated pairs, exact")
        left.set_ylim(bottom=0)
        left.legend(frameon=False)
        for drafter, (marker, colour) in {"PALM-2-XXS": ("s", BLACK), "PALM-2-XXXS": ("o", GREY)}.items():
            rows = printed.select(drafter=drafter)
            right.plot([row["draft_length"] for row in rows], [row["gain_in_percent"] for row in rows],
                       marker + ":", color=colour, label=f"drafter {drafter}")  # fmt: skip
        right.set(xlabel="draft length", xticks=[row["draft_length"] for row in rows])
        right.set_ylim(bottom=0)
        right.set_title("Printed in block2024, Tables 1, 6–10")
        right.legend(frameon=False, loc="lower right")
    return figure
