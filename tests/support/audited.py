"""Released code that tests run: ``make fetched`` brings it into the build folder, the repository has none."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

CACHE = Path(__file__).parents[2] / "build" / "audit"


def fetched(name: str) -> Path:
    """The folder of a library that ``make fetched`` brings, as sglang-0.5.23."""
    folder = CACHE / name
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is missing; run: make fetched")
    return folder


def released(root: Path, module: str, text: str) -> None:
    """Write a module of our own where a release has one of its own."""
    path = root / f"{module.replace('.', '/')}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


FLAT = """
import torch

def rejection_sample(draft_token_ids, num_draft_tokens, max_spec_len, cu_num_draft_tokens, draft_probs,
                     target_logits, bonus_token_ids, sampling_metadata, uniform=torch.rand):
    target = target_logits.softmax(-1)
    found = torch.full((len(num_draft_tokens), max_spec_len + 1), -1, dtype=torch.int32)
    for request, count in enumerate(num_draft_tokens):
        start = int(cu_num_draft_tokens[request]) - count
        greedy = bool(sampling_metadata.temperature[request] == 0)
        own = sampling_metadata.generators.get(request)
        place = 0
        for place in range(count):
            token = int(draft_token_ids[start + place])
            p, q = target[start + place], draft_probs[start + place]
            if greedy:
                found[request, place] = p.argmax()
                accepted = bool(p.argmax() == token)
            else:
                coin = uniform((), generator=own)
                accepted = token >= 0 and bool(coin * q[token] < p[token])
                row = (p - q).clamp(min=0)
                found[request, place] = token if accepted else int(torch.multinomial(row, 1, generator=own))
            if not accepted:
                break
        else:
            found[request, count] = bonus_token_ids[request, 0]
    return found
"""
"""Token verification of our own, called as vLLM calls it: batches laid out flat."""


GUMBEL = """
import triton
import triton.language as tl

@triton.jit
def uniform(seed, counter, lanes):
    return tl.rand(seed + 1, counter * 1024 + lanes)

@triton.jit
def log_complement(u):
    return tl.log(1.0 - u)
"""
"""A hash of our own, and log(1-u), for Gumbel numbers."""


PATHS = torch.tensor([[1, 0, 2], [2, 1, 0]])
TARGET = torch.tensor(
    [[[1, 2, 5], [3, 1, 4], [6, 1, 1], [2, 5, 1]], [[2, 2, 4], [5, 2, 1], [1, 4, 3], [4, 1, 3]]]
) / 8  # fmt: skip
DRAFT = torch.tensor([[[4, 3, 1], [1, 5, 2], [1, 1, 6]], [[3, 2, 3], [5, 1, 2], [1, 3, 4]]]) / 8
"""Two drafted paths of three tokens, with rows of which no two are equal."""


def recorded(answer: Any) -> tuple[dict[str, Any], Any]:
    """What a function of a library is called with, and the function, which gives one answer."""
    given: dict[str, Any] = {}

    def call(**values: Any) -> Any:
        copies = {name: value.clone() for name, value in values.items() if isinstance(value, torch.Tensor)}
        given.update(values | copies)
        return answer

    return given, SimpleNamespace(call=call)
