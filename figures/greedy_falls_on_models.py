from collections.abc import Sequence

from matplotlib.figure import Figure

from figures.common.bundled import gained, interval, on_common_drafts
from figures.results import Checks, Findings, ResultTable, result
from figures.style import legend_below, note, panels, verifier_band, zero_line

VERIFIERS = ("multi_round", "greedy_multipath", "mixed_multipath", "scored_multipath")


def _draw(findings: Findings) -> Figure:
    (table,), settings = findings.tables, findings.settings
    with panels(width=6.4, height=3.6) as (figure, (axes,)):
        zero_line(axes)
        for name in VERIFIERS:
            rows = table.where(verifier=name)
            verifier_band(axes, name, rows["num_drafts"], rows["gain"], rows["gain_low"], rows["gain_high"])
        drafts = table.distinct("num_drafts")
        axes.set_xscale("log", base=2)
        axes.set_xticks(drafts, [str(number) for number in drafts])
        axes.minorticks_off()
        axes.set(xlabel="number of drafts K", ylabel="gain over block verification\n[tokens per target call]")
        axes.set_title(f"Bundled language models, L = {settings['draft_length']}")
        text = f"bands: {100 * settings['confidence']:g} % intervals of the differences"
        note(axes, text, (0.02, 0.93), ha="left")
        legend_below(figure, 2)
    return figure


@result(
    title="Many drafts on language models: who gains, and who stops to",
    source="this package; the fall of theory.md, section 5, on language models",
    draw=_draw,
    small={"num_drafts": (2, 3), "draft_length": 2, "num_prompts": 4, "samples": 2},
)
def greedy_falls_on_models(
    num_drafts: Sequence[int] = (2, 4, 8, 16),
    draft_length: int = 4,
    num_prompts: int = 32,
    samples: int = 3,
    seed: int = 31,
    confidence: float = 0.95,
) -> Findings:
    """Gains over block verification on the first K of common drafts, on the bundled prompts.

    Args:
        num_drafts: K.
    """
    from spectheory.models import bundled_prompts

    checks, prompts = Checks(), bundled_prompts()[:num_prompts]
    asked = [("block", 1, draft_length)]
    asked += [(name, drafts, draft_length) for name in VERIFIERS for drafts in num_drafts]
    found = on_common_drafts(asked, "block", prompts, samples=samples, seed=seed, confidence=confidence)
    table = ResultTable(
        "greedy_falls_on_models",
        f"Tokens per target call, L = {draft_length}, and gains over block verification on the first of the "
        f"same drafts, {100 * confidence:g}% intervals, {len(prompts)} held-out prompts.",
    )
    for (name, drafts, _), estimate in found.items():
        if name in VERIFIERS:
            table.add(verifier=name, num_drafts=drafts, **interval(estimate), **gained(estimate))
    most = {name: table.where(verifier=name, num_drafts=num_drafts[-1]).select()[0] for name in VERIFIERS}
    above = most["scored_multipath"]["high"] >= most["greedy_multipath"]["low"]
    where = f"{most['scored_multipath']} and {most['greedy_multipath']}"
    claim = "with most drafts scored selection is not seen to earn less than greedy"
    checks.expect(claim, above, where)
    for name in VERIFIERS:
        (row,) = table.select(verifier=name, num_drafts=num_drafts[-1])
        inside = row["gain_low"] <= row["gain"] <= row["gain_high"]
        checks.expect("every gain lies in its interval", inside, f"{name}: {row}")
    return Findings(
        "All verifiers judge the first K of the same drafts. Greedy multi-path verification ranks paths in "
        "one fixed order, so that with many drafts it nearly always selects a path of the highest rank; "
        "scored selection weighs them, and goes on gaining.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    greedy_falls_on_models.main()
