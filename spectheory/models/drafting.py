"""Draft K paths with the draft model and score them with the target, for a verifier.

    prefilled = prefill(pair, prompts)                                        once
    batch = draft_and_score(prefilled, drafts, draft_length, generator)       per draw
    prefilled.accept(path_index, draft_length, tokens, counts)                to append accepted tokens

``prefill`` runs both models on the prompts without their last token.  Each draw runs them on the last token
and the drafted tokens, and overwrites the cache of the previous draw.  One prefill therefore serves any
number of draws.
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
from spectheory.models.language_model import LanguageModelPair, draft_process_of_models, encode_prompts
from spectheory.models.prompts import Prompt
from spectheory.models.reading import CachedReading, Reading, RecomputedReading
from spectheory.models.restricting import Restriction, restrict_rows
from spectheory.models.sampling import (
    PLAIN_SAMPLING,
    LogitsCheck,
    SamplingOptions,
    refuse_logits,
    scaled_logits,
)
from spectheory.pairs.contexts import first_path_with_prefix
from spectheory.pairs.drafts import ConfidenceTree, DraftProcess, HubTree
from spectheory.pairs.drafts.deterministic import RankedTree
from spectheory.pairs.drafts.without_replacement import DistinctTree
from spectheory.verification.outcome import sample_rows

ScoreProcessors = Callable[[Texts, Tensor, Tensor], Tensor]
"""(texts, drafted tokens [B, K, i], logits [B, K, V]) -> logits [B, K, V] of the next token."""
Lap = Callable[[str], None]
"""A function called with the name of the part of an iteration that has just ended."""


def no_lap(part: str) -> None:
    """Do nothing.  This is the default if times are not measured."""


@dataclass(frozen=True, eq=False)
class PrefilledPrompts:
    """Texts that both models have read except for the last token.  A draw does not change them.

    Attributes:
        texts: the prompts, with the tokens accepted since.
        target, draft: readings of these texts by the models.
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
        """Append accepted tokens of the last draw to the texts.

        Args:
            path_index: [B], the path whose prefix was accepted.
            draft_length: L of that draw.
            tokens: [B, L+1], the accepted prefix of that path, then the correction token, then arbitrary
                entries.
            counts: [B], number of these tokens to append, at most L+1.
            width: as in ``Texts.append``.
        """
        for reading in (self.target, self.draft):
            reading.accept(self.texts, path_index, draft_length)
        self.texts.append(tokens, counts, width)

    def select(self, rows: Tensor) -> PrefilledPrompts:
        """Return the prompts with only the texts of these rows.

        The caches of both models are cut in place, so this object must not be used afterwards.
        """
        for reading in (self.target, self.draft):
            reading.select(rows)
        return PrefilledPrompts(self.pair, self.texts.select(rows), self.target, self.draft)


@dataclass(frozen=True, eq=False)
class DraftedBatch:
    """Drafted paths with the rows of both models: the arguments of a verifier's ``outcome``.

    N is the vocabulary size V.  Under a restriction to m tokens N is m, and tokens are numbered 0..m-1 in
    ``paths`` and in the rows.  Paths of one prompt have bitwise equal rows along a shared prefix.

    Attributes:
        paths: [B, K, L] int64.
        target_rows: [B, K, L+1, N]; row i is the target's law after i drafted tokens.
        draft_rows: [B, K, L, N]; token i was drawn from row i.
        token_ids: [B, K, L], the drafted tokens in the models' vocabulary.
        failed: truth value on the device, whether some logits had no finite maximum.  None if this was
            checked.
    """

    paths: Tensor
    target_rows: Tensor
    draft_rows: Tensor
    token_ids: Tensor
    failed: Tensor | None = None


def prefill(pair: LanguageModelPair, prompts: Sequence[Prompt]) -> PrefilledPrompts:
    """Run both models on prompts of any lengths, except for the last token of each.

    To draw many independent sets of paths for one prompt in one batch, repeat it in ``prompts``.

    Args:
        prompts: B texts or lists of token ids.

    Raises:
        InvalidInputError: there are no prompts, one is empty, too long or has an unknown token.
    """
    return prefill_texts(pair, Texts.of(encode_prompts(pair, prompts, draft_length=0), pair.device))


