"""The form of vLLM's first runner and its relatives: flat batches with metadata."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from audits.forms.answers import PLACEHOLDER, without_padding
from spectheory.auditing.subjects.signatures import Row

BONUS = "the draw of the token after a fully accepted path: an exponential race in torch"
"""A stand-in of adapters that use ``bonus_tokens``."""
MIXES = ("no drafts", "ragged", "padded", "greedy")
"""The kinds of batches."""


def target_rows(row: Row) -> torch.Tensor:
    """The rows of a request with its placeholders, [L + padding + 1, V]: a wrong row shows, as all differ.

    The first placeholder has the row after all drafts, from which the token is drawn that replaces it.  The
    rows after a placeholder follow a text that nobody has written.  They are (n - p) / (n V - 1) for the row
    p after all drafts and n = 1, 2, ..: other tokens are the likeliest there.
    """
    last, size = row.target_probs[-1], row.target_probs.shape[-1]
    unread = [(number - last) / (number * size - 1) for number in range(1, row.padding + 1)]
    return torch.cat([row.target_probs, *(each[None] for each in unread)])


def bonus_tokens(rows: Sequence[Row]) -> torch.Tensor:
    """The token after each fully accepted path, [B]: the likeliest one, or drawn by an exponential race."""
    probs = torch.stack([target_rows(row)[-1] for row in rows])
    drawn = (probs / torch.empty_like(probs).exponential_()).argmax(dim=-1)
    greedy = torch.tensor([row.is_greedy for row in rows])
    return torch.where(greedy, probs.argmax(dim=-1), drawn)


PARAMETERS = frozenset(
    {
        "draft_token_ids", "num_draft_tokens", "max_spec_len", "cu_num_draft_tokens", "draft_probs",
        "target_logits", "target_logits_or_tuple", "target_probs", "bonus_token_ids", "sampling_metadata",
    }
)  # fmt: skip
"""The parameters of ``rejection_sample`` in all releases; the rows were probabilities once."""


def flat_batch(shipped: Callable[..., torch.Tensor], greedy_temperature: float = 0.0) -> Callable[..., Any]:
    """A sampler of the signature "batch" from a ``rejection_sample`` of vLLM's first runner.

    Args:
        shipped: takes those of ``PARAMETERS`` that it has.
        greedy_temperature: the temperature that marks greedy requests.
    """

    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        """Placeholders have no draft, so their draft rows have no mass."""
        drafted, target, draft = [], [], []
        for row in rows:
            drafted.append(torch.cat([row.draft_tokens, torch.full((row.padding,), PLACEHOLDER)]))
            target.append(target_rows(row)[:-1])
            draft.append(torch.cat([row.draft_probs, torch.zeros(row.padding, row.target_probs.shape[-1])]))
        counts = [len(tokens) for tokens in drafted]
        bonus = bonus_tokens(rows)
        if not any(counts):  # the runner then samples as without drafts, and calls no rejection sampler
            return [[token] for token in bonus.tolist()]
        greedy = torch.tensor([row.is_greedy for row in rows])
        logits = torch.cat(target).log()
        found = shipped(
            draft_token_ids=torch.cat(drafted).int(),
            num_draft_tokens=counts,
            max_spec_len=max(counts),
            cu_num_draft_tokens=torch.tensor(counts, dtype=torch.int32).cumsum(0, dtype=torch.int32),
            draft_probs=torch.cat(draft),
            target_logits=logits,
            target_logits_or_tuple=logits,
            target_probs=torch.cat(target),
            bonus_token_ids=bonus.int()[:, None],
            sampling_metadata=SimpleNamespace(
                all_greedy=bool(greedy.all()),
                all_random=not bool(greedy.any()),
                temperature=torch.where(greedy, greedy_temperature, 1.0),
                generators={},
            ),
        )
        return list(map(without_padding, found.tolist()))

    return sampler
