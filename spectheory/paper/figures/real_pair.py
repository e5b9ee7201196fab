"""Real models restricted to a few tokens: exact law, optimum and Monte Carlo side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.exact.certificate import certify
from spectheory.optima import optimum
from spectheory.paper.drawing import legend_below
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.bundled import bundled_pair, whole
from spectheory.paper.style import BLACK, GREY, VERIFIER_COLOURS, VERIFIER_LABELS, figure_style
from spectheory.simulation import Estimate, simulate

VERIFIERS = ("token", "block", "spectr", "greedy_multipath")
COLUMNS = (
    "prompt", "num_tokens", "draft_length", "num_drafts", "verifier", "exact", "optimum", "estimate",
    "low", "high", "counted", "counted_low", "counted_high", "total_variation", "agree",
)  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """One restriction: m tokens at every context, L drafted tokens, K drafts."""

    num_tokens: int
    draft_length: int
    num_drafts: int

    def __str__(self) -> str:
        return f"{self.num_tokens} tokens, draft length {self.draft_length}, {self.num_drafts} drafts"


AGREE = (
    "the exact block efficiency lies in the Rao-Blackwell and in the counted interval; every verifier is "
    "target-matching and prefix-matching (total variation below 1e-9); none exceeds the optimum"
)
SETTINGS = (Setting(3, 2, 2), Setting(2, 3, 2))


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"real_pair": _plot(findings.tables[0], findings.settings["confidence"])}


@exhibit(
    title="Real models on a few tokens: exact, optimal and sampled",
    source="this package (no counterpart in the papers)",
    draw=_draw,
)
def real_pair(
    prompts: Sequence[int] = (0, 1, 2),
    settings: Sequence[Setting] = SETTINGS,
    verifiers: Sequence[str | Any] = VERIFIERS,
    samples: int = 2_000,
    seed: int = 7,
    confidence: float = 0.99,
    drafts_at_once: int = 100,
) -> Findings:
    """Block efficiency of verifiers by two independent routes, on real conditionals.

    Exact route: both models score every context over m tokens from its full text; the outcomes are
    summed in numpy.  Sampled route: the decoding code drafts with a cache, scores in one call and
    judges on torch.  Both call the same verifier.  They must agree within the interval, and no
    verifier may exceed the optimum.

    Args:
        prompts: numbers of bundled held-out prompts.
        settings: restrictions to the m most likely tokens of the target after the prompt.
        verifiers: names, or objects with ``outcome``.
        samples: drafted K-tuples per prompt and setting.
        seed: of the drafting and sampling.
        confidence: with which all intervals of the table together cover (Bonferroni).
        drafts_at_once: copies of the prompt in one batch.
    """
    from spectheory.models import one_thread

    comparisons = 2 * len(prompts) * len(settings) * len(verifiers)
    level = 1 - (1 - confidence) / comparisons
    rows = []
    for setting in settings:
        for prompt in prompts:
            with one_thread():
                rows += _rows(setting, prompt, verifiers, samples, seed, level, drafts_at_once)
    table = ResultTable(
        "real_pair",
        COLUMNS,
        rows,
        "Block efficiency in tokens per target call. exact: summed over all drafts; optimum: linear "
        "program over all valid verifiers; estimate: Rao-Blackwell; counted: sampled tokens. All "
        f"{comparisons} intervals together cover with probability {100 * confidence:g}%.",
    )
    return Findings(
        explanation=(
            "The bundled target and draft, conditioned at every context on the next token being one of "
            "the m most likely ones after the prompt. Exact law and Monte Carlo take separate routes from "
            "the models to the number and share only the verifier."
        ),
        settings={
            "models": "bundled", "prompts": list(prompts), "settings": [str(s) for s in settings],
            "samples": samples, "seed": seed, "confidence": confidence,
        },
        tables=[table],
        checks=[Check.of(AGREE, len(rows), _failures(table))],
    )  # fmt: skip


def _rows(
    setting: Setting,
    prompt: int,
    verifiers: Sequence[str | Any],
    samples: int,
    seed: int,
    level: float,
    drafts_at_once: int,
) -> list[tuple[Any, ...]]:
    from spectheory.models import bundled_prompts, most_likely_at_prompts, prefill, restricted_pair

    models, text = bundled_pair(), bundled_prompts()[prompt]
    restriction = most_likely_at_prompts(prefill(models, [text]), setting.num_tokens)
    enumerated = restricted_pair(models, text, restriction, setting.draft_length)
    best = optimum(enumerated, setting.num_drafts)
    simulation = simulate(
        models,
        [text] * drafts_at_once,
        verifiers,
        num_drafts=setting.num_drafts,
        draft_length=setting.draft_length,
        samples=max(2, samples // drafts_at_once),
        seed=seed + prompt,
        restriction=restriction,
        confidence=level,
        batch_size=drafts_at_once,
    )
    rows = []
    for verifier, estimate in zip(verifiers, whole(simulation).estimates, strict=True):
        certificate = certify(verifier, enumerated, setting.num_drafts, with_optimum=False)
        exact = float(certificate.block_efficiency)
        agree = agrees(exact, estimate) and certificate.is_valid and exact <= best.upper + 1e-9
        rows.append((
            prompt, setting.num_tokens, setting.draft_length, setting.num_drafts, estimate.verifier, exact,
            float(best.value), estimate.block_efficiency, *estimate.interval, estimate.counted,
            *estimate.counted_interval, round(float(certificate.total_variation), 12), bool(agree),
        ))  # fmt: skip
    return rows


def agrees(exact: float, estimate: Estimate) -> bool:
    """Whether the exact value lies in both intervals, rounding (1e-9) allowed for."""
    intervals = (estimate.interval, estimate.counted_interval)
    return all(low - 1e-9 <= exact <= high + 1e-9 for low, high in intervals)


def _failures(table: ResultTable) -> list[str]:
    return [
        f"{row['verifier']} at prompt {row['prompt']}, {row['num_tokens']} tokens, draft length "
        f"{row['draft_length']}: exact {row['exact']:.6f}, estimate {row['estimate']:.6f} in "
        f"[{row['low']:.6f}, {row['high']:.6f}], counted {row['counted']:.6f} in [{row['counted_low']:.6f}, "
        f"{row['counted_high']:.6f}], optimum {row['optimum']:.6f}, "
        f"total variation {row['total_variation']:.2g}"
        for row in table.select(agree=False)
    ]


def _plot(table: ResultTable, confidence: float) -> Figure:
    prompts = list(dict.fromkeys(table.column("prompt")))
    sizes = zip(*(table.column(name) for name in ("num_tokens", "draft_length", "num_drafts")), strict=True)
    settings = [Setting(*size) for size in dict.fromkeys(sizes)]
    with figure_style():
        figure = Figure(figsize=(7.8, 1.2 + 1.1 * len(prompts)), layout="constrained")
        panels = figure.subplots(1, len(settings), squeeze=False)[0]
        for axes, setting in zip(panels, settings, strict=True):
            _panel(axes, [table.select(prompt=prompt, **vars(setting)) for prompt in prompts])
            axes.set_title(str(setting))
            axes.set_xlabel("block efficiency [tokens per target call]")
        for axes in panels[1:]:
            axes.set_yticklabels([])
        level = f"Monte Carlo, all intervals together {100 * confidence:g} %"
        panels[0].plot([], [], "D", markersize=3.6, color=GREY, label="exact")
        panels[0].errorbar([], [], xerr=[], fmt="none", color=GREY, capsize=4.5, label=level)
        legend_below(figure, 3)
    return figure


def _panel(axes: Axes, by_prompt: list[list[dict[str, Any]]]) -> None:
    """One line per prompt and verifier: the exact value, the sampled one with its interval, the optimum."""
    position, ticks, names = 0.0, [], []
    for number, rows in enumerate(by_prompt):
        first = number == 0
        top, bottom = position + 0.5, position - len(rows) + 0.5
        axes.plot([rows[0]["optimum"]] * 2, [bottom, top], color=BLACK, linewidth=1.2, linestyle="--",
                  label="optimum (linear program)" if first else None)  # fmt: skip
        for row in rows:
            colour = VERIFIER_COLOURS.get(row["verifier"], GREY)
            around = [[row["estimate"] - row["low"]], [row["high"] - row["estimate"]]]
            axes.errorbar(
                row["estimate"], position, xerr=around, fmt="none", color=colour, capsize=4.5, elinewidth=1.3,
            )  # fmt: skip
            axes.plot(row["exact"], position, marker="D", markersize=3.6, linestyle="none", color=colour)
            ticks.append(position)
            names.append(VERIFIER_LABELS.get(row["verifier"], row["verifier"]))
            position -= 1
        axes.annotate(f"prompt {rows[0]['prompt']}", (0.02, top), xycoords=("axes fraction", "data"),
                      color=GREY, va="center", fontsize=8.5)  # fmt: skip
        position -= 1
    axes.set_yticks(ticks, names)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")
