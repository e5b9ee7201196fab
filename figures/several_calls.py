from collections.abc import Sequence
from fractions import Fraction
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, as_float, result
from figures.style import ACCENT, Look, label_point, legend_below, panels
from spectheory.exact.iteration import expected_calls
from spectheory.optima import fewest_calls, most_decoded_tokens
from spectheory.pairs.instances import early_stop, two_token
from spectheory.verification.curves import BLACK, optimum_curve, verifier_curve

VERIFIERS = ("token", "block")
TWO_TOKEN_LENGTH = 3
FEWEST = "block verification needs the fewest calls for n tokens (Statement 4.9)"


def _draw(findings: Findings) -> Figure:
    with panels(1, 2, height=3.5) as (figure, (left, right)):
        _calls(left, findings.table("several_calls"))
        _losses(right, findings.table("two_calls"))
        legend_below(figure, 2)
    return figure


def _calls(axes: Axes, table: ResultTable) -> None:
    for name in VERIFIERS:
        rows = table.where(verifier=name)
        verifier_curve(axes, name, rows["tokens"], rows["calls_per_token"], label=f"{name} verification")
    optimum_curve(axes, rows["tokens"], rows["fewest_per_token"])
    ticks = range(2, len(rows.rows) + 1, 2)
    axes.set(xlabel="number of decoded tokens", ylabel="mean target calls per token", xticks=ticks)
    axes.set_title(f"Two-token pair, drafts of L = {TWO_TOKEN_LENGTH}")


def _losses(axes: Axes, table: ResultTable) -> None:
    for length, line in zip(table.distinct("draft_length"), cycle(["-", "--", "-.", ":"]), strict=False):
        rows = table.where(draft_length=length)
        label = "loss of block verification with drafts of L tokens"
        axes.plot(rows["ratio"], rows["loss"], color=ACCENT, linestyle=line, label=label)
        (top,) = rows.select(is_worst=True)
        place = as_float(top["ratio"]), as_float(top["loss"])
        label_point(axes, f"L = {length}", place, (0, -16), ha="center", fontsize=8, color=ACCENT)
    worst = table.where(is_worst=True)
    star: Look = {"color": BLACK, "markersize": 9, "zorder": 3}
    axes.plot(worst["ratio"], worst["bound"], "*", **star, label="most that any pair loses, at this length")
    axes.set(xlabel="ratio ρ: target over draft probability\nof the token that the draft is too sure of")
    axes.set_ylabel("mean tokens fewer than the\nbest verifier, in two calls")
    axes.set_title("Pairs that stop early")


@result(
    title="The optimum of several calls",
    source="this package (theory.md Statements 4.8 to 4.10); block2024, Theorem 2",
    draw=_draw,
    small={"max_tokens": 4, "draft_lengths": (3,), "steps": 4},
)
def several_calls(
    max_tokens: int = 12, draft_lengths: Sequence[int] = (3, 4, 5), steps: int = 16
) -> Findings:
    """Mean calls for n tokens, and what block verification loses in two calls, beside the optima; exact.

    Args:
        max_tokens: the largest n.
        steps: in which their ratio ρ goes from 0 to 1.
    """
    checks, pair = Checks(), two_token(TWO_TOKEN_LENGTH)
    calls = ResultTable(
        "several_calls",
        f"E[T(n)], the mean number of calls that decode n tokens. Two-token pair, draft length "
        f"{TWO_TOKEN_LENGTH}.",
    )
    for number in range(1, max_tokens + 1):
        best, here = fewest_calls(pair, number), f"two-token, n = {number}"
        checks.expect(FEWEST, best.block == best.value, f"{here}: {best.block} > {best.value}")
        for name in VERIFIERS:
            own = expected_calls(name, pair, number)
            calls.add(
                tokens=number, verifier=name, calls=own, fewest=best.value,
                calls_per_token=float(own / number), fewest_per_token=float(best.value / number),
            )  # fmt: skip
            where = f"{name}, {here}: {own} < {best.value}"
            checks.expect("no verifier needs fewer", own >= best.value, where)
            if name == "block":
                claim = "the calls of block verification are those of its output laws"
                checks.expect(claim, own == best.block, f"{here}: {own} and {best.block}")
    losses = ResultTable(
        "two_calls",
        "The largest E[N(2)], that of block verification, their difference, and its bound; tokens.",
    )
    for length in draft_lengths:
        # The most tokens that block verification loses in two calls (theory.md Statement 4.10).
        most, worst = Fraction((length - 2) ** 2, 4 * (length - 1)), Fraction(length, 2 * (length - 1))
        for ratio in sorted({worst, *(Fraction(step, steps) for step in range(steps + 1))}):
            here, deep = f"L = {length}, ρ = {ratio}", early_stop(length, ratio)
            best = fewest_calls(deep, 2 * length, draft_length=length)
            checks.expect(FEWEST, best.block == best.value, f"{here}: {best.block} > {best.value}")
            found = most_decoded_tokens(deep, 2, draft_length=length)
            loss = found.value - found.block
            losses.add(
                draft_length=length, ratio=ratio, most=found.value, block=found.block, loss=loss, bound=most,
                is_worst=ratio == worst,
            )  # fmt: skip
            claim = "two calls lose at most the bound of Statement 4.10"
            checks.expect(claim, loss <= most, f"{here}: {loss} > {most}")
            if ratio == worst:
                checks.expect("the pair early_stop attains it", loss == most, f"{here}: {loss} and {most}")
    return Findings(
        "Left: calls per token, two-token pair. Block verification lies on the optimum for every number of "
        "tokens. Right: how many more tokens the best verifier decodes in two calls than block "
        "verification, on pairs that stop early (early_stop). There the draft is too sure of a token by a "
        "factor 1/ρ, then not sure enough of the next by the same factor. At ρ = L/(2(L-1)) no pair loses "
        "more (Statement 4.10).",
        tables=[calls, losses],
        checks=checks,
    )


if __name__ == "__main__":
    several_calls.main()
