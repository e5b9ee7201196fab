"""Test the first drafted token, then match: for drafts whose rows are marginals, not conditionals."""

from typing import ClassVar

from spectheory.foundation.arrays import Array, at_most_one, namespace, take_token
from spectheory.verification.algorithms.one_path.first_path import OnePath, first_path_only, first_path_ratios
from spectheory.verification.correction_rows import CorrectionRows
from spectheory.verification.outcome import Outcome


class FirstThenMatch(OnePath):
    """Token verification of the first drafted token, exact match of the others (theory.md Statement 8.22).

    In the notation of the package (p target, q draft), on one path X_{1:L}:

    1. X_1 is accepted with probability min(1, p(X_1)/q(X_1)); otherwise Y ~ max(p - q, 0), normalised
    2. at each later context Y ~ p; if Y is the drafted token, it is accepted
    3. the round ends with the first Y that was not drafted, or with Y ~ p after the whole path

    Only the first draft row is read.  So the output is lossless for drafts of any joint law whose first token
    follows this row, such as block drafters that hand over marginals.  It accepts at least as much as exact
    match (``naive_sampling``).

    It is not in ``verifiers``: nobody has published it, and where the rows are conditionals, token
    verification accepts at least as much at every node, since min(p, q) >= p q.

    Example:
        >>> from spectheory import certify, instances
        >>> certificate = certify(FirstThenMatch(), instances.two_token(2), with_optimum=False)
        >>> print(certificate.verdict, certificate.block_efficiency)
        lossless 53/27
    """

    name: ClassVar[str] = "first_then_match"
    source: ClassVar[str] = "theory.md Statement 8.22"

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        ratio = first_path_ratios(paths, target_rows, draft_rows)[..., :1]
        first = paths[..., 0, :]
        matched = take_token(target_rows[..., 0, 1:-1, :], first[..., 1:])  # p(X_i | X_{1:i-1}), i > 1
        accept = xp.concat([at_most_one(ratio), matched], axis=-1)
        reach = [accept[..., 0] * 0 + 1]
        for i in range(paths.shape[-1]):
            reach.append(reach[-1] * accept[..., i])
        stops = [reach[i] - reach[i + 1] for i in range(paths.shape[-1])]
        stop_probs = xp.stack([*stops, reach[-1]], axis=-1)

        def weights(path_index: Array, length: Array) -> Array:
            rows = CorrectionRows(target_rows, draft_rows, path_index, length)
            last = paths.shape[-1] - 1
            here = xp.where(length > last, last, length)
            drafted = take_token(first[..., None, :], here[..., None])[..., 0]
            is_drafted = xp.arange(rows.target_row.shape[-1]) == drafted[..., None]
            matched_here = (length > 0) & (length <= last)
            unmatched = xp.where(is_drafted & matched_here[..., None], rows.target_row * 0, rows.target_row)
            return xp.where((length == 0)[..., None], rows.residual(), unmatched)

        return Outcome.from_weights(first_path_only(stop_probs, paths), weights)
