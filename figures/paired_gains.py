from matplotlib.figure import Figure

from figures.common.bundled import GREEDY_BLOCK
from figures.common.lossless import labels, lossless_verifiers
from figures.common.measured import measurement
from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, named, note, panels, zero_line
from spectheory.verification.curves import GREY, VERIFIER_STYLES

SOURCE, BASE, DRAFT_LENGTH = "smollm2", "block", 4


def _draw(findings: Findings) -> Figure:
    (base,) = findings.tables[0].select(verifier=BASE)
    rows = [row for row in findings.tables[0].select() if row["verifier"] != BASE]
    with panels(width=6.4, height=3.4) as (figure, [axes]):
        zero_line(axes, vertical=True)
        for place, row in enumerate(rows):
            style = VERIFIER_STYLES[row["verifier"]]
            colour, face = (style.colour, style.colour) if row["lossless"] else (GREY, "white")
            look: Look = {"fmt": style.marker, "color": colour, "markerfacecolor": face, "capsize": 3}
            ends = [[row["gain"] - row["low"]], [row["high"] - row["gain"]]]
            axes.errorbar([row["gain"]], [place], xerr=ends, markersize=6, **look)
        names = [named(row["verifier"], row["lossless"]).replace(" (", "\n(") for row in rows]
        axes.set_yticks(range(len(rows)), names)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(
            f"gain over block verification ({base['tokens_per_call']:.2f}) [tokens per target call]"
        )
        axes.set_title("SmolLM2, four drafts of four tokens")
        note(axes, "drafts by its first 29 of 30 layers\n95 % intervals of the differences", (0.98, 0.04))
    return figure


@result(
    title="Gains over block verification on SmolLM2",
    source="this package (no counterpart in the papers)",
    draw=_draw,
)
def paired_gains() -> Findings:
    """Paired differences at the contexts of common texts, measured before and read from a file."""
    checks, found = Checks(), measurement(SOURCE)
    table = ResultTable(
        "paired_gains", f"{found.machine}. Tokens per call of the target, and the gains over block."
    )
    rows = sorted(found.select(), key=lambda row: row["gain"])
    for row in rows:
        table.add(**row)
        inside = row["low"] <= row["gain"] <= row["high"]
        checks.expect("every gain lies in its interval", inside, f"{row['verifier']}: {row['gain']}")
    lossless = [row["verifier"] for row in rows if row["lossless"]]
    claim = "scored selection gains most of the lossless verifiers that are measured"
    checks.expect(claim, lossless[-1:] == ["scored_multipath"], f"the order is {lossless}")
    missing = [name for name in lossless_verifiers(DRAFT_LENGTH) if name not in lossless]
    gains = {row["verifier"]: row["gain"] for row in rows}
    several = [gains[name] / -gains["token"] for name in lossless if gains[name] > 0]
    return Findings(
        "All verifiers judge the same drafts at every token of texts that the target writes, so the "
        "intervals of the differences, clustered by prompt, are narrower than those of the means. The draft "
        "is the target without its last layer: it takes nearly as long as the target, so this is about "
        "tokens per call and not about time. Verifiers of several drafts, but for naive sampling, gain "
        f"{min(several):.1f} to {max(several):.1f} times what block verification gains over token "
        f"verification. Verifiers that are not lossless are grey. {GREEDY_BLOCK}; here it is unmodified. "
        f"{labels(missing)} are not measured: they plan at every context, on the CPU. "
        f"Measured by `{found.command}`.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    paired_gains.main()
