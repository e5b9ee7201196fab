"""Wrong verifiers of several drafts: wrong selection of a path, or a wrong rule at one position."""

from abc import abstractmethod
from typing import ClassVar

from spectheory.foundation.arrays import (
    Array,
    namespace,
    normalise,
    ones_like,
    residual_rows,
    take_path,
    take_paths,
    take_token,
    zeros_like,
)
from spectheory.optima.bounds.skewed_draft import skewed_draft_rows
from spectheory.pairs.contexts import credit_to_first
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.algorithms.path_selection.selection import (
    PathSelection,
    SelectedPaths,
    select_highest_ranked,
)
from spectheory.verification.algorithms.position_by_position.multi_round import recursive_rejection
from spectheory.verification.algorithms.position_by_position.multi_round_without_replacement import (
    rows_without_earlier,
)
from spectheory.verification.algorithms.position_by_position.positions import (
    Position,
    PositionByPosition,
    Selection,
    acceptance_ratio,
    first_accepted,
)
from spectheory.verification.defective.skeletons import Defect, PositionSkeleton, or_else
from spectheory.verification.outcome import Outcome


class OneSelected(Defect, PathSelection):
    """Select one path and block-verify it against draft rows that need not be the selected path's law."""

    @abstractmethod
    def choose(self, paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array]:
        """Return the index of the selected path, [...], and the draft rows assumed along it, [..., L, V]."""

    def select(self, paths: Array, target_rows: Array, draft_rows: Array) -> SelectedPaths:
        selected, assumed_rows = self.choose(paths, target_rows, draft_rows)
        candidates = selected[..., None]
        target_rows = take_paths(target_rows, candidates)
        certain = ones_like(target_rows[..., 0, 0])
        return SelectedPaths(candidates, certain, target_rows, assumed_rows[..., None, :, :])


class GreedyMultipathTies(OneSelected):
    """The ranking breaks ties in p/q by token id, in opposite orders in the selection and in q^Γ.

    The selection ranks the lowest id highest.  The cumulative sums of q^Γ rank the highest id highest.
    Plausible because ties seem impossible in floating point.  But rows with zeros, low precision or equal
    models have ties at every step.
    """

    parent: ClassVar[str] = "greedy_multipath"
    exchangeable: ClassVar[bool] = True
    origin: ClassVar[str] = "One array is sorted twice, once ascending and once descending."

    def choose(self, paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array]:
        xp = namespace(target_rows)
        # Reversing the token ids reverses the rule for ties and changes nothing else.
        selected = select_highest_ranked(
            target_rows.shape[-1] - 1 - paths, xp.flip(target_rows, axis=-1), xp.flip(draft_rows, axis=-1)
        )
        skewed_rows = skewed_draft_rows(
            take_path(paths, selected),
            take_path(target_rows, selected),
            take_paths(draft_rows, selected[..., None])[..., 0, :, :],  # a copy
            paths.shape[-2],
        )
        return selected, skewed_rows


class GreedyMultipathUnskewed(OneSelected):
    """The highest-ranked of K drafts is block-verified against q instead of its own law q^Γ.

    Plausible because every draft comes from q.  But the best of K drafts does not follow q, so the tokens
    that the selection prefers are accepted too often.
    """

    parent: ClassVar[str] = "greedy_multipath"
    exchangeable: ClassVar[bool] = True
    origin: ClassVar[str] = "Selection of a promising draft is put in front of a verifier for one draft."

    def choose(self, paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array]:
        selected = select_highest_ranked(paths, target_rows, draft_rows)
        return selected, take_path(draft_rows, selected)


class LikeliestDraft(OneSelected):
    """The draft with the largest draft probability is block-verified against q; in ties the first one.

    Plausible because a likely draft is likely to be accepted, and because beam search returns it.  But the
    selected path is a mode of q more often than q says.
    """

    parent: ClassVar[str] = "block"
    origin: ClassVar[str] = "Drafts found by search are verified as though they had been sampled."

    def choose(self, paths: Array, target_rows: Array, draft_rows: Array) -> tuple[Array, Array]:
        xp = namespace(draft_rows)
        path_probs = xp.cumulative_prod(take_token(draft_rows, paths), axis=-1)[..., -1]
        selected = xp.argmax(path_probs, axis=-1)
        return selected, take_path(draft_rows, selected)


