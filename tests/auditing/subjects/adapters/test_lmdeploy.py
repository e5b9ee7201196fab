"""The adapter on modules of our own that have the shape of the released ones; ``make audits`` runs those."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audited import FLAT, released
from spectheory import certify, instances
from spectheory.auditing.rounds.batches import audit_batches
from spectheory.auditing.subjects.adapters import lmdeploy
from spectheory.auditing.subjects.shipped import Shipped
from spectheory.auditing.subjects.wheels import Release

IMPLEMENTATION = """
from types import SimpleNamespace
from lmdeploy.pytorch.backends.rejection_sampling import RejectionSamplingImpl

class NAME(RejectionSamplingImpl):
    def forward_greedy(self, target_token_ids, draft_token_ids):
        logits = torch.nn.functional.one_hot(target_token_ids, 2).float()
        greedy = torch.ones(len(logits))
        return self.verify(logits[:, :-1], draft_token_ids, target_token_ids[:, -1], greedy, None)

    def forward(self, target_logits, draft_token_ids, bonus_token_ids, *, is_greedy, draft_probs):
        greedy = torch.zeros(len(target_logits)) if is_greedy is None else is_greedy
        return self.verify(target_logits, draft_token_ids, bonus_token_ids, greedy, draft_probs)

    def verify(self, logits, drafted, bonus, greedy, draft):
        size, length, vocab = logits.shape
        found = rejection_sample(
            drafted.flatten(), [length] * size, length, (1 + torch.arange(size)) * length,
            torch.ones(size * length, vocab) if draft is None else draft.reshape(-1, vocab),
            logits.reshape(-1, vocab), bonus[:, None], SimpleNamespace(temperature=1 - greedy.float()),
        )
        return found, None, None
"""


@pytest.mark.parametrize(
    ("adapter", "modules", "name"),
    [
        (lmdeploy.portable, lmdeploy.DEFAULT, "DefaultRejectionSamplingImpl"),
        (lmdeploy.in_triton, lmdeploy.CUDA, "CudaRejectionSamplingImpl"),
    ],
)
def test_the_implementation_is_called_as_its_module_calls_it(
    adapter: Callable[..., Any], modules: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    """Sampled, all greedy, and mixed."""
    for module in modules[1:]:
        released(tmp_path, module, "class RejectionSamplingImpl:\n    pass\n")
    released(tmp_path, modules[0], FLAT + IMPLEMENTATION.replace("NAME", name))
    sampler = Shipped(adapter(Release("lmdeploy", "0", tmp_path)), "batch", mixes=("greedy",))
    assert certify(sampler, instances.two_token(2), with_optimum=False).total_variation < 1e-6
    assert audit_batches(sampler) == ("equal lengths", "greedy")
    assert sampler.journal.findings == set()
