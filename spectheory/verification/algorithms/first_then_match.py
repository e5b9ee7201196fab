"""Test the first drafted token, then match: for drafts whose rows are marginals, not conditionals."""

from typing import ClassVar

from spectheory.foundation.arrays import Array, namespace, ones_like, zero_where
from spectheory.verification.algorithms.one_path.token import Token
from spectheory.verification.outcome import Outcome


class FirstThenMatch(Token):
    """Token verification of the first drafted token, exact match of the others (theory.md Statement 8.22).

    In the notation of the package (p target, q draft), on one path X_{1:L}:

    1. X_1 is accepted with probability min(1, p(X_1)/q(X_1)); otherwise Y ~ max(p - q, 0), normalised
    2. at each later context Y ~ p; if Y is the drafted token, it is accepted
    3. the round ends with the first Y that was not drafted, or with Y ~ p after the whole path

    Step 2 is token verification with all draft mass on the drafted token.  Only the first draft row is read.
    So the output is lossless for drafts of any joint law whose first token follows this row, such as block
    drafters that hand over marginals.  It accepts at least as much as exact match (``naive_sampling``).

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
        is_drafted = xp.arange(draft_rows.shape[-1], device=paths.device) == paths[..., None]
        certain = zero_where(~is_drafted, ones_like(draft_rows))
        rows = xp.concat([draft_rows[..., :1, :], certain[..., 1:, :]], axis=-2)
        return super().outcome(paths, target_rows, rows)
