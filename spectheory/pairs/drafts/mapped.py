"""Drafts from a model with another vocabulary, mapped to tokens of the target (theory.md Statement 8.14)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from spectheory.foundation.errors import InvalidInputError
from spectheory.foundation.exact_numbers import plain_number
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts.kept import AdaptiveDrafts, DisclosedDrafts, HandedRowsOf, Paths
from spectheory.pairs.pair import ModelPair

TokenMap = Mapping[int, int | None] | Callable[[Context], Sequence[int]]
"""Draft token -> target token, or None for a token that is dropped; or drafted text -> target tokens."""


@dataclass(frozen=True, eq=False)
class MappedDrafts(AdaptiveDrafts):
    """Paths of a draft model over other tokens, mapped to tokens of the target.

    Attributes:
        drafter_pair: a pair over the draft's tokens.  Only its draft is used.
        token_map: draft token -> target token.  A token that maps to ``None`` ends the kept draft.  Or a
            function of the whole drafted path that returns target tokens, such as a re-tokenisation.
        rows: context of target tokens -> the row handed over there.  By default the rows that are right: the
            conditional laws of the mapped tokens given that they are kept (repair A).

    Example:
        >>> from spectheory import ModelPair, certify
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["1/2", "1/2"], 1)
        >>> three = ModelPair.context_free_pair(["1/4", "1/4", "1/2"], ["1/4", "1/4", "1/2"], 1)
        >>> merged = {0: 0, 1: 0, 2: 1}
        >>> print(certify("token", pair, MappedDrafts(three, merged)).total_variation)
        0
        >>> last_write = MappedDrafts(three, merged, {(): ["1/4", "1/2"]})
        >>> print(certify("token", pair, last_write).total_variation)
        1/6
    """

    drafter_pair: ModelPair
    token_map: TokenMap
    rows: HandedRowsOf | None = None
    name: ClassVar[str] = "mapped"

    def kept_law(self, pair: ModelPair) -> dict[Paths, Any]:
        law: dict[Paths, Any] = {}
        for drafted, prob in self._drafted(pair):
            key = (tuple(self._mapped(drafted)[: pair.draft_length]),)
            law[key] = law.get(key, 0) + prob
        return law

    def drafter(self, pair: ModelPair, path_index: int) -> ModelPair:
        if self.rows is not None:
            return super().drafter(pair, path_index)
        from spectheory.pairs.drafts.repairs import with_conditioned_rows

        return with_conditioned_rows(self, pair).drafter(pair, path_index)

    def with_own_history(
        self, rows_of: Callable[[Context], Sequence[Any]], pair: ModelPair
    ) -> DisclosedDrafts:
        """Return the drafts with rows that read the drafted text before its mapping (Statement 8.15)."""
        events = [
            (plain_number(prob), mapped, [rows_of(drafted[:depth]) for depth in range(len(mapped))])
            for drafted, prob in self._drafted(pair)
            for mapped in [tuple(self._mapped(drafted))]
        ]
        return DisclosedDrafts(events)

    def _drafted(self, pair: ModelPair) -> list[tuple[Context, Any]]:
        own = self.drafter_pair
        if own.is_exact != pair.is_exact:
            own = own.to_float()
        probs = own.numbers.draft_path_probs[own.draft_length]
        return [(own.context(own.draft_length, n), prob) for n, prob in enumerate(probs) if prob > 0]

    def _mapped(self, drafted: Context) -> list[int]:
        if callable(self.token_map):
            return list(self.token_map(drafted))
        tokens = []
        for token in drafted:
            if token not in self.token_map:
                raise InvalidInputError(f"the token map has no entry for the drafted token {token}")
            image = self.token_map[token]
            if image is None:
                break
            tokens.append(image)
        return tokens
