"""Samplers of a flattened batch, each with one mistake, and the right one."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

PLACEHOLDER = -1


def rejection_sample(
    draft_token_ids: Tensor,
    num_draft_tokens: Sequence[int],
    cu_num_draft_tokens: Tensor,
    draft_probs: Tensor,
    target_probs: Tensor,
    bonus_token_ids: Tensor,
    is_greedy: Tensor,
    generator: Any,
    mistake: str = "",
) -> Tensor:
    """Verify all requests; lossless without a mistake.

    Args:
        draft_token_ids, num_draft_tokens, cu_num_draft_tokens, draft_probs, target_probs, bonus_token_ids,
            is_greedy, generator: as of all samplers of a flattened batch.
        mistake: "coins", one row of coins for all requests; "offset", draft rows of the first request;
            "bonus", the bonus token after a rejection, too; "placeholder", a placeholder is accepted;
            "greedy", greedy requests accept by coins; "first", one recovered token for each request.
    """
    out = torch.full((len(num_draft_tokens), max(num_draft_tokens) + 1), PLACEHOLDER)
    count = len(draft_token_ids)
    coins = torch.rand(max(num_draft_tokens) if mistake == "coins" else count, generator=generator)
    rest = (target_probs - draft_probs).clamp(min=0)
    rest = torch.where(rest.sum(-1, keepdim=True) > 0, rest, target_probs)
    recovered = (rest / torch.empty_like(rest).exponential_(generator=generator)).argmax(-1)
    for request, length in enumerate(num_draft_tokens):
        start, accepted = int(cu_num_draft_tokens[request]) - length, True
        greedy = bool(is_greedy[request]) and mistake != "greedy"
        for place in range(length):
            here = start + place
            token = draft_token_ids[here]
            q = draft_probs[place if mistake == "offset" else here, token]
            if greedy:
                best = target_probs[here].argmax()
                accepted = bool(token == best)
                out[request, place] = best
            else:
                coin = coins[place if mistake == "coins" else here]
                is_real = token != PLACEHOLDER or mistake == "placeholder"
                accepted = bool(is_real and coin * q < target_probs[here, token])
                new = recovered[start if mistake == "first" else here]
                out[request, place] = token.clamp(min=0) if accepted else new
            if not accepted:
                if mistake == "bonus":
                    out[request, place + 1] = bonus_token_ids[request, 0]
                break
        if accepted:
            out[request, length] = bonus_token_ids[request, 0]
    return out


MISTAKES = ("coins", "offset", "bonus", "placeholder", "greedy", "first")
FLATTENED_SPECIMENS: Mapping[str, tuple[Callable[..., Tensor], Callable[..., Tensor]]] = {
    mistake: (partial(rejection_sample, mistake=mistake), rejection_sample) for mistake in MISTAKES
}
"""Name -> (the wrong sampler, its mended partner)."""
