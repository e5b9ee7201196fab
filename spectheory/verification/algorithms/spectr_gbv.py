"""The algorithm of spectrgbv2026, as printed: greedy block verification of one draft after the other."""

from collections.abc import Sequence
from typing import Any, ClassVar

from array_api_compat import is_torch_array

from spectheory.foundation.arrays import (
    Array,
    at_most_one,
    divide_or_zero,
    namespace,
    ones_like,
    positive_part,
    power_sum,
    prefix_products,
    take_path,
    take_token,
    zeros_like,
)
from spectheory.foundation.validation import check_num_drafts
from spectheory.pairs.contexts import is_first_with_prefix
from spectheory.pairs.pair import ModelPair
from spectheory.verification.algorithms.one_path.first_path import path_ratios
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.modification import ModifiesTarget
from spectheory.verification.outcome import Outcome


class SpecTrGbv(ModifiesTarget):
    """Verification of K drafts by sub-blocks, spectrgbv2026 Algorithm 1, as printed.

    In the notation of the package (p target, q draft, both as path probabilities p(a), q(a)) let
    A(a) = p(a) [1 - (1 - min{q(a)/p(a), 1})^K] and Q(a) = 1 - (1 - q(a))^K.  Then Eq. 2 and Eq. 3 read

        h(a) = (A(a) - sum_x A(a,x)) / (Q(a) - sum_x A(a,x))  for |a| < L,
        h(a) = A(a) / Q(a)                                    for |a| = L.

    1. tau = 0, t empty, H empty                                                    (line 1)
    2. draft after draft, for i = tau+1, .., L (tau as the draft found it): if X_{1:i} of this draft
       is in H or η < h fails, put it into H; otherwise tau = i and t = X_{1:i}     (lines 2-16)
    3. once tau = L, stop looking at drafts, and Y ~ p                               (line 13)
    4. if tau < L, Y ~ p(t,x) (1 - min{q(t,x)/p(t,x), 1})^K, normalised       (line 19, Eq. 4)

    How the text was read:

    - An accepted sub-block replaces t whether or not it extends t: a longer prefix of another draft
      wins over a shorter accepted one, and shorter prefixes of that draft may be in H (lines 5-6).
    - The bounds of the loop over i are those at its start; tau may grow inside it (line 3).
    - A sub-block shared by several drafts is verified once.  Any later draft that comes to it finds it
      in H: had it been accepted, tau would have passed it.  So H is "not the first draft with this
      prefix", and no set has to be carried.
    - 1 - p/q at p = 0: A = 0 there, the limit.

    It is not lossless for K >= 2, although Thm 4.2 says so: for target (1/3, 2/3), draft (2/3, 1/3),
    L = 1, K = 2 the first token is A with probability 31/120.  At K = 1 it is ``greedy_block``, which
    needs a modified target for the next L - tau - 1 tokens (``modified_target_rows``, Algorithm 2).

    h lies in [0, 1] always.  Where it is 0/0 it is taken as 0, "η < h fails".  At K = 1 such an h has no
    influence.  At K >= 2 it can have some (p(a) = 1 > q(a) with equal rows at a), and then the text does
    not determine the law.  Nor does it where Eq. 4 is 0/0 at a stop of positive probability: for identical
    models and K >= 2 all drafts can be rejected although p - q has no mass anywhere.  The correction row
    is zero there, and a certificate counts the stop as undefined.

    Example:
        >>> from spectheory import certify, instances
        >>> certificate = certify(SpecTrGbv(), instances.two_token(1), 2, with_optimum=False)
        >>> print(certificate.first_token_law[0], certificate.total_variation)
        31/120 3/40
    """

    name: ClassVar[str] = "spectr_gbv"
    source: ClassVar[str] = "spectrgbv2026 Alg. 1, as printed"
    lossless: ClassVar[bool] = False

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        num_drafts = paths.shape[-2]
        path_ratio = prefix_products(path_ratios(paths, target_rows, draft_rows))
        draft_path_probs = prefix_products(take_token(draft_rows, paths))
        accept = _acceptance(path_ratio, draft_path_probs, target_rows, draft_rows)
        fresh = is_first_with_prefix(paths)[..., 1:]
        stop_probs = _stop_probs(xp.where(fresh, accept, zeros_like(accept)))

        def residual(path_index: Array, length: Array) -> Array:
            stop_ratio = take_token(take_path(path_ratio, path_index), length)
            rows = CorrectionRows(target_rows, draft_rows, path_index, length)
            return self.rejected_mass(stop_ratio[..., None] * rows.target_row, rows.draft_row, num_drafts)

        return Outcome.from_weights(stop_probs, residual)

    def rejected_mass(self, target_mass: Array, draft_mass: Array, num_drafts: int) -> Array:
        """Algorithm 2, and Eq. 4: p (1 - min{q/p, 1})^K; 0 where p = 0."""
        return target_mass * missing_share(draft_mass, target_mass) ** num_drafts


