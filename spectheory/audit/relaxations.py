"""Laws that lossy samplers state for themselves: what is audited is whether they have that law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from spectheory.algorithms.one_path.base import first_path_only
from spectheory.algorithms.one_path.token import Token
from spectheory.arrays import Array, like_rows, take_token
from spectheory.correction_rows import CorrectionRows
from spectheory.errors import InvalidInputError
from spectheory.exact_numbers import fractions_if_exact
from spectheory.outcome import Outcome
from spectheory.pair import ModelPair


class Relaxation:
    """What a lossy sampler states of itself: a law that takes the place of the target, or a verifier.

    Attributes:
        words: what is stated.
        verifier: has the stated law; ``None`` where the sampler is to be lossless for the pair ``stated``.
        is_about_tokens: whether the law of the correction token is stated too.
    """

    words: str
    verifier: Token | None = None
    is_about_tokens: ClassVar[bool] = True

    def stated(self, pair: ModelPair) -> ModelPair:
        """The pair that is asked about where ``pair`` is meant."""
        return pair

    def target_rows(self, stated_rows: np.ndarray, draft_rows: np.ndarray) -> np.ndarray:
        """The rows that the sampler is given where those of the stated pair are asked about."""
        return stated_rows


@dataclass(frozen=True)
class Mixture(Relaxation):
    """At every drafted position the token has the law v = w p + (1-w) q; after the last one it has p.

    Attributes:
        weight: w, of the target, in (0, 1].

    Example:
        >>> from spectheory import instances
        >>> pair = Mixture(Fraction(1, 2)).stated(instances.bernoulli("1/2", "1"))
        >>> print(pair.target[0][0][0], pair.target[1][0][0])
        1/4 0
    """

    weight: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.weight <= 1:
            raise InvalidInputError(f"the weight must lie above 0 and be at most 1, got {self.weight}")

    @property
    def words(self) -> str:  # type: ignore[override]
        """What is stated."""
        return f"tokens at drafted positions have the law {self.weight} p + {1 - self.weight} q"

    def stated(self, pair: ModelPair) -> ModelPair:
        """The pair whose target is the stated law."""
        mixed = [
            self.weight * target + (1 - self.weight) * draft
            for target, draft in zip(pair.target, pair.draft, strict=False)
        ]
        return ModelPair((*mixed, pair.target[-1]), pair.draft, pair.vocab)

    def target_rows(self, stated_rows: np.ndarray, draft_rows: np.ndarray) -> np.ndarray:
        """The rows p [K, L+1, V] behind the stated ones, by depth."""
        rows = stated_rows.copy()
        rows[..., :-1, :] = (stated_rows[..., :-1, :] - (1 - self.weight) * draft_rows) / self.weight
        return rows


class SyntheticAcceptance(Relaxation):
    """Every drafted token is accepted with a given rate, whatever the models say; nothing else is stated.

    Args:
        rates: of the positions, each given that the one before was accepted.
    """

    is_about_tokens = False

    def __init__(self, rates: tuple[Fraction, ...]) -> None:
        self.rates = rates
        self.words = f"drafted tokens are accepted with the rates {', '.join(map(str, rates))}"
        self.verifier = _AtRates(rates)


class _AtRates(Token):
    """Token verification whose acceptance probabilities are given.

    Example:
        >>> from spectheory import certify, instances
        >>> verifier = _AtRates((Fraction(3, 4), Fraction(1, 2)))
        >>> found = certify(verifier, instances.bernoulli("1/4", "1/2", 2), with_optimum=False)
        >>> print(found.block_efficiency)
        17/8
    """

    name, source, lossless = "synthetic", "stated relaxation", False

    def __init__(self, rates: tuple[Fraction, ...]) -> None:
        self.rates = rates

    def acceptance(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        given = np.array(self.rates[: paths.shape[-1]], dtype=object)
        return like_rows(np.broadcast_to(given, (*paths.shape[:-2], len(given))), target_rows)

    def residual(self, rows: CorrectionRows) -> Array:
        """Nothing is stated of the correction token: any law."""
        return rows.target_row


class DeferredRejection(Relaxation):
    """FLy: a rejection where the entropy is high is deferred, and dropped if the next tokens are accepted.

    Args:
        window: how many tokens after a deferred one must be accepted.
        threshold: the least entropy of a position, in nats.
        top_k: over so many of its largest probabilities.
    """

    def __init__(self, window: int, threshold: float, top_k: int) -> None:
        self.words = (
            f"a rejected token is kept where the {top_k} likeliest tokens have an entropy of at least "
            f"{threshold} and the next {window} drafted tokens are accepted"
        )
        self.verifier = _Deferring(window, threshold, top_k)


class _Deferring(Token):
    """Token verification with deferred rejections, FLy's.

    With h_i as in token verification, from the first position on that is not settled:

    1. accept X_i with probability h_i, and go on with i + 1
    2. otherwise, where p(X_i) > 0, the entropy of p's largest entries is high enough and W more tokens are
       drafted: with probability h_{i+1} .. h_{i+W} accept X_{1:i+W}, and go on with i + W + 1
    3. otherwise stop before i; the correction token is that of token verification
    """

    name, source, lossless = "fly", "stated relaxation", False

    def __init__(self, window: int, threshold: float, top_k: int) -> None:
        self.window, self.threshold, self.top_k = window, threshold, top_k

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        token = super().outcome(paths, target_rows, draft_rows)
        accept = fractions_if_exact(self.acceptance(paths, target_rows, draft_rows))
        rows = fractions_if_exact(target_rows)[..., 0, :-1, :]
        may_defer = (self._entropies(rows) >= self.threshold) & (take_token(rows, paths[..., 0, :]) > 0)
        length = accept.shape[-1]
        reached = np.zeros((*accept.shape[:-1], length + 1), dtype=accept.dtype) + Fraction(0)
        stops = reached.copy()
        reached[..., 0] += 1
        for place in range(length):
            after = place + self.window + 1
            rejected = reached[..., place] * (1 - accept[..., place])
            kept = rejected * 0
            if after <= length:
                kept = rejected * may_defer[..., place] * accept[..., place + 1 : after].prod(-1)
                reached[..., after] += kept
            reached[..., place + 1] += reached[..., place] * accept[..., place]
            stops[..., place] = rejected - kept
        stops[..., length] = reached[..., length]
        return Outcome(first_path_only(like_rows(stops, target_rows), paths), token.correction, token.weights)

    def _entropies(self, rows: np.ndarray) -> np.ndarray:
        """Of the largest probabilities, in float64.  [..., V] -> [...]"""
        largest = np.sort(rows.astype(float), axis=-1)[..., -self.top_k :]
        return -(largest * np.log(np.where(largest > 0, largest, 1))).sum(-1)
