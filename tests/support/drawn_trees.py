"""Algorithms that select position by position acted out on explicit trees of draws, by plain loops."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import permutations, product
from math import prod
from typing import Any

from later import Later
from reference import Law, Path, draft_row, normalised, target_row, without_zeros
from spectheory.pairs.pair import ModelPair

optimize = Later("scipy.optimize")


class Draw:
    """One token drawn at a node, the row it was drawn from at every context, and what was drawn below."""

    def __init__(self, token: int, model: ModelPair, below: list[Draw]) -> None:
        self.token, self.model, self.below = token, model, below


def drawn_trees(
    pair: ModelPair, widths: tuple[int, ...], distinct: bool, context: Path = ()
) -> Iterator[tuple[list[Draw], Any]]:
    """Every way to draw the tree below a node, with its probability."""
    if len(context) == len(widths):
        yield [], Fraction(1)
        return
    row, width = draft_row(pair, context), widths[len(context)]
    support = [token for token, prob in enumerate(row) if prob > 0]
    for tokens in permutations(support, width) if distinct else product(support, repeat=width):
        prob, left = Fraction(1), Fraction(1)
        for token in tokens:
            prob *= row[token] / left
            left -= row[token] if distinct else 0
        below = [list(drawn_trees(pair, widths, distinct, (*context, token))) for token in tokens]
        for choice in product(*below):
            draws = [Draw(token, pair, sub) for token, (sub, _) in zip(tokens, choice, strict=True)]
            yield draws, prob * prod(weight for _, weight in choice)


def drawn_paths(pair: ModelPair, models: list[ModelPair]) -> Iterator[tuple[list[Draw], Any]]:
    """One path from each model, as trees that never branch."""
    chain = (1,) * pair.draft_length
    chains = [[(draws[0], prob) for draws, prob in drawn_trees(model, chain, False)] for model in models]
    for choice in product(*chains):
        yield [draw for draw, _ in choice], prod(prob for _, prob in choice)


def given_paths(pair: ModelPair, paths: tuple[Path, ...]) -> Iterator[tuple[list[Draw], Any]]:
    """These paths and no others, with probability 1."""
    draws: list[list[Draw]] = [[] for _ in paths]
    for tokens in zip(*(path[::-1] for path in paths), strict=True):
        draws = [[Draw(token, pair, below)] for token, below in zip(tokens, draws, strict=True)]
    yield [draw for (draw,) in draws], Fraction(1)


def acted_out(
    pair: ModelPair,
    trees: Iterable[tuple[list[Draw], Any]],
    rule: Callable[..., list[Any]],
    keep: int | None = None,
) -> Law:
    """spectr2023 Algorithm 3 on every tree, draw by draw; ``rule`` gives the law of Y at one node.

    The rule is called with p, the rows of the draws and their tokens.  ``keep`` limits the survivors.
    """
    law: Law = defaultdict(Fraction)

    def select(context: Path, draws: list[Draw], weight: Any) -> None:
        target = target_row(pair, context)
        rows = [draft_row(draw.model, context) for draw in draws]
        for token, mass in enumerate(rule(target, rows, [draw.token for draw in draws])):
            survivors = [draw for draw in draws if draw.token == token][:keep]
            extended = (*context, token)
            if mass == 0:
                continue
            if not survivors:
                law[extended] += weight * mass
            elif len(extended) == pair.draft_length:
                for extra, prob in enumerate(target_row(pair, extended)):
                    law[(*extended, extra)] += weight * mass * prob
            else:
                select(extended, [draw for parent in survivors for draw in parent.below], weight * mass)

    for draws, prob in trees:
        select((), draws, prob)
    return without_zeros(law)


def multi_round_rule(target: list[Any], rows: list[list[Any]], tokens: list[int]) -> list[Any]:
    """Accept or reject the tokens in turn against what is left of the target."""
    law, undecided, left = [Fraction(0)] * len(target), Fraction(1), list(target)
    for row, token in zip(rows, tokens, strict=True):
        accept = min(Fraction(1), left[token] / row[token])
        law[token] += undecided * accept
        undecided *= 1 - accept
        if undecided == 0:
            return law
        left = normalised([max(p - q, Fraction(0)) for p, q in zip(left, row, strict=True)])
    return [mass + undecided * rest for mass, rest in zip(law, left, strict=True)]


def without_replacement_rule(target: list[Any], rows: list[list[Any]], tokens: list[int]) -> list[Any]:
    """Multi-round rejection against rows from which the earlier tokens were taken out."""
    reduced = []
    for number, row in enumerate(rows):
        left = [Fraction(0) if token in tokens[:number] else prob for token, prob in enumerate(row)]
        reduced.append(normalised(left))
    return multi_round_rule(target, reduced, tokens)


def kseq_rule_by_hand(target: list[Any], rows: list[list[Any]], tokens: list[int]) -> list[Any]:
    """spectr2023 Algorithm 2 with ρ* by bracketing."""
    rho = bracketed_root([float(p) for p in target], [float(q) for q in rows[0]], len(tokens))
    accepted = [min(float(q), float(p) / rho) for p, q in zip(target, rows[0], strict=True)]
    beta = sum(accepted)
    p_acc = 1 - (1 - beta) ** len(tokens)
    law, undecided = [0.0] * len(target), 1.0
    for token in tokens:
        accept = min(1.0, float(target[token]) / (rho * float(rows[0][token])))
        law[token] += undecided * accept
        undecided *= 1 - accept
    residual = [
        max(float(p) - (a / beta * p_acc if beta else 0.0), 0.0)
        for p, a in zip(target, accepted, strict=True)
    ]
    if undecided > 1e-14 and sum(residual) > 0:
        law = [mass + undecided * rest / sum(residual) for mass, rest in zip(law, residual, strict=True)]
    return law


def bracketed_root(target: list[float], draft: list[float], num_drafts: int) -> float:
    """ρ* as the root of S(β(ρ)) = ρ, S(β) = sum_{j<n} (1-β)^j: Eq. 6 divided by β, without cancellation."""

    def excess(rho: float) -> float:
        beta = math.fsum(min(q, p / rho) for p, q in zip(target, draft, strict=True))
        return math.fsum((1 - beta) ** j for j in range(num_drafts)) - rho

    beta_at_one = sum(map(min, target, draft))
    if num_drafts == 1 or beta_at_one == 0 or excess(1.0) <= 1e-15:
        return 1.0
    return float(optimize.brentq(excess, 1.0, float(num_drafts), xtol=1e-15, rtol=1e-15))


def assert_close(found: Law, expected: Law, tolerance: float = 1e-12) -> None:
    for path in found.keys() | expected.keys():
        assert abs(float(found.get(path, 0)) - float(expected.get(path, 0))) <= tolerance, path


SIZES = [
    # V, widths or K paths, how many
    (2, (2, 1), 12),
    (2, (1, 2), 12),
    (2, (2, 2), 8),
    (3, (2,), 12),
    (3, (3,), 6),
    (3, (2, 1), 4),
    (3, (1, 2), 4),
    (2, (1, 2, 1), 4),
    (2, (2, 1, 1), 4),
]
