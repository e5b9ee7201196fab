"""vLLM's second model runner: token and block verification, two relaxations, and its drafting, in kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from spectheory.auditing.following.kernel_draws import gumbel_noise
from spectheory.auditing.subjects.adapters.answers import PLACEHOLDER
from spectheory.auditing.subjects.adapters.flat_batch import target_rows
from spectheory.auditing.subjects.library_code import NOISE, Code
from spectheory.auditing.subjects.reached_code import Function
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError

FUNCTION = Function(
    "rejection_sample",
    ("vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils",),
    frozenset(
        {
            "target_logits", "draft_logits", "draft_sampled", "cu_num_logits", "pos", "idx_mapping",
            "expanded_idx_mapping", "expanded_local_pos", "temperature", "seed", "num_speculative_steps",
        }
    ),
)  # fmt: skip
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
ROUND_STAND_INS = (
    "the runner: a seed per request; the draft token and the target row of a position have the same number",
)
STAND_INS = ("the runner: a seed per request, and positions that advance by the returned tokens",)
SEEDS = ("requests: 1, 2, .. by their slots; positions start at the seed of the generator",)


def rejection_sample(code: Code) -> Callable[..., Any]:
    """A sampler of the signature "batch".

    Every request has its own seed.  The generator's seed holds the position of its next token, so that a call
    continues where the previous call ended.  The hash behind the Gumbel numbers is replaced.
    """
    code.replace(("murmur3_uniform32", "_log1p_neg_stable"), gumbel_noise, NOISE)

    def sampler(rows: Sequence[Row], generator: torch.Generator) -> list[list[int]]:
        """As the runner calls it; the slots of the requests are in another order.

        The runner keeps draft rows per slot, so places without a draft have rows from before, never the
        target's.  It reads so many tokens as are counted, and the tensor has no other.
        """
        size, vocab = len(rows), rows[0].target_probs.shape[-1]
        lengths = [len(row.draft_tokens) + row.padding for row in rows]
        slots = torch.arange(size, 0, -1, dtype=torch.int32)
        first = generator.initial_seed()
        steps = max(1, *lengths)
        draft = torch.arange(1.0, vocab + 1).log().repeat(size + 1, steps, 1)
        temperature = torch.ones(size + 1)
        for row, slot in zip(rows, slots.tolist(), strict=True):
            draft[slot, : len(row.draft_tokens)] = row.draft_probs.log()
            temperature[slot] = 0.0 if row.is_greedy else 1.0
        counts = torch.tensor(lengths) + 1
        places = torch.cat([torch.arange(length + 1, dtype=torch.int32) for length in lengths])
        sampled, accepted = code.call(
            target_logits=torch.cat(list(map(target_rows, rows))).log(),
            draft_logits=draft,
            draft_sampled=torch.cat([_drafted(row) for row in rows]),
            cu_num_logits=torch.cat([torch.zeros(1, dtype=torch.int32), counts.cumsum(0, dtype=torch.int32)]),
            pos=first + places.long(),
            idx_mapping=slots,
            expanded_idx_mapping=slots.repeat_interleave(counts),
            expanded_local_pos=places,
            temperature=temperature,
            seed=1 + torch.arange(size + 1),
            num_speculative_steps=steps,
        )
        generator.manual_seed(first + int(accepted.max()))
        return list(map(_first, sampled, accepted.tolist(), lengths))

    return sampler


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
            (path, kept[slot].softmax(-1), _first(row, count, draft_length))
            for slot, path, row, count in zip(
                slots.tolist(), drafted, sampled, accepted.tolist(), strict=True
            )
        ]

    return play


def _first(tokens: torch.Tensor, count: int, length: int) -> list[int]:
    """So many tokens: at most one per drafted token and placeholder, and one more."""
    if not 0 <= count <= length + 1:
        raise UndefinedDrawError(f"it says that it returns {count} tokens for {length} drafted ones")
    return tokens[:count].tolist()


def _drafted(row: Row) -> torch.Tensor:
    """The token before the drafts, the drafts, placeholders."""
    tokens = [0, *row.draft_tokens.tolist(), *[PLACEHOLDER] * row.padding]
    return torch.tensor(tokens, dtype=torch.int32)
