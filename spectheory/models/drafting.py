"""Draft K paths with the draft model and score them with the target, for a verifier.

    prefilled = prefill(pair, prompts)                                        once
    batch = draft_and_score(prefilled, drafts, draft_length, generator)       per draw
    prefilled.accept(path_index, draft_length, tokens, counts)                to go on behind a draw

``prefill`` has both models read the prompts without their last token.  A draw has them read the last token
and the drafted ones behind it, over those of the draw before, so that one prefill serves any number of draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

import numpy as np
import torch
from torch import Tensor

from spectheory.foundation.documents import count_text
from spectheory.foundation.errors import InvalidInputError, InvalidOutcomeError
from spectheory.foundation.validation import check_draft_length
from spectheory.models.growing_texts import Texts
from spectheory.models.language_model import LanguageModelPair, encode_prompts
from spectheory.models.prompts import Prompt
from spectheory.models.reading import CachedReading, Reading, ReadingPerPath, RecomputedReading
from spectheory.models.restricting import Restriction, restrict_rows
from spectheory.models.sampling import (
    PLAIN_SAMPLING,
    LogitsCheck,
    SamplingOptions,
    refuse_logits,
    scaled_logits,
)
from spectheory.pairs.contexts import first_path_with_prefix
from spectheory.pairs.drafts import ConfidenceTree, DraftProcess, HubTree, PerPath
from spectheory.pairs.drafts.deterministic import RankedTree
from spectheory.pairs.drafts.without_replacement import DistinctTree
from spectheory.verification.outcome import sample_rows

ScoreProcessors = Callable[[Texts, Tensor, Tensor], Tensor]
"""(texts, drafted tokens [B, K, i], logits [B, K, V]) -> logits [B, K, V] of the next token."""
Lap = Callable[[str], None]
"""Called with the name of the part of an iteration that has just ended."""


def no_lap(part: str) -> None:
    """Nobody takes the time."""


@dataclass(frozen=True, eq=False)
class PrefilledPrompts:
    """Texts that both models have read up to their last token; a draw behind them leaves them as they are.

    Attributes:
        texts: the prompts, and what was accepted behind them.
        target, draft: the models on these texts.
    """

    pair: LanguageModelPair
    texts: Texts
    target: Reading
    draft: Reading

    @property
    def num_prompts(self) -> int:
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
    bitwise the same rows there, except draft rows of several draft models.

    Attributes:
        paths: [B, K, L] int64.
        target_rows: [B, K, L+1, N], row i is the target's after i drafted tokens.
        draft_rows: [B, K, L, N], row i is the one token i was drawn from.
        token_ids: [B, K, L], the drafted tokens in the models' vocabulary.
        failed: a truth value on the device, whether some logits had no finite maximum; None: none had.
    """

    paths: Tensor
    target_rows: Tensor
    draft_rows: Tensor
    token_ids: Tensor
    failed: Tensor | None = None


def prefill(pair: LanguageModelPair, prompts: Sequence[Prompt]) -> PrefilledPrompts:
    """Read prompts of any lengths, once for both models.

    To draw many independent sets of paths for one prompt in one batch, repeat it in ``prompts``.

    Args:
        prompts: B texts or lists of token ids.

    Raises:
        InvalidInputError: there are no prompts, one is empty, too long or has an unknown token.
    """
    return prefill_texts(pair, Texts.of(encode_prompts(pair, prompts, draft_length=0), pair.device))


def prefill_texts(pair: LanguageModelPair, texts: Texts) -> PrefilledPrompts:
    """Read texts that are on the models' device already."""
    readings: list[Reading] = [
        (CachedReading if cached else RecomputedReading)(model, texts)
        for cached, model in zip(pair.cached, (pair.target_model, *pair.drafts), strict=True)
    ]
    target, *drafts = readings
    draft = drafts[0] if len(drafts) == 1 else ReadingPerPath(drafts, pair.vocab_size)
    return PrefilledPrompts(pair, texts, target, draft)


