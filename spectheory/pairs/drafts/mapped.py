"""Drafts from a model with another vocabulary, mapped to tokens of the target (theory.md Statement 8.14)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from spectheory.foundation.errors import InvalidInputError
from spectheory.pairs.contexts import Context
from spectheory.pairs.drafts.kept import HandedRowsOf, KeptDrafts
from spectheory.pairs.drafts.process import whole_paths
from spectheory.pairs.drafts.repairs import with_conditioned_rows
from spectheory.pairs.pair import ModelPair

TokenMap = Mapping[int, int | None] | Callable[[Context], Sequence[int]]
"""Draft token -> target token, or None for a token that is dropped; or drafted text -> target tokens."""


def mapped_drafts(
    pair: ModelPair, drafter: ModelPair, token_map: TokenMap, rows: HandedRowsOf | None = None
) -> KeptDrafts:
    """Map the paths of a draft model over other tokens to tokens of the target.

    Args:
        pair: the models of the verifier.  Mapped texts are cut to its draft length.
        drafter: a pair over the draft's tokens.  Only its draft is used.
        token_map: draft token -> target token.  A token that maps to ``None`` ends the kept draft.  Or a
            function of the whole drafted path that returns target tokens, such as a re-tokenisation.
        rows: context of target tokens -> the row handed over there.  By default the rows that are right: the
            conditional laws of the mapped tokens given that they are kept (repair A).

    Raises:
        InvalidInputError: the pair is exact and the drafter is not, or the map lacks a drafted token.

    Example:
        >>> from spectheory import ModelPair, certify
        >>> pair = ModelPair.context_free_pair(["1/3", "2/3"], ["1/2", "1/2"], 1)
        >>> three = ModelPair.context_free_pair(["1/4", "1/4", "1/2"], ["1/4", "1/4", "1/2"], 1)
        >>> merged = {0: 0, 1: 0, 2: 1}
        >>> print(certify("token", pair, mapped_drafts(pair, three, merged)).total_variation)
        0
        >>> last_write = mapped_drafts(pair, three, merged, {(): ["1/4", "1/2"]})
        >>> print(certify("token", pair, last_write).total_variation)
        1/6
    """
    if pair.is_exact and not drafter.is_exact:
        raise InvalidInputError("the drafter is in float64 and the pair exact; give pair.to_float()")
    law = Counter[Context]()
    for path, prob, _ in whole_paths(drafter):
        law[_mapped(path, token_map)[: pair.draft_length]] += prob
    return with_conditioned_rows(KeptDrafts(law), pair) if rows is None else KeptDrafts(law, rows)


def _mapped(drafted: Context, token_map: TokenMap) -> Context:
    if callable(token_map):
        return tuple(token_map(drafted))
    try:
        images = map(token_map.__getitem__, drafted)
        return tuple(takewhile(lambda image: image is not None, images))  # type: ignore[arg-type]
    except KeyError as error:
        raise InvalidInputError(f"the token map has no entry for the drafted token {error}") from None
