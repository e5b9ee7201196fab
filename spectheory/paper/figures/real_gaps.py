"""How far every verifier is from the optimum on many real conditionals, as a distribution."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, quantiles
from typing import Any

from matplotlib.figure import Figure

from spectheory.exact.certificate import certify
from spectheory.optima import optimum
from spectheory.paper.drawing import legend_below, panels
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.figures.bundled import bundled_pair
from spectheory.paper.figures.real_pair import Setting
from spectheory.paper.style import VERIFIER_STYLES

VERIFIERS = (
    "token", "block", "multi_round", "spectr", "greedy_multipath", "mixed_multipath", "scored_multipath",
)  # fmt: skip
SETTINGS = (Setting(8, 1, 2), Setting(3, 2, 2), Setting(2, 3, 2), Setting(2, 4, 2))
SHORTEST, STEP = 12, 6
"""A context is the first 12, 18, 24, .. tokens of a prompt."""
ROUNDING = 1e-9
ATTAINED = 1e-6
"""A verifier whose relative gap is below this attains the optimum."""


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"real_gaps": _plot(findings)}


@exhibit(
    title="How far verifiers are from optimal on real conditionals",
    source="this package (no counterpart in the papers)",
    draw=_draw,
)
def real_gaps(contexts: int = 50, settings: Sequence[Setting] = SETTINGS) -> Findings:
    """The relative gap of every verifier to the optimum, on the bundled models after many texts.

    After every text both models are conditioned on the m tokens that are likeliest under the target there,
    and enumerated.  Law and optimum are then exact, or the optimum is certified from both sides.  No text is
    used twice.

    Args:
        contexts: texts per setting.
        settings: m tokens, L drafted tokens, K drafts.
    """
    from spectheory.models import bundled_prompts, one_thread, restrict

    models, prompts = bundled_pair(), bundled_prompts()
    rows: list[tuple[Any, ...]] = []
    for number, (setting, context) in enumerate((s, c) for s in settings for c in range(contexts)):
        prompt, length = number % len(prompts), SHORTEST + STEP * (number // len(prompts))
        with one_thread():
            text = models.encode(prompts[prompt])[:length]
            pair = restrict(models, text, setting.num_tokens, setting.draft_length)
            best = optimum(pair, setting.num_drafts)
        for verifier in VERIFIERS:
            found = certify(verifier, pair, setting.num_drafts, with_optimum=False)
            value = float(found.block_efficiency)
            rows.append((
                str(setting), context, prompt, length, verifier, value, float(best.lower), float(best.upper),
                1 - value / float(best.upper), bool(found.is_valid),
            ))  # fmt: skip
    table = ResultTable(
        "real_gaps",
        (
            "setting", "context", "prompt", "prompt_tokens", "verifier", "block_efficiency", "optimum_lower",
            "optimum_upper", "gap", "lossless",
        ),
        rows,
        "Block efficiency in tokens per target call and the optimum, certified from both sides. gap: 1 - "
        "block efficiency / optimum_upper.",
    )  # fmt: skip
    return Findings(
        explanation=(
            f"The bundled models after {contexts * len(settings)} texts, each conditioned on a few tokens. A "
            "line says on which share of the texts a verifier is within so many percent of the best that any "
            "lossless verifier could do. Where it starts is the share on which it is optimal."
        ),
        settings={"models": "bundled", "contexts": contexts, "settings": [str(s) for s in settings]},
        tables=[table, _summary(table, settings)],
        checks=_checks(table),
    )


def _summary(table: ResultTable, settings: Sequence[Setting]) -> ResultTable:
    rows = []
    for setting in map(str, settings):
        for verifier in VERIFIERS:
            gaps = [row["gap"] for row in table.select(setting=setting, verifier=verifier)]
            tenths = quantiles(gaps, n=10, method="inclusive")
            optimal = sum(gap < ATTAINED for gap in gaps) / len(gaps)
            rows.append((setting, verifier, optimal, mean(gaps), tenths[4], tenths[8], max(gaps)))
    return ResultTable(
        "real_gaps_summary",
        ("setting", "verifier", "share_optimal", "mean", "median", "ninth_decile", "largest"),
        rows,
        "Relative gaps to the optimum over the texts of a setting; share_optimal: the share of texts with a "
        f"gap below {ATTAINED:g}.",
    )


def _checks(table: ResultTable) -> list[Check]:
    rows = table.select()
    above = [
        f"{row['verifier']}, {row['setting']}, context {row['context']}: {row['block_efficiency']}"
        for row in rows
        if row["block_efficiency"] > row["optimum_upper"] + ROUNDING
    ]
    wrong = [
        f"{row['verifier']}, {row['setting']}, context {row['context']}"
        for row in rows
        if not row["lossless"]
    ]
    tokens, blocks = (table.select(verifier=name) for name in ("token", "block"))
    fallen = [
        f"{block['setting']}, context {block['context']}"
        for token, block in zip(tokens, blocks, strict=True)
        if block["block_efficiency"] < token["block_efficiency"] - ROUNDING
    ]
    wide = [
        f"{row['setting']}, context {row['context']}: {row['optimum_lower']} to {row['optimum_upper']}"
        for row in tokens
        if row["optimum_upper"] - row["optimum_lower"] > 1e-5 * row["optimum_upper"]
    ]
    return [
        Check.of("no verifier exceeds the optimum on any text", len(rows), above),
        Check.of("every verifier is lossless on every text", len(rows), wrong),
        Check.of("block earns at least what token earns on every text", len(tokens), fallen),
        Check.of("the optimum is known to 1e-5 on every text", len(tokens), wide),
    ]


def _plot(findings: Findings) -> Figure:
    table = findings.table("real_gaps")
    settings = list(dict.fromkeys(table.column("setting")))
    with panels((len(settings) + 1) // 2, 2, height=2.7) as (figure, axes):
        for place, setting in zip(axes, settings, strict=False):
            for verifier in VERIFIERS:
                gaps = sorted(100 * row["gap"] for row in table.select(setting=setting, verifier=verifier))
                style = VERIFIER_STYLES[verifier]
                shares = [number / len(gaps) for number in range(1, len(gaps) + 1)]
                place.step(
                    [0, *gaps],
                    [0, *shares],
                    where="post",
                    color=style.colour,
                    label=style.label,
                    linewidth=1.5,
                )
            place.set_title(setting)
            place.set(xlabel="below the optimum by at most [%]", ylim=(0, 1.02))
            place.set_xlim(0, None)
        for place in axes[::2]:
            place.set_ylabel("share of texts")
        for place in axes[len(settings) :]:
            place.set_visible(False)
        legend_below(figure, 3)
    return figure
