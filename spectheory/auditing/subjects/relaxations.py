"""Laws that lossy samplers state for themselves.  An audit decides whether a sampler has its stated law."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from spectheory.auditing.subjects.sampler_verifiers import OneTuple, TupleVerifier
from spectheory.foundation.arrays import Array, like_rows, normalise, take_token
from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import credit_to_first
from spectheory.pairs.drafts.process import ALL_PROCESSES
from spectheory.pairs.pair import ModelPair
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
    return Relaxation(words, _Stated("synthetic", partial(_at_rates, rates)), is_about_tokens=False)


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
    return Relaxation(words, _Stated("fly", partial(_deferring, window, threshold, top_k)))


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
    return Relaxation(words, _Stated("typical", partial(_typical, threshold, alpha), single_path=False))


class _Stated(Verifier):
    """A stated law as a verifier, from a function of one tuple of drafts as ``from_loop`` takes it."""

    source, lossless, draft_processes = "stated relaxation", False, ALL_PROCESSES

    def __init__(self, name: str, law: OneTuple, single_path: bool = True) -> None:
        self.name, self.law, self.single_path = name, law, single_path  # type: ignore[misc]

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        return TupleVerifier(self.law, self.name).outcome(paths, target_rows, draft_rows)


def _at_rates(rates: Sequence[Fraction], paths: np.ndarray, target_rows: np.ndarray, _: np.ndarray) -> Any:
    """Stop probabilities at these rates.  The correction token has no stated law: any rows would do."""
    accepted = np.array(rates[: paths.shape[1]], dtype=object)
    stops = np.cumprod([Fraction(1), *accepted]) * [*(1 - accepted), 1]
    return like_rows(stops[None], target_rows), target_rows


def _deferring(
    window: int,
    threshold: float,
    top_k: int,
    paths: np.ndarray,
    target_rows: np.ndarray,
    draft_rows: np.ndarray,
) -> Any:
    """Token verification with FLy's deferred rejections.

    With h_i as in token verification, starting at i = 1:

    1. With probability h_i, accept X_i and continue with i + 1
    2. Otherwise, suppose that p(X_i) > 0, the entropy of p's largest entries is high enough, and at least W
       more tokens are drafted.  With probability h_{i+1} .. h_{i+W}, accept X_{1:i+W} and continue with
       i + W + 1
    3. Otherwise stop before i, and draw the correction token as in token verification
    """
    (path,), (target,), (draft,) = paths, target_rows, draft_rows
    length = len(path)
    zero = 0 * target[0, 0]
    probs = [(target[i, token], draft[i, token]) for i, token in enumerate(path)]
    accept = [min(p / q, zero + 1) if q else zero + 1 for p, q in probs]
    reached, stops = [zero + 1, *[zero] * length], []
    for place, (p, _) in enumerate(probs):
        after = place + window + 1
        rejected, kept = reached[place] * (1 - accept[place]), zero
        entropy = _entropy(np.sort(target[place].astype(float))[-top_k:])
        if after <= length and p > 0 and entropy >= threshold:
            kept = rejected * math.prod(accept[place + 1 : after])
            reached[after] += kept
        reached[place + 1] += reached[place] * accept[place]
        stops.append(rejected - kept)
    residuals = [normalise(np.maximum(target[i] - draft[i], 0)) for i in range(length)]
    return np.array([[*stops, reached[length]]]), np.stack([*residuals, target[length]])[None]


def _typical(
    threshold: float, alpha: float, paths: np.ndarray, target_rows: np.ndarray, _: np.ndarray
) -> Any:
    """Typical acceptance.  Only the last token is random."""
    rows = target_rows[:, :-1]
    limits = np.minimum(threshold, alpha * np.exp(-_entropy(rows.astype(float))))
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
