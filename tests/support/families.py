"""Tiny random models of many families, from their configurations, with a vocabulary of 48 tokens."""

from collections.abc import Callable
from typing import Any

import torch

from later import Later
from spectheory.models import LanguageModelPair

models = Later("transformers")

VOCAB_SIZE = 48
IDS: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
COMMON: dict[str, Any] = {
    **IDS, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 96,
}  # fmt: skip
FAMILIES: dict[str, Callable[[], torch.nn.Module]] = {
    "llama": lambda: models.LlamaForCausalLM(models.LlamaConfig(**COMMON)),
    "gpt2": lambda: models.GPT2LMHeadModel(
        models.GPT2Config(n_embd=16, n_layer=2, n_head=2, n_positions=96, **IDS)
    ),
    "opt": lambda: models.OPTForCausalLM(
        models.OPTConfig(
            hidden_size=16, ffn_dim=32, num_hidden_layers=2, num_attention_heads=2, word_embed_proj_dim=16,
            max_position_embeddings=96, **IDS,
        )
    ),
    "qwen2": lambda: models.Qwen2ForCausalLM(models.Qwen2Config(**COMMON)),
    "gemma": lambda: models.GemmaForCausalLM(models.GemmaConfig(**COMMON)),
    "gemma2, sliding and full": lambda: models.Gemma2ForCausalLM(
        models.Gemma2Config(sliding_window=20, **COMMON)
    ),
    "mistral, sliding": lambda: models.MistralForCausalLM(
        models.MistralConfig(sliding_window=12, **COMMON)
    ),
    "mamba": lambda: models.MambaForCausalLM(
        models.MambaConfig(hidden_size=16, state_size=4, num_hidden_layers=2, **IDS)
    ),
}  # fmt: skip


def family_pair(family: str) -> LanguageModelPair:
    """A target in float64 with uneven rows, and a draft that is the target with noise on its weights."""
    torch.manual_seed(1)
    target, draft = (FAMILIES[family]().double().eval() for _ in range(2))
    with torch.no_grad():
        for (name, weights), others in zip(target.named_parameters(), draft.parameters(), strict=True):
            if weights.ndim > 1 and "A_log" not in name:
                weights.normal_(std=0.3)
                others.copy_(weights + 0.1 * torch.randn_like(weights))
    return LanguageModelPair.of(target, draft)
