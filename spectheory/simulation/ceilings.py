"""Ceilings of verifiers that go position by position, at the contexts that their texts meet.

At a context where n of the K drafted paths are still followed, the n next tokens are i.i.d. from the draft
row.  So no rule at that position accepts one of them with a probability above α_n of the two rows there
(``optimal_acceptance``).  Summed over the positions that a call meets, with the one token behind them,

    1 + Σ_{i=0..min(τ, L-1)} α_n(i)

has a mean over the calls of no less than E[τ + 1], and of exactly that for a rule that is optimal at every
position, as ``token`` is on one path.  A rule loses the tokens between its value and the ceiling.  A verifier
earns more than the ceiling only if it looks at whole paths.
"""

from spectheory.foundation.arrays import Array, namespace, take_along, take_path
from spectheory.optima.one_position.min_cut import optimal_acceptance_curve
from spectheory.pairs.contexts import shared_prefixes
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.algorithms.position_by_position.positions import PositionByPosition
from spectheory.verification.verifier import Verifier


def has_ceiling(verifier: Verifier) -> bool:
    """Whether the verifier is one of this package that decides position by position.

    Example:
        >>> from spectheory.verification.algorithms import verifiers
        >>> [name for name in ("token", "block", "spectr") if has_ceiling(verifiers[name])]
        ['token', 'spectr']
    """
    return isinstance(verifier, (Token, PositionByPosition))


def ceilings(paths: Array, target_rows: Array, draft_rows: Array, path_index: Array, length: Array) -> Array:
    """The sum above for every stop at a prefix of i.i.d. paths.

    Args:
        paths: [..., K, L].
        target_rows: [..., K, L+1, V].
        draft_rows: [..., K, L, V].
        path_index, length: [...], the accepted prefix.

    Returns:
        [...], tokens.
    """
    xp = namespace(target_rows)
    depth = paths.shape[-1]
    followed = xp.sum(xp.astype(shared_prefixes(paths), xp.int64), axis=-2)  # [..., K, L+1]
    followed = take_path(followed, path_index)[..., :depth]
    rows = take_path(target_rows, path_index)[..., :depth, :], take_path(draft_rows, path_index)
    curve = optimal_acceptance_curve(*rows, paths.shape[-2])
    most = take_along(xp.stack([cut.value for cut in curve], axis=-1), followed[..., None] - 1)[..., 0]
    met = xp.arange(depth, device=most.device) <= length[..., None]
    return 1 + xp.sum(xp.where(met, most, xp.zeros_like(most)), axis=-1)
