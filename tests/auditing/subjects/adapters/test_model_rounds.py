"""Rounds of libraries that call both models: caches of the stand-ins, and a loop that reads a wrong row."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from spectheory import audit, instances
from spectheory.auditing.subjects.adapters import model_rounds
from spectheory.auditing.subjects.adapters.model_rounds import CachedModel

PAIR = {"dyadic": instances.sticky_chain(1)}


def test_a_model_reads_its_cache() -> None:
    model = CachedModel()
    model.row = lambda text: torch.tensor([1.0 + len(text), sum(text)])
    assert model(torch.tensor([[0, 1, 1]])).exp().tolist() == [[[1, 0], [2, 1], [3, 2]]]
    assert model(torch.tensor([[1]]), torch.tensor([4])).exp().tolist() == [[[5, 3]]]  # position 3 is empty
    assert model.asked == [1]


def speculative_decode(shift: int) -> Any:
    """One token is drafted; with a shift the target reads the token before."""

    def decode(model: Any, draft_model: Any, cur_token: Any, input_pos: int, speculate_k: int) -> Any:
        place = torch.tensor([input_pos])
        draft = draft_model(cur_token[None], place)[0, -1].softmax(-1)
        token = torch.multinomial(draft, 1)
        target = model(torch.cat([cur_token, token])[None], place + torch.arange(2))[0].softmax(-1)
        row = target[0]
        if torch.rand(()) < row[token] / draft[token]:
            return torch.cat([token, torch.multinomial(target[1 - shift], 1)])
        return torch.multinomial((row - draft).clamp(min=0), 1)

    return decode


@pytest.mark.parametrize(("shift", "is_lossless"), [(0, True), (1, False)])
def test_a_round_of_gpt_fast(shift: int, is_lossless: bool) -> None:
    code: Any = SimpleNamespace(call=speculative_decode(shift))
    found = audit(model_rounds.gpt_fast(code), PAIR, signature="round")
    assert ("lossless" in found.verdict) == is_lossless, found.headline()
