"""Block efficiency of the verifiers on the bundled language models, all tokens allowed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.exact.certificate import certify
from spectheory.paper.drawing import legend_below, panels, verifier_points
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.bundled import bundled_pair, whole
from spectheory.paper.figures.nested import OnFirst
from spectheory.paper.style import VERIFIER_STYLES
from spectheory.simulation import simulate
from spectheory.verification.resolve import find_verifier

ONE_PATH = ("token", "block", "greedy_block")
SEVERAL = ("multi_round", "spectr", "spectr_gbv", "greedy_multipath", "mixed_multipath")
SAME_ON_ONE_DRAFT = {
    "multi_round": "token", "spectr": "token", "greedy_multipath": "block", "mixed_multipath": "block",
    "spectr_gbv": "greedy_block",
}  # fmt: skip
PRINTED = {
    ("token", 1, 4): (2.4, "spectr2023 Table 1"),
    ("token", 1, 8): (2.9, "spectr2023 Table 1"),
    ("spectr", 8, 4): (3.1, "spectr2023 Table 1"),
    ("spectr", 8, 8): (4.0, "spectr2023 Table 1"),
}
"""Block efficiency by (verifier, K, L) of other models: nothing to be equal to."""
ENUMERATED = {1: (2, 3, 4), 2: (2, 3), 3: (2,)}
"""K to the lengths L at which the total variation is enumerated, on two tokens."""
DEFECT_COLUMNS = ("temperature", "verifier", "num_drafts", "draft_length", "total_variation")


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"full_vocabulary": _plot(findings)}


@exhibit(
    title="Block efficiency on the bundled language models",
    source="this package; the quantity of spectr2023 Tables 1 and 4 and block2024 Figure 4, other models",
    draw=_draw,
)
def full_vocabulary(
    num_drafts: Sequence[int] = (1, 2, 4, 8),
    draft_lengths: Sequence[int] = (2, 4, 6, 8),
    num_prompts: int = 32,
    samples: int = 5,
    seed: int = 11,
    confidence: float = 0.95,
) -> Findings:
    """Monte Carlo estimates over K and L on the bundled prompts, temperature 1, all from one set of drafts.

    With k drafts of l tokens a verifier sees the first k drafts and their first l tokens, so differences
    along a curve are no accident of the draws.  The picture has every K at the largest L and every L at the
    largest K.

    Args:
        num_drafts: the numbers K of drafted paths.
        draft_lengths: the lengths L.
        num_prompts: how many of the bundled prompts.
        samples: draws per prompt.
        seed: of the drafting and sampling.
        confidence: level of each interval.
    """
    from spectheory.models import bundled_prompts

    prompts = bundled_prompts()[:num_prompts]
    most, longest = max(num_drafts), max(draft_lengths)
    asked = [*product(SEVERAL, num_drafts, draft_lengths)]
    asked += [(name, 1, length) for name in ONE_PATH for length in draft_lengths]
    simulation = whole(
        simulate(
            bundled_pair(), prompts, [OnFirst(*one) for one in asked], num_drafts=most, draft_length=longest,
            samples=samples, seed=seed, confidence=confidence, batch_size=16,
        )
    )  # fmt: skip
    rows = []
    for (name, drafts, length), estimate in zip(asked, simulation.estimates, strict=True):
        printed, where = PRINTED.get((name, drafts, length), (None, None))
        rows.append((
            name, drafts, length, estimate.block_efficiency, *estimate.interval, estimate.counted,
            *estimate.counted_interval, estimate.samples, find_verifier(name).lossless, printed, where,
        ))  # fmt: skip
    table = ResultTable(
        "full_vocabulary",
        (
            "verifier", "num_drafts", "draft_length", "block_efficiency", "low", "high", "counted",
            "counted_low", "counted_high", "samples", "lossless", "printed", "printed_in",
        ),
        rows,
        f"Block efficiency in tokens per target call, {len(prompts)} held-out prompts, temperature 1, "
        f"{100 * confidence:g}% intervals over drafts. printed: of other models.",
    )  # fmt: skip
    defects = ResultTable(
        "full_vocabulary_defect", DEFECT_COLUMNS, defects_on_two_tokens((*ONE_PATH, *SEVERAL), (1.0,)),
        "Total variation, exact, on these models restricted to two tokens after the first prompt, for the "
        "K and L that can be enumerated. It is not that of the points above, whose vocabulary is whole.",
    )  # fmt: skip
    return Findings(
        explanation=(
            "All points come from the same drafts: those of fewer or shorter drafts see the first ones. A "
            "verifier of one path is a line. The estimate averages the verifier's expected tokens given the "
            "drafts; counted is the mean of sampled tokens. Hollow points are of verifiers that are not "
            "lossless. Their defect on the whole vocabulary is not enumerated; the second table has it on "
            "two tokens, with the K and L it belongs to."
        ),
        settings={
            "models": "bundled", "num_drafts": list(num_drafts), "draft_lengths": list(draft_lengths),
            "num_prompts": len(prompts), "samples_per_prompt": samples, "seed": seed,
            "confidence": confidence,
        },
        tables=[table, defects],
        checks=_checks(table, defects, num_drafts, longest),
    )  # fmt: skip


def defects_on_two_tokens(
    names: Sequence[str], temperatures: Sequence[float]
) -> list[tuple[float, str, int, int, float]]:
    """Total variation on the bundled models restricted to two tokens after the first prompt, exactly.

    The two tokens are the likeliest there.  K and L are those of ``ENUMERATED``; verifiers of one path have
    K = 1, the others K from 2 on.

    Args:
        names: of the verifiers.
        temperatures: of both models, before the restriction.

    Returns:
        Rows of ``DEFECT_COLUMNS``.
    """
    from spectheory.models import (
        SamplingOptions,
        bundled_prompts,
        most_likely_at_prompts,
        prefill,
        restricted_pair,
    )  # fmt: skip

    models, text = bundled_pair(), bundled_prompts()[0]
    restriction = most_likely_at_prompts(prefill(models, [text]), 2)
    rows = []
    for temperature in temperatures:
        options = SamplingOptions(temperature=temperature)
        pairs = {
            length: restricted_pair(models, text, restriction, length, options) for length in ENUMERATED[1]
        }
        for name in names:
            for drafts, lengths in ENUMERATED.items():
                if (drafts == 1) != (name in ONE_PATH):
                    continue
                for length in lengths:
                    defect = certify(name, pairs[length], drafts, with_optimum=False).total_variation
                    rows.append((temperature, name, drafts, length, round(float(defect), 9)))
    return rows


def _checks(table: ResultTable, defects: ResultTable, num_drafts: Sequence[int], longest: int) -> list[Check]:
    shorter, compared, lossy, apart = [], 0, [], []
    # Of token verification P(τ ≥ i | drafts) does not depend on the tokens behind the i-th.
    token = sorted(table.select(verifier="token"), key=lambda row: int(row["draft_length"]))
    for before, after in pairwise(token):
        compared += 1
        if after["block_efficiency"] < before["block_efficiency"] - 1e-6:
            shorter.append(f"{after['draft_length']} tokens: {after['block_efficiency']}")
    lossy += [
        f"{row}"
        for row in defects.select()
        if (row["total_variation"] > 1e-6) == find_verifier(row["verifier"]).lossless
    ]
    checks = [
        Check.of("on the same drafts a longer draft earns token verification no less", compared, shorter),
        Check.of("a verifier has a defect if and only if it is not said to be lossless",
                 len(defects.rows), lossy),
    ]  # fmt: skip
    if 1 in num_drafts:
        for name, same in SAME_ON_ONE_DRAFT.items():
            one, other = (
                table.select(verifier=verifier, num_drafts=1, draft_length=longest)[0]["block_efficiency"]
                for verifier in (name, same)
            )
            if abs(one - other) > 1e-4:
                apart.append(f"{name} {one}, {same} {other}")
        claim = "with one draft each verifier of several is the one of one draft that it extends"
        checks.insert(0, Check.of(claim, len(SAME_ON_ONE_DRAFT), apart))
    return checks


def _plot(findings: Findings) -> Figure:
    table = findings.tables[0]
    most, longest = max(table.column("num_drafts")), max(table.column("draft_length"))
    level = f"{100 * findings.settings['confidence']:g} % intervals"
    with panels(1, 2, height=3.9, width=3.7, sharey=True) as (figure, (left, right)):
        for name in ONE_PATH:
            row = table.select(verifier=name, draft_length=longest)[0]
            style = VERIFIER_STYLES[name]
            left.axhspan(row["low"], row["high"], color=style.colour, alpha=0.12, linewidth=0)
            left.axhline(row["block_efficiency"], color=style.colour, linewidth=1.4,
                         linestyle="-" if row["lossless"] else ":")  # fmt: skip
            _points(right, name, table.select(verifier=name), "draft_length", ONE_PATH.index(name) - 3.5)
        for number, name in enumerate(SEVERAL):
            several = [
                row for row in table.select(verifier=name, draft_length=longest) if row["num_drafts"] > 1
            ]
            _points(left, name, several, "num_drafts", number - 2)
            _points(right, name, table.select(verifier=name, num_drafts=most), "draft_length", number - 0.5)
        drafts = sorted({row["num_drafts"] for row in table.select() if row["num_drafts"] > 1})
        left.set_xscale("log", base=2)
        left.set_xticks(drafts, [str(number) for number in drafts])
        left.minorticks_off()
        left.set(xlabel="number of drafts K", ylabel="block efficiency [tokens per target call]")
        left.set_title(f"{longest} tokens, one path as lines")
        right.set(xlabel="draft length L", xticks=sorted(set(table.column("draft_length"))))
        right.set_title(f"{most} drafts (one path: one)")
        right.annotate(level, (0.98, 0.03), xycoords="axes fraction", ha="right", fontsize=8)
        legend_below(figure, 3)
    return figure


def _points(axes: Axes, name: str, rows: list[dict[str, Any]], over: str, shift: float) -> None:
    """Estimates with their intervals, moved aside a little so that they do not hide each other."""
    places = [row[over] * 1.025**shift if over == "num_drafts" else row[over] + 0.09 * shift for row in rows]
    values, lows, highs = ([row[key] for row in rows] for key in ("block_efficiency", "low", "high"))
    verifier_points(axes, name, places, values, lows, highs, lossless=rows[0]["lossless"])
