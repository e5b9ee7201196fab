"""Laws that lossy samplers state for themselves.  An audit decides whether a sampler has its stated law."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from spectheory.auditing.subjects.sampler_verifiers import TupleVerifier
from spectheory.foundation.arrays import Array, at_most_one, like_rows, take_token
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import fractions_if_exact
from spectheory.pairs.contexts import credit_to_first
from spectheory.pairs.drafts.process import ALL_PROCESSES
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.first_path import first_path_only
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier


@dataclass(frozen=True)
class Relaxation:
    """The law that a lossy sampler states: a law that replaces the target, or the law of a verifier.

    Attributes:
        words: the statement in words.
        verifier: a verifier with the stated law; ``None`` if the sampler must be lossless for ``stated``.
        is_about_tokens: whether the statement includes the law of the correction token.
        weight: w in (0, 1].  Tokens at drafted positions have the law w p + (1-w) q.
    """

    words: str
    verifier: Verifier | None = None
    is_about_tokens: bool = True
    weight: Fraction = Fraction(1)

    @property
    def is_about_several_paths(self) -> bool:
        """Whether the statement also covers several drafted paths."""
        return self.verifier is not None and not self.verifier.single_path

    def stated(self, pair: ModelPair) -> ModelPair:
        """The pair with the stated law as its target."""
        mixed = [
            self.weight * target + (1 - self.weight) * draft
            for target, draft in zip(pair.target, pair.draft, strict=False)
        ]
        return ModelPair((*mixed, pair.target[-1]), pair.draft, pair.vocab)


def mixture(weight: Fraction) -> Relaxation:
    """Tokens have the law w p + (1-w) q at drafted positions, and p after the last."""
    if not 0 < weight <= 1:
        raise InvalidInputError(f"the weight must lie above 0 and be at most 1, got {weight}")
    return Relaxation(f"tokens at drafted positions have the law {weight} p + {1 - weight} q", weight=weight)


def synthetic_acceptance(rates: tuple[Fraction, ...]) -> Relaxation:
    """State that drafted tokens are accepted with fixed rates, for all models, and nothing else.

    Args:
        rates: one acceptance probability per position, given that the token before was accepted.

    Example:
        >>> from spectheory import certify, instances
        >>> stated = synthetic_acceptance((Fraction(3, 4), Fraction(1, 2)))
        >>> found = certify(stated.verifier, instances.bernoulli("1/4", "1/2", 2), with_optimum=False)
        >>> print(found.block_efficiency)
        17/8
    """
    words = f"drafted tokens are accepted with the rates {', '.join(map(str, rates))}"
    return Relaxation(words, _AtRates(rates), is_about_tokens=False)


def deferred_rejection(window: int, threshold: float, top_k: int) -> Relaxation:
    """State FLy's law: defer a rejection at high entropy, and withdraw it if the next tokens are accepted.

    Args:
        window: the number of tokens that must be accepted after a deferred rejection.
        threshold: the smallest entropy, in nats, at which a rejection is deferred.
        top_k: the number of largest probabilities from which the entropy is computed.
    """
    words = (
        f"a rejected token is kept where the {top_k} likeliest tokens have an entropy of at least "
        f"{threshold} and the next {window} drafted tokens are accepted"
    )
    return Relaxation(words, _Deferring(window, threshold, top_k))


def typical_acceptance(threshold: float, alpha: float) -> Relaxation:
    """State Medusa's law: accept the longest prefix of typical tokens, then draw a token from the target.

    If several paths have an equally long prefix, take the most likely one.  A token is typical if
    p > min(threshold, alpha e^-H), with H the entropy of its row in nats.

    Args:
        threshold: epsilon of the paper.
        alpha: delta of the paper.

    Example:
        >>> from spectheory import certify
        >>> pair = ModelPair.context_free_pair(["1/4", "3/4"], ["1/2", "1/2"], 1)
        >>> print(certify(typical_acceptance(0.3, 0.5).verifier, pair).block_efficiency)
        3/2
    """
    words = (
        f"a token is typical if its probability is above {threshold} or {alpha} e^-entropy; the longest "
        "beginning of typical tokens is accepted, of equals the likeliest"
    )
    return Relaxation(words, _Typical(threshold, alpha))


class _AtRates(Token):
    name, source, lossless = "synthetic", "stated relaxation", False

    def __init__(self, rates: tuple[Fraction, ...]) -> None:
        self.rates = rates

    def ratios(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        """The rates, with which this verifier accepts the drafted tokens."""
        given = np.array(self.rates[: paths.shape[-1]], dtype=object)
        return like_rows(np.broadcast_to(given, (*paths.shape[:-2], len(given))), target_rows)

    def residual(self, weight: Array, rows: CorrectionRows) -> Array:
        """The target row.  Any law would do, because the correction token has no stated law."""
        return rows.target_row


class _Deferring(Token):
    """Token verification with FLy's deferred rejections.

    With h_i as in token verification, starting at i = 1:

    1. With probability h_i, accept X_i and continue with i + 1
    2. Otherwise, suppose that p(X_i) > 0, the entropy of p's largest entries is high enough, and at least W
       more tokens are drafted.  With probability h_{i+1} .. h_{i+W}, accept X_{1:i+W} and continue with
       i + W + 1
    3. Otherwise stop before i, and draw the correction token as in token verification
    """

    name, source, lossless = "fly", "stated relaxation", False

    def __init__(self, window: int, threshold: float, top_k: int) -> None:
        self.window, self.threshold, self.top_k = window, threshold, top_k

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        token = super().outcome(paths, target_rows, draft_rows)
        accept = fractions_if_exact(at_most_one(self.ratios(paths, target_rows, draft_rows)))
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
        """Entropy of the ``top_k`` largest probabilities.  [..., V] -> [...]"""
        return _entropy(np.sort(rows.astype(float), axis=-1)[..., -self.top_k :])


class _Typical(Verifier):
    """Typical acceptance.  Only the last token is random."""

    name, source, lossless, draft_processes = "typical", "stated relaxation", False, ALL_PROCESSES

    def __init__(self, threshold: float, alpha: float) -> None:
        self.threshold, self.alpha = threshold, alpha

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        return TupleVerifier(self._law, self.name).outcome(paths, target_rows, draft_rows)

    def _law(
        self, paths: np.ndarray, target_rows: np.ndarray, draft_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        rows = target_rows[:, :-1]
        limits = np.minimum(self.threshold, self.alpha * np.exp(-_entropy(rows.astype(float))))
        probs = take_token(rows, paths)
        lengths = (probs.astype(float) > limits).cumprod(-1).sum(-1)
        length = lengths.max()
        likelihoods = probs[:, :length].prod(-1) * (lengths == length)
        path = int(likelihoods.argmax())
        at_length = 0 * target_rows[0, :, 0]
        at_length[length] += 1
        return credit_to_first(paths, np.array(path), at_length), target_rows


def _entropy(probs: np.ndarray) -> np.ndarray:
    """Entropy in nats, in float64.  [..., V] -> [...]"""
    return -(probs * np.log(np.where(probs > 0, probs, 1))).sum(-1)
