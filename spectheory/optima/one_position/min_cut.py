"""Optimal acceptance at one position as a minimum cut, without the V^{K+1} variables of a transport plan."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq

from spectheory.foundation.arrays import Array, hit_probability, namespace, put_along
from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import (
    SUM_TOLERANCE,
    exact_values,
    flint_if_exact,
    float_tolerance,
    fractions_if_exact,
    is_exact,
    plain_number,
)
from spectheory.foundation.results import no_verdict
from spectheory.foundation.validation import check_num_drafts, is_whole
from spectheory.optima.bounds.level_sets import SortedByRatio
from spectheory.optima.bounds.tolerances import FLOAT32_ROW_SUM_TOLERANCE
from spectheory.optima.transport import largest_violation
from spectheory.pairs.rows import parse_probs

DraftLaw = Mapping[tuple[int, ...], Any]
"""The joint distribution of K drafted tokens at one position: tuple of token ids -> probability."""


class MinCut(NamedTuple):
    """The optimal acceptance and the set of tokens that proves it.

    Attributes:
        value: α_K, a probability, [...].
        tokens: mask of the minimising set H, booleans [..., V].
    """

    value: Any
    tokens: Array

    def __bool__(self) -> bool:
        raise no_verdict(self, ".value")


def optimal_acceptance(
    target_probs: Sequence[Any] | Array,
    draft_probs: Sequence[Any] | Array,
    num_drafts: int,
) -> MinCut:
    """Compute the largest probability that the output is one of K i.i.d. drafts, in O(V log V).

    Source: the optimum of spectr2023 Eq. 4 as a minimum cut,

        α_K = min_{H ⊆ V} [ target(H) + 1 - draft(H)^K ].

    draft(H)^K is a convex function of the additive draft(H).  So some prefix of the tokens in ascending order
    of target/draft is a minimiser.  Tokens with draft probability 0 come last.

    Accuracy: exact rows give the exact value.  Float rows give a relative error of about V 1e-16, because
    we compute 1 - draft(H)^K from the sum of the draft's mass outside H.

    Args:
        target_probs, draft_probs: rows [..., V]: numpy float64 or exact rationals, torch tensors, or
            a list of strings or numbers.
        num_drafts: K.

    Returns:
        The value [...] (Fractions for exact rows, float64 for float rows of any precision) and the
        minimising set as a mask [..., V].

    Raises:
        InvalidInputError: the rows are not distributions over one vocabulary, or num_drafts is not an integer
            of at least 1.

    Example:
        >>> value, tokens = optimal_acceptance(["1/3", "2/3"], ["2/3", "1/3"], num_drafts=2)
        >>> print(value, tokens)
        8/9 [ True False]
    """
    num_drafts = check_num_drafts(num_drafts)
    target, draft = check_rows(target_probs, draft_probs)
    return _min_cut(_sorted_by_ratio(target, draft), num_drafts)


def optimal_acceptance_curve(
    target_probs: Sequence[Any] | Array,
    draft_probs: Sequence[Any] | Array,
    max_num_drafts: int,
) -> list[MinCut]:
    """Compute α_1, .., α_K with their minimising sets, by one sort of the tokens.

    Args:
        target_probs, draft_probs: as in ``optimal_acceptance``.
        max_num_drafts: the largest K.

    Returns:
        The results of ``optimal_acceptance`` for 1, .., K drafts.

    Raises:
        InvalidInputError: as in ``optimal_acceptance``.

    Example:
        >>> curve = optimal_acceptance_curve(["1/3", "2/3"], ["2/3", "1/3"], max_num_drafts=3)
        >>> print(*(cut.value for cut in curve))
        2/3 8/9 1
    """
    max_num_drafts = check_num_drafts(max_num_drafts)
    target, draft = check_rows(target_probs, draft_probs)
    tokens = _sorted_by_ratio(target, draft)
    return [_min_cut(tokens, num_drafts) for num_drafts in range(1, max_num_drafts + 1)]


def min_cut_of_law(target_probs: Sequence[Any] | np.ndarray, draft_law: DraftLaw) -> MinCut:
    """Compute the largest P(Y ∈ {X_1, .., X_K}) of an output Y, for an arbitrary joint law of the K drafts.

    Source: the optimum of spectr2023 Eq. 4 for that law, as a minimum cut over sets of tokens,

        max P(Y ∈ S(X)) = min_{H ⊆ V} [ target(H) + 1 - P(S(X) ⊆ H) ],   S(X) = {X_1, .., X_K}.

    A maximum flow from the tokens to the tuples that contain them finds H exactly, also for float rows
    (``largest_violation``).  For i.i.d. drafts, and for drafts without replacement, a sort suffices
    (``optimal_acceptance``, ``optimal_acceptance_without_replacement``).

    Args:
        target_probs: [V]; strings and Fractions are exact.
        draft_law: {(x_1, .., x_K): probability}; missing tuples have probability 0.

    Returns:
        The value and a minimising set.

    Raises:
        InvalidInputError: the target is not a distribution, or the draft law is not a distribution over
            tuples of its tokens.
        MissingDependencyError: networkx is not installed.

    Example:
        Two distinct tokens of three, all pairs equally likely, then a target on the third alone:

        >>> law = {pair: "1/3" for pair in [(0, 1), (0, 2), (1, 2)]}
        >>> value, tokens = min_cut_of_law(["0", "0", "1"], law)
        >>> print(value, tokens)
        2/3 [ True  True False]
    """
    target, tuples, probs = check_draft_law(target_probs, draft_law)
    edges = [(token, number) for number, drafts in enumerate(tuples) for token in set(drafts)]
    _, outside = largest_violation(exact_values(target).tolist(), exact_values(probs).tolist(), edges)
    tokens = ~np.isin(np.arange(len(target)), outside)
    inside = [bool(tokens[list(drafts)].all()) for drafts in tuples]
    return MinCut(plain_number(target[tokens].sum() + probs[np.logical_not(inside)].sum()), tokens)


def check_rows(
    target_probs: Sequence[Any] | Array,
    draft_probs: Sequence[Any] | Array,
) -> tuple[Array, Array]:
    """Return both rows as arrays, after checking one shape, one dtype, and that each is a distribution."""
    target, draft = _as_rows("target_probs", target_probs), _as_rows("draft_probs", draft_probs)
    if target.shape != draft.shape or not target.ndim or not target.shape[-1]:
        raise InvalidInputError(
            f"target_probs has shape {tuple(target.shape)} and draft_probs {tuple(draft.shape)}; "
            "both must be [..., V] with one entry per token"
        )
    if target.dtype != draft.dtype:
        raise InvalidInputError(
            f"target_probs holds {target.dtype} and draft_probs {draft.dtype} entries; use one kind for both"
        )
    for name, rows in (("target_probs", target), ("draft_probs", draft)):
        xp = namespace(rows)
        allowed = float_tolerance(rows, FLOAT32_ROW_SUM_TOLERANCE)
        sums_to_one = xp.asarray(abs(xp.sum(rows, axis=-1) - 1) <= allowed)
        # a NaN is refused too
        if not (bool((rows >= 0).all()) and bool(sums_to_one.all())):
            raise InvalidInputError(f"{name} must hold probabilities ≥ 0 that sum to 1 over the last axis")
    return target, draft


def _as_rows(name: str, rows: Sequence[Any] | Array) -> Any:
    """Return an array of floats, Fractions or python-flint rationals unchanged; parse other entries, [V]."""
    kind = str(getattr(rows, "dtype", ""))
    if isinstance(rows, np.matrix) or "complex" in kind or "bool" in kind:
        raise InvalidInputError(
            f"{name} is a {type(rows).__name__} of {kind}; expected an array of probabilities"
        )
    is_parsed = not is_exact(rows) or all(isinstance(entry, (Fraction, fmpq)) for entry in np.ravel(rows))
    if kind and is_parsed:
        return rows
    if np.ndim(rows) > 1:
        raise InvalidInputError(f"{name} holds entries other than Fractions; expected Fractions or floats")
    return parse_probs(list(rows))


def check_single_rows(
    target_probs: Sequence[Any] | Array, draft_probs: Sequence[Any] | Array
) -> tuple[np.ndarray, np.ndarray]:
    """Do the same as ``check_rows`` for one numpy row per model, [V]."""
    target, draft = check_rows(target_probs, draft_probs)
    if target.ndim != 1 or not isinstance(target, np.ndarray):
        raise InvalidInputError(
            f"expected one numpy row per model, [V]; target_probs has shape {tuple(target.shape)}"
        )
    return target, draft


def check_draft_law(
    target_probs: Sequence[Any] | np.ndarray, draft_law: DraftLaw
) -> tuple[np.ndarray, list[tuple[int, ...]], np.ndarray]:
    """Check a target row and a draft law.

    Returns:
        The target row [V], the draft tuples in the given order, and their probabilities [N].
    """
    target, _ = check_single_rows(target_probs, target_probs)
    tuples = list(draft_law)
    lengths = sorted({len(drafts) for drafts in tuples})
    if len(lengths) != 1 or lengths[0] < 1:
        raise InvalidInputError(
            f"a draft law needs tuples of one length K of at least 1, got lengths {lengths}"
        )
    for drafts in tuples:
        if not all(is_whole(x) and 0 <= x < len(target) for x in drafts):
            raise InvalidInputError(f"drafts {drafts} are not token ids in 0..{len(target) - 1}")
    probs = parse_probs(list(draft_law.values()))
    if probs.dtype != target.dtype:
        raise InvalidInputError(
            f"target_probs holds {target.dtype} and the draft law {probs.dtype} entries; use one kind"
        )
    allowed = float_tolerance(probs, SUM_TOLERANCE)
    if not (bool((probs >= 0).all()) and bool(abs(probs.sum() - 1) <= allowed)):
        raise InvalidInputError(f"a draft law must hold probabilities ≥ 0 that sum to 1, got {probs.sum()}")
    return target, tuples, probs


def _sorted_by_ratio(target: Array, draft: Array) -> SortedByRatio:
    """Sort by target/draft, in python-flint rationals for exact rows, else in float64."""
    xp = namespace(target)
    if is_exact(target):
        return SortedByRatio.of(flint_if_exact(target), flint_if_exact(draft))
    return SortedByRatio.of(xp.astype(target, xp.float64), xp.astype(draft, xp.float64))


def _min_cut(tokens: SortedByRatio, num_drafts: int) -> MinCut:
    xp = namespace(tokens.ratios)
    # cut[i]: the value of the prefix of i tokens; the empty prefix has value 1.  We sum the draft's mass
    # outside a prefix directly: 1 minus the mass inside would lose relative accuracy.
    target_below = tokens.numerator.cumsum(-1)
    draft_above = xp.flip(xp.flip(tokens.denominator, axis=-1).cumsum(-1), axis=-1)
    nothing = draft_above[..., :1] * 0
    draft_above = xp.concat([draft_above[..., 1:], nothing], axis=-1)
    cut = xp.concat([nothing + 1, target_below + hit_probability(draft_above, num_drafts)], axis=-1)
    best = xp.argmin(cut, axis=-1)[..., None]
    value = xp.take_along_axis(cut, best, axis=-1)[..., 0]
    # among equal ratios the cut is concave, so a minimum is at an end: H = {ratio ≤ last ratio}
    last = xp.take_along_axis(tokens.ratios, xp.where(best > 0, best - 1, best), axis=-1)
    inside = put_along((tokens.ratios <= last) & (best > 0), tokens.order)
    # [()] turns the value of one numpy row from an array without axes into a scalar
    return MinCut(fractions_if_exact(value)[()] if isinstance(value, np.ndarray) else value, inside)
