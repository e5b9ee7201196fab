"""Naive sampling: sample from the target, and accept a drafted token if the sample equals it."""

from collections.abc import Collection
from typing import ClassVar

from spectheory.foundation.arrays import (
    Array,
    namespace,
    prefix_products,
    take_path,
    take_row,
    take_token,
    zero_where,
    zeros_like,
)
from spectheory.pairs.contexts import is_first_with_prefix, shared_prefixes
from spectheory.pairs.drafts.process import ANY_PROCESS
from spectheory.verification.correction_rows import take_stop_row
from spectheory.verification.outcome import Outcome
from spectheory.verification.verifier import Verifier


class NaiveSampling(Verifier):
    """Sample from the target and accept the sample if it was drafted: naive sampling of specinfer2023.

    At a context, with C the set of drafted next tokens and p the target:

    1. Y ~ p
    2. if Y is in C, it is accepted, and the round continues after Y
    3. otherwise, and at the end of a path, the round ends with the correction token Y

    The output follows the target for any drafts, random or not, and the draft rows are not read.  The block
    efficiency is 1 + Σ_a p(a) P(a is drafted).  No verifier does better on deterministic drafts (theory.md
    Statement 5.27).  On sampled drafts most verifiers do better.

    Paths may end before L tokens; then the tokens after the end are -1.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.exact.law import output_law
        >>> from spectheory.pairs.drafts import ConfidenceTree
        >>> print(output_law(NaiveSampling(), instances.two_token(2), ConfidenceTree(2)).block_efficiency)
        13/9
    """

    name: ClassVar[str] = "naive_sampling"
    source: ClassVar[str] = "specinfer2023, naive sampling"
    exchangeable: ClassVar[bool] = True
    draft_processes: ClassVar[Collection[str]] = ANY_PROCESS

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        is_token = paths >= 0
        tokens = xp.where(is_token, paths, xp.zeros_like(paths))
        # p(a_i | a_{1:i-1}), 0 after the end of a path, [..., K, L]
        on_tokens = zero_where(~is_token, take_token(target_rows[..., :-1, :], tokens))
        reach = prefix_products(on_tokens)
        shared = shared_prefixes(paths)
        first = is_first_with_prefix(paths)
        # Step 2 at every context: p(C), the mass of the distinct drafted tokens, [..., K, L]
        each = zero_where(~first[..., 1:], on_tokens)[..., None, :, :]
        drafted = xp.sum(zero_where(~shared[..., :-1], each + zeros_like(on_tokens)[..., None, :]), axis=-2)
        stops = xp.concat([reach[..., :-1] * (1 - drafted), reach[..., -1:]], axis=-1)

        def weights(path_index: Array, length: Array) -> Array:
            row = take_stop_row(target_rows, path_index, length)
            last = xp.minimum(length, xp.zeros_like(length) + paths.shape[-1] - 1)
            here = take_row(take_path(xp.moveaxis(shared[..., :-1], -1, -2), path_index), last)  # [..., K]
            next_tokens = take_row(xp.moveaxis(paths, -1, -2), last)
            vocabulary = xp.arange(row.shape[-1], device=paths.device)
            for number in range(paths.shape[-2]):
                drawn = here[..., number] & (length < paths.shape[-1])
                taken = drawn[..., None] & (vocabulary == next_tokens[..., number, None])
                row = zero_where(taken, row)
            return row

        return Outcome.from_weights(zero_where(~first, stops), weights)
