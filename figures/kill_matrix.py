from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, as_float, result
from figures.style import panels
from spectheory.exact.law import output_law
from spectheory.pairs import instances
from spectheory.pairs.pair import ModelPair
from spectheory.verification.defective import defects

PAIRS: Mapping[str, ModelPair] = {
    "two tokens": instances.two_token(2),
    "three tokens": instances.three_token_reversed(2),
    "equal models": instances.equal_models(2),
    "fair coins": instances.uniform_equal(2),
    "disjoint": instances.disjoint_supports(2),
    "overlap": instances.partial_overlap(2),
    "Markov": instances.sticky_chain(2),
    "two residuals": instances.two_residual_tokens(2),
}
"""Two drafted tokens each."""
LEAST = 1e-4
"""The smallest total variation with a colour of its own."""


def _draw(findings: Findings) -> Figure:
    table = findings.table("kill_matrix")
    names, pairs = table.distinct("verifier"), table.distinct("pair")
    values = np.array([as_float(value) for value in table["total_variation"]], float)
    shown = np.log10(np.maximum(values, LEAST)).reshape(len(names), len(pairs))
    shown[values.reshape(shown.shape) == 0] = np.nan
    with panels(1, 1, width=5.2, height=6.6) as (figure, (axes,)):
        image = axes.imshow(shown, cmap="cividis_r", aspect="auto", vmin=np.log10(LEAST), vmax=0)
        axes.set_xticks(range(len(pairs)), pairs, rotation=35, ha="right", fontsize=8)
        axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names], fontsize=7)
        axes.set_title("error by pair (white: none)", fontsize=9)
        axes.grid(visible=False)
        figure.colorbar(image, ax=axes, label="log₁₀ of the total variation", shrink=0.5)
    return figure


@result(
    title="Which pair shows which mistake",
    source="this package (no counterpart in the papers)",
    draw=_draw,
    small={"num_drafts": 1},
)
def kill_matrix(num_drafts: int = 2) -> Findings:
    """The total variation of every known-wrong verifier on eight pairs with two drafted tokens; exactly.

    Checks: every mistake of the picture shows on some pair, and no pair shows them all.
    """
    checks = Checks()
    table = ResultTable(
        "kill_matrix", f"Total variation between completed output and target, K = {num_drafts}; exact."
    )
    silent = dict.fromkeys(PAIRS, 0)
    for name, verifier in defects.items():
        if num_drafts == 1 and not verifier.single_path:
            continue  # most are right with one draft
        found = {pair: output_law(verifier, PAIRS[pair], num_drafts).total_variation for pair in PAIRS}
        for pair, value in found.items():
            table.add(verifier=name, pair=pair, total_variation=_exact(value))
            silent[pair] += value == 0
        claim = "every mistake shows on some pair"
        checks.expect(claim, any(found.values()), f"{name} on none")
    for pair, number in silent.items():
        checks.expect("no pair shows all mistakes", number > 0, f"{pair} does")
    return Findings(
        "Rows are known-wrong verifiers. One pair is not enough to find them: every pair hides some "
        "mistakes, and some mistakes show on one pair only.",
        tables=[table],
        checks=checks,
    )


def _exact(value: Fraction | float) -> Fraction | float:
    """A number of python-flint as a fraction; floats stay."""
    return value if isinstance(value, float) else Fraction(str(value))


if __name__ == "__main__":
    kill_matrix.main()