def prefill_texts(pair: LanguageModelPair, texts: Texts) -> PrefilledPrompts:
    """Do the same as ``prefill`` for texts that are already on the device of the models."""
    readings: list[Reading] = [
        (CachedReading if cached else RecomputedReading)(model, texts)
        for cached, model in zip(pair.cached, pair.readers, strict=True)
    ]
    return PrefilledPrompts(pair, texts, *readings)


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
    """Draft K paths of L tokens per prompt and score all of them with one call of the target.

    Args:
        prefilled: B prompts.
        drafts: K, for i.i.d. paths, or a draft process.
        draft_length: L.
        generator: on the models' device, see ``LanguageModelPair.generator``.
        options: temperature, top-k and top-p of both models.
        restriction: condition both models on m tokens at every context; None for all tokens.
        processors: change the logits of both models, before ``options``.
        wait: check here that all logits had a finite maximum.  If False, the caller checks ``failed``, which
            an accelerator may still be computing.
        lap: called with ``"draft"`` after drafting and with ``"target"`` after scoring.

    Raises:
        ComputationError: a model returned logits without a finite maximum.
        InvalidInputError: an argument is out of range, language models cannot run the process, or a row
            has no mass on the tokens of the restriction.
    """
    pair = prefilled.pair
    process = draft_process_of_models(drafts)
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
    """Convert scores of either model to rows: processors, then sampling options, then the restriction.

    Attributes:
        check: records whether all logits so far had a finite maximum.
    """

    prefilled: PrefilledPrompts
    options: SamplingOptions
    restriction: Restriction | None
    processors: ScoreProcessors | None
    check: LogitsCheck = field(default_factory=LogitsCheck)

    @property
    def width(self) -> int:
        """N, the number of tokens in a row."""
        return self.prefilled.pair.vocab_size if self.allowed is None else len(self.allowed)

    @cached_property
    def allowed(self) -> Tensor | None:
        """Ids of the tokens of the restriction, [m]; None without one."""
        ids = None if self.restriction is None else self.restriction.token_ids
        return None if ids is None else torch.tensor(ids, device=self.prefilled.pair.device)

    def logits(self, scores: Tensor, token_ids: Tensor) -> Tensor:
        """Convert scores after the n longest prefixes of the paths to logits, with the processors applied.

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
        """Convert logits to probabilities of the tokens of a row.  [..., V] -> [..., N]"""
        scaled = scaled_logits(logits, self.options, dtype=self.prefilled.pair.probs_dtype, check=self.check)
        if self.allowed is None:
            return torch.softmax(scaled, dim=-1)
        return restrict_rows(scaled, self.allowed, side)


Drafted = tuple[Tensor, Tensor, Tensor]
"""Paths, token ids and draft rows of a ``DraftedBatch``."""


def _draft(rows: _Rows, process: DraftProcess, draft_length: int, generator: torch.Generator) -> Drafted:
    """Draw K paths token by token.  Each token is drawn from the row that is returned for it."""
    prefilled, draws, ranks = rows.prefilled, process.draws(draft_length), None
    B, device = prefilled.num_prompts, prefilled.pair.device
    paths = token_ids = torch.zeros((B, len(draws), 0), dtype=torch.int64, device=device)
    draft_rows = []
    if isinstance(process, RankedTree):
        ranks = torch.as_tensor(process.ranks(draft_length), device=device)
    for depth in range(draft_length):
        scores = prefilled.draft.follow(prefilled.texts, token_ids, first=depth)
        row = rows.of(rows.logits(scores, token_ids)[:, :, 0], "draft")
        row = _share(row, paths)  # before sampling, so that tokens are drawn from the returned rows
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
    """Compute the target's rows at all L+1 positions of all paths in one forward call.  [B, K, L+1, N]"""
    prefilled = rows.prefilled
    logits = rows.logits(prefilled.target.follow(prefilled.texts, token_ids, first=0), token_ids)
    if rows.allowed is None:
        return _share(rows.of(logits, "target"), paths)
    # One depth at a time, so that few rows over the whole vocabulary are in memory.
    return _share(torch.stack([rows.of(level, "target") for level in logits.unbind(2)], dim=2), paths)


def _draw(
    rows: Tensor, process: DraftProcess, draws: np.ndarray, paths: Tensor, generator: torch.Generator
) -> Tensor:
    """Draw a token for each path, or copy it from the path that this one repeats.  [B, K, N] -> [B, K]"""
    if draws.all() and not isinstance(process, DistinctTree):
        return sample_rows(rows, generator)
    own = np.maximum.accumulate(np.where(draws, np.arange(len(draws)), 0))
    if not isinstance(process, DistinctTree):
        return sample_rows(rows, generator)[:, own]
    below = prod(process.widths[paths.shape[2] :])  # number of leaves below a node of this depth
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
    """Draw from the renormalised row without the tokens already ``taken``.  [B, N], [B, n] -> [B]"""
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
    """Build rows with all mass on the given token, or zeros for the token -1.  [..., N], [...] -> [..., N]"""
    mass = (tokens >= 0).to(rows.dtype)
    return torch.zeros_like(rows).scatter(-1, tokens.clamp(min=0)[..., None], mass[..., None])


def _confidence_tree(rows: _Rows, process: ConfidenceTree, draft_length: int) -> Drafted:
    """Paths to the most likely nodes, [B, K, L], padded with -1.  Their draft rows are point masses."""
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
    """Find the n nodes of highest draft probability, as paths.  The target is not called.

    At every depth the most likely nodes are expanded.  Nodes are listed in breadth-first order and sorting is
    stable, so that a parent precedes an equally likely child.  The first n' < n nodes are therefore the nodes
    of a smaller tree with the same beam width.

    Args:
        prefilled, draft_length, options: as in ``draft_and_score``.
        rows: converts scores to rows.  None for rows over all tokens with ``options``.

    Returns:
        [B, n, L] token ids, in descending order of probability, padded with -1.
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
    """List the largest entries, in descending order; ties by lower index.  [B, n] -> indices [B, number]"""
    return log_probs.sort(dim=1, descending=True, stable=True).indices[:, :number]


def _share(values: Tensor, paths: Tensor) -> Tensor:
    """Replace the values at each prefix of a path by the values of the first path with the same prefix.

    Batched kernels may compute different last bits for two batch rows with the same text.  A verifier assigns
    a shared prefix to its first path, so all paths must have the rows of that path.
    """
    if values.shape[1] == 1:
        return values
    holders = first_path_with_prefix(paths)
    if values.ndim == 3:
        holders = holders[..., -1]
    numbers = torch.arange(holders.numel(), device=holders.device).reshape(holders.shape)
    rows = numbers.gather(1, holders).flatten()
    return values.flatten(end_dim=-2).index_select(0, rows).reshape(values.shape)
