from matplotlib.figure import Figure
from scipy.stats import binomtest

from figures.common.bundled import at_least, whole
from figures.results import Checks, Findings, ResultTable, result
from figures.style import label_point, note, panels
from spectheory.exact.law import output_law
from spectheory.pairs.instances import two_token
from spectheory.simulation import simulate
from spectheory.verification.curves import VERIFIER_STYLES

LABELS = {"token": ((-8, -6), "right", "top"), "block": ((8, 6), "left", "bottom")}
"""Verifier -> place of its name beside its curve."""


def _draw(findings: Findings) -> Figure:
    length, confidence = findings.settings["draft_length"], findings.settings["confidence"]
    with panels(width=6.0, height=3.8) as (figure, (axes,)):
        for name, (offset, across, up) in LABELS.items():
            rows, style = findings.tables[0].where(verifier=name), VERIFIER_STYLES[name]
            axes.plot(rows["length"], rows["exact"], color=style.colour)
            sampled = [row for row in rows.select() if row["length"] > 0]
            axes.errorbar(
                [row["length"] for row in sampled], [row["counted"] for row in sampled],
                yerr=[
                    [row["counted"] - row["low"] for row in sampled],
                    [row["high"] - row["counted"] for row in sampled],
                ],
                fmt="o", markersize=4, color=style.colour, capsize=2.5, elinewidth=1, markerfacecolor="white",
            )  # fmt: skip
            middle = min(4, length)
            label_point(
                axes, style.label, (middle, rows["exact"][middle]), offset, color=style.colour,
                fontweight="bold", ha=across, va=up,
            )  # fmt: skip
        axes.set(xlabel="accepted tokens ℓ", ylabel="P(τ ≥ ℓ)", ylim=(0, 1.02), xlim=(0, length + 0.3))
        axes.set_xticks(range(length + 1))
        note(axes, f"all intervals together {100 * confidence:g} %", (0.98, 0.95), fontsize=8.5)
        axes.set_title(f"Accepted tokens, draft length {length}: exact (lines), sampled (points)")
    return figure


@result(
    title="How many drafted tokens are accepted",
    source="block2024, Figure 3",
    draw=_draw,
    small={"draft_length": 3, "samples": 400},
)
def acceptance_length(
    draft_length: int = 10, samples: int = 4_000, seed: int = 3, confidence: float = 0.99
) -> Findings:
    """P(tau >= l) of token and block verification on the two-token pair, exact and counted.

    The exact curve sums the output law; the points count sampled acceptance lengths, with exact
    intervals (clopper1934).

    Args:
        samples: sampled drafts.
        confidence: with which all points of the figure together lie in their intervals.
    """
    checks, pair = Checks(), two_token(draft_length)
    simulation = simulate(pair, verifiers=tuple(LABELS), samples=samples, seed=seed)
    points = len(LABELS) * draft_length
    level = 1 - (1 - confidence) / points  # Bonferroni
    table = ResultTable(
        "acceptance_length",
        "P(τ ≥ length): exact, and the fraction of sampled drafts with its interval "
        f"(all {points} together at {100 * confidence:g}%).",
    )
    for estimate in whole(simulation).estimates:
        name = estimate.verifier
        exact = at_least(output_law(name, pair).length_probs)
        counted = at_least(estimate.counted_length_probs)
        table.add(verifier=name, length=0, exact=exact[0], counted=1.0, low=1.0, high=1.0, agree=True)
        for length in range(1, draft_length + 1):
            count = round(counted[length] * samples)
            low, high = binomtest(count, samples).proportion_ci(level, method="exact")
            inside = bool(low <= exact[length] <= high)
            table.add(
                verifier=name, length=length, exact=exact[length], counted=count / samples,
                low=low, high=high, agree=inside,
            )  # fmt: skip
            claim = "every exact probability lies in the interval of its sampled fraction"
            here = f"P(τ ≥ {length}) of {name} is {float(exact[length]):.6f}"
            checks.expect(claim, inside, f"{here}, outside [{low:.6f}, {high:.6f}]")
    return Findings(
        f"Two-token pair, draft length {draft_length}. Lines are exact; points are fractions of "
        f"{samples} sampled drafts, bars their intervals.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    acceptance_length.main()
