from fractions import Fraction

from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, result
from figures.style import BROKEN, Look, legend_below, panels
from spectheory.exact.iteration import completed_law
from spectheory.exact.law import output_law
from spectheory.optima import optimum
from spectheory.pairs.instances import random_rational, two_token
from spectheory.verification.algorithms.spectr_gbv import conditionally_independent_bound
from spectheory.verification.curves import VERIFIER_STYLES, verifier_curve

VERIFIERS = ("spectr", "multi_round", "spectr_gbv")
KNOWN_EFFICIENCY = {(1, 2): Fraction(41, 60), (2, 2): Fraction(74693, 57120)}
"""E[tau] on the two-token pair by (L, K), theory.md §2."""


def _draw(findings: Findings) -> Figure:
    table = findings.table("spectr_gbv_defect")
    with panels(width=5.4, height=3.8) as (figure, (axes,)):
        for name in VERIFIERS:
            rows = table.where(verifier=name)
            look: Look = {"linestyle": "none", "markersize": 6}
            verifier_curve(axes, name, rows["share_of_optimum"], rows["total_variation"], **look)
        defined = [row for row in rows.select() if row["with_modification"] is not None]
        shares, left = ([row[key] for row in defined] for key in ("share_of_optimum", "with_modification"))
        colour = VERIFIER_STYLES["spectr_gbv"].colour
        axes.plot(shares, left, "x", color=colour, label="SpecTr-GBV with its modification")
        axes.axvline(1, **BROKEN, label="optimum of lossless verifiers")
        axes.set(xlabel="block efficiency / optimum", ylabel="defect (total variation)")
        axes.set_ylim(bottom=0)
        axes.set_title("Random pairs, two drafts: efficiency and defect")
        legend_below(figure, 2)
    return figure


@result(
    title="SpecTr-GBV as printed: efficiency and defect",
    source="spectrgbv2026, Algorithms 1–3, Theorems 4.2 and 5.3",
    draw=_draw,
    small={"num_pairs": 3},
)
def spectr_gbv_defect(num_pairs: int = 20, num_drafts: int = 2, seed: int = 53) -> Findings:
    """Block efficiency with total variation beside it, on random exact pairs with V = 2, L = 2."""
    checks = Checks()
    table = ResultTable(
        "spectr_gbv_defect",
        "Block efficiency in tokens per target call; total variation of one call from the target, "
        "completed by the target's rows, and with the modified rows of Algorithm 2.",
    )
    for number in range(num_pairs):
        pair = random_rational([seed, number], 2, 2, zero_probability=0, equal_row_probability=0)
        best = float(optimum(pair, num_drafts).value)
        for name in VERIFIERS:
            law = output_law(name, pair, num_drafts)
            value, defect = float(law.block_efficiency), float(law.total_variation)
            with_modification = None
            here = f"{name}, pair {number}: {value}, optimum {best}, defect {defect}"
            if name == "spectr_gbv":
                if not law.undefined:  # where an output is undefined no call can follow
                    modified = completed_law(name, pair, num_drafts) - pair.target_path_probs(3)
                    with_modification = float(abs(modified).sum() / 2)
                claim = "Theorem 4.2 is false: it is lossy on every random pair, with its modification too"
                checks.expect(claim, defect and with_modification != 0, here)
            else:
                checks.expect("SpecTr and multi-round are lossless on all of them", defect <= 1e-9, here)
                checks.expect("these do not exceed the optimum", value <= best + 1e-9, here)
            table.add(
                number=number, verifier=name, block_efficiency=value, total_variation=round(defect, 12),
                with_modification=with_modification, optimum=best, share_of_optimum=value / best,
            )  # fmt: skip
    two = ResultTable(
        "spectr_gbv_counterexample",
        "The two-token pair, exactly: E[τ], Bound(K), E[τ] of one draft, P(the first token is A), "
        "which is 1/3 under the target, and the defect.",
    )
    for (length, drafts), known in KNOWN_EFFICIENCY.items():
        pair = two_token(length)
        law, single = output_law("spectr_gbv", pair, drafts), output_law("spectr_gbv", pair, 1)
        bound, accepted = conditionally_independent_bound(pair, drafts), law.block_efficiency - 1
        two.add(
            draft_length=length, num_drafts=drafts, accepted=accepted, bound=bound,
            accepted_from_one_draft=single.block_efficiency - 1, first_token_is_A=law.prefix_law(1)[0],
            total_variation=law.total_variation,
        )  # fmt: skip
        here = f"L = {length}, K = {drafts}: {accepted}"
        claim = "E[τ] on the two-token pair is 41/60 and 74693/57120"
        checks.expect(claim, accepted == known, f"{here}, not {known}")
        claim = "Theorem 5.3 is false: E[τ] is below Bound(K) on both"
        checks.expect(claim, accepted < bound, f"{here} >= {bound}")
    return Findings(
        "An efficiency means little without its defect. SpecTr-GBV as printed changes the law of the "
        "text on every random pair, also with the distribution modification of its Algorithm 2; SpecTr "
        "and multi-round do not. A hexagon without a cross is a pair on which a residual is 0/0, so "
        "that no modification is defined.",
        tables=[table, two],
        checks=checks,
    )


if __name__ == "__main__":
    spectr_gbv_defect.main()
