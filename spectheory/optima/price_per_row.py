"""The best length rules if a verified row has a price, and whether dropping drafts pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from spectheory.foundation.exact_numbers import Number, flint_if_exact, plain_number
from spectheory.foundation.results import no_verdict
from spectheory.optima.bounds.context_tree import Levels, accepted_masses, sum_over_children
from spectheory.optima.solving.builder import ProgramBuilder
from spectheory.optima.solving.linear_program import LinearProgram
from spectheory.pairs.contexts import all_contexts, context_number, parent_nodes
from spectheory.pairs.pair import ModelPair
from spectheory.pairs.rows import Row, parse_parameter, parse_rows


@dataclass(frozen=True)
class StoppingRule:
    """The best predictable rule at a price per row, and its value.

    Attributes:
        value: E[τ + 1] - c E[N], tokens per target call less the price of the verified rows.
        gains: q(a) W(a) by depth, [V^depth], with W(a) what the rows after a earn, less their price.
    """

    value: Number
    gains: Levels

    def __bool__(self) -> bool:
        raise no_verdict(self, ".value")

    def __call__(self, tokens: Sequence[int], rows: Any = None) -> int:
        """Return how many tokens of a path are verified: a rule for ``Shortened``."""
        size = len(self.gains[1])
        gains = (level[context_number(tokens[:d], size)] for d, level in enumerate(self.gains[: len(tokens)]))
        return next((depth for depth, gain in enumerate(gains) if gain <= 0), len(tokens))


def best_stopping_rule(pair: ModelPair, price: Any) -> StoppingRule:
    """Compute the best predictable rule if a verified row costs ``price`` tokens (theory.md Statement 8.12).

    W(a) = max(0, Σ_t q(t|a) (w(a,t) - c + W(a,t))), and W = 0 at depth L.  ``block`` attains 1 + W(∅).  We
    compute q W from the node masses q w of ``block``.

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
    cost, probs = _price(pair, price), pair.numbers.draft_path_probs
    masses = accepted_masses(probs, pair.numbers.target[:-1])
    gains = [masses[-1] * 0]
    for mass, prob in zip(masses[:0:-1], probs[:0:-1], strict=True):
        earned = sum_over_children(mass - prob * cost + gains[0], pair.vocab_size)
        gains.insert(0, np.maximum(earned, earned * 0))
    return StoppingRule(plain_number(1 + gains[0][0]), gains)


def dropping_program(pair: ModelPair, price: Any) -> LinearProgram:
    """State the linear program of the rules that decide on token i from the tokens up to i (8.12 (ii)).

        max  Σ_{a ≠ ∅} (x(a) - c m(a))
        s.t. x(a,t) ≤ p(t|a) x(a),   x(a) ≤ m(a),   m(a,t) ≤ q(t|a) m(a),   x(∅) = m(∅) = 1

    x are the node masses, m the kept masses.  The value of the best rule is 1 more than the optimum.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.optima import solve_exact
        >>> print(1 + solve_exact(dropping_program(instances.two_token(1), "1/2")).value)
        4/3
    """
    cost, size = plain_number(_price(pair, price)), pair.vocab_size
    contexts = all_contexts(size, pair.draft_length)
    model = ProgramBuilder("rules that drop tokens", "theory.md Statement 8.12")
    node, kept = (model.variables([(letter, context) for context in contexts]) for letter in "xm")
    parents, depth = parent_nodes(size, pair.draft_length), pair.draft_length
    target, draft = (
        np.concatenate([level.ravel() for level in side[:depth]]) for side in (pair.target, pair.draft)
    )
    model.maximise((node[1:] - kept[1:] * cost).sum())
    model.add("root mass", node[0] == 1)
    model.add("root kept", kept[0] == 1)
    model.add("target matching", node[1:] <= node[parents] * target)
    model.add("accepted tokens are kept", node[1:] <= kept[1:])
    model.add("kept tokens are drafted", kept[1:] <= kept[parents] * draft)
    return model.program(box=1.0)


def price_bound(pair: ModelPair, price: Any) -> Number:
    """Compute 1 + (1 - c) E[τ of block verification]: no rule and no verifier exceeds it (8.12 (iii)).

    Example:
        >>> from spectheory import instances
        >>> print(price_bound(instances.two_token(1), "1/2"))
        4/3
    """
    masses = accepted_masses(pair.numbers.draft_path_probs, pair.numbers.target[:-1])
    accepted = np.concatenate(masses[1:]).sum()
    return plain_number(1 + (1 - _price(pair, price)) * accepted)


def gain_of_dropping(target_probs: Row, draft_probs: Row, keep: Row) -> Number:
    """Compute by how much repair B accepts more than a coin of the same cost (theory.md Statement 8.11).

    At one position B accepts Σ min(p, q k), and the coin s Σ min(p, q) with s = Σ q k.  If every k is 0 or 1,
    the difference is the covariance, under the draft, of being kept and being accepted.  Dropping pays if it
    is positive.

    Args:
        target_probs, draft_probs: p and q, [V].
        keep: k, the probability to keep each token, [V].

    Example:
        >>> print(gain_of_dropping(["1/2", "1/2"], ["9/10", "1/10"], ["1", "0"]))
        -1/25
    """
    rows = parse_rows({"p": target_probs, "q": draft_probs, "k": keep})
    target, draft, kept = rows["p"], rows["q"], rows["q"] * rows["k"]
    return plain_number(np.minimum(target, kept).sum() - kept.sum() * np.minimum(target, draft).sum())


def _price(pair: ModelPair, price: Any) -> Any:
    """Parse a price, in the numbers of ``pair.numbers``."""
    cost = parse_parameter("the price of a verified row", price, 0, 1)
    return flint_if_exact(np.array([Fraction(cost) if pair.is_exact else float(cost)]))[0]
