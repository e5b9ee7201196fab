"""Samplers of a flattened batch that break one convention of engines each, and the right one."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor


def rejection_sample(
    draft_token_ids: Tensor,
    num_draft_tokens: Sequence[int],
    draft_probs: Tensor,
    target_logits: Tensor,
    bonus_probs: Tensor,
    temperature: Tensor,
    generator: Any,
    generators: Mapping[int, Any],
    mistake: str = "",
) -> tuple[Tensor, Tensor]:
    """Verify all requests, and return tokens and log-probabilities; right without a mistake.

    Args:
        draft_token_ids, num_draft_tokens, draft_probs, target_logits, bonus_probs, temperature, generator,
            generators: as of all samplers of a flattened batch.
        mistake: "seeds", generators are used only if all requests have one; "last_tie", greedy requests get
            the last of equally likely tokens; "any_tie", they keep a draft that is among them; "logprobs" of
            the draft's row; "nan", rows that have no distribution are not refused.
    """
    probs = target_logits.softmax(-1)
    if mistake != "nan" and not probs.isfinite().all():
        raise ValueError("the logits of a token are NaN, or all masked")
    size, ends = len(num_draft_tokens), list(accumulate(num_draft_tokens))
    rows = torch.cat([probs, bonus_probs])  # the row after all drafts of request b is N + b
    rest = torch.cat([(probs - draft_probs).clamp(min=0), bonus_probs])
    rest = torch.where(rest.sum(-1, keepdim=True) > 0, rest, rows)
    coins = torch.rand(len(draft_token_ids), generator=generator)
    noise = torch.empty_like(rows).exponential_(generator=generator)
    for request, own in generators.items() if mistake != "seeds" or len(generators) == size else ():
        for place in range(ends[request] - num_draft_tokens[request], ends[request]):
            coins[place].uniform_(generator=own)
            noise[place].exponential_(generator=own)
        noise[ends[-1] + request].exponential_(generator=own)
    best, drawn = rows.argmax(-1), (rest / noise).argmax(-1)
    if mistake == "last_tie":
        best = rows.shape[-1] - 1 - rows.flip(-1).argmax(-1)
    told = torch.cat([draft_probs, bonus_probs]) if mistake == "logprobs" else rows
    tokens = torch.full((size, max(num_draft_tokens) + 1), -1)
    logprobs = torch.zeros(tokens.shape)
    for request, (end, length) in enumerate(zip(ends, num_draft_tokens, strict=True)):
        for column, place in enumerate([*range(end - length, end), ends[-1] + request]):
            is_bonus = place >= ends[-1]
            draft = -1 if is_bonus else int(draft_token_ids[place])
            if temperature[request] == 0:
                keeps = mistake == "any_tie" and draft >= 0 and rows[place, draft] == rows[place].max()
                token = draft if keeps else int(best[place])
                accepted = token == draft
            else:
                accepted = draft >= 0 and bool(coins[place] * draft_probs[place, draft] < probs[place, draft])
                token = draft if accepted else int(drawn[place])
            tokens[request, column] = token
            logprobs[request, column] = told[place, token].log()
            if not accepted:
                break
    return tokens, logprobs


MISTAKES = ("seeds", "last_tie", "any_tie", "logprobs", "nan")
CONVENTIONS: Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    mistake: (partial(rejection_sample, mistake=mistake), rejection_sample) for mistake in MISTAKES
}
"""Name -> (the wrong sampler, its mended partner)."""
