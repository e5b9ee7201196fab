import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from figures.results import Checks, Findings, ResultTable, result
from figures.style import Look, legend_below, panels
from spectheory.foundation.arrays import hit_probability, normalise
from spectheory.optima import optimal_acceptance
from spectheory.verification.algorithms.position_by_position.kseq import kseq_rule
from spectheory.verification.curves import BLACK, GREY, VERIFIER_STYLES


def _draw(findings: Findings) -> Figure:
    (table,) = findings.tables
    family = table.where(search="two tokens")
    drafts = family["num_drafts"]
    searched = [
        min(row["ratio"] for row in table.select(num_drafts=k) if row["search"] != "two tokens")
        for k in drafts
    ]
    with panels(width=5.4, height=3.5) as (figure, (axes,)):
        colour = VERIFIER_STYLES["kseq"].colour
        axes.plot(drafts, family["ratio"], color=colour, label="worst of the two-token family")
        hollow: Look = {"color": BLACK, "markerfacecolor": "white"}
        axes.plot(drafts, searched, "v", **hollow, label="worst found by search over rows")
        label = "guarantee $1 - (1 - 1/K)^K$"
        axes.plot(drafts, family["guarantee"], color=GREY, linestyle="--", label=label)
        axes.axhline(1 - math.exp(-1), color=GREY, linewidth=1, linestyle=":", label="1 − 1/e")
        axes.set(xlabel="number of drafts K", ylabel="acceptance of K-SEQ / optimal")
        axes.set(ylim=(0.55, 1.02), xticks=drafts)
        axes.set_title("The worst case of K-SEQ")
        legend_below(figure, 2)
    return figure


@result(
    title="The worst case of K-SEQ, found and guaranteed",
    source="spectr2023, Theorem 1, Lemma 3",
    draw=_draw,
    small={"num_drafts": (2, 3), "vocab_sizes": (2,), "starts": 10, "steps": 20},
)
def kseq_ratio(
    num_drafts: Sequence[int] = (2, 3, 4, 6, 8, 12, 16),
    vocab_sizes: Sequence[int] = (2, 3),
    starts: int = 60,
    steps: int = 240,
    seed: int = 5,
) -> Findings:
    """The smallest K-SEQ / α_K over rows: random ones, made worse by a walk, and a family.

    The family has two tokens, draft (u, 1 − u) and target (u^K, 1 − u^K), where α_K reaches 1.

    Args:
        vocab_sizes: the V of the random search.
        starts: random pairs per K and V.
        steps: of the walk from the worst of them.
    """
    checks = Checks()
    table = ResultTable(
        "kseq_ratio",
        "ratio: the smallest acceptance of K-SEQ at ρ* over α_K that was found, at these rows; "
        "guarantee: 1 − (1 − 1/K)^K.",
    )
    for drafts in num_drafts:
        guarantee = hit_probability(1 / drafts, drafts)
        found = {"two tokens": _worst_of_family(drafts)}
        for size in vocab_sizes:
            rng = np.random.default_rng([seed, drafts, size])
            found[f"V = {size}"] = _search(rng, drafts, size, starts, steps)
        for where, (ratio, *rows) in found.items():
            target, draft = ([round(float(prob), 6) for prob in row] for row in rows)
            table.add(
                num_drafts=drafts, search=where, ratio=ratio, guarantee=guarantee, target=target, draft=draft
            )
            here, family = f"K = {drafts}, {where}: {ratio}", found["two tokens"][0]
            claim = "no ratio found is below the guarantee"
            checks.expect(claim, ratio >= guarantee - 1e-9, f"{here} < {guarantee}")
            claim = "no searched rows are worse than the two-token family"
            checks.expect(claim, ratio >= family - 1e-6, f"{here} < {family}")
    return Findings(
        "No search comes near the guarantee, and more than two tokens make nothing worse: at K = 2 the "
        "worst ratio found is 8/9, at draft (2/3, 1/3) and target (4/9, 5/9), where 3/4 is guaranteed.",
        tables=[table],
        checks=checks,
    )


def _ratio(target: np.ndarray, draft: np.ndarray, num_drafts: int) -> float:
    rule = kseq_rule(target, draft, np.array(float(num_drafts)))
    return float(rule.acceptance) / float(optimal_acceptance(target, draft, num_drafts).value)


Found = tuple[float, np.ndarray, np.ndarray]


def _worst_of_family(num_drafts: int) -> Found:
    """By golden-section search in u; one draft is optimal whatever u is."""

    def at(u: float) -> Found:
        target, draft = np.array([u**num_drafts, 1 - u**num_drafts]), np.array([u, 1 - u])
        return _ratio(target, draft, num_drafts), target, draft

    low, high, golden = 0.01, 0.99, (math.sqrt(5) - 1) / 2
    for _ in range(40):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if at(left)[0] < at(right)[0] else (left, high)
    return at((low + high) / 2)


def _search(rng: np.random.Generator, num_drafts: int, vocab_size: int, starts: int, steps: int) -> Found:
    """The worst of random Dirichlet pairs, then a random walk of its logarithms, with shrinking steps."""

    def rows_of(logarithms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weights = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
        target, draft = normalise(weights)
        return target, draft

    def at(logarithms: np.ndarray) -> float:
        return _ratio(*rows_of(logarithms), num_drafts)

    concentrations = rng.choice([0.3, 1.0, 3.0], size=(starts, 2))
    candidates = [
        np.log(np.maximum([rng.dirichlet(np.full(vocab_size, c)) for c in pair], 1e-12))
        for pair in concentrations
    ]
    worst = min(candidates, key=at)
    ratio, length, misses = at(worst), 0.5, 0
    for _ in range(steps):
        tried = worst + length * rng.normal(size=worst.shape)
        value = at(tried)
        if value < ratio:
            worst, ratio, misses = tried, value, 0
        else:
            misses += 1
            if misses % 30 == 0:
                length *= 0.7
    return ratio, *rows_of(worst)


if __name__ == "__main__":
    kseq_ratio.main()
