from collections.abc import Sequence

from matplotlib.figure import Figure

from figures.common.bundled import (
    GREEDY_BLOCK,
    LOSSY,
    ONE_PATH,
    bundled_pair,
    defects_on_two_tokens,
    gained,
    interval,
    whole,
)
from figures.results import Checks, Findings, ResultTable, result
from figures.style import AUTHORS, Look, legend_below, note, panels, verifier_band, zero_line
from spectheory.simulation import simulate
from spectheory.verification.curves import VERIFIER_STYLES
from spectheory.verification.resolve import find_verifier

BASE = "block"
SEVERAL = ("multi_round", "spectr", "spectr_gbv", "traversal", "greedy_multipath", "scored_multipath")
PRINTED_GAIN = {0.2: 3.72, 0.6: 5.32, 1.0: 8.70}
"""Gain of block over token in percent by temperature, as printed there."""
PRINTED = {
    (0.2, "token"): 2.75, (0.2, "block"): 2.85, (0.6, "token"): 2.75, (0.6, "block"): 2.90,
    (1.0, "token"): 2.79, (1.0, "block"): 3.04,
}  # fmt: skip
"""Block efficiency by temperature, block2024 Table 2: Vicuna 7B and 68M, draft length 8."""


def _draw(findings: Findings) -> Figure:
    table, settings = findings.table("temperature_gains"), findings.settings
    titles = {"One draft": ONE_PATH, f"{settings['num_drafts']} drafts": SEVERAL}
    with panels(1, 2, height=4.2, sharey=True) as (figure, all_axes):
        for axes, (title, names) in zip(all_axes, titles.items(), strict=True):
            zero_line(axes)
            for name in names:
                if name == BASE:
                    continue
                rows = table.where(verifier=name)
                gains = rows["gain"], rows["gain_low"], rows["gain_high"]
                verifier_band(axes, name, rows["temperature"], *gains, rows["lossless"][0])
            axes.set(xlabel="temperature", xticks=table.distinct("temperature"), title=title)
        style = VERIFIER_STYLES["token"]
        crosses: Look = {"color": style.colour, "markersize": 7, "markeredgewidth": 1.6}
        printed = [
            (heat, PRINTED[heat, "token"] - PRINTED[heat, BASE]) for heat, name in PRINTED if name == BASE
        ]
        label = f"{style.label}, {AUTHORS['block2024']}, Table 2"
        all_axes[0].plot(*zip(*printed, strict=True), "x", **crosses, label=label)
        all_axes[0].set_ylabel("gain over block verification\n[tokens per target call]")
        level = 100 * settings["confidence"]
        note(all_axes[1], f"bands: {level:g} % intervals of the differences", (0.02, 0.95), ha="left")
        legend_below(figure, 2)
    return figure


@result(
    title="Block efficiency against the temperature",
    source="this package; the quantity of block2024 Tables 2 and 4 and spectrgbv2026 Figure 2, other models",
    draw=_draw,
    small={"temperatures": (0.5, 1.0), "num_drafts": 2, "draft_length": 3, "num_prompts": 4, "samples": 2},
)
def temperature_gains(
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
    """
    from spectheory.models import SamplingOptions, bundled_prompts

    checks, prompts = Checks(), bundled_prompts()[:num_prompts]
    table = ResultTable(
        "temperature_gains",
        f"Block efficiency in tokens per target call, {100 * confidence:g}% intervals over drafts. "
        "gain: over block verification on the same drafts. printed: block2024 Table 2, other models.",
    )
    gains = ResultTable(
        "temperature_block",
        "Gain of block over token verification, here and as printed in block2024 Table 2.",
    )
    for value in temperatures:
        simulation = whole(
            simulate(
                bundled_pair(), prompts, (*ONE_PATH, *SEVERAL), drafts=num_drafts,
                draft_length=draft_length, samples=samples, seed=seed, confidence=confidence, batch_size=16,
                against=BASE,
                options=SamplingOptions(temperature=value),
            )
        )  # fmt: skip
        found = {estimate.verifier: estimate for estimate in simulation.estimates}
        for name, estimate in found.items():
            table.add(
                temperature=value, verifier=name, **interval(estimate), **gained(estimate),
                counted=estimate.counted,
                samples=estimate.samples, lossless=find_verifier(name).lossless,
                printed=PRINTED.get((value, name)),
            )  # fmt: skip
        token, block = found["token"], found["block"]
        gains.add(
            temperature=value,
            gain_of_block_in_percent=100 * (block.block_efficiency / token.block_efficiency - 1),
            printed_gain_in_percent=PRINTED_GAIN.get(value),
        )
        claim = "block is nowhere seen to earn less than token: its interval is never below token's"
        where = f"at {value}: {block.interval} and {token.interval}"
        checks.expect(claim, block.interval[1] >= token.interval[0], where)
    return Findings(
        f"{num_drafts} drafts of {draft_length} tokens; the verifiers of one path see the first. Gains are "
        "over block verification on the same drafts, with intervals of the paired differences. Crosses "
        "are printed, of other models: Vicuna 7B and 68M, 8 tokens. As in the paper's table, block "
        f"verification gains little over token verification at low temperatures. {GREEDY_BLOCK}; here it is "
        "unmodified. SpecTr-GBV is not lossless. Their defect on the whole vocabulary is not enumerated. The "
        "last table has it on a vocabulary of two, with its K and L.",
        tables=[table, gains, defects_on_two_tokens("temperature_defect", LOSSY, temperatures)],
        checks=checks,
    )


if __name__ == "__main__":
    temperature_gains.main()