@torch.no_grad()
def draft_and_score(
    prefilled: PrefilledPrompts,
    drafts: int | DraftProcess,
    draft_length: int,
    generator: torch.Generator,
    options: SamplingOptions = PLAIN_SAMPLING,
    restriction: Restriction | None = None,
    *,
    processors: ScoreProcessors | None = None,
    wait: bool = True,
    lap: Lap = no_lap,
) -> DraftedBatch:
    """K paths of L tokens per prompt from the draft, all scored by one call of the target.

    Args:
        prefilled: B prompts.
        drafts: K i.i.d. paths, or, of several draft models, a path from each of the first K; or a process.
        draft_length: L.
        generator: on the models' device, see ``LanguageModelPair.generator``.
        options: temperature, top-k and top-p of both models.
        restriction: condition both models on m tokens at every context; None for all tokens.
        processors: change the logits of both models, before ``options``.
        wait: look whether all logits were finite; otherwise the caller looks at ``failed``, which an
            accelerator need not have computed yet.
        lap: called with ``"draft"`` once the paths are drafted and with ``"target"`` once they are scored.

    Raises:
        ComputationError: a model returned logits without a finite maximum.
        InvalidInputError: an argument is out of range, the process is none of these draft models, or a
            restriction leaves a row no mass.
    """
    pair = prefilled.pair
    process = pair.draft_process(drafts)
    draft_length = check_draft_length("draft_length", draft_length)
    process.draws(draft_length)  # refuses a tree of another length
    pair.check_length(prefilled.texts.width, draft_length)
    if restriction is not None:
        restriction.check(pair.vocab_size)
    rows = _Rows(prefilled, options, restriction, processors)
    if isinstance(process, RankedTree | ConfidenceTree):
        process.check_size(rows.width, draft_length)
    if isinstance(process, ConfidenceTree):
        drafted = _confidence_tree(rows, process, draft_length)
    else:
        drafted = _draft(rows, process, draft_length, generator)
    lap("draft")
    paths, token_ids, draft_rows = drafted
    target_rows = _score(rows, paths, token_ids)
    lap("target")
    failed = rows.check.failed(target_rows)
    if wait:
        refuse_logits(bool(failed))
    return DraftedBatch(paths, target_rows, draft_rows, token_ids, None if wait else failed)


@dataclass(frozen=True, eq=False)
class _Rows:
    """From scores of either model to its rows: processors, then sampling options, on all tokens or on few.

    Attributes:
        check: whether all logits so far had a finite maximum.
    """

    prefilled: PrefilledPrompts
    options: SamplingOptions
    restriction: Restriction | None
    processors: ScoreProcessors | None
    check: LogitsCheck = field(default_factory=LogitsCheck)

    @property
    def width(self) -> int:
        """N, how many tokens a row has."""
        return self.prefilled.pair.vocab_size if self.allowed is None else len(self.allowed)

    @cached_property
    def allowed(self) -> Tensor | None:
        """The tokens that are left, [m]; None for all."""
        ids = None if self.restriction is None else self.restriction.token_ids
        return None if ids is None else torch.tensor(ids, device=self.prefilled.pair.device)

    def logits(self, scores: Tensor, token_ids: Tensor) -> Tensor:
        """What a model says behind the longest n prefixes of paths, as logits.

        Args:
            scores: [B, K, n, vocabulary of the model].
            token_ids: [B, K, d].

        Returns:
            [B, K, n, V].
        """
        logits = self.prefilled.pair.logits(scores)
        if self.processors is None:
            return logits
        levels = enumerate(logits.unbind(2), start=1 + token_ids.shape[2] - logits.shape[2])
        texts = self.prefilled.texts
        return torch.stack([self.processors(texts, token_ids[:, :, :i], level) for i, level in levels], dim=2)

    def of(self, logits: Tensor, side: str) -> Tensor:
        """Probabilities of all tokens, or of the allowed ones alone.  [..., V] -> [..., N]"""
        scaled = scaled_logits(logits, self.options, dtype=self.prefilled.pair.probs_dtype, check=self.check)
        if self.allowed is None:
            return torch.softmax(scaled, dim=-1)
        return restrict_rows(scaled, self.allowed, side)


Drafted = tuple[Tensor, Tensor, Tensor]
"""Paths, token ids and draft rows of a ``DraftedBatch``."""


