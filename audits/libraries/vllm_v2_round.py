"""vLLM's second model runner: its drafting and its verification as one round."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from audits.libraries.vllm_v2 import SUBJECTS as OF_THE_RUNNER
from audits.libraries.vllm_v2 import first_tokens
from audits.loading.library_code import NOISE, Code
from audits.loading.reached_code import Function
from spectheory.auditing.following.kernel_draws import gumbel_noise
from spectheory.auditing.subjects.signatures import ROUND_BATCH

DRAFTER = Function(
    "gumbel_sample",
    ("vllm.v1.worker.gpu.sample.gumbel",),
    frozenset(
        {
            "logits", "expanded_idx_mapping", "temperature", "seed", "pos", "apply_temperature",
            "is_drafting", "output_processed_logits", "output_processed_logits_col", "logits_cache",
            "logits_cache_col",
        }
    ),
)  # fmt: skip
STAND_INS = (
    "the runner: a seed per request; the draft token and the target row of a position have the same number",
)


def drafting_round(code: Code, drafter: Code) -> Callable[..., Any]:
    """A batch of rounds: tokens are drafted with Gumbel numbers, one after the other, and verified.

    The draft logits that the drafter keeps for the verification are the reported ones.
    """
    for each in (code, drafter):
        each.replace(("murmur3_uniform32", "_log1p_neg_stable"), gumbel_noise, NOISE)

    def play(
        texts: Sequence[Sequence[int]], target: Any, draft: Any, draft_length: int, generator: Any
    ) -> Any:
        """As the runner calls both: requests in the slots 1, 2, .., each with len(text) as its position."""
        size = len(texts)
        slots = torch.arange(1, size + 1, dtype=torch.int32)
        temperature, seed = torch.ones(size + 1), torch.arange(1, size + 2)
        starts = torch.tensor([len(text) for text in texts])
        places = torch.arange(draft_length + 1, dtype=torch.int32)
        drafted: list[list[int]] = [[] for _ in texts]
        logits = [draft(text).log() for text in texts]
        kept = torch.full((size + 1, draft_length, len(logits[0])), -torch.inf)
        for step in range(draft_length):
            tokens = drafter.call(
                logits=torch.stack(logits),
                expanded_idx_mapping=slots,
                temperature=temperature,
                seed=seed,
                pos=starts + step,
                apply_temperature=True,
                is_drafting=True,
                **dict.fromkeys(("output_processed_logits", "logits_cache"), kept),
                **{f"{name}_col": places[step] for name in ("output_processed_logits", "logits_cache")},
            )
            for path, token in zip(drafted, tokens.tolist(), strict=True):
                path.append(token)
            logits = [draft([*text, *path]).log() for text, path in zip(texts, drafted, strict=True)]
        rows = [
            target([*text, *path[:place]]).log()
            for text, path in zip(texts, drafted, strict=True)
            for place in places.tolist()
        ]
        sampled, accepted = code.call(
            target_logits=torch.stack(rows),
            draft_logits=kept,
            draft_sampled=torch.tensor(
                [token for path in drafted for token in (0, *path)], dtype=torch.int32
            ),
            cu_num_logits=torch.arange(size + 1, dtype=torch.int32) * (draft_length + 1),
            pos=(starts[:, None] + places).flatten(),
            idx_mapping=slots,
            expanded_idx_mapping=slots.repeat_interleave(draft_length + 1),
            expanded_local_pos=places.repeat(size),
            temperature=temperature,
            seed=seed,
            num_speculative_steps=draft_length,
        )
        return [
            (path, kept[slot].softmax(-1), first_tokens(row, count, draft_length))
            for slot, path, row, count in zip(
                slots.tolist(), drafted, sampled, accepted.tolist(), strict=True
            )
        ]

    return play


SUBJECTS = {
    "vllm-v2-round": OF_THE_RUNNER["vllm-v2"]._replace(
        adapter=drafting_round,
        signature=ROUND_BATCH,
        drafter=DRAFTER,
        in_all=False,
        settings={"stand_ins": STAND_INS},
    )
}
