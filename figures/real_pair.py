from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.common.bundled import Setting, bundled_pair, setting_text, whole
from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, legend_below, panels
from spectheory.exact.certifying import certify
from spectheory.optima import optimum
from spectheory.simulation import Estimate, simulate
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES, VerifierStyle

VERIFIERS = ("token", "block", "spectr", "greedy_multipath")
AGREE = (
    "the exact block efficiency lies in the Rao-Blackwell and in the counted interval; every verifier is "
    "target-matching and prefix-matching (total variation below 1e-9); none exceeds the optimum"
)


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    prompts, confidence = table.distinct("prompt"), findings.settings["confidence"]
    settings = dict.fromkeys(
        zip(*(table.column(name) for name in ("num_tokens", "draft_length", "num_drafts")), strict=True)
    )
    size: Look = {"width": 7.8 / len(settings), "height": 1.2 + 1.1 * len(prompts)}
    with panels(1, len(settings), **size) as (figure, all_axes):
        for axes, setting in zip(all_axes, settings, strict=True):
            wanted = dict(zip(("num_tokens", "draft_length", "num_drafts"), setting, strict=True))
            _panel(axes, [table.select(prompt=prompt, **wanted) for prompt in prompts])
            axes.set_title(setting_text(setting))
            axes.set_xlabel("block efficiency [tokens per target call]")
        for axes in all_axes[1:]:
            axes.set_yticklabels([])
        level = f"Monte Carlo, all intervals together {100 * confidence:g} %"
        all_axes[0].plot([], [], "D", markersize=3.6, color=GREY, label="exact")
        all_axes[0].errorbar([], [], xerr=[], fmt="none", color=GREY, capsize=4.5, label=level)
        legend_below(figure, 3)
    return figure


def _panel(axes: Axes, by_prompt: list[list[dict[str, Any]]]) -> None:
    """One line per prompt and verifier: the exact value, the sampled one with its interval, the optimum."""
    position, ticks, names = 0.0, [], []
    for number, rows in enumerate(by_prompt):
        top, bottom = position + 0.5, position - len(rows) + 0.5
        label = None if number else "optimum (linear program)"
        look: Look = {"color": BLACK, "linewidth": 1.2, "linestyle": "--"}
        axes.plot([rows[0]["optimum"]] * 2, [bottom, top], label=label, **look)
        for row in rows:
            style = VERIFIER_STYLES.get(row["verifier"], VerifierStyle(GREY, "o", row["verifier"]))
            around = [[row["estimate"] - row["low"]], [row["high"] - row["estimate"]]]
            bar: Look = {"fmt": "none", "capsize": 4.5, "elinewidth": 1.3}
            axes.errorbar(row["estimate"], position, xerr=around, color=style.colour, **bar)
            axes.plot(row["exact"], position, "D", markersize=3.6, color=style.colour)
            ticks.append(position)
            names.append(style.label)
            position -= 1
        axes.annotate(f"prompt {rows[0]['prompt']}", (0.02, top + 0.2), xycoords=("axes fraction", "data"),
                      color=GREY, va="center", fontsize=8.5)  # fmt: skip
        position -= 1
    axes.set_yticks(ticks, names)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="x")
    axes.grid(visible=False, axis="y")


@result(
    title="Real models on a small vocabulary: exact, optimal and sampled",
    source="this package (no counterpart in the papers)",
    draw=_draw,
    small={"prompts": (0,), "settings": ((2, 2, 2),), "samples": 400},
)
def real_pair(
    prompts: Sequence[int] = (0, 1, 2),
    settings: Sequence[Setting] = ((3, 2, 2), (2, 3, 2)),
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
        settings: m tokens, the most likely ones of the target after the prompt, L drafted tokens, K drafts.
        verifiers: names, or objects with ``outcome``.
        confidence: with which all intervals of the table together cover (Bonferroni).
        drafts_at_once: copies of the prompt in one batch.
    """
    from spectheory.models import Restriction, bundled_prompts, restrict
    from spectheory.models.device import cpu_threads

    checks, models = Checks(), bundled_pair()
    comparisons = 2 * len(prompts) * len(settings) * len(verifiers)
    table = ResultTable(
        "real_pair",
        "Block efficiency in tokens per target call. exact: summed over all drafts; optimum: linear "
        "program over all valid verifiers; estimate: Rao-Blackwell; counted: sampled tokens. All "
        f"{comparisons} intervals together cover with probability {100 * confidence:g}%.",
    )
    for (tokens, length, drafts), prompt in ((setting, prompt) for setting in settings for prompt in prompts):
        text = bundled_prompts()[prompt]
        with cpu_threads(1):
            restriction = Restriction.at_prompt(models, text, tokens)
            enumerated = restrict(models, text, restriction, length)
            best = optimum(enumerated, drafts)
            simulation = simulate(
                models, [text] * drafts_at_once, verifiers, drafts=drafts, draft_length=length,
                samples=max(2, samples // drafts_at_once), seed=seed + prompt, restriction=restriction,
                confidence=1 - (1 - confidence) / comparisons, batch_size=drafts_at_once,
            )  # fmt: skip
            certificates = [
                certify(verifier, enumerated, drafts, with_optimum=False) for verifier in verifiers
            ]
        for found, estimate in zip(certificates, whole(simulation).estimates, strict=True):
            exact = float(found.block_efficiency)
            agree = bool(agrees(exact, estimate) and found and exact <= best.upper + 1e-9)
            (low, high), (counted_low, counted_high) = estimate.interval, estimate.counted_interval
            table.add(
                prompt=prompt, num_tokens=tokens, draft_length=length, num_drafts=drafts,
                verifier=estimate.verifier, exact=exact, optimum=float(best.value),
                estimate=estimate.block_efficiency, low=low, high=high, counted=estimate.counted,
                counted_low=counted_low, counted_high=counted_high,
                total_variation=round(float(found.total_variation), 12), agree=agree,
            )  # fmt: skip
            checks.expect(AGREE, agree, f"{estimate.verifier}: {table.select()[-1]}")
    return Findings(
        "The bundled target and draft, conditioned at every context on the next token being one of "
        "the m most likely ones after the prompt. Exact law and Monte Carlo take separate routes from "
        "the models to the number and share only the verifier.",
        tables=[table],
        checks=checks,
    )


def agrees(exact: float, estimate: Estimate) -> bool:
    """Whether the exact value lies in both intervals, rounding (1e-9) allowed for."""
    intervals = (estimate.interval, estimate.counted_interval)
    return all(low - 1e-9 <= exact <= high + 1e-9 for low, high in intervals)


if __name__ == "__main__":
    real_pair.main()
