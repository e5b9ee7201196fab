"""Multi-round rejection: recursive speculative sampling over drafts drawn with replacement."""

from collections.abc import Iterable
from typing import Any, ClassVar

from spectheory.foundation.arrays import (
    Array,
    after_rejection,
    hit_probability,
    namespace,
    ones_like,
    positive_part,
    residual_mass,
    residual_rows,
    take_token,
    zeros_like,
)
from spectheory.foundation.errors import EnumerationTooLargeError
from spectheory.verification.algorithms.position_by_position.positions import (
    DraftSelection,
    Position,
    PositionByPosition,
    Selection,
    acceptance_ratio,
    first_accepted,
    one_after_the_other,
)
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import Outcome, on_numbers_of_host


class MultiRound(PositionByPosition):
    """Recursive rejection of specinfer2023 and eagle2024, called MULTI-ROUND in spectr2023 App. B.3.

    At a context with surviving drafts x_1..x_n, in order, x_k drawn from q_k (p target; q_k = q
    unless every path has its own draft model):

    1. p_1 = p
    2. x_k is accepted with probability min(1, p_k(x_k) / q_k(x_k)); then the drafts whose next token is
       x_k survive, and the round continues after x_k
    3. after a rejection p_{k+1} = max(p_k - q_k, 0), normalised
    4. after n rejections the round ends with the correction token Y ~ p_{n+1}
    5. a path accepted to its end is followed by one more token from the target

    spectr2023 does not print the algorithm.  Its Algorithm 3 continues with every draft whose next token is
    Y, while the published recursion stops at the correction token.  Here both agree: x_k is rejected only if
    p_k(x_k) < q_k(x_k), so p_{k+1} and all later residuals vanish at x_k.  Later drafts with the accepted
    token survive.  The values of theory.md §5 depend on this (16/9, 7/3 and 1816/729 on the two-token pair).

    Lossless (theory.md Statements 3.7 and 5.15), also on prefix trees, where drafts are draws (see
    ``PositionByPosition``), and with one draft model per path.  With K = 1 it is ``token``.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.exact.law import output_law
        >>> print(output_law(MultiRound(), instances.two_token(2), 3).block_efficiency)
        1816/729
    """

    name: ClassVar[str] = "multi_round"
    source: ClassVar[str] = "spectr2023 App. B.3 (specinfer2023; eagle2024)"
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid", "prefix_tree", "per_path"})
    numbers_of_host: ClassVar[bool] = True

    def select(self, position: Position) -> Selection:
        if self._one_draft_model:
            return super().select(position)
        num_drafts = position.tokens.shape[-1]
        return recursive_rejection(position, map(position.draft_row_of, range(num_drafts)))

    def select_draft(self, position: Position) -> DraftSelection | None:
        return rejections_of_one_row(position) if self._one_draft_model else None

    def residual(self, target_rows: Array, draft_rows: Array, note: Array) -> Array:
        """Compute the target mass that is left, max(p - t q, 0) with t = ``note``, not normalised."""
        return residual_rows(target_rows, draft_rows, other_scale=note)

    def residual_at(self, rows: CorrectionRows, note: Array) -> Array:
        return rows.residual(draft_scale=note)

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        find = self._of_one_draft_model if self._one_draft_model else super().outcome
        return find(paths, target_rows, draft_rows)

    @on_numbers_of_host
    def _of_one_draft_model(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        return super().outcome(paths, target_rows, draft_rows)

    def _depths(self, length: int) -> list[slice]:
        # This case writes no rows, so all depths are computed at once.
        return [slice(0, length)] if self._one_draft_model else super()._depths(length)

    @property
    def _one_draft_model(self) -> bool:
        return self._process is None or self._process.name != "per_path"


def rejections_of_one_row(position: Position) -> DraftSelection:
    """Run steps 1 to 4 if all drafts at a context come from one row q.  The note is t after the last draft.

    The target that is left is p_k = max(p - t_k q, 0) / m_k, with

        t_1 = 0, m_1 = 1;    t_{k+1} = t_k + m_k,  m_{k+1} = sum_x max(p(x) - t_{k+1} q(x), 0).

    If m = 0, nothing is left.  Paths at the same context have the same numbers, so one sum per path is
    enough.  ``recursive_rejection`` computes the same with rows, and the tests compare both.
    """
    xp = namespace(position.tokens)
    num_drafts = position.tokens.shape[-1]
    on_target, on_draft = position.on_tokens(position.target_rows), position.on_tokens(position.draft_rows)
    shift, mass = zeros_like(on_target[..., 0]), ones_like(on_target[..., 0])
    accepted = []
    for number in range(num_drafts):
        is_draft = position.is_draft[..., number]
        target, draft = on_target[..., number], on_draft[..., number]
        accepted.append(acceptance_ratio(positive_part(target - shift * draft), mass * draft, is_draft))
        shift = xp.where(is_draft, shift + mass, shift)
        if number < num_drafts - 1:
            own = position.context_of(number)
            rows = position.target_rows[..., own, :], position.draft_rows[..., own, :]
            mass = xp.where(is_draft, residual_mass(*rows, other_scale=shift[..., own])[..., None], mass)
    return DraftSelection(*one_after_the_other(xp.stack(accepted, axis=-1)), shift)


def recursive_rejection(position: Position, draft_rows: Iterable[Array]) -> Selection:
    """Run steps 1 to 4 at C contexts: test the drafts in turn, and update the target that is left.

    Args:
        position: the contexts and their drafts.
        draft_rows: for every path in order, the row q_k from which its next token was drawn, [..., C, V] or
            [..., 1, V].  Rows at contexts where the path has no draft are not used.
    """
    xp = namespace(position.target_rows)
    target_left = position.target_rows  # p_k
    accepted = []
    for number, row in enumerate(draft_rows):
        is_draft = position.is_draft[..., number]
        token = xp.broadcast_to(position.tokens[..., number, None], is_draft.shape)
        row = xp.broadcast_to(row, target_left.shape)
        accepted.append(acceptance_ratio(take_token(target_left, token), take_token(row, token), is_draft))
        target_left = xp.where(is_draft[..., None], after_rejection(target_left, row), target_left)
    return first_accepted(xp.stack(accepted, axis=-1), target_left)


MAX_ROUNDS = 10_000


def multi_round_acceptance(target_probs: Array, draft_probs: Array, num_drafts: int) -> Any:
    """Compute P(one of K i.i.d. drafts is accepted) under multi-round rejection sampling.

    With p_k as in ``MultiRound``: if drafts 1..k-1 were rejected, draft k is accepted with probability
    sum_x min(p_k(x), q(x)), whatever these drafts were.  So the acceptance is (theory.md Statement 3.7)

        1 - prod_{k=1..K} (1 - sum_x min(p_k(x), q(x))).

    After a few rejections p_k no longer changes, and the remaining product is a power.  We add up the
    probabilities that draft k is the first accepted one, so that a small sum keeps its accuracy.

    Raises:
        EnumerationTooLargeError: p_k still changes after 10 000 rejections, and there are more drafts.

    Example:
        >>> from spectheory.pairs.rows import parse_probs
        >>> print(multi_round_acceptance(parse_probs(["1/3", "2/3"]), parse_probs(["2/3", "1/3"]), 2))
        7/9
    """
    xp = namespace(target_probs)
    # One more axis: numpy sums a single row of rationals to a bare Fraction, not to an array.
    current, draft_probs = target_probs[None], draft_probs[None]
    all_rejected = ones_like(current[..., 0])
    accepted = all_rejected * 0
    for tried in range(num_drafts):
        accepts = xp.sum(xp.minimum(current, draft_probs), axis=-1)
        # If no mass is left, nothing can be rejected: all_rejected is 0 and stays 0.
        following = after_rejection(current, draft_probs)
        if bool((following == current).all()):  # then it stays after every further rejection
            return (accepted + all_rejected * hit_probability(accepts, num_drafts - tried))[0]
        if tried == MAX_ROUNDS:
            raise EnumerationTooLargeError(
                f"the target that is left still changes after {MAX_ROUNDS} rejections; use fewer drafts than "
                f"{num_drafts}"
            )
        accepted, all_rejected = accepted + all_rejected * accepts, all_rejected * (1 - accepts)
        current = following
    return accepted[0]
