"""A verifier that sees only some of the drafted tokens, so that curves over K and L can share drafts."""

from __future__ import annotations

from typing import Any, ClassVar

from spectheory.foundation.arrays import Array, namespace, zeros_like
from spectheory.foundation.validation import check_count, check_num_drafts
from spectheory.pairs.drafts import DraftProcess, Iid
from spectheory.pairs.pair import ModelPair
from spectheory.verification.outcome import Outcome
from spectheory.verification.resolve import find_verifier
from spectheory.verification.verifier import Verifier


class OnFirst(Verifier):
    """A verifier that uses the first l of L tokens of the first k of K drafts.

    The first k of K i.i.d. drafts are k i.i.d. drafts.  So the law equals the wrapped verifier's law on k
    drafts of l tokens, and one set of drafts serves the estimates for all k and l.

    Args:
        verifier: a name, or a verifier.
        num_drafts: k.
        num_tokens: l; ``None`` for all L tokens.

    Example:
        >>> from spectheory import instances
        >>> from spectheory.exact.law import output_law
        >>> print(output_law(OnFirst("block", 1, 1), instances.two_token(2), 2).block_efficiency)
        5/3
    """

    draft_processes: ClassVar[frozenset[str]] = frozenset({"iid"})

    def __init__(self, verifier: str | Any, num_drafts: int, num_tokens: int | None = None) -> None:
        self.verifier = find_verifier(verifier)
        self.num_drafts = check_num_drafts(num_drafts)
        self.num_tokens = None if num_tokens is None else check_count("num_tokens", num_tokens)
        tokens = "" if num_tokens is None else f", {num_tokens} tokens"
        self.name = f"{self.verifier.name} on {num_drafts} drafts{tokens}"  # type: ignore[misc]
        self.source = self.verifier.source  # type: ignore[misc]
        self.exact = self.verifier.exact  # type: ignore[misc]

    @property
    def single_path(self) -> bool:  # type: ignore[override]
        return self.num_drafts == 1 or self.verifier.single_path

    @property
    def lossless(self) -> bool:  # type: ignore[override]
        return self.verifier.lossless

    def bind(self, process: DraftProcess, pair: ModelPair | None = None) -> OnFirst:
        super().bind(process, pair)
        return OnFirst(self.verifier.bind(Iid(self.num_drafts), pair), self.num_drafts, self.num_tokens)

    def outcome(self, paths: Array, target_rows: Array, draft_rows: Array) -> Outcome:
        xp = namespace(target_rows)
        k, l = self.num_drafts, self.num_tokens or paths.shape[-1]  # noqa: E741
        seen = self.verifier.outcome(
            paths[..., :k, :l], target_rows[..., :k, : l + 1, :], draft_rows[..., :k, :l, :]
        )
        stops = target_rows[..., 0]  # [..., K, L+1]
        longer = xp.concat([seen.stop_probs, zeros_like(stops[..., :k, l + 1 :])], axis=-1)
        stop_probs = xp.concat([longer, zeros_like(stops[..., k:, :])], axis=-2)

        def correction(path_index: Array, length: Array) -> Array:
            """Clip stops to the possible ones.  Rows at impossible stops may be anything."""
            last_path, last_length = (xp.zeros_like(path_index) + bound for bound in (k - 1, l))
            return seen.correction(xp.minimum(path_index, last_path), xp.minimum(length, last_length))

        return Outcome(stop_probs, correction)
