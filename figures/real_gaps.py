from collections.abc import Sequence
from itertools import product
from statistics import mean, quantiles

from matplotlib.figure import Figure

from figures.common.bundled import Setting, bundled_pair, setting_text
from figures.common.lossless import lossless_verifiers
from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, legend_below, panels
from spectheory.exact.certificate import certify
from spectheory.optima import optimum
from spectheory.verification.curves import VERIFIER_STYLES

SHORTEST, STEP = 12, 6
"""A context is the first 12, 18, 24, .. tokens of a prompt."""
ROUNDING = 1e-9
ATTAINED = 1e-6
"""A verifier whose relative gap is below this attains the optimum."""


def _draw(findings: Findings) -> Figure:
    table = findings.table("real_gaps")
    settings = table.distinct("setting")
    least, largest = 100 * ATTAINED, 150 * max(table["gap"])
    with panels((len(settings) + 1) // 2, 2, height=2.7, sharex=True, sharey=True) as (figure, all_axes):
        for axes, setting in zip(all_axes, settings, strict=False):
            for verifier in table.distinct("verifier"):
                gaps = [100 * gap for gap in table.where(setting=setting, verifier=verifier)["gap"]]
                places = sorted({least, largest, *(gap for gap in gaps if gap > least)})
                shares = [mean(gap <= place for gap in gaps) for place in places]
                style = VERIFIER_STYLES[verifier]
                dashes: Look = {"linestyle": (0, (3, 2)), "zorder": 3} if verifier == "token" else {}
                look: Look = {"color": style.colour, "label": style.label, "linewidth": 1.5}
                axes.step(places, shares, where="post", **look, **dashes)
            axes.set_title(setting)
            axes.set(xscale="log", xlim=(least, largest), ylim=(0, 1.02))
        for axes in all_axes[-2:]:
            axes.set_xlabel("below the optimum by at most [%]")
        for axes in all_axes[::2]:
            axes.set_ylabel(f"share of {len(table.distinct('context'))} texts")
        for axes in all_axes[len(settings) :]:
            axes.set_visible(False)
        legend_below(figure, 4)
    return figure


@result(
    title="How far verifiers are from optimal on real conditionals",
    source="this package (no counterpart in the papers)",
    draw=_draw,
    small={"contexts": 2, "settings": ((3, 1, 2), (2, 3, 2))},
)
def real_gaps(
    contexts: int = 50, settings: Sequence[Setting] = ((8, 1, 2), (3, 2, 2), (2, 3, 2), (2, 4, 2))
) -> Findings:
    """The relative gap of every lossless verifier of i.i.d. drafts to the optimum, after many texts.

    After every text both models are conditioned on the m tokens that are likeliest under the target there,
    and enumerated.  Law and optimum are then exact, or the optimum is certified from both sides.  No text is
    used twice.

    Args:
        contexts: texts per setting.
        settings: m tokens, L drafted tokens, K drafts.
    """
    from spectheory.models import bundled_prompts, restrict
    from spectheory.models.device import cpu_threads

    checks, models, prompts = Checks(), bundled_pair(), bundled_prompts()
    lossless = lossless_verifiers(max(length for _, length, _ in settings))
    table = ResultTable(
        "real_gaps",
        "Block efficiency in tokens per target call and the optimum, certified from both sides. gap: 1 - "
        "block efficiency / optimum_upper.",
    )
    for number, (setting, context) in enumerate(product(settings, range(contexts))):
        prompt, prefix = number % len(prompts), SHORTEST + STEP * (number // len(prompts))
        tokens, length, drafts = setting
        with cpu_threads(1):
            pair = restrict(models, models.encode(prompts[prompt])[:prefix], tokens, length)
            best = optimum(pair, drafts)
        lower, upper = float(best.lower), float(best.upper)
        here, earned = f"{setting_text(setting)}, context {context}", {}
        for verifier in lossless:
            found = certify(verifier, pair, drafts, with_optimum=False)
            earned[verifier] = value = float(found.block_efficiency)
            table.add(
                setting=setting_text(setting), context=context, prompt=prompt, prompt_tokens=prefix,
                verifier=verifier, block_efficiency=value, optimum_lower=lower, optimum_upper=upper,
                gap=1 - value / upper, lossless=bool(found.is_valid),
            )  # fmt: skip
            where, within = f"{verifier}, {here}: {value}", value <= upper + ROUNDING
            checks.expect("no verifier exceeds the optimum on any text", within, f"{where} > {upper}")
            checks.expect("every verifier is lossless on every text", found.is_valid, where)
        claim = "block earns at least what token earns on every text"
        checks.expect(claim, earned["block"] >= earned["token"] - ROUNDING, here)
        known = upper - lower <= 1e-5 * upper
        checks.expect("the optimum is known to 1e-5 on every text", known, f"{here}: {lower} to {upper}")
    return Findings(
        f"The bundled models after {contexts * len(settings)} texts, each conditioned on a small vocabulary. "
        "A line says on which share of the texts a verifier is within so many percent of the best that any "
        f"lossless verifier could do. At the left edge it is within {100 * ATTAINED:g} %, which is optimal "
        "as far as the optimum is known. With draft length 1 token verification is block verification.",
        tables=[table, _summary(table)],
        checks=checks,
    )


def _summary(table: ResultTable) -> ResultTable:
    summary = ResultTable(
        "real_gaps_summary",
        "Relative gaps to the optimum over the texts of a setting; share_optimal: the share of texts with a "
        f"gap below {ATTAINED:g}.",
    )
    for setting, verifier in product(table.distinct("setting"), table.distinct("verifier")):
        gaps = table.where(setting=setting, verifier=verifier).column("gap")
        tenths = quantiles(gaps, n=10, method="inclusive")
        optimal = sum(gap < ATTAINED for gap in gaps) / len(gaps)
        summary.add(
            setting=setting, verifier=verifier, share_optimal=optimal, mean=mean(gaps), median=tenths[4],
            ninth_decile=tenths[8], largest=max(gaps),
        )  # fmt: skip
    return summary


if __name__ == "__main__":
    real_gaps.main()
