"""Reference laws in plain Python: every algorithm acted out as printed, draft by draft.

Nothing here is shared with the package but the numbers in a ``ModelPair``.  A law is a mapping
from the output sequence (accepted prefix and correction token) to its probability R.
"""

from collections import defaultdict
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from spectheory.exact.law import OutputLaw
from spectheory.pairs.pair import ModelPair

Path = tuple[int, ...]
Law = dict[Path, Any]


def number_of(pair: ModelPair, context: Path) -> int:
    number = 0
    for token in context:
        number = number * pair.vocab_size + token
    return number


def target_row(pair: ModelPair, context: Path) -> list[Any]:
    return list(pair.target[len(context)][number_of(pair, context)])


def draft_row(pair: ModelPair, context: Path) -> list[Any]:
    return list(pair.draft[len(context)][number_of(pair, context)])


def target_prob(pair: ModelPair, path: Path) -> Any:
    return prod((target_row(pair, path[:i])[path[i]] for i in range(len(path))), start=Fraction(1))


def draft_prob(pair: ModelPair, path: Path) -> Any:
    return prod((draft_row(pair, path[:i])[path[i]] for i in range(len(path))), start=Fraction(1))


def leaves(pair: ModelPair) -> list[Path]:
    return list(product(range(pair.vocab_size), repeat=pair.draft_length))


def normalised(row: list[Any]) -> list[Any]:
    """A row divided by its sum; it must have mass."""
    total = sum(row)
    return [value / total for value in row]


def law_of(law: OutputLaw) -> Law:
    """The package's arrays as a mapping, zeros left out."""
    found = {}
    for depth, masses in enumerate(law.masses, start=1):
        for number, mass in enumerate(masses):
            if mass != 0:
                found[law.pair.context(depth, number)] = mass
    return found


def without_zeros(law: Law) -> Law:
    return {path: mass for path, mass in law.items() if mass != 0}


def token_law(pair: ModelPair) -> Law:
    """block2024 Algorithm 1: tokens accepted one after the other, up to the first rejection."""
    law: Law = defaultdict(Fraction)
    for path in leaves(pair):
        weight = draft_prob(pair, path)
        if weight == 0:
            continue
        for i, token in enumerate(path):
            p, q = target_row(pair, path[:i]), draft_row(pair, path[:i])
            accept = min(Fraction(1), p[token] / q[token])
            if accept < 1:
                residual = normalised([max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True)])
                for y, mass in enumerate(residual):
                    law[(*path[:i], y)] += weight * (1 - accept) * mass
            weight *= accept
        for y, mass in enumerate(target_row(pair, path)):
            law[(*path, y)] += weight * mass
    return without_zeros(law)


def block_law(pair: ModelPair, draft_rows: Any = None, leaf_probs: Any = None) -> Law:
    """block2024 Algorithm 2, one subset of accepted prefixes after the other.

    Args:
        pair: the models.
        draft_rows: a function context -> row that replaces the pair's draft (for skewed drafts).
        leaf_probs: a function leaf -> probability that goes with it.
    """
    rows = draft_rows or (lambda context: draft_row(pair, context))
    probs = leaf_probs or (lambda path: draft_prob(pair, path))
    length = pair.draft_length
    law: Law = defaultdict(Fraction)
    for path in leaves(pair):
        if probs(path) == 0:
            continue
        weights = [Fraction(1)]
        for i, token in enumerate(path):
            ratio = target_row(pair, path[:i])[token] / rows(path[:i])[token]
            weights.append(min(Fraction(1), weights[-1] * ratio))
        residuals, accept = [], [Fraction(1)]
        for i in range(length):
            p, q = target_row(pair, path[:i]), rows(path[:i])
            residual = [max(weights[i] * a - b, Fraction(0)) for a, b in zip(p, q, strict=True)]
            residuals.append(residual)
            if i >= 1:
                denominator = 1 - weights[i] + sum(residual)
                accept.append(sum(residual) / denominator if denominator else Fraction(0))
        accept.append(weights[length])
        add_outputs(law, pair, path, probs(path), accept[1:], residuals)
    return without_zeros(law)


def add_outputs(
    law: Law, pair: ModelPair, path: Path, prob: Fraction, accept: list[Any], residuals: list[Any]
) -> None:
    """Add what a path of this probability outputs; each prefix is accepted alone, and the longest counts."""
    for decisions in product((False, True), repeat=len(path)):
        tau = max((i for i, accepted in enumerate(decisions, start=1) if accepted), default=0)
        chances = (h if accepted else 1 - h for h, accepted in zip(accept, decisions, strict=True))
        chance = prob * prod(chances, start=Fraction(1))
        if chance == 0:
            continue
        row = target_row(pair, path) if tau == len(path) else normalised(residuals[tau])
        for y, mass in enumerate(row):
            law[(*path[:tau], y)] += chance * mass


def greedy_ranking(pair: ModelPair) -> list[Path]:
    """All leaves that can be drafted, ascending by their tuples of (ratio, token id) (Def. 5.2)."""

    def key(path: Path) -> list[tuple[Fraction, int]]:
        contexts = [path[:i] for i in range(len(path))]
        return [
            (target_row(pair, context)[token] / draft_row(pair, context)[token], token)
            for context, token in zip(contexts, path, strict=True)
        ]

    return sorted((path for path in leaves(pair) if draft_prob(pair, path) > 0), key=key)


def skewed_leaf_probs(pair: ModelPair, ranking: list[Path], num_drafts: int) -> dict[Path, Fraction]:
    """r(P_i) = F_i^K - F_{i-1}^K with F the cumulative draft mass, ascending (Eq. 19 as corrected)."""
    cumulative, skewed = Fraction(0), {}
    for path in ranking:
        before = cumulative
        cumulative += draft_prob(pair, path)
        skewed[path] = cumulative**num_drafts - before**num_drafts
    return skewed


def greedy_multipath_law(pair: ModelPair, num_drafts: int) -> Law:
    """greedy2026 Algorithm 1 through one global ranking of all leaves.

    The selected leaf has law r, whichever tuple was drafted; block verification against r follows.
    """
    skewed = skewed_leaf_probs(pair, greedy_ranking(pair), num_drafts)

    def mass(prefix: Path) -> Fraction:
        return sum((r for leaf, r in skewed.items() if leaf[: len(prefix)] == prefix), Fraction(0))

    def rows(context: Path) -> list[Fraction]:
        return [mass((*context, token)) / mass(context) for token in range(pair.vocab_size)]

    return block_law(pair, rows, lambda path: skewed.get(path, Fraction(0)))


def ranking_efficiency(pair: ModelPair, skewed: dict[Path, Fraction]) -> Fraction:
    """J(r) of theory.md Statement 5.3: the sum over all nodes a of min_k p(a_{k+1:} | a_{1:k}) r(a_{1:k})."""
    total = Fraction(0)
    for depth in range(pair.draft_length + 1):
        for node in product(range(pair.vocab_size), repeat=depth):
            candidates = []
            for k in range(depth + 1):
                r = sum((mass for leaf, mass in skewed.items() if leaf[:k] == node[:k]), Fraction(0))
                steps = (target_row(pair, node[:i])[node[i]] for i in range(k, depth))
                candidates.append(prod(steps, start=Fraction(1)) * r)
            total += min(candidates)
    return total
