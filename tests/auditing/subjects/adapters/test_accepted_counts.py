"""Samplers that count accepted tokens: functions with signatures of the libraries, right and wrong ones."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spectheory import audit, instances
from spectheory.auditing.subjects.adapters import accepted_counts
from spectheory.auditing.subjects.shipped import Shipped

PAIR = {"thirds": instances.two_token(2)}


def verified(drafts: Any, target: Any, draft: Any, coins: Any, power: int) -> tuple[Any, Any]:
    """Token verification of every request; with another power than 1 the residual is wrong."""
    counts, tokens = [], []
    for path, rows, drawn_from, thrown in zip(drafts.tolist(), target, draft, coins, strict=True):
        count, row = len(path), rows[-1]
        for place, token in enumerate(path):
            if thrown[place] >= rows[place, token] / drawn_from[place, token]:
                count = place
                row = (rows[place] - drawn_from[place]).clamp(min=0) ** power + (power - 1) * 0.5
                break
        counts.append(count)
        tokens.append(torch.multinomial(row, 1))
    return torch.tensor(counts), torch.cat(tokens)


def functions(power: int) -> dict[str, Any]:
    """By library, what takes its arguments."""

    def drawn(drafts: Any, target: Any, draft: Any, generator: Any = None) -> tuple[Any, Any]:
        return verified(drafts, target, draft, torch.rand(drafts.shape, generator=generator), power)

    def deepspec(target_model: Any, proposal: Any, start: int, **others: Any) -> Any:
        count = proposal.draft_token_count
        assert others["position_ids"].tolist() == [list(range(start, start + count + 1))]
        assert (others["max_proposal_tokens"], others["temperature"]) == (count, 1)
        target, drafts = target_model().logits.softmax(-1), proposal.verify_input_ids[:, start + 1 :]
        count, token = drawn(drafts, target, proposal.draft_probs)
        return SimpleNamespace(accepted_draft_tokens=int(count), next_token=int(token))

    def economize(_: Any) -> Any:
        def verify_tree(logits: Any, tree: Any, selector: Any) -> Any:
            target = selector.distributions(logits)
            count, token = drawn(tree.tokens, target, tree.probs, selector.generator)
            return (list(range(int(count))),), (int(token),)

        return SimpleNamespace(verify_tree=verify_tree)

    return {
        "deepspec": deepspec,
        "dflash": lambda draft_tokens, target_probs, draft_probs: drawn(
            draft_tokens, target_probs, draft_probs
        ),
        "economize": economize,
        "flashspec": lambda draft_token_ids, draft_logprobs, target_logprobs, generator: torch.stack(
            drawn(draft_token_ids, target_logprobs.exp(), draft_logprobs.exp(), generator), dim=1
        ),
        "uno": lambda candidates, target_probs, draft_probs, accept_uniforms, **_: verified(
            candidates[:, 1:], target_probs, draft_probs, accept_uniforms, power
        ),
    }


@pytest.mark.parametrize("name", list(functions(1)))
def test_one_path(name: str) -> None:
    signature = "batch" if name in ("flashspec", "uno") else "sampler"
    for power, verdicts in ((1, {"exactly lossless", "lossless up to arithmetic"}), (2, {"defect"})):
        function = functions(power)[name]
        sampler = getattr(accepted_counts, name)(SimpleNamespace(call=function, function=function))
        found = audit(Shipped(sampler, signature, num_drafts=(1,)), PAIR)
        assert found.verdict in verdicts, found.headline()