class LongestAccepted(Defect):
    """Every draft is token-verified on its own, and the longest accepted prefix is kept.

    If several are equally long, the first is kept.  Its residual gives the correction.  Plausible
    because each of the K results is lossless.  But the choice among them depends on the results.
    """

    parent: ClassVar[str] = "token"
    origin: ClassVar[str] = "Batched single-draft verification is followed by a maximum over the batch."

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        one_each = Token().outcome(
            paths[..., None, :], target_rows[..., None, :, :], draft_rows[..., None, :, :]
        )
        stop = one_each.stop_probs[..., 0, :]
        at_most = xp.cumulative_sum(stop, axis=-1)
        num_drafts = paths.shape[-2]
        total = zeros_like(stop)
        for chosen in range(num_drafts):
            mass = stop[..., chosen, :]
            for other in range(num_drafts):
                if other != chosen:
                    shorter = at_most[..., other, :] - (stop[..., other, :] if other < chosen else 0)
                    mass = mass * shorter
            path_index = xp.zeros_like(paths[..., 0, 0]) + chosen
            total = total + credit_to_first(paths, path_index, mass)
        return Outcome(total, Token().outcome(paths, target_rows, draft_rows).correction)


class IndependentAcceptance(Defect, PositionByPosition):
    """Each draft in turn is accepted with min(1, p/q).  If all are rejected, we use one draft's residual.

    This is the first attempt of spectr2023 section 4.  Plausible because each test on its own is right.  But
    with K drafts a token that the draft proposes too often gets K chances.
    """

    parent: ClassVar[str] = "spectr"
    origin: ClassVar[str] = "Single-draft verification is repeated over a list of drafts."

    def select(self, position: Position) -> Selection:
        target_rows, draft_rows = position.target_rows, position.draft_rows
        on_target, on_draft = position.on_tokens(target_rows), position.on_tokens(draft_rows)
        residual = or_else(normalise(residual_rows(target_rows, draft_rows)), target_rows)
        return first_accepted(acceptance_ratio(on_target, on_draft, position.is_draft), residual)


class SmallDivisionFactor(PositionSkeleton):
    """K-SEQ with ρ = 1 < ρ*: the residual is negative at some token, and is clipped at 0.

    Plausible because ρ = 1 accepts most, and clipping removes the only visible symptom.  But the tokens with
    a negative residual are still emitted too often.
    """

    origin: ClassVar[str] = "A parameter with an admissible range is tuned for speed alone."

    def division_factor(self, drafts_assumed: int) -> int:
        return 1


class AllDraftsAssumed(PositionSkeleton):
    """K-SEQ with n = K at every depth, although only the surviving drafts are tested.

    Plausible because the user sets K, and at the first token n = K is right.  At greater depths, where fewer
    drafts survive, drafts are rejected more often than the residual assumes.
    """

    origin: ClassVar[str] = "A parameter is computed once before a loop in which it changes."

    def drafts_assumed(self, survivors: int, num_drafts: int) -> int:
        return num_drafts


class RecursiveWithoutUpdate(Defect, PositionByPosition):
    """Recursive rejection that uses the residual of the original p after every rejection.

    The first draft is tested against p, and all others against max(p - q, 0), normalised.  This is also the
    law of the correction token.  Plausible because token verification has this residual only.
    """

    parent: ClassVar[str] = "multi_round"
    origin: ClassVar[str] = "Inside a loop a residual is computed from the loop's input, not from its state."

    def select(self, position: Position) -> Selection:
        xp = namespace(position.target_rows)
        target_rows, draft_rows = position.target_rows, position.draft_rows
        residual = or_else(normalise(residual_rows(target_rows, draft_rows)), target_rows)
        drafts_so_far = xp.cumulative_sum(xp.astype(position.is_draft, xp.int64), axis=-1)
        on_target, on_residual = position.on_tokens(target_rows), position.on_tokens(residual)
        tested_against = xp.where(drafts_so_far == 1, on_target, on_residual)
        on_draft = position.on_tokens(draft_rows)
        return first_accepted(acceptance_ratio(tested_against, on_draft, position.is_draft), residual)


class DistinctDraftsAssumed(Defect, PositionByPosition):
    """Recursive rejection for drafts drawn without replacement, applied to drafts drawn with replacement.

    Tokens tested before are removed from q, which is renormalised: right for drafts that cannot repeat.
    Plausible because siblings in drafted trees are often distinct.  But independent paths repeat tokens, and
    a repeated token is rejected once more at the cost of other tokens.
    """

    parent: ClassVar[str] = "multi_round_without_replacement"
    origin: ClassVar[str] = "A verifier written for trees of distinct siblings is handed independent samples."

    def select(self, position: Position) -> Selection:
        selection = recursive_rejection(position, rows_without_earlier(position))
        return selection._replace(residual=or_else(selection.residual, position.target_rows))
