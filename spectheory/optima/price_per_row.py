"""The best length rules if a verified row has a price, and whether dropping drafts pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import Number, plain_number
from spectheory.foundation.results import no_verdict
from spectheory.optima.solving.builder import ProgramBuilder
from spectheory.optima.solving.exact_solver import solve_in_its_arithmetic
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.optima.solving.solution import Solution
from spectheory.pairs.contexts import Context, all_contexts, context_number
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import Row, parse_entry, parse_rows


@dataclass(frozen=True)
class StoppingRule:
    """The best predictable rule at a price per row, and its value.

    Attributes:
        value: E[τ + 1] - c E[N], tokens per target call less the price of the verified rows.
        gains: W(a) by context: what the rows after a earn, less their price.
    """

    value: Number
    gains: dict[Context, Any]

    def __bool__(self) -> bool:
        raise no_verdict(self, ".value")

    def __call__(self, tokens: Sequence[int], rows: Any = None) -> int:
        """Return how many tokens of a path are verified: a rule for ``Shortened``."""
        for depth in range(len(tokens)):
            if self.gains[tuple(tokens[:depth])] <= 0:
                return depth
        return len(tokens)


def block_weights(pair: ModelPair) -> dict[Context, Any]:
    """Compute the weights w(a) of block verification at every context with q(a) > 0."""
    one = pair.target[0][0, 0] * 0 + 1
    weights: dict[Context, Any] = {(): one}
    for context in all_contexts(pair.vocab_size, pair.draft_length - 1):
        if context not in weights:
            continue
        number = context_number(context, pair.vocab_size)
        rows = pair.target[len(context)][number], pair.draft[len(context)][number]
        for token, (target, draft) in enumerate(zip(*rows, strict=True)):
            if draft > 0:
                weights[(*context, token)] = min(one, weights[context] * target / draft)
    return weights


def best_stopping_rule(pair: ModelPair, price: Any) -> StoppingRule:
    """Compute the best predictable rule if a verified row costs ``price`` tokens (theory.md Statement 8.12).

    W(a) = max(0, Σ_t q(t|a) (w(a,t) - c + W(a,t))), and W = 0 at depth L.  ``block`` attains 1 + W(∅).

    Args:
        pair: the models.
        price: c, from 0 to 1, tokens per verified row; exact for an exact pair.

    Raises:
        InvalidInputError: the price is not from 0 to 1.

    Example:
        >>> from spectheory import instances
        >>> print(best_stopping_rule(instances.two_token(1), "1/2").value)
        7/6
    """
    cost, weights = _price(pair, price), block_weights(pair)
    gains: dict[Context, Any] = {}
    for context in reversed(all_contexts(pair.vocab_size, pair.draft_length)):
        gains[context] = cost * 0
        if context not in weights or len(context) == pair.draft_length:
            continue
        row = pair.draft[len(context)][context_number(context, pair.vocab_size)]
        earned = sum(
            row[token] * (weights[child] - cost + gains[child])
            for token in range(pair.vocab_size)
            for child in [(*context, token)]
            if row[token] > 0
        )
        gains[context] = max(gains[context], earned)
    return StoppingRule(plain_number(1 + gains[()]), gains)


def dropping_program(pair: ModelPair, price: Any) -> LinearProgram:
    """State the linear program of the rules that decide on token i from the tokens up to i (8.12 (ii)).

        max  Σ_{a ≠ ∅} (x(a) - c m(a))
        s.t. x(a,t) ≤ p(t|a) x(a),   x(a) ≤ m(a),   m(a,t) ≤ q(t|a) m(a),   x(∅) = m(∅) = 1

    x are the node masses, m the kept masses.  The value of the rule is 1 more than the optimum.

    Example:
        >>> from spectheory import instances
        >>> dropping_program(instances.two_token(1), "1/2").size
        (6, 8)
    """
    cost, size = _price(pair, price), pair.vocab_size
    contexts = all_contexts(size, pair.draft_length)
    model = ProgramBuilder("rules that drop tokens", "theory.md Statement 8.12")
    node, kept = (model.variables([(letter, context) for context in contexts]) for letter in "xm")
    below = np.arange(1, len(contexts))
    parents = (below - 1) // size
    inner = all_contexts(size, pair.draft_length - 1)
    rows: Any = [
        np.concatenate([side[len(c)][context_number(c, size)] for c in inner])
        for side in (pair.target, pair.draft)
    ]
    model.maximise((node[1:] - kept[1:] * cost).sum())
    model.add("root mass", node[0] == 1)
    model.add("root kept", kept[0] == 1)
    model.add("target matching", node[below] <= node[parents] * rows[0])
    model.add("accepted tokens are kept", node[1:] <= kept[1:])
    model.add("kept tokens are drafted", kept[below] <= kept[parents] * rows[1])
    return model.program(box=1.0)


def best_dropping_rule(pair: ModelPair, price: Any) -> tuple[Number, Solution]:
    """Solve ``dropping_program``: (value of the best rule, the certified solution).

    Example:
        >>> from spectheory import instances
        >>> print(best_dropping_rule(instances.two_token(1), "1/2")[0])
        4/3
    """
    solution = solve_in_its_arithmetic(dropping_program(pair, price))
    return 1 + solution.value, solution


def price_bound(pair: ModelPair, price: Any) -> Number:
    """Compute 1 + (1 - c) E[τ of block verification]: no rule and no verifier exceeds it (8.12 (iii)).

    Example:
        >>> from spectheory import instances
        >>> print(price_bound(instances.two_token(1), "1/2"))
        4/3
    """
    weights = block_weights(pair)
    accepted = sum(
        weight * pair.draft_path_probs(len(context))[context_number(context, pair.vocab_size)]
        for context, weight in weights.items()
        if context
    )
    return plain_number(1 + (1 - _price(pair, price)) * accepted)


class Dropping(NamedTuple):
    """Acceptance probabilities at one position if drafts may be dropped (theory.md Statement 8.11).

    Attributes:
        keep_all: every draft is verified.
        coin: a coin of the same cost drops drafts without reading them.
        conditioned: repair A, the rows given that the token is kept.
        cemetery: repair B, a dropped draft counts as rejected.
        covariance: of being kept and being accepted, under the draft.
        defect: total variation of the output without a repair.
    """

    keep_all: Number
    coin: Number
    conditioned: Number
    cemetery: Number
    covariance: Number
    defect: Number

    def __bool__(self) -> bool:
        raise no_verdict(self, ".cemetery")


def dropping(target_probs: Row, draft_probs: Row, keep: Row) -> Dropping:
    """Compare ways to drop drafts of one position.  Dropping pays if ``cemetery`` exceeds ``coin``.

    Args:
        target_probs, draft_probs: p and q, [V].
        keep: the probability to keep each token, [V].

    Example:
        >>> fair = dropping(["1/2", "1/2"], ["9/10", "1/10"], ["1", "0"])
        >>> print(fair.coin, fair.cemetery, fair.covariance, fair.defect)
        27/50 1/2 -1/25 1/20
    """
    parsed = parse_rows({"p": target_probs, "q": draft_probs, "k": keep})
    p, q, k = parsed["p"], parsed["q"], parsed["k"]
    zero = q[0] * 0
    both = np.minimum(p, q)
    kept = (q * k).sum()
    residual = np.maximum(p - q, zero)
    total = residual.sum()
    row = residual / total if total > 0 else residual
    lost = ((1 - k) * np.maximum(q - p, zero)).sum()
    change = -(1 - k) * both - row * lost + (1 - kept) * p
    values = (
        both.sum(),
        kept * both.sum(),
        np.minimum(kept * p, q * k).sum(),
        np.minimum(p, q * k).sum(),
        (k * both).sum() - kept * both.sum(),
        abs(change).sum() / 2,
    )
    return Dropping(*map(plain_number, values))


def _price(pair: ModelPair, price: Any) -> Any:
    cost = parse_entry(price)
    if not 0 <= cost <= 1:
        raise InvalidInputError(f"the price of a verified row is in tokens, from 0 to 1; got {price!r}")
    return Fraction(cost) if pair.is_exact else float(cost)
