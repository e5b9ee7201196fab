from fractions import Fraction

from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, as_float, result
from figures.style import ACCENT, label_point, panels
from spectheory.exact.law import output_law
from spectheory.pairs.instances import two_token
from spectheory.verification.curves import GREY


def _draw(findings: Findings) -> Figure:
    table = findings.table("spectr_gbv_law")
    with panels(1, 1, width=3.8, height=3.0) as (figure, (axes,)):
        for shift, column, colour, label in (
            (-0.2, "target", ACCENT, "target"),
            (0.2, "output", GREY, "output of SpecTr-GBV, two drafts"),
        ):
            exact = [row[column] for row in table.select()]
            values = [as_float(value) for value in exact]
            axes.bar([place + shift for place in range(len(values))], values, 0.38, color=colour, label=label)
            for place, (value, text) in enumerate(zip(values, exact, strict=True)):
                label_point(axes, str(text), (place + shift, value), (0, 4), ha="center", fontsize=9)
        axes.set_xticks(range(len(table["token"])), table["token"])
        axes.set(ylabel="probability of the first token", ylim=(0, 1))
        axes.set_title("two-token pair, one drafted token", fontsize=9)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
    return figure


@result(
    title="SpecTr-GBV does not keep the target's distribution",
    source="spectrgbv2026, Algorithm 1, Theorem 4.1",
    draw=_draw,
)
def spectr_gbv_law(num_drafts: int = 2) -> Findings:
    """The exact law of the first token of SpecTr-GBV as printed, beside the target's, on the two-token pair.

    Checks: the output misses the target by the total variation that the certificate reports.
    """
    checks = Checks()
    table = ResultTable(
        "spectr_gbv_law", "Probability of the first token; exact. Output: completed with the target."
    )
    pair = two_token(1)
    law = output_law("spectr_gbv", pair, num_drafts)
    single, double = law.masses
    target = [Fraction(value) for value in pair.target_path_probs(1)]
    missed = Fraction(0)
    for token, name in enumerate(pair.vocab):
        output = Fraction(str(single[token] + sum(double[token * len(pair.vocab) :][: len(pair.vocab)])))
        table.add(token=name, target=target[token], output=output)
        missed += abs(output - target[token]) / 2
    claim = "the output is not the target's"
    checks.expect(claim, missed > 0, f"it is the target's with {num_drafts} drafts")
    found = law.total_variation
    checks.expect("the bars differ by the total variation", missed == found, f"{missed} and {found}")
    return Findings(
        "The paper's theorem says that the output keeps the target's distribution for every number of "
        "drafts. With two drafts of one token it does not: the bars of a token would be equal.",
        tables=[table],
        checks=checks,
    )


if __name__ == "__main__":
    spectr_gbv_law.main()
