"""Block efficiency of the verifiers on the bundled language models, all tokens allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from spectheory.montecarlo import simulate
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.bundled import bundled_pair, whole
from spectheory.paper.figures.real_pair import VERIFIERS
from spectheory.paper.style import VERIFIER_COLOURS, VERIFIER_LABELS, figure_style


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"full_vocabulary": _plot(findings.tables[0])}


@exhibit(
    title="Block efficiency on the bundled language models",
    source="this package; the quantity of spectr2023 Table 2 and block2024 Table 1, other models",
    draw=_draw,
)
def full_vocabulary(
    num_drafts: Sequence[int] = (1, 2, 3, 4),
    draft_length: int = 8,
    num_prompts: int = 64,
    samples: int = 16,
    seed: int = 11,
    confidence: float = 0.95,
) -> Findings:
    """Monte Carlo estimates for one to four drafts on the bundled prompts, temperature 1.

    Args:
        num_drafts: the numbers K of drafted paths.
        draft_length: L.
        num_prompts: how many of the bundled prompts.
        samples: draws per prompt.
        seed: of the drafting and sampling.
        confidence: level of each interval.
    """
    from spectheory.models import bundled_prompts, one_thread

    prompts = bundled_prompts()[:num_prompts]
    rows: list[tuple[Any, ...]] = []
    failures = []
    for drafts in num_drafts:
        with one_thread():
            simulation = simulate(
                bundled_pair(), prompts, VERIFIERS, num_drafts=drafts, draft_length=draft_length,
                samples=samples, seed=seed, confidence=confidence, batch_size=16,
            )  # fmt: skip
        by_name = {estimate.verifier: estimate for estimate in whole(simulation).estimates}
        for name, estimate in by_name.items():
            rows.append((
                drafts, name, estimate.block_efficiency, *estimate.interval,
                estimate.counted, *estimate.counted_interval, estimate.samples,
            ))  # fmt: skip
        for name, same in (("spectr", "token"), ("greedy_multipath", "block")) if drafts == 1 else ():
            difference = by_name[name].block_efficiency - by_name[same].block_efficiency
            if abs(difference) > 1e-6:
                failures.append(f"with one draft {name} differs from {same} by {difference:.3g}")
    table = ResultTable(
        "full_vocabulary",
        (
            "num_drafts", "verifier", "block_efficiency", "low", "high",
            "counted", "counted_low", "counted_high", "samples",
        ),
        rows,
        f"Block efficiency in tokens per target call, {len(prompts)} held-out prompts, draft length "
        f"{draft_length}, temperature 1, {100 * confidence:g}% intervals over drafts.",
    )  # fmt: skip
    claim = "with one draft SpecTr equals token and greedy multi-path equals block"
    return Findings(
        explanation=(
            "All verifiers judge the same drafts. token and block look at the first path only: their bars "
            "differ between panels by chance alone. The estimate averages the verifier's expected tokens "
            "given the drafts; counted is the mean of sampled tokens."
        ),
        settings={
            "models": "bundled", "num_prompts": len(prompts), "draft_length": draft_length,
            "samples_per_prompt": samples, "seed": seed, "confidence": confidence,
        },
        tables=[table],
        checks=[Check.of(claim, 2, failures)] if 1 in num_drafts else [],
    )  # fmt: skip


def _plot(table: ResultTable) -> Figure:
    num_drafts = list(dict.fromkeys(table.column("num_drafts")))
    with figure_style():
        figure = Figure(figsize=(7.4, 3.9), layout="constrained")
        axes = figure.subplots()
        width = 0.8 / len(VERIFIERS)
        for number, name in enumerate(VERIFIERS):
            rows = table.select(verifier=name)
            places = [group + (number - (len(VERIFIERS) - 1) / 2) * width for group in range(len(rows))]
            heights = [row["block_efficiency"] for row in rows]
            below = [row["block_efficiency"] - row["low"] for row in rows]
            above = [row["high"] - row["block_efficiency"] for row in rows]
            axes.bar(places, heights, width * 0.92, color=VERIFIER_COLOURS[name], label=VERIFIER_LABELS[name])
            axes.errorbar(
                places, heights,
                yerr=[below, above],
                fmt="none", color="black", elinewidth=1, capsize=2.5,
            )  # fmt: skip
            for place, row in zip(places, rows, strict=True):
                axes.annotate(
                    f"{row['block_efficiency']:.2f}", (place, row["high"]), xytext=(0, 2),
                    textcoords="offset points", ha="center", fontsize=8,
                )  # fmt: skip
        axes.set_xticks(range(len(num_drafts)), [f"{k} draft{'s' if k > 1 else ''}" for k in num_drafts])
        axes.tick_params(axis="x", length=0)
        axes.set_ylabel("block efficiency [tokens per target call]")
        axes.set_ylim(0, max(table.column("high")) * 1.08)
        axes.set_title("Bundled models, full vocabulary: estimate and interval")
        figure.legend(frameon=False, ncols=len(VERIFIERS), loc="outside lower center")
    return figure
