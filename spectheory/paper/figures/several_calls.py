"""The optimum of several calls: block verification needs the fewest, and can lose tokens in two."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spectheory.exact.iteration import decoded_tokens_law
from spectheory.optima import fewest_calls, most_decoded_tokens
from spectheory.pairs.instances import early_stop, two_token
from spectheory.pairs.pair import ModelPair
from spectheory.paper.drawing import legend_below, optimum_curve, panels, verifier_curve
from spectheory.paper.exhibit import Check, Findings, ResultTable, exhibit
from spectheory.paper.style import ACCENT, BLACK

VERIFIERS = ("token", "block")
TWO_TOKEN_LENGTH = 3


def _draw(findings: Findings) -> dict[str, Figure]:
    return {"several_calls": _plot(findings)}


@exhibit(
    title="The optimum of several calls",
    source="this package (theory.md Statements 4.8 to 4.10); block2024, Theorem 2",
    draw=_draw,
)
def several_calls(
    max_tokens: int = 12, draft_lengths: Sequence[int] = (3, 4, 5), steps: int = 16
) -> Findings:
    """Mean calls for n tokens, and what block verification loses in two calls, beside the optima; exact.

    Args:
        max_tokens: the largest n.
        draft_lengths: L of the pairs ``early_stop``.
        steps: in which their ratio ρ goes from 0 to 1.
    """
    needed, behind, cheaper, other_routes = [], [], [], []
    pair = two_token(TWO_TOKEN_LENGTH)
    for number in range(1, max_tokens + 1):
        best = fewest_calls(pair, number)
        if best.block != best.value:
            behind.append(f"two-token, n = {number}: {best.block} > {best.value}")
        own = {name: calls_for(name, pair, number) for name in VERIFIERS}
        for name, calls in own.items():
            needed.append((
                number, name, calls, float(calls), best.value, float(best.value), float(calls / number),
                float(best.value / number),
            ))  # fmt: skip
            if calls < best.value:
                cheaper.append(f"{name}, n = {number}: {calls} < {best.value}")
        if own["block"] != best.block:
            other_routes.append(f"n = {number}: {own['block']} and {best.block}")
    lost, beyond, missed = [], [], []
    for length in draft_lengths:
        most, worst = largest_loss(length), Fraction(length, 2 * (length - 1))
        for ratio in sorted({worst, *(Fraction(step, steps) for step in range(steps + 1))}):
            here, deep = f"L = {length}, ρ = {ratio}", early_stop(length, ratio)
            best = fewest_calls(deep, 2 * length, draft_length=length)
            if best.block != best.value:
                behind.append(f"{here}: {best.block} > {best.value}")
            found = most_decoded_tokens(deep, 2, draft_length=length)
            loss = found.value - found.block
            lost.append((
                length, ratio, float(ratio), found.value, found.block, loss, float(loss), most, float(most),
                ratio == worst,
            ))  # fmt: skip
            if loss > most:
                beyond.append(f"{here}: {loss} > {most}")
            if ratio == worst and loss != most:
                missed.append(f"{here}: {loss} and {most}")
    return Findings(
        explanation=(
            "Left: calls per token, two-token pair. Block verification lies on the optimum for every number "
            "of tokens. Right: how many more tokens the best verifier decodes in two calls than block "
            "verification, on the pairs early_stop. There the draft is too sure of a token by a factor 1/ρ, "
            "then not sure enough of the next by the same factor. At ρ = L/(2(L-1)) no pair loses more "
            "(Statement 4.10)."
        ),
        settings={
            "max_tokens": max_tokens, "draft_lengths": list(draft_lengths), "steps": steps,
        },
        tables=[
            ResultTable(
                "several_calls",
                (
                    "tokens", "verifier", "calls", "calls_float", "fewest", "fewest_float", "calls_per_token",
                    "fewest_per_token",
                ),
                needed,
                f"E[T(n)], the mean number of calls that decode n tokens. Two-token pair, draft length "
                f"{TWO_TOKEN_LENGTH}.",
            ),
            ResultTable(
                "two_calls",
                (
                    "draft_length", "ratio", "ratio_float", "most", "block", "loss", "loss_float", "bound",
                    "bound_float", "is_worst",
                ),
                lost,
                "The largest E[N(2)], that of block verification, their difference, and its bound; tokens.",
            ),
        ],
        checks=[
            Check.of("block verification needs the fewest calls for n tokens (Statement 4.9)",
                     max_tokens + len(lost), behind),
            Check.of("no verifier needs fewer", len(needed), cheaper),
            Check.of("the calls of block verification are those of its output laws", max_tokens,
                     other_routes),
            Check.of("two calls lose at most the bound of Statement 4.10", len(lost), beyond),
            Check.of("the pair early_stop attains it", len(draft_lengths), missed),
        ],
    )  # fmt: skip


def calls_for(verifier: str, pair: ModelPair, num_tokens: int) -> Fraction:
    """E[T(n)] = Σ_{i≥0} P(N(i) < n), from the exact law of the tokens decoded in i calls."""
    laws = decoded_tokens_law(verifier, pair, num_tokens)
    return 1 + sum((law[:num_tokens].sum() for law in laws), Fraction(0))


def largest_loss(draft_length: int) -> Fraction:
    """The bound of Statement 4.10, (L-2)²/(4(L-1)), for L ≥ 2."""
    return Fraction((draft_length - 2) ** 2, 4 * (draft_length - 1))


def _plot(findings: Findings) -> Figure:
    with panels(1, 2, height=3.5) as (figure, (left, right)):
        _calls(left, findings.table("several_calls"))
        _losses(right, findings.table("two_calls"))
        legend_below(figure, 3)
    return figure


def _calls(axes: Axes, table: ResultTable) -> None:
    for name in VERIFIERS:
        rows = table.select(verifier=name)
        verifier_curve(axes, name, [row["tokens"] for row in rows], [row["calls_per_token"] for row in rows])
    rows = table.select(verifier="block")
    optimum_curve(axes, [row["tokens"] for row in rows], [row["fewest_per_token"] for row in rows])
    axes.set(xlabel="tokens n", ylabel="calls per token, E[T(n)]/n", xticks=range(2, len(rows) + 1, 2))
    axes.set_title("Calls that n tokens take")


def _losses(axes: Axes, table: ResultTable) -> None:
    lengths = list(dict.fromkeys(table.column("draft_length")))
    for length, line in zip(lengths, cycle(["-", "--", "-.", ":"])):  # the styles go on for ever
        rows = table.select(draft_length=length)
        places, losses = ([row[key] for row in rows] for key in ("ratio_float", "loss_float"))
        axes.plot(places, losses, color=ACCENT, linestyle=line, label=f"early_stop, L = {length}")
    worst = table.select(is_worst=True)
    axes.plot(
        [row["ratio_float"] for row in worst], [row["bound_float"] for row in worst], color=BLACK,
        linestyle="none", marker="*", markersize=9, label="most that any pair loses", zorder=3,
    )  # fmt: skip
    axes.set(xlabel="ρ", ylabel="tokens lost in two calls")
    axes.set_title("What block verification can lose")
