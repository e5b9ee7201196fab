"""Block efficiency on the bundled language models against the temperature."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from spectheory.paper.drawing import legend_below, panels, verifier_points
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.bundled import bundled_pair, whole
from spectheory.paper.figures.full_vocabulary import DEFECT_COLUMNS, defects_on_two_tokens
from spectheory.simulation import simulate
from spectheory.verification.resolve import find_verifier

VERIFIERS = ("token", "block", "greedy_block", "multi_round", "spectr", "spectr_gbv", "greedy_multipath")
ONE_PATH = 3
LOSSY = ("greedy_block", "spectr_gbv")
PRINTED_GAIN = {0.2: 3.72, 0.6: 5.32, 1.0: 8.70}
"""Gain of block over token in percent by temperature, as printed there."""
PRINTED = {
    (0.2, "token"): 2.75, (0.2, "block"): 2.85, (0.6, "token"): 2.75, (0.6, "block"): 2.90,
    (1.0, "token"): 2.79, (1.0, "block"): 3.04,
}  # fmt: skip
"""Block efficiency by temperature, block2024 Table 2: Vicuna 7B and 68M, draft length 8."""


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"temperature": _plot(findings)}


@exhibit(
    title="Block efficiency against the temperature",
    source="this package; the quantity of block2024 Tables 2 and 4 and spectrgbv2026 Figure 2, other models",
    draw=_draw,
)
def temperature(
    temperatures: Sequence[float] = (0.2, 0.4, 0.6, 0.8, 1.0),
    num_drafts: int = 3,
    draft_length: int = 8,
    num_prompts: int = 32,
    samples: int = 5,
    seed: int = 13,
    confidence: float = 0.95,
) -> Findings:
    """Monte Carlo estimates on the bundled prompts, both models at the same temperature.

    Args:
        temperatures: of both models.
        num_drafts: K; the verifiers of one path see the first.
        draft_length: L.
        num_prompts: how many of the bundled prompts.
        samples: draws per prompt.
        seed: of the drafting and sampling.
        confidence: level of each interval.
    """
    from spectheory.models import SamplingOptions, bundled_prompts

    prompts = bundled_prompts()[:num_prompts]
    rows, less, gains = [], [], []
    for value in temperatures:
        simulation = whole(
            simulate(
                bundled_pair(), prompts, VERIFIERS, num_drafts=num_drafts, draft_length=draft_length,
                samples=samples, seed=seed, confidence=confidence, batch_size=16,
                options=SamplingOptions(temperature=value),
            )
        )  # fmt: skip
        found = {estimate.verifier: estimate for estimate in simulation.estimates}
        for name, estimate in found.items():
            rows.append((
                value, name, estimate.block_efficiency, *estimate.interval, estimate.counted,
                estimate.samples, find_verifier(name).lossless, PRINTED.get((value, name)),
            ))  # fmt: skip
        token, block = (found[name].block_efficiency for name in ("token", "block"))
        gains.append((value, 100 * (block / token - 1), PRINTED_GAIN.get(value)))
        if found["block"].interval[1] < found["token"].interval[0]:
            less.append(f"at {value}: {block} < {token}")
    return Findings(
        explanation=(
            f"{num_drafts} drafts of {draft_length} tokens; the verifiers of one path see the first. As in "
            "the paper's table, block verification gains little over token verification at low temperatures. "
            "SpecTr-GBV and greedy block are not lossless as they stand. Their defect on the whole "
            "vocabulary is not enumerated. The last table has it on two tokens, with its K and L."
        ),
        settings={
            "models": "bundled", "temperatures": list(temperatures), "num_drafts": num_drafts,
            "draft_length": draft_length, "num_prompts": len(prompts), "samples_per_prompt": samples,
            "seed": seed, "confidence": confidence,
        },
        tables=[
            ResultTable(
                "temperature",
                (
                    "temperature", "verifier", "block_efficiency", "low", "high", "counted", "samples",
                    "lossless", "printed",
                ),
                rows,
                f"Block efficiency in tokens per target call, {100 * confidence:g}% intervals over drafts. "
                "printed: block2024 Table 2, other models.",
            ),
            ResultTable(
                "temperature_gain",
                ("temperature", "gain_of_block_in_percent", "printed_gain_in_percent"), gains,
                "Gain of block over token verification, here and as printed in block2024 Table 2.",
            ),
            ResultTable(
                "temperature_defect", DEFECT_COLUMNS, defects_on_two_tokens(LOSSY, temperatures),
                "Total variation, exact, on these models restricted to two tokens after the first prompt, "
                "for the K and L that can be enumerated. It is not that of the points above.",
            ),
        ],
        checks=[
            Check.of("block is nowhere seen to earn less than token: its interval is never below token's",
                     len(temperatures), less)
        ],
    )  # fmt: skip


def _plot(findings: Findings) -> Figure:
    table = findings.table("temperature")
    level = f"{100 * findings.settings['confidence']:g} % intervals"
    several = f"{findings.settings['num_drafts']} drafts"
    with panels(1, 2, height=3.6, sharey=True) as (figure, (left, right)):
        for axes, names, title in (
            (left, VERIFIERS[:ONE_PATH], "one draft"),
            (right, VERIFIERS[ONE_PATH:], several),
        ):
            for number, name in enumerate(names):
                rows = table.select(verifier=name)
                places = [row["temperature"] + 0.018 * (number - (len(names) - 1) / 2) for row in rows]
                values, lows, highs = (
                    [row[key] for row in rows] for key in ("block_efficiency", "low", "high")
                )
                verifier_points(axes, name, places, values, lows, highs, rows[0]["lossless"])
            axes.set(xlabel="temperature", xticks=[row["temperature"] for row in rows])
            axes.set_title(title)
        left.set_ylabel("block efficiency [tokens per target call]")
        right.annotate(level, (0.02, 0.03), xycoords="axes fraction", fontsize=8)
        legend_below(figure)
    return figure