def _draft(rows: _Rows, process: DraftProcess, draft_length: int, generator: torch.Generator) -> Drafted:
    """K paths drawn token by token, each from the row that is reported."""
    prefilled, draws, ranks = rows.prefilled, process.draws(draft_length), None
    B, device = prefilled.num_prompts, prefilled.pair.device
    paths = token_ids = torch.zeros((B, len(draws), 0), dtype=torch.int64, device=device)
    draft_rows = []
    if isinstance(process, RankedTree):
        ranks = torch.as_tensor(process.ranks(draft_length), device=device)
    for depth in range(draft_length):
        scores = prefilled.draft.follow(prefilled.texts, token_ids, first=depth)
        row = rows.of(rows.logits(scores, token_ids)[:, :, 0], "draft")
        if not isinstance(process, PerPath):
            row = _share(row, paths)  # before sampling: a token is drawn from the row that is reported
        if ranks is not None:
            numbers = row.topk(int(ranks.max()) + 1).indices.gather(
                -1, ranks[:, depth].clamp(min=0).expand(B, -1)[..., None]
            )[..., 0]
            row = _point_masses(row, numbers)
        else:
            numbers = _draw(row, process, draws[:, depth], paths, generator)
        draft_rows.append(row)
        paths = torch.cat([paths, numbers[..., None]], dim=-1)
        token_ids = paths if rows.allowed is None else rows.allowed[paths]
    if ranks is not None:
        paths = torch.where(ranks >= 0, paths, -1)
    return paths, token_ids, torch.stack(draft_rows, dim=2)


def _score(rows: _Rows, paths: Tensor, token_ids: Tensor) -> Tensor:
    """The target's rows at all L+1 positions of all paths, from one forward call.  [B, K, L+1, N]"""
    prefilled = rows.prefilled
    logits = rows.logits(prefilled.target.follow(prefilled.texts, token_ids, first=0), token_ids)
    if rows.allowed is None:
        return _share(rows.of(logits, "target"), paths)
    # One depth at a time, so that few full rows are alive.
    return _share(torch.stack([rows.of(level, "target") for level in logits.unbind(2)], dim=2), paths)


