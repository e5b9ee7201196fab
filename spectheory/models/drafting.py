"""Draft K paths with the draft model, score them with the target: what a verifier is handed.

    prefilled = prefill(pair, prompts)                                        once
    batch = draft_and_score(prefilled, num_drafts, draft_length, generator)   per draw
    prefilled.accept(path_index, draft_length, tokens, counts)                to go on behind a draw

``prefill`` has both models read the prompts without their last token.  A draw has them read the last token
and the drafted ones behind it, over those of the draw before, so that one prefill serves any number of draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from spectheory.models.language_model import LanguageModelPair
from spectheory.models.prompts import Prompt, encode_prompts
from spectheory.models.reading import CachedReading, Reading, RecomputedReading
from spectheory.models.restriction import Restriction, restrict_rows
from spectheory.models.sampling import PLAIN_SAMPLING, SamplingOptions, most_likely, scaled_logits
from spectheory.models.texts import Texts
from spectheory.outcome import sample_rows
from spectheory.validate import check_count, check_num_drafts


@dataclass(frozen=True, eq=False)
class PrefilledPrompts:
    """Texts that both models have read up to their last token; a draw behind them leaves them as they are.

    Attributes:
        pair: the language models.
        texts: the prompts, and what was accepted behind them.
        target, draft: the models on these texts.
    """

    pair: LanguageModelPair
    texts: Texts
    target: Reading
    draft: Reading

    @property
    def num_prompts(self) -> int:
        """B, the number of texts."""
        return self.texts.num_texts

    def accept(
        self,
        path_index: Tensor,
        draft_length: int,
        tokens: Tensor,
        counts: Tensor,
        width: int | None = None,
    ) -> None:
        """Lengthen the texts along a path of the last draw.

        Args:
            path_index: [B], the path of which a prefix was accepted.
            draft_length: L of that draw.
            tokens: [B, L+1], the accepted prefix of that path, the token behind it, and anything.
            counts: [B], how many of these tokens are appended, up to L+1.
            width: as in ``Texts.append``.
        """
        for reading in (self.target, self.draft):
            reading.accept(self.texts, path_index, draft_length)
        self.texts.append(tokens, counts, width)

    def select(self, rows: Tensor) -> PrefilledPrompts:
        """These texts alone; this object is used up."""
        for reading in (self.target, self.draft):
            reading.select(rows)
        return PrefilledPrompts(self.pair, self.texts.select(rows), self.target, self.draft)


@dataclass(frozen=True, eq=False)
class DraftedBatch:
    """Drafted paths and both models' rows on them: the arguments of a verifier's ``outcome``.

    N is the vocabulary size V or, under a restriction, its number of tokens m; tokens are then
    numbered 0..m-1 in ``paths`` and in the rows.  Paths of one prompt that share a prefix carry
    bitwise the same rows there.

    Attributes:
        paths: [B, K, L] int64.
        target_rows: [B, K, L+1, N], row i is the target's after i drafted tokens.
        draft_rows: [B, K, L, N], row i is the one token i was drawn from.
        token_ids: [B, K, L], the drafted tokens in the models' vocabulary.
        candidates: [B, K, L+1, m], the token id each number stands for; None without restriction.
    """

    paths: Tensor
    target_rows: Tensor
    draft_rows: Tensor
    token_ids: Tensor
    candidates: Tensor | None = None

    def to_token_ids(self, path_index: Tensor, depth: Tensor, numbers: Tensor) -> Tensor:
        """Token ids of correction tokens, one per prompt: numbers [B] drawn at (path, depth)."""
        if self.candidates is None:
            return numbers
        prompt = torch.arange(self.paths.shape[0], device=self.paths.device)
        return self.candidates[prompt, path_index, depth, numbers]


def prefill(pair: LanguageModelPair, prompts: Sequence[Prompt]) -> PrefilledPrompts:
    """Read prompts of any lengths, once for both models.

    To draw many independent sets of paths for one prompt in one batch, repeat it in ``prompts``.

    Args:
        pair: the language models.
        prompts: B texts or lists of token ids.

    Raises:
        InvalidInputError: there are no prompts, one is empty, too long or has an unknown token.
    """
    encoded = encode_prompts(pair, prompts, draft_length=0)
    texts = Texts.of(encoded, pair.device)
    target, draft = (
        (CachedReading if cached else RecomputedReading).of(model, texts)
        for cached, model in zip(pair.cached, (pair.target_model, pair.draft_model), strict=True)
    )
    return PrefilledPrompts(pair, texts, target, draft)


@torch.no_grad()
def draft_and_score(
    prefilled: PrefilledPrompts,
    num_drafts: int,
    draft_length: int,
    generator: torch.Generator,
    options: SamplingOptions = PLAIN_SAMPLING,
    restriction: Restriction | None = None,
) -> DraftedBatch:
    """K i.i.d. paths of L tokens per prompt from the draft, all scored by one call of the target.

    Args:
        prefilled: B prompts.
        num_drafts: K.
        draft_length: L.
        generator: on the models' device, see ``LanguageModelPair.generator``.
        options: temperature, top-k and top-p of both models.
        restriction: condition both models on m tokens at every context; None for all tokens.

    Raises:
        InvalidInputError: an argument is out of range, or a restriction leaves a row no mass.
    """
    pair = prefilled.pair
    num_drafts = check_num_drafts(num_drafts)
    draft_length = check_count("draft_length", draft_length)
    pair.check_length(prefilled.texts.width, draft_length)
    if restriction is not None:
        restriction.check(pair.vocab_size, prefilled.num_prompts)
    paths, token_ids, draft_rows, candidates = _draft(
        prefilled, num_drafts, draft_length, generator, options, restriction
    )
    target_rows = _score(prefilled, paths, token_ids, candidates, options)
    return DraftedBatch(paths, target_rows, draft_rows, token_ids, candidates)


def most_likely_at_prompts(prefilled: PrefilledPrompts, num_tokens: int) -> Restriction:
    """The fixed restriction of each prompt: the m most likely tokens of the target after it."""
    Restriction.per_context(num_tokens).check(prefilled.pair.vocab_size, prefilled.num_prompts)
    paths = prefilled.texts.token_ids.new_zeros((prefilled.num_prompts, 1, 0))
    logits = prefilled.pair.logits(prefilled.target.follow(prefilled.texts, paths, first=0))
    return Restriction.fixed(*most_likely(logits[:, 0, 0], num_tokens).tolist())


def _draft(
    prefilled: PrefilledPrompts,
    num_drafts: int,
    draft_length: int,
    generator: torch.Generator,
    options: SamplingOptions,
    restriction: Restriction | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """(paths, token_ids, draft_rows, candidates) of a ``DraftedBatch``."""
    pair, B, K = prefilled.pair, prefilled.num_prompts, num_drafts
    paths = token_ids = torch.zeros((B, K, 0), dtype=torch.int64, device=pair.device)
    draft_rows, candidates = [], []
    # Per context the draft also names the tokens at depth L, where it does not draft.
    extra = 1 if restriction is not None and restriction.is_per_context else 0
    for depth in range(draft_length + extra):
        logits = pair.logits(prefilled.draft.follow(prefilled.texts, token_ids, first=depth))[:, :, 0]
        allowed = None
        if restriction is not None:
            allowed = _share(restriction.candidates(logits), paths)
            candidates.append(allowed)
        if depth == draft_length:
            break
        # Shared before sampling: a token is drawn from the row that is reported.
        rows = _share(_rows(pair, logits, allowed, options, "draft"), paths)
        numbers = sample_rows(rows, generator)
        chosen = numbers if allowed is None else allowed.gather(-1, numbers[..., None])[..., 0]
        draft_rows.append(rows)
        paths = torch.cat([paths, numbers[..., None]], dim=-1)
        token_ids = torch.cat([token_ids, chosen[..., None]], dim=-1)
    if restriction is None:
        return paths, token_ids, torch.stack(draft_rows, dim=2), None
    if not extra:
        candidates.append(candidates[-1])  # a fixed set is the same at depth L
    return paths, token_ids, torch.stack(draft_rows, dim=2), torch.stack(candidates, dim=2)


def _score(
    prefilled: PrefilledPrompts,
    paths: Tensor,
    token_ids: Tensor,
    candidates: Tensor | None,
    options: SamplingOptions,
) -> Tensor:
    """The target's rows at all L+1 positions of all paths, from one forward call.  [B, K, L+1, N]"""
    pair = prefilled.pair
    logits = pair.logits(prefilled.target.follow(prefilled.texts, token_ids, first=0))
    levels = []
    for depth in range(logits.shape[2]):  # one depth at a time: under a restriction few full rows are alive
        allowed = None if candidates is None else candidates[:, :, depth]
        rows = _rows(pair, logits[:, :, depth], allowed, options, "target")
        levels.append(_share(rows, paths[:, :, :depth]))
    return torch.stack(levels, dim=2)


def _rows(
    pair: LanguageModelPair, logits: Tensor, allowed: Tensor | None, options: SamplingOptions, side: str
) -> Tensor:
    """Probabilities of all tokens, or of the allowed ones alone.  [B, K, V] -> [B, K, N]"""
    scaled = scaled_logits(logits, options, dtype=pair.probs_dtype)
    return torch.softmax(scaled, dim=-1) if allowed is None else restrict_rows(scaled, allowed, side)


def _share(values: Tensor, prefixes: Tensor) -> Tensor:
    """For each path the values of the first path with the same prefix.  [B, K, N], [B, K, i]

    Batched kernels may give two batch rows with the same text different last bits; a verifier
    credits a shared prefix to its first path, so that all must see that path's rows.
    """
    same = (prefixes[:, :, None] == prefixes[:, None, :]).all(dim=-1)  # [B, K, K]
    first = same.to(torch.uint8).argmax(dim=-1)
    return values.take_along_dim(first[..., None], dim=1)
