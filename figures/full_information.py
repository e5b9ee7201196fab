from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from figures.common.bundled import GREEDY_BLOCK, ONE_PATH
from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, legend_below, named, panels
from spectheory.exact.law import output_law
from spectheory.optima import block_transport_optimum, optimum
from spectheory.optima.block_transport import block_transport_value
from spectheory.pairs.instances import two_token
from spectheory.verification.curves import BLACK, GREY, optimum_curve, verifier_curve
from spectheory.verification.resolve import find_verifier

PRINTED = {"token": Fraction(10, 9), "block": Fraction(11, 9), "ideal": Fraction(12, 9)}
"""E[tau] at draft length 2, block2024 section 2."""
PRINTED_ACCEPTANCE = {
    "AA": ("3/4", "0", "1/4"), "AB": ("0", "0", "1"), "BA": ("0", "1/2", "1/2"), "BB": ("0", "0", "1"),
}  # fmt: skip
"""P(tau = 0, 1, 2) of block verification for each drafted block, the same section."""
EXACT_IDEAL_UP_TO = 3  # the coupling program has V^(2L) variables


def _draw(findings: Findings) -> Figure:
    table = findings.table("full_information")
    with panels(width=6.8, height=3.8) as (figure, (axes,)):
        ideal = table.where(algorithm="ideal")
        lengths, best, out_of_reach = ideal["draft_length"], ideal["optimum"], ideal["accepted"]
        band: Look = {"color": GREY, "alpha": 0.2, "linewidth": 0}
        axes.fill_between(lengths, best, out_of_reach, **band, label="out of reach of any lossless verifier")
        dotted: Look = {"color": BLACK, "linewidth": 1.2, "linestyle": ":"}
        axes.plot(lengths, out_of_reach, **dotted, label="ideal: Σ min(p, q)")
        for name in ONE_PATH:
            look: Look = {}
            if name == "greedy_block":
                look |= {"linestyle": "none", "label": named(name, lossless=False)}
            verifier_curve(axes, name, lengths, table.where(algorithm=name)["accepted"], **look)
        optimum_curve(axes, lengths, best)
        axes.set(xlabel="draft length L", ylabel="accepted tokens E[τ]", xticks=lengths)
        axes.set_ylim(bottom=0)
        axes.set_title("Accepted tokens on the two-token pair, exactly")
        legend_below(figure, 2)
    return figure


@result(
    title="The ideal algorithm of the two-token example",
    source="block2024, section 2, Eqs. 40–42",
    draw=_draw,
    small={"draft_lengths": (1, 2, 3)},
)
def full_information(draft_lengths: Sequence[int] = (1, 2, 3, 4, 5, 6)) -> Findings:
    """E[τ] with full information, of valid verifiers, and the linear program over these; exactly.

    With the joint laws of both blocks known, a maximal coupling keeps Σ_a min(p(a), q(a)) at every
    length, E[τ] = 12/9 at length 2.  It corrects AA to BB, two tokens that were not drafted.  A verifier
    returns a drafted prefix and one token, and the program over all of these, whatever they know, gives 11/9.
    """
    checks = Checks()
    table = ResultTable(
        "full_information",
        "Accepted tokens E[τ] per target call; optimum: the program of one path, minus 1; "
        "total_variation: of one call. Exact.",
    )
    for length in draft_lengths:
        pair, here = two_token(length), f"L = {length}"
        laws = {name: output_law(name, pair) for name in ONE_PATH}
        values = {name: law.block_efficiency - 1 for name, law in laws.items()}
        values["ideal"] = ideal = block_transport_value(pair)
        best, defects = optimum(pair).value - 1, {name: law.total_variation for name, law in laws.items()}
        for name, value in values.items():
            printed = PRINTED.get(name) if length == 2 else None
            table.add(
                draft_length=length, algorithm=name, accepted=value, printed=printed, optimum=best,
                total_variation=defects.get(name),
            )  # fmt: skip
            if printed is not None:
                claim = "E[τ] is 10/9, 11/9 and 12/9 at length 2, as printed"
                checks.expect(claim, value == printed, f"{name}: {value}, printed {printed}")
            claim = "no lossless verifier exceeds the optimum"
            checks.expect(claim, defects.get(name) != 0 or value <= best, f"{here}: {name} {value} > {best}")
        claim = "block verification is the best valid verifier, whatever the others know"
        checks.expect(claim, values["block"] == best, f"{here}: {values['block']} < {best}")
        if length <= EXACT_IDEAL_UP_TO:
            program = block_transport_optimum(pair).value
            claim = "the coupling program (Eq. 40), Σ min(p, q) and greedy block agree, exactly"
            agree = program == values["greedy_block"] == ideal
            checks.expect(claim, agree, f"{here}: program {program}, sum {ideal}")
        defect = defects["greedy_block"]
        claim = "greedy block reaches the ideal unmodified; it is not lossless wherever that is out of reach"
        checks.expect(claim, (ideal > best) == (defect > 0), f"{here}: defect {defect}")
    return Findings(
        "Two-token pair. The ideal is what two coupled texts have in common; it is not a verifier, because "
        f"it replaces more than one token. {GREEDY_BLOCK}; here it is unmodified, and reaches the ideal.",
        tables=[table, _acceptance_by_block(checks)],
        checks=checks,
    )


def _acceptance_by_block(checks: Checks) -> ResultTable:
    """P(τ = 0, 1, 2) of block verification for AA, AB, BA and BB, and the printed values."""
    table = ResultTable(
        "full_information_block",
        "P(τ = 0, 1, 2) of block verification for each drafted block of two tokens, and as printed.",
        [*("drafted", "accepts_0", "accepts_1", "accepts_2"), *("printed_0", "printed_1", "printed_2")],
    )
    pair = two_token(2)
    paths = np.array([[[0, 0]], [[0, 1]], [[1, 0]], [[1, 1]]])  # [N, K, L]
    target = np.broadcast_to(pair.target[0][0], (4, 1, 3, 2))
    draft = np.broadcast_to(pair.draft[0][0], (4, 1, 2, 2))
    stops = find_verifier("block").outcome(paths, target, draft).stop_probs[:, 0]
    for (name, printed), found in zip(PRINTED_ACCEPTANCE.items(), stops, strict=True):
        table.rows.append((name, *found, *printed))
        claim = "block verification accepts each of the four blocks as printed"
        checks.expect(claim, tuple(map(str, found)) == printed, f"{name}: {found}, printed {printed}")
    return table


if __name__ == "__main__":
    full_information.main()
