"""Token verification with a wrong law for the token after the accepted prefix."""

from typing import ClassVar

from spectheory.foundation.arrays import (
    Array,
    at_most_one,
    divide_or_zero,
    namespace,
    normalise,
    ones_like,
    take_token,
    zeros_like,
)
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.correction_rows import CorrectionRows, take_stop_row
from spectheory.verification.defective.skeletons import TokenSkeleton, or_else
from spectheory.verification.outcome import Outcome


class TargetCorrection(TokenSkeleton):
    """After a rejection the token is drawn from the target's row itself.

    Plausible because "rejected, so sample the target" reads well.  But tokens that the draft proposes too
    often are accepted often enough already, and here they are drawn again: the law moves towards the draft.
    """

    origin: ClassVar[str] = "The residual is dropped where the method is explained in one paragraph."

    def left_over(self, rows: CorrectionRows) -> Array:
        return rows.target_row


class DraftCorrection(TokenSkeleton):
    """After a rejection another token is drawn from the draft model.

    Plausible because ordinary rejection sampling draws again from its proposal.  But it repeats until a draw
    is accepted, while here the second draw is kept without a test.
    """

    origin: ClassVar[str] = "Rejection sampling is recalled from a textbook, without its loop."

    def left_over(self, rows: CorrectionRows) -> Array:
        return rows.draft_row


class AbsoluteResidual(TokenSkeleton):
    """The residual is |p - q| instead of max(p - q, 0).

    Plausible because |p - q| is the integrand of the total variation, and not negative.  But half of its mass
    lies on tokens that the draft already proposes too often.
    """

    origin: ClassVar[str] = "The positive part is mistaken for the absolute value when a formula is typed in."

    def left_over(self, rows: CorrectionRows) -> Array:
        return namespace(rows.target_rows).abs(rows.target_row - rows.draft_row)


class RejectedTokenMasked(TokenSkeleton):
    """After a rejection the token is drawn from the target's row without the rejected token.

    Plausible because the rejected token must not be drawn.  With a vocabulary of two tokens it is even
    right.  With more tokens it draws other tokens that the draft proposes too often.
    """

    origin: ClassVar[str] = "Masking one logit is cheaper to write than a residual over the vocabulary."

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        stop_probs = Token().outcome(paths, target_rows, draft_rows).stop_probs
        path = paths[..., 0, :]
        rejected = xp.concat([path, xp.zeros_like(path[..., :1]) - 1], axis=-1)
        vocabulary = xp.arange(target_rows.shape[-1], device=paths.device)

        def correction(path_index: Array, length: Array) -> Array:
            row = take_stop_row(target_rows, path_index, length)
            token = take_token(rejected, length)[..., None]
            return or_else(normalise(xp.where(vocabulary == token, zeros_like(row), row)), row)

        return Outcome(stop_probs, correction)


class SmoothedResidual(TokenSkeleton):
    """1/1000 is added to every entry of the residual before it is normalised.

    Plausible because it removes 0/0 where the models agree.  But it gives mass to every token that the
    residual excludes, including tokens that the target never emits.
    """

    origin: ClassVar[str] = "A small constant is added because a division by zero was once seen in a log."

    def left_over(self, rows: CorrectionRows) -> Array:
        return super().left_over(rows) + ones_like(rows.target_row) / 1000


class DraftBonus(TokenSkeleton):
    """The token after a fully accepted path is drawn from the draft model.

    Plausible because the draft model's loop may run one step further.  ``outcome`` gets no draft row at depth
    L, so we use the last row q(. | a_{1:L-1}).  For a context-free draft the two are equal.  All tokens
    before this one are right.
    """

    origin: ClassVar[str] = "The draft loop runs one step too many and its last token is kept."

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        token = Token().outcome(paths, target_rows, draft_rows)
        length_of_path = draft_rows.shape[-2]

        def correction(path_index: Array, length: Array) -> Array:
            last = namespace(length).zeros_like(length) + length_of_path - 1
            last_row = take_stop_row(draft_rows, path_index, last)
            at_leaf = (length == length_of_path)[..., None]
            return namespace(last_row).where(at_leaf, last_row, token.correction(path_index, length))

        return Outcome(token.stop_probs, correction)


class SharpenedBonus(TokenSkeleton):
    """The token after a fully accepted path is drawn at temperature 1/2: p squared and normalised.

    Plausible because that token has its own branch in the code, which can miss the code for the temperature.
    Only fully accepted paths show the error.
    """

    origin: ClassVar[str] = "Sampling settings are applied in one of two branches only."

    def bonus(self, target_row: Array) -> Array:
        return target_row * target_row


class SharedUniform(TokenSkeleton):
    """The random number that rejected the draft is used again to draw the correction.

    With one u per position, the draft is accepted if u <= a = min(1, p/q).  Otherwise the residual's
    distribution function F is inverted at the same u.  Given a rejection u is uniform on (a, 1], not on
    (0, 1], so token x has probability |(F(x-1), F(x)] ∩ (a, 1]| / (1 - a).
    Plausible because each law on its own is right.  With two tokens the error has no effect.
    """

    origin: ClassVar[str] = "One random number per position is drawn in advance, for reproducible batches."

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        token = Token().outcome(paths, target_rows, draft_rows)
        accept = at_most_one(self.ratios(paths, target_rows, draft_rows))
        # After a full path the number was not used to test a draft, so it is uniform on (0, 1].
        used = xp.concat([accept, zeros_like(accept[..., :1])], axis=-1)

        def correction(path_index: Array, length: Array) -> Array:
            row = token.correction(path_index, length)
            spent = take_token(used, length)[..., None]
            upper = xp.cumulative_sum(row, axis=-1)
            cut = xp.maximum(upper, spent) - xp.maximum(upper - row, spent)
            return divide_or_zero(cut, 1 - spent)

        return Outcome(token.stop_probs, correction)


class StaleCorrectionRow(TokenSkeleton):
    """After a rejection at depth i >= 1 the residual is computed from the rows at depth i - 1.

    Plausible because the logits at position i predict position i + 1.  With context-free models, or with one
    drafted token, the error has no effect.
    """

    origin: ClassVar[str] = "Logits and the tokens they predict are offset by one, and one index is not."
    shift: ClassVar[int] = -1

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        token = Token().outcome(paths, target_rows, draft_rows)

        def correction(path_index: Array, length: Array) -> Array:
            after_rejection = length < draft_rows.shape[-2]
            shifted = xp.where(after_rejection & (length + self.shift >= 0), length + self.shift, length)
            rows = CorrectionRows(target_rows, draft_rows, path_index, shifted)
            return or_else(normalise(self.left_over(rows)), rows.target_row)

        return Outcome(token.stop_probs, correction)


class NextCorrectionRow(StaleCorrectionRow):
    """After a rejection at depth i the residual is computed from the rows at depth i + 1.

    These are the rows after the rejected token.  At depth L, where nothing is drafted, the residual is the
    target's row.  Plausible because the scores of all positions are in one array.
    """

    origin: ClassVar[str] = "The number of accepted tokens is used as an index after it was incremented."
    shift: ClassVar[int] = 1
