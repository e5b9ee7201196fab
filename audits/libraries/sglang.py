"""SGLang: token and block verification of a chain, in one Triton kernel."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from audits.loading.library_code import Code
from audits.loading.reached_code import Function
from audits.subject import Library, Subject
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError

LIBRARY = Library("sglang", "sglang", "0.5.23")
OPS = "sglang.kernels.ops.speculative"
FUNCTION = Function(
    "chain_speculative_sampling_triton",
    (f"{OPS}.reject_sampling", "sglang.srt.speculative.reject_sampling"),
    frozenset(
        {
            "predicts", "accept_index", "accept_token_num", "candidates", "retrive_index",
            "retrive_next_token", "retrive_next_sibling", "uniform_samples",
            "uniform_samples_for_final_sampling", "target_probs", "draft_probs", "threshold_single",
            "threshold_acc", "deterministic",
        }
    ),
)  # fmt: skip
NONE = -1
"""Where no slot is accepted."""
STAND_INS = (
    "the coins, which the caller draws: torch.rand of float32",
    "greedy requests, to which the caller gives top_k = 1: rows with all mass on the likeliest token",
)


def chain_sampling(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch"."""

    def sampler(rows: Sequence[Row], generator: Any) -> list[list[int]]:
        """As the verification step of a chain calls it, with coins of float32, and top_k = 1 where greedy."""
        size, length = len(rows), len(rows[0].draft_tokens)
        slots = torch.arange(size * (length + 1)).reshape(size, length + 1)
        predicts = torch.full((size * (length + 1),), -1, dtype=torch.int32)
        accept_index = torch.full((size, length + 1), NONE, dtype=torch.int32)
        accepted = torch.full((size,), -1, dtype=torch.int32)
        roots = torch.zeros((size, 1), dtype=torch.long)
        none = torch.full_like(slots, -1)
        code.call(
            predicts=predicts,
            accept_index=accept_index,
            accept_token_num=accepted,
            candidates=torch.cat([roots, torch.stack([row.draft_tokens for row in rows])], dim=1),
            retrive_index=slots,
            retrive_next_token=none,
            retrive_next_sibling=none,
            uniform_samples=torch.rand((size, length + 1), dtype=torch.float32),
            uniform_samples_for_final_sampling=torch.rand((size,), dtype=torch.float32),
            target_probs=torch.stack(
                [_top_one(row.target_probs) if row.is_greedy else row.target_probs for row in rows]
            ),
            draft_probs=torch.stack([row.draft_probs for row in rows]),
            threshold_single=1.0,
            threshold_acc=1.0,
            deterministic=True,
        )
        return [
            _tokens_of_slots(predicts, *each)
            for each in zip(slots.tolist(), accept_index.tolist(), accepted.tolist(), strict=True)
        ]

    return sampler


def _top_one(probs: torch.Tensor) -> torch.Tensor:
    """All mass on the likeliest tokens."""
    return torch.nn.functional.one_hot(probs.argmax(dim=-1), probs.shape[-1]).float()


def _tokens_of_slots(predicts: torch.Tensor, slots: list[int], accepted: list[int], count: int) -> list[int]:
    """The tokens of a request: the root's slot and one per accepted draft have the token that follows."""
    rejected = len(slots) - 1 - count
    if not 0 <= count < len(slots) or accepted != slots[: count + 1] + [NONE] * rejected:
        raise UndefinedDrawError(
            f"it says that {count} drafted tokens are accepted, and names {accepted} of the slots {slots}"
        )
    return predicts[slots[: count + 1]].tolist()


TOKEN = Subject(
    LIBRARY,
    FUNCTION,
    chain_sampling,
    {"62caac17755082e2f89b1c81a743f55c81c31b7ff0485b7533c0267e72e9262c": LIBRARY.tested},
    "batch",
    mistake=("coin * q < p", "coin * q > p"),
    settings={"mixes": ("greedy",), "stand_ins": STAND_INS},
)
SUBJECTS = {
    "sglang": TOKEN,
    "sglang-block": TOKEN._replace(
        mistake=("if coin < accept_prob", "if coin > accept_prob"), options={"block_verification": True}
    ),
}
