"""K-SEQ at one position: the verifier, its division factor, acceptance probability and residual."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from spectheory.foundation.arrays import (
    Array,
    divide_or_zero,
    hit_probability,
    like_entries,
    namespace,
    ones_like,
    positive_part,
    power_sum,
    take_along,
    zeros_like,
)
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import is_exact
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.verification.algorithms.position_by_position.positions import (
    Position,
    PositionByPosition,
    Selection,
    acceptance_ratio,
    first_accepted,
)
from spectheory.verification.outcome import Outcome

Number = Fraction | int | float


class KSeq(PositionByPosition):
    """k-sequential selection at one position (L = 1), spectr2023 Algorithm 2.

    With K i.i.d. drafts X_1..X_K (p target, q draft; the paper swaps the letters):

    1. β = sum_x min(q(x), p(x)/ρ) and p_acc = 1 - (1 - β)^K; the residual is
       (p - min(q, p/ρ) p_acc/β) / (1 - p_acc)                                (line 1, Eq. 5)
    2. for i = 1..K: Y = X_i is returned with probability min(1, p(X_i) / (ρ q(X_i)))  (lines 2-7)
    3. if no draft was returned, Y is drawn from the residual                               (line 8)

    An accepted Y is followed by one more token from the target (Algorithm 3, lines 3-5).  A Y from the
    residual that equals a drafted token counts as accepted, as in Algorithm 3.

    Lossless for every ρ >= ρ* (Thm 1), where ρ* is the root of Eq. 6.  Let m be the smallest p/q over the
    tokens with p > 0 and q > 0.  The exact condition is p_acc <= β max(ρ, m) (theory.md Statement 3.5).  So a
    smaller ρ can be lossless too, if every such token has p/q > ρ.  Otherwise the residual is negative
    at some token.  At ρ* the acceptance is at least (1 - (1 - 1/K)^K) α_K >= (1 - 1/e) α_K.  K = 1 is
    ``token``.

    Args:
        division_factor: ρ, or ``None`` for ρ*.  A Fraction or an integer is exact: the law is then
            rational for rational rows.  ρ* is algebraic, so its law is float64.
        checked: True to refuse rows with ρ < ρ*.  With ``False`` the algorithm runs on them and clips the
            residual at 0, which is not lossless in general.

    Raises:
        InvalidInputError: ρ is not a number of at least 1, or too small for the rows; more than one
            drafted token per path.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.exact.law import output_law
        >>> law = output_law(KSeq(Fraction(3, 2)), instances.two_token(1), 2)
        >>> print(law.block_efficiency, law.total_variation)
        49/27 0
    """

    name: ClassVar[str] = "kseq"
    source: ClassVar[str] = "spectr2023 Alg. 2"
    max_draft_length: ClassVar[int | None] = 1
    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid", "prefix_tree"})

    def __init__(self, division_factor: Number | None = None, *, checked: bool = True) -> None:
        if division_factor is not None:
            _check_division_factor(division_factor)
        self.division_factor = division_factor
        self.checked = checked
        self.exact = isinstance(division_factor, (int, Fraction))  # type: ignore[misc]

    @property
    def lossless(self) -> bool:  # type: ignore[override]
        """True unless a division factor was given without a check."""
        return self.checked or self.division_factor is None

    def check_draft_length(self, draft_length: int) -> None:
        if draft_length != 1:
            raise InvalidInputError(
                f"verifier 'kseq' works at one position, draft_length 1, got draft_length {draft_length}; "
                "use 'spectr', which is K-SEQ position by position"
            )

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        self.check_draft_length(paths.shape[-1])
        if self.division_factor is not None and self.checked:
            # All paths start at the same context, so they share the first path's rows.
            first = target_rows[..., 0, 0, :], draft_rows[..., 0, 0, :]
            self._check_rows(*first, paths.shape[-2], self.division_factor)
        return super().outcome(paths, target_rows, draft_rows)

    def select(self, position: Position) -> Selection:
        xp = namespace(position.target_rows)
        num_drafts = position.is_draft.shape[-1]
        target_rows, draft_rows = position.target_rows, position.draft_rows
        if self.division_factor is None:
            count = xp.zeros_like(target_rows[..., 0]) + num_drafts
            rule = kseq_rule(target_rows, draft_rows, count)
        else:
            rule = kseq_rule_at(target_rows, draft_rows, num_drafts, self.division_factor)
        scaled = rule.division_factor[..., None] * position.on_tokens(draft_rows)
        accept = acceptance_ratio(position.on_tokens(target_rows), scaled, position.is_draft)
        return first_accepted(accept, positive_part(rule.residual))

    def _check_rows(self, target_probs: Array, draft_probs: Array, num_drafts: int, given: Number) -> None:
        xp = namespace(target_probs)
        target, draft = (xp.astype(rows, xp.float64) for rows in (target_probs, draft_probs))
        best = best_division_factor(target, draft, xp.sum(zeros_like(target), axis=-1) + num_drafts)
        if is_exact(target_probs):
            # p_acc > ρ β means f(ρ) > 0, which holds only for ρ < ρ* (Eq. 6, Lemma 4).
            rule = kseq_rule_at(target_probs, draft_probs, num_drafts, given)
            accepted = xp.minimum(rule.division_factor[..., None] * draft_probs, target_probs)
            too_small = rule.acceptance > xp.sum(accepted, axis=-1)
        else:
            too_small = best * (1 - 1e-12) > float(given)  # ρ* is rounded
        if bool(xp.asarray(too_small).any()):
            raise InvalidInputError(
                f"division_factor {given} is smaller than ρ* = {float(xp.max(best))!r} of {num_drafts} "
                "drafts on these rows; below it the residual goes negative (spectr2023 Theorem 1); give "
                "at least ρ*, or None for ρ* itself"
            )


def _check_division_factor(value: Any) -> None:
    number = isinstance(value, (int, float, Fraction)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value < 1:
        raise InvalidInputError(
            f"division_factor must be a finite number of at least 1 (spectr2023 Alg. 2), got {value!r}; "
            "None takes the best one, ρ*"
        )


class KSeqRule(NamedTuple):
    """The rule of K-SEQ at one position, batched over leading axes.

    Attributes:
        division_factor: ρ, [...]; a draft x is accepted with probability min(1, p/(ρ q)).
        acceptance: 1 - (1 - β(ρ))^n, the probability that one of n drafts is accepted, [...].
        residual: [..., V] mass of the correction token (Eq. 5), not normalised.
    """

    division_factor: Array
    acceptance: Array
    residual: Array


def kseq_rule(target_probs: Array, draft_probs: Array, num_drafts: Array) -> KSeqRule:
    """Compute K-SEQ with the best division factor ρ*, spectr2023 Algorithm 2 and Theorem 1.

    In the notation of the package (p target, q draft), with β(ρ) = sum_x min(q(x), p(x)/ρ):

    - ρ* solves 1 - (1 - β(ρ))^n = ρ β(ρ) on [1, n]                                (Eq. 6)
    - the residual is p - min(q, p/ρ) p_acc / β, with p_acc = 1 - (1 - β)^n        (Eq. 5)

    ``num_drafts`` is n, [...], in the float dtype of the rows.  ρ* is algebraic, so rows must be floats.
    """
    xp = namespace(target_probs)
    division_factor = best_division_factor(target_probs, draft_probs, num_drafts)
    accepted = xp.minimum(draft_probs, target_probs / division_factor[..., None])
    beta = xp.sum(accepted, axis=-1)
    residual = residual_at_root(target_probs, draft_probs, division_factor[..., None])
    return KSeqRule(division_factor, hit_probability(beta, num_drafts), residual)


def residual_at_root(target_probs: Array, draft_probs: Array, division_factor: Array) -> Array:
    """Compute the residual at ρ*, not normalised.  [..., V]

    At ρ* Eq. 6 says p_acc / β = ρ*, so the residual of Eq. 5 is max(p - ρ* q, 0).  It is zero for equal rows,
    and for one draft it is the residual of token verification.

    Its mass is (1 - β)^n.  With many drafts p - ρ* q can round to 0 at every token although a draft can still
    be rejected.  As ρ grows, the tokens with the largest p/q are the last ones with a residual.  So in this
    case they get the residual, in proportion to p.
    """
    xp = namespace(target_probs)
    residual = positive_part(target_probs - division_factor * draft_probs)
    ratio = divide_or_zero(target_probs, draft_probs)
    largest = ratio == xp.max(ratio, axis=-1, keepdims=True)
    rejects = xp.any(target_probs < division_factor * draft_probs, axis=-1, keepdims=True)
    lost = rejects & ~xp.any(residual > 0, axis=-1, keepdims=True)
    return xp.where(lost & largest, target_probs, residual)


def kseq_rule_at(
    target_probs: Array, draft_probs: Array, num_drafts: int, division_factor: Number
) -> KSeqRule:
    """Compute K-SEQ with a given division factor ρ, unchecked: Eq. 5 as printed, without 1/(1 - p_acc).

    Returns:
        The ``KSeqRule``, exact for exact rows.  Its residual can have negative entries where ρ < ρ*.

    Example:
        >>> from spectheory.pairs.rows import parse_probs
        >>> rows = parse_probs(["1/3", "2/3"]), parse_probs(["2/3", "1/3"])
        >>> print(kseq_rule_at(*rows, 2, Fraction(3, 2)).residual)
        [Fraction(1, 81) Fraction(5, 27)]
        >>> print(kseq_rule_at(*rows, 2, 1).residual)
        [Fraction(-1, 9) Fraction(2, 9)]
    """
    xp = namespace(target_probs)
    # One more axis: numpy sums a single row of rationals to a bare Fraction, not to an array.
    target_probs, draft_probs = target_probs[None], draft_probs[None]
    factor = like_entries(division_factor, target_probs[..., 0])
    scaled = target_probs / factor[..., None]
    accepted = xp.minimum(draft_probs, scaled)
    # Compute 1 - β without a subtraction from 1, and p_acc / β = sum_{j<n} (1 - β)^j without a division.  For
    # one draft this is exactly 1, and the residual is p - min(q, p/ρ).
    missed = xp.sum(positive_part(draft_probs - scaled), axis=-1)
    scale = power_sum(ones_like(missed), missed, num_drafts)
    acceptance = xp.sum(accepted, axis=-1) * scale
    residual = target_probs - accepted * scale[..., None]
    return KSeqRule(factor[0], acceptance[0], residual[0])


def best_division_factor(target_probs: Array, draft_probs: Array, num_drafts: Array) -> Array:
    """Compute ρ*, the root of Eq. 6, for every row.  [..., V] -> [...]

    ρ* is the root of f(ρ) = 1 - (1 - β(ρ))^n - ρ β(ρ) on [1, n], and f decreases (spectr2023 Lemma 4).

    1. Sort the tokens by p/q.  Between two neighbouring ratios f depends on four masses only: the target and
       draft masses of the tokens with p/q <= ρ, and of the other tokens (``_Split``).
    2. Find the two neighbouring ratios between which f changes sign, by evaluating many at once.
    3. Find the root between them in the same way, with the four masses of that interval.

    Accuracy: the relative error in float64 is below 1e-14.  The tests check it for n = 2..16 and up to 40
    tokens, including tiny entries and nearly equal rows, by the signs of f on both sides in rational
    arithmetic.  For the rows with the most cancellation they compare with roots of more than 40 digits.

    Rows that sum to 1 only up to rounding are treated as divided by their sums, because f as printed
    magnifies the rounding if β is near 1.  Equal rows give exactly 1.
    """
    xp = namespace(target_probs)
    ratio, order, *masses = SortedByRatio.of(target_probs, draft_probs)
    del target_probs, draft_probs, order  # free memory for the cumulative sums
    split_after, size = _splits(*masses), ratio.shape[-1]
    num_drafts = num_drafts[..., None]
    one = xp.ones_like(ratio[..., :1])
    sections = min(max(size, 2), MAX_SECTIONS)
    parts = xp.arange(1, sections, device=ratio.device)

    # ``passed`` counts the ratios before the root: ratios below 1, and ratios below n with f(ratio) > 0.
    # They are a prefix of the sorted ratios, because f decreases.  Rounding can change the sign of f only at
    # the root itself, where both neighbouring intervals give the same ρ*.
    passed = xp.zeros_like(one, dtype=xp.int64)
    step = 1
    while step <= size:
        step *= sections
    while step > 1:
        step //= sections
        tried = xp.clip(passed + step * parts, None, size)
        at = take_along(ratio, tried - 1)
        possible = xp.minimum(xp.maximum(at, one), num_drafts)
        before = (at < 1) | ((at < num_drafts) & (_excess(possible, split_after(tried), num_drafts) > 0))
        passed = xp.clip(passed + step * _count(before), None, size)

    split = split_after(passed)
    low = xp.maximum(one, _entry_or(ratio, passed - 1, one))
    high = xp.maximum(low, xp.minimum(num_drafts, _entry_or(ratio, passed, num_drafts)))
    shares = xp.astype(parts, ratio.dtype) / sections
    # After this many rounds no float is left between the ends.
    for _ in range(math.ceil(xp.finfo(ratio.dtype).bits / math.log2(sections))):
        tried = xp.concat([low, low + (high - low) * shares, high], axis=-1)
        above = _count(_excess(tried[..., 1:-1], split, num_drafts) > 0)
        low, high = take_along(tried, above), take_along(tried, above + 1)
    return high[..., 0]


MAX_SECTIONS = 2_048
"""The most parts into which an interval is divided at once; at most the number of entries of a row."""


def _count(condition: Array) -> Array:
    xp = namespace(condition)
    return xp.sum(condition, axis=-1, keepdims=True, dtype=xp.int64)


class _Split(NamedTuple):
    """Target and draft masses of the tokens with p/q <= ρ (below) and of the others (beyond), [...] each."""

    target_below: Array
    draft_below: Array
    target_beyond: Array
    draft_beyond: Array


def _splits(target_probs: Array, draft_probs: Array) -> Callable[[Array], _Split]:
    """Return a function of i that computes the masses of the first i tokens and of the other tokens.

    We sum each side from its own end.  The difference of 1 and the other side would have rounding errors that
    a large ρ multiplies.
    """
    xp, size = namespace(target_probs), target_probs.shape[-1]
    rows = target_probs, draft_probs
    up_to = [xp.cumulative_sum(row, axis=-1) for row in rows]
    from_end = [xp.cumulative_sum(xp.flip(row, axis=-1), axis=-1) for row in rows]

    def first(sums: list[Array], count: Array) -> list[Array]:
        last, some = xp.clip(count - 1, 0, None), count > 0
        return [take_along(sum_, last) * some for sum_ in sums]

    def split_after(count: Array) -> _Split:
        return _Split(*first(up_to, count), *first(from_end, size - count))

    return split_after


def _excess(division_factor: Array, split: _Split, num_drafts: Array) -> Array:
    """Compute f(ρ) = 1 - (1 - β)^n - ρ β, accurate to a few last bits of its terms for every β.

    Let P and Q be the target and draft mass of the tokens with p/q <= ρ, and P' and Q' the masses of the
    other tokens.  For rows that sum to 1,

        ρ β = P + ρ Q',    1 - β = Q - P/ρ,    f = (P' - ρ Q') - (1 - β)^n.

    The last form does not subtract from 1, and is as precise as its masses.  But if n β is small, it is the
    small difference of two numbers near 1, and we use the first form with ``expm1``.
    """
    xp = namespace(division_factor)
    accepted = split.target_below + division_factor * split.draft_beyond
    beta = accepted / division_factor
    missed = positive_part(split.draft_below - split.target_below / division_factor)
    large = beta >= 0.5
    log_all_missed = num_drafts * xp.log1p(-xp.where(large, 0, beta))
    all_missed = xp.where(large, missed**num_drafts, xp.exp(log_all_missed))
    difference = (split.target_beyond - division_factor * split.draft_beyond) - all_missed
    seldom = (num_drafts * beta < 1) & ~large
    return xp.where(seldom, -xp.expm1(log_all_missed) - accepted, difference)


def _entry_or(values: Array, index: Array, default: Array) -> Array:
    """Take values[..., index], or ``default`` if the index is outside the last axis.  [..., N], [..., M]"""
    xp, last = namespace(values), values.shape[-1] - 1
    inside = (index >= 0) & (index <= last)
    return xp.where(inside, take_along(values, xp.clip(index, 0, last)), default)