def conditionally_independent_bound(pair: ModelPair, num_drafts: int) -> Any:
    """Bound(K) of spectrgbv2026 Eq. 5, in accepted tokens per target call (E[tau]).

        sum_{i=1..L} sum_{a of length i} p(a) [1 - (1 - min{q(a)/p(a), 1})^K]

    The paper calls it an upper bound over couplings in which the drafts are independent given the
    output, and Thm 5.3 says that ``spectr_gbv`` attains it.  It does not bound valid verifiers:
    on the pair of the example E[tau] = 8/9 is attained.

    Raises:
        InvalidInputError: K is not a whole number of at least 1.

    Example:
        >>> from spectheory import instances
        >>> print(conditionally_independent_bound(instances.two_token(1), 2))
        5/6
    """
    check_num_drafts(num_drafts)
    depths = range(1, pair.draft_length + 1)
    return sum(
        _accepted_mass(pair.target_path_probs(depth), pair.draft_path_probs(depth), num_drafts).sum()
        for depth in depths
    )


def conditionally_independent_maximum(target_row: Sequence[Any], draft_row: Sequence[Any]) -> Any:
    """The largest acceptance of two drafts of one of two tokens that are independent given the output.

    It is what Bound(2) bounds (spectrgbv2026 Lemma 5.1; theory.md §2).  One draft agrees with the output with
    probability Σ min(p, q); the other is independent of both.

    Example:
        >>> print(conditionally_independent_maximum([1 / 4, 3 / 4], [1 / 2, 1 / 2]))
        0.875
    """
    pairs = list(zip(target_row, draft_row, strict=True))
    return 1 - sum(max(p - q, p * 0) * (1 - q) for p, q in pairs)


def _accepted_mass(target_mass: Array, draft_mass: Array, num_drafts: int) -> Array:
    """A = p [1 - (1 - min{q/p, 1})^K] = min(p, q) sum_{j<K} (1 - min{q/p, 1})^j; 0 where p = 0."""
    smaller = namespace(target_mass).minimum(target_mass, draft_mass)
    if num_drafts == 1:
        return smaller
    return smaller * power_sum(1, missing_share(draft_mass, target_mass), num_drafts)


def _acceptance(path_ratio: Array, draft_path_probs: Array, target_rows: Array, draft_rows: Array) -> Array:
    """h(X_{1:i}) for i = 1..L on every path, [..., K, L].

    Numerator and denominator are divided by q(a): A is homogeneous, so A(a)/q(a) follows from
    p(a)/q(a), and Q(a)/q(a) = sum_{j<K} (1 - q(a))^j.  No small number is subtracted from 1.

    Args:
        path_ratio: [..., K, L+1], p(X_{1:i}) / q(X_{1:i}).
        draft_path_probs: [..., K, L+1], q(X_{1:i}).
        target_rows, draft_rows: [..., K, L+1, V] and [..., K, L, V].
    """
    xp = namespace(target_rows)
    num_drafts, length = draft_rows.shape[-3:-1]
    kept = _accepted_mass(path_ratio, ones_like(path_ratio), num_drafts)
    drafted = power_sum(ones_like(draft_path_probs), 1 - draft_path_probs, num_drafts)
    accept = []
    for depth in range(1, length):
        target = path_ratio[..., depth, None] * target_rows[..., depth, :]
        longer = xp.sum(_accepted_mass(target, draft_rows[..., depth, :], num_drafts), axis=-1)
        accept.append(divide_or_zero(kept[..., depth] - longer, drafted[..., depth] - longer))
    accept.append(divide_or_zero(kept[..., length], drafted[..., length]))
    stacked = xp.stack(accept, axis=-1)
    # η < h with η uniform on [0, 1): rounding can carry h out of the interval, the formula cannot.
    return at_most_one(positive_part(stacked))


def _stop_probs(accept: Array) -> Array:
    """The law of the accepted sub-block, [..., K, L+1], from each draft's probabilities, [..., K, L].

    Drafts are processed in order.  A draft that finds tau = s tries its prefixes longer than s; the
    longest accepted one wins, and if there is none tau stays s.
    """
    xp = namespace(accept)
    num_drafts = accept.shape[-2]
    none_longer = xp.flip(prefix_products(1 - xp.flip(accept, axis=-1)), axis=-1)  # [..., K, L+1]
    zero = zeros_like(none_longer[..., 0, :])
    # Before the first draft tau = 0, which is credited to path 0.
    shorter = xp.concat([zero[..., :1] + 1, zero[..., :1] + zeros_like(zero[..., 1:])], axis=-1)
    by_path = [shorter]
    for k in range(num_drafts):
        total = by_path[0]
        for masses in by_path[1:]:
            total = total + masses
        found_below = xp.cumulative_sum(total, axis=-1)[..., :-1]  # P(tau < i) for i = 1..L
        gained = found_below * accept[..., k, :] * none_longer[..., k, 1:]
        by_path = [masses * none_longer[..., k, :] for masses in by_path]
        gained = xp.concat([zero[..., :1], gained], axis=-1)
        by_path = [by_path[0] + gained, *by_path[1:]] if k == 0 else [*by_path, gained]
    return xp.stack(by_path, axis=-2)


def missing_share(part: Array, whole: Array) -> Array:
    """max(1 - part / whole, 0), and a number in [0, 1] where the whole is 0.

    On torch two kernels: one divides and subtracts, the other turns 0/0 into 0.
    """
    if is_torch_array(whole):
        return whole.new_ones(()).addcdiv(part, whole, value=-1).fmax(whole.new_zeros(()))
    return positive_part(1 - divide_or_zero(part, whole))