def _draw(
    rows: Tensor, process: DraftProcess, draws: np.ndarray, paths: Tensor, generator: torch.Generator
) -> Tensor:
    """Each path's own draw, or that of the earlier path which it repeats.  [B, K, N] -> [B, K]"""
    if draws.all() and not isinstance(process, DistinctTree):
        return sample_rows(rows, generator)
    own = np.maximum.accumulate(np.where(draws, np.arange(len(draws)), 0))
    if not isinstance(process, DistinctTree):
        return sample_rows(rows, generator)[:, own]
    below = prod(process.widths[paths.shape[2] :])  # leaves below a node at this depth
    drawn: list[Tensor] = []
    for path, source in enumerate(own.tolist()):
        if source < path:
            drawn.append(drawn[source])
            continue
        taken, row = [drawn[k] for k in range(path // below * below, path) if draws[k]], rows[:, path]
        if not taken:
            drawn.append(sample_rows(row, generator))
            continue
        token = _next_distinct(row, torch.stack(taken, 1), process, paths.shape[2], generator)
        if isinstance(process, HubTree):
            hub = rows[:, path].argmax(dim=-1)
            token = torch.where(taken[0] == hub, token, hub)
        drawn.append(token)
    return torch.stack(drawn, dim=1)


def _next_distinct(
    rows: Tensor, taken: Tensor, process: DistinctTree, depth: int, generator: torch.Generator
) -> Tensor:
    """A token that earlier draws at a node did not take; the rest is renormalised.  [B, N], [B, n] -> [B]"""
    try:
        return sample_rows(rows.scatter(1, taken, 0), generator)
    except InvalidOutcomeError:
        fewest = count_text(int((rows > 0).sum(dim=1).min()), "token")
        raise InvalidInputError(
            f"{process.text} draws {process.widths[depth]} distinct tokens at depth {depth}, where a draft "
            f"row has {fewest} with mass; use a smaller width, or leave more tokens with temperature, top_k "
            "(--top-k) and top_p (--top-p)"
        ) from None


def _point_masses(rows: Tensor, tokens: Tensor) -> Tensor:
    """Rows with all mass on one token; where the token is -1, without mass.  [..., N], [...] -> [..., N]"""
    mass = (tokens >= 0).to(rows.dtype)
    return torch.zeros_like(rows).scatter(-1, tokens.clamp(min=0)[..., None], mass[..., None])


def _confidence_tree(rows: _Rows, process: ConfidenceTree, draft_length: int) -> Drafted:
    """The paths to the likeliest nodes, [B, K, L], -1 behind their ends; the rows are point masses."""
    prefilled, pair = rows.prefilled, rows.prefilled.pair
    paths = likeliest_nodes(prefilled, process, draft_length, rows=rows)
    token_ids = paths.clamp(min=0)
    if rows.allowed is not None:
        places = (rows.allowed == token_ids[..., None]).to(torch.int64).argmax(dim=-1)
        paths = torch.where(paths < 0, paths, places)
    prefilled.draft.forget_drafts()
    like = torch.zeros((), dtype=pair.probs_dtype, device=pair.device)
    return paths, token_ids, _point_masses(like.expand(*paths.shape, rows.width), paths)


@torch.no_grad()
def likeliest_nodes(
    prefilled: PrefilledPrompts,
    process: ConfidenceTree,
    draft_length: int,
    options: SamplingOptions = PLAIN_SAMPLING,
    *,
    rows: _Rows | None = None,
) -> Tensor:
    """The nodes of a tree of the draft model by their confidence, as paths; no row of the target is needed.

    At every depth the likeliest nodes are expanded.  Sorting is stable and nodes stand in breadth-first
    order, so that of equally likely nodes a parent comes before its children.  So the first n' < n nodes are
    those of a smaller tree with the same beam.

    Args:
        prefilled, draft_length, options: as in ``draft_and_score``.
        rows: of a draw that has them; None: those of all tokens with the options.

    Returns:
        [B, n, L] token ids, -1 behind the end of a path.
    """
    pair, rows = prefilled.pair, rows or _Rows(prefilled, options, None, None)
    expanded = torch.zeros((prefilled.num_prompts, 1, 0), dtype=torch.int64, device=pair.device)
    log_probs = torch.zeros((prefilled.num_prompts, 1), dtype=pair.probs_dtype, device=pair.device)
    nodes, confidences = [], []
    for depth in range(draft_length):
        scores = prefilled.draft.follow(prefilled.texts, expanded, first=0)[:, :, -1:]
        row = rows.of(rows.logits(scores, expanded)[:, :, 0], "draft")
        probs, tokens = row.topk(min(process.width, row.shape[-1]))
        if rows.allowed is not None:
            tokens = rows.allowed[tokens]
        log_probs = (log_probs[..., None] + probs.log()).flatten(1)
        before = expanded[:, :, None].expand(-1, -1, tokens.shape[-1], -1)
        layer = torch.cat([before, tokens[..., None]], dim=-1).flatten(1, 2)
        nodes.append(torch.nn.functional.pad(layer, (0, draft_length - depth - 1), value=-1))
        confidences.append(log_probs)
        best = _likeliest(log_probs, process.width)
        expanded, log_probs = (
            layer.gather(1, best[..., None].expand(-1, -1, depth + 1)),
            log_probs.gather(1, best),
        )
    best = _likeliest(torch.cat(confidences, dim=1), process.num_nodes)
    return torch.cat(nodes, dim=1).gather(1, best[..., None].expand(-1, -1, draft_length))


def _likeliest(log_probs: Tensor, number: int) -> Tensor:
    """The places of the largest numbers, in order; of equal ones the first.  [B, n] -> [B, number]"""
    return log_probs.sort(dim=1, descending=True, stable=True).indices[:, :number]


def _share(values: Tensor, paths: Tensor) -> Tensor:
    """For each path and prefix the values of the first path with the same prefix.

    Batched kernels may give two batch rows with the same text different last bits; a verifier
    credits a shared prefix to its first path, so that all must see that path's rows.
    """
    if values.shape[1] == 1:
        return values
    holders = first_path_with_prefix(paths)
    if values.ndim == 3:
        holders = holders[..., -1]
    numbers = torch.arange(holders.numel(), device=holders.device).reshape(holders.shape)
    rows = numbers.gather(1, holders).flatten()
    return values.flatten(end_dim=-2).index_select(0, rows).reshape(values.shape)
