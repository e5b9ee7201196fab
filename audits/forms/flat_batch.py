"""The form of vLLM's first runner and its relatives: flat batches with metadata."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from spectheory.auditing.subjects.flattened_batch import (
    bonus_tokens,
    flat_tensors,
    generators_of,
    without_padding,
)
from spectheory.auditing.subjects.signatures import Row

BONUS = "the draw of the token after a fully accepted path: an exponential race in torch"
"""A stand-in of adapters that use ``bonus_tokens``."""
MIXES = ("no drafts", "ragged", "padded", "greedy", "seeds")
"""The kinds of batches."""


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
        greedy = torch.tensor([row.is_greedy for row in rows])
        generators = generators_of(rows)
        bonus, flat = bonus_tokens(rows, greedy, generators), flat_tensors(rows)
        if not flat["max_spec_len"]:  # the runner then samples as without drafts, and calls no sampler
            return [[token] for token in bonus.tolist()]
        found = shipped(
            **{name: flat[name] for name in flat if name in PARAMETERS},
            target_logits_or_tuple=flat["target_logits"],
            bonus_token_ids=bonus.int()[:, None],
            sampling_metadata=SimpleNamespace(
                all_greedy=bool(greedy.all()),
                all_random=not bool(greedy.any()),
                temperature=torch.where(greedy, greedy_temperature, 1.0),
                generators=generators,
            ),
        )
        return list(map(without_padding, found.tolist()))

    return sampler
