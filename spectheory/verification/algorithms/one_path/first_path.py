"""Base class of the verifiers of one drafted path: they use the first path only."""

from collections.abc import Collection
from typing import ClassVar

from spectheory.foundation.arrays import Array, divide_or_zero, namespace, take_token, zeros_like
from spectheory.pairs.drafts.process import SAMPLED_PROCESSES
from spectheory.verification.verifier import Verifier


class OnePath(Verifier):
    """A verifier that uses the first drafted path only.

    It is valid for every process whose first path follows the draft model.
    """

    single_path: ClassVar[bool] = True
    draft_processes: ClassVar[Collection[str]] = SAMPLED_PROCESSES


def path_ratios(paths: Array, target_rows: Array, draft_rows: Array) -> Array:
    """Compute p(X_i | X_{1:i-1}) / q(X_i | X_{1:i-1}) along every drafted path.  -> [..., K, L]

    A drafted path has q > 0 everywhere.  At q = 0 the result is 0, which is never used.
    """
    return divide_or_zero(take_token(target_rows[..., :-1, :], paths), take_token(draft_rows, paths))


def first_path_ratios(paths: Array, target_rows: Array, draft_rows: Array) -> Array:
    """Compute ``path_ratios`` of the first drafted path.  -> [..., L]"""
    return path_ratios(paths[..., 0, :], target_rows[..., 0, :, :], draft_rows[..., 0, :, :])


def first_path_only(stop_probs: Array, paths: Array) -> Array:
    """Put stop probabilities on the first of K paths, zeros on the others.  [..., L+1] -> [..., K, L+1]"""
    first = stop_probs[..., None, :]
    others = paths.shape[-2] - 1
    if not others:
        return first
    return namespace(stop_probs).concat([first, *[zeros_like(first)] * others], axis=-2)
