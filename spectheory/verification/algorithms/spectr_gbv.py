"""The algorithm of spectrgbv2026 as printed: greedy block verification of one draft after the other."""

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
    2. for every draft, for i = tau+1, .., L (tau at the start of this draft): if X_{1:i} of this draft
       is in H or η < h fails, put X_{1:i} into H; otherwise tau = i and t = X_{1:i}     (lines 2-16)
    3. once tau = L, test no more drafts, and Y ~ p                                  (line 13)
    4. if tau < L, Y ~ p(t,x) (1 - min{q(t,x)/p(t,x), 1})^K, normalised       (line 19, Eq. 4)

    We read the text as follows:

    - An accepted sub-block replaces t whether or not it extends t: a longer prefix of another draft
      wins over a shorter accepted one, and shorter prefixes of that draft may be in H (lines 5-6).
    - The bounds of the loop over i are fixed at its start, although tau may grow inside it (line 3).
    - A sub-block shared by several drafts is verified once.  A later draft that tests it finds it
      in H, because if it had been accepted, tau would be at least as long.  So "X_{1:i} is in H" means
      "an earlier draft has this prefix", and the code stores no set.
    - 1 - q/p at p = 0: we take the limit, A = 0.

    It is not lossless for K >= 2, although Thm 4.2 says so: for target (1/3, 2/3), draft (2/3, 1/3),
    L = 1, K = 2 the first token is A with probability 31/120.  At K = 1 it is ``greedy_block``, which
    needs a modified target for the next L - tau - 1 tokens (``modified_target_rows``, Algorithm 2).

    h always lies in [0, 1].  If it is 0/0, we take it as 0, so that "η < h" fails.  At K = 1 such an h has no
    influence.  At K >= 2 it can have influence (p(a) = 1 > q(a) with equal rows at a), and then the text does
    not determine the law.  The same holds if Eq. 4 is 0/0 at a stop of positive probability: for identical
    models and K >= 2 all drafts can be rejected although p - q has no mass anywhere.  The correction row
    is then zero, and a certificate counts the stop as undefined.

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
        """Compute p (1 - min{q/p, 1})^K, and 0 where p = 0 (Algorithm 2 and Eq. 4)."""
        return target_mass * missing_share(draft_mass, target_mass) ** num_drafts


def conditionally_independent_bound(pair: ModelPair, num_drafts: int) -> Any:
    """Compute Bound(K) of spectrgbv2026 Eq. 5, in accepted tokens per target call (E[tau]).

        sum_{i=1..L} sum_{a of length i} p(a) [1 - (1 - min{q(a)/p(a), 1})^K]

    The paper calls it an upper bound over couplings in which the drafts are independent given the
    output, and Thm 5.3 says that ``spectr_gbv`` attains it.  It does not bound valid verifiers:
    on the pair of the example a valid verifier attains E[tau] = 8/9.

    Raises:
        InvalidInputError: K is not an integer of at least 1.

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


def _accepted_mass(target_mass: Array, draft_mass: Array, num_drafts: int) -> Array:
    """Compute A = p [1 - (1 - min{q/p, 1})^K], and 0 where p = 0.

    We compute it as min(p, q) sum_{j<K} (1 - min{q/p, 1})^j.
    """
    smaller = namespace(target_mass).minimum(target_mass, draft_mass)
    if num_drafts == 1:
        return smaller
    return smaller * power_sum(1, missing_share(draft_mass, target_mass), num_drafts)


def _acceptance(path_ratio: Array, draft_path_probs: Array, target_rows: Array, draft_rows: Array) -> Array:
    """Compute h(X_{1:i}) for i = 1..L on every path, [..., K, L].

    We divide numerator and denominator by q(a).  A is homogeneous, so A(a)/q(a) follows from p(a)/q(a), and
    Q(a)/q(a) = sum_{j<K} (1 - q(a))^j.  So no small number is subtracted from 1.

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
    # Only rounding can bring h out of [0, 1].
    return at_most_one(positive_part(stacked))


def _stop_probs(accept: Array) -> Array:
    """Compute the law of the accepted sub-block, [..., K, L+1], from each draft's probabilities, [..., K, L].

    Drafts are processed in order.  If tau = s before a draft, its prefixes longer than s are tested.  The
    longest accepted one replaces the sub-block; if none is accepted, tau stays s.
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
    """Compute max(1 - part / whole, 0).  If whole is 0, the result is some number in [0, 1].

    On torch this takes two kernels: one divides and subtracts, the other turns 0/0 into 0.
    """
    if is_torch_array(whole):
        return whole.new_ones(()).addcdiv(part, whole, value=-1).fmax(whole.new_zeros(()))
    return positive_part(1 - divide_or_zero(part, whole))
