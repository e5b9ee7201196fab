"""vLLM's second model runner: token and block verification, two relaxations, and its drafting, in kernels."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from audits.forms.flat_batch import MIXES
from audits.forms.stated import AT_RATES, FLY, FLY_LAW, SYNTHETIC
from audits.libraries.vllm import LIBRARY
from audits.loading.library_code import NOISE, Code
from audits.loading.reached_code import Function
from audits.subject import Subject
from spectheory.auditing.following.kernel_draws import gumbel_noise
from spectheory.auditing.subjects.flattened_batch import PLACEHOLDER, target_rows
from spectheory.auditing.subjects.signatures import Row
from spectheory.auditing.tape.races import UndefinedDrawError
from spectheory.auditing.verdicts.audit_certificate import RELAXATION
from spectheory.foundation.results import NOT_LOSSLESS

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
STAND_INS = ("the runner: a seed per request, and positions that advance by the returned tokens",)
SEEDS = ("requests: 2, 3, .. by their slots, or their own; positions start at the seed of the generator",)


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
        temperature, seed = torch.ones(size + 1), 1 + torch.arange(size + 1)
        for row, slot in zip(rows, slots.tolist(), strict=True):
            draft[slot, : len(row.draft_tokens)] = row.draft_probs.log()
            temperature[slot] = 0.0 if row.is_greedy else 1.0
            seed[slot] = 1 + slot if row.seed is None else row.seed
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
            seed=seed,
            num_speculative_steps=steps,
        )
        generator.manual_seed(first + int(accepted.max()))
        return list(map(first_tokens, sampled, accepted.tolist(), lengths))

    return sampler


def first_tokens(tokens: torch.Tensor, count: int, length: int) -> list[int]:
    """So many tokens: at most one per drafted token and placeholder, and one more."""
    if not 0 <= count <= length + 1:
        raise UndefinedDrawError(f"it says that it returns {count} tokens for {length} drafted ones")
    return tokens[:count].tolist()


def _drafted(row: Row) -> torch.Tensor:
    """The token before the drafts, the drafts, placeholders."""
    tokens = [0, *row.draft_tokens.tolist(), *[PLACEHOLDER] * row.padding]
    return torch.tensor(tokens, dtype=torch.int32)


_TOKEN = Subject(
    LIBRARY,
    FUNCTION,
    rejection_sample,
    {"a4167068d1d10a36c130e2924b12cbf01f99c968f2fcf47e75a1129d3d8022c8": LIBRARY.tested},
    "batch",
    mistake=("target_logprob > tl.log(u) + draft_logprob", "target_logprob < tl.log(u) + draft_logprob"),
    settings={"mixes": MIXES, "stand_ins": STAND_INS, "seeds": SEEDS},
)
SUBJECTS = {
    "vllm-v2": _TOKEN,
    "vllm-v2-block": _TOKEN._replace(
        mistake=("tl.where(u <= h, i + 1", "tl.where(u >= h, i + 1"), options={"use_block_verification": True}
    ),
    "vllm-v2-synthetic": _TOKEN._replace(
        verdict=RELAXATION,
        mistake=("accepted_length += accepted", "accepted_length += 1"),
        options=SYNTHETIC,
        settings={**_TOKEN.settings, "relaxation": AT_RATES},
    ),
    "vllm-v2-fly": _TOKEN._replace(
        verdict=NOT_LOSSLESS,
        mistake=None,
        options=FLY,
        settings={**_TOKEN.settings, "relaxation": FLY_LAW},
    ),
}
