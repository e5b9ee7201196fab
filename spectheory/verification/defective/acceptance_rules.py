"""Token verification with a wrong acceptance probability, or with a wrong law of the drafts."""

from typing import ClassVar

from spectheory.foundation.arrays import (
    Array,
    divide_or_zero,
    namespace,
    normalise,
    ones_like,
    residual_rows,
    take_token,
    zeros_like,
)
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.defective.skeletons import TokenSkeleton
from spectheory.verification.outcome import Outcome


class SwappedModels(TokenSkeleton):
    """min(1, q/p) and max(q - p, 0): target and draft are swapped, except for the token after a full path.

    Plausible because papers disagree on which letter is the target.  The output follows neither
    model, and can contain tokens that the target never emits.
    """

    origin: ClassVar[str] = "Two papers give the letters p and q opposite meanings, and code mixes them."

    def ratios(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        target_on_path, draft_on_path = _on_first_path(paths, target_rows, draft_rows)
        return _at_most_one(draft_on_path, target_on_path)

    def left_over(self, rows: CorrectionRows) -> Array:
        return residual_rows(rows.draft_row, rows.target_row)


class SmoothedRatio(TokenSkeleton):
    """The acceptance probability is min(1, p / (q + 1/1000)).

    Plausible because it avoids division by zero.  But a drafted token never has q = 0.
    Even identical models reject drafts, and their residual then has no mass.
    """

    origin: ClassVar[str] = "A small constant is added to every denominator as a house rule."

    def ratios(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        target_on_path, draft_on_path = _on_first_path(paths, target_rows, draft_rows)
        return _at_most_one(target_on_path, draft_on_path + ones_like(draft_on_path) / 1000)


class LenientAcceptance(TokenSkeleton):
    """The acceptance probability is min(1, p / (l q)) with lenience l = 1/2; the residual is unchanged.

    Plausible as a parameter that buys speed.  But the output no longer follows the target, and the residual
    no longer equals the missing mass.
    """

    origin: ClassVar[str] = "A lenience factor, meant as a lossy option, is on by default."

    def longer(self, weight: Array, ratio: Array) -> Array:
        return 2 * ratio


class ThresholdAcceptance(TokenSkeleton):
    """A draft is accepted if its target probability is at least 3/10; otherwise the residual is sampled.

    Plausible because the target often emits such a token, and the output reads well.  But accepted
    tokens occur as often as the draft proposes them.
    """

    origin: ClassVar[str] = "Acceptance by typicality is combined with the residual of exact verification."

    def ratios(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        target_on_path, _ = _on_first_path(paths, target_rows, draft_rows)
        return _indicator(10 * target_on_path >= 3, target_on_path)


class ArgmaxAcceptance(TokenSkeleton):
    """A draft is accepted if it is the target's most likely token; otherwise that token is emitted.

    Right at temperature 0, where the target is a point mass.  Here it is used at temperature 1, and every
    output is the target's greedy continuation.
    """

    origin: ClassVar[str] = "The greedy path of a decoder is kept when sampling is switched on."

    def ratios(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        best = namespace(target_rows).argmax(target_rows[..., 0, :-1, :], axis=-1)
        return _indicator(paths[..., 0, :] == best, target_rows[..., 0, :-1, 0])

    def left_over(self, rows: CorrectionRows) -> Array:
        return self.bonus(rows.target_row)

    def bonus(self, target_row: Array) -> Array:
        xp = namespace(target_row)
        best = xp.argmax(target_row, axis=-1)[..., None]
        return _indicator(xp.arange(target_row.shape[-1], device=best.device) == best, target_row)


class TemperedDraftLaw(TokenSkeleton):
    """Drafts are sampled at temperature 1 and reported at temperature 1/2: q squared and normalised.

    Plausible because both are laws of the draft model, and verification is right for the reported law.
    But it corrects a bias that the drafts do not have.
    """

    origin: ClassVar[str] = "A temperature is set for the scores that are stored, not for those sampled from."

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        return Token().outcome(paths, target_rows, normalise(draft_rows * draft_rows))


class TruncatedDraftLaw(TokenSkeleton):
    """Drafts are sampled from the full row and verified against the row without its least likely token.

    The reported row holds the draft's top V - 1 tokens, renormalised.  If the other token is drafted, its
    reported q is 0: in floating point p/0 accepts it if p > 0, and 0/0 rejects it.
    Plausible because top-k sampling changes little where the draft is confident.
    """

    origin: ClassVar[str] = "Top-k filtering is applied to the scores handed on, after the token was drawn."

    def ratios(self, paths: Array, target_rows: Array, draft_rows: Array) -> Array:
        return _at_most_one(*_on_first_path(paths, target_rows, draft_rows))

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        return super().outcome(paths, target_rows, _without_least_likely(draft_rows))


class TruncatedTarget(TokenSkeleton):
    """Verification against the target's row without its least likely token, renormalised.

    Plausible because it is lossless for the truncated target.  But the target is the full row.
    """

    origin: ClassVar[str] = "A default top-k of the sampling code applies in verification only."

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        return Token().outcome(paths, _without_least_likely(target_rows), draft_rows)


def _on_first_path(paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array]:
    """Return p and q at the tokens of the first path, [..., L] each."""
    path = paths[..., 0, :]
    target_on_path = take_token(target_rows[..., 0, :-1, :], path)
    return target_on_path, take_token(draft_rows[..., 0, :, :], path)


def _at_most_one(numerator: Array, denominator: Array) -> Array:
    """Compute min(1, numerator / denominator) as floating point does: 1 for x/0 with x > 0, 0 for 0/0."""
    xp = namespace(numerator)
    quotient = divide_or_zero(numerator, denominator)
    at_least_one = (numerator >= denominator) & (numerator > 0)
    return xp.where(at_least_one, ones_like(quotient), quotient)


def _indicator(condition: Array, like: Array) -> Array:
    """Convert a condition to 1 and 0 in the arithmetic of ``like``."""
    return namespace(like).where(condition, ones_like(like), zeros_like(like))


def _without_least_likely(rows: Array) -> Array:
    """Remove the least likely token of each row (the first if several are equal) and renormalise.

    Rows of one token stay unchanged.
    """
    xp = namespace(rows)
    least = xp.argmin(rows, axis=-1)[..., None]
    cut = (xp.arange(rows.shape[-1], device=rows.device) == least) & (rows.shape[-1] > 1)
    return normalise(xp.where(cut, zeros_like(rows), rows))
