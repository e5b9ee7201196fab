"""Tiny random language models with a tiny tokenizer, saved where the real loading code reads them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from later import Later
from scripts import load
from spectheory.models import LanguageModelPair, SamplingOptions
from spectheory.models.drafting import DraftedBatch
from spectheory.models.sampling import scaled_logits

transformers = Later("transformers")

TEXTS = ["def main(argument):", "    return argument", "import argparse", "for index in range(10):"]
FAMILIES = ("llama", "gpt2")
# Three lengths; the shortest, of one token, is padded over its whole prefilled width.
PROMPTS = ["def main(argument):\n    return", "import", "x"]


def save_tokenizer(folder: Path, texts: list[str] = TEXTS, vocab_size: int = 280) -> None:
    """A byte-level BPE: 256 bytes, the end of text, and merges learnt from ``texts``."""
    script = load("scripts", "train_bundled_pair")
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=script.train_tokenizer(texts, vocab_size),
        bos_token=script.END_OF_TEXT,
        eos_token=script.END_OF_TEXT,
    ).save_pretrained(folder)


def save_model(folder: Path, family: str, seed: int, layers: int, vocab_size: int = 280) -> None:
    """A random model whose rows are far from uniform, stored in float16."""
    torch.manual_seed(seed)
    common: dict[str, Any] = {
        "vocab_size": vocab_size,
        "initializer_range": 0.15,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    model: Any
    if family == "llama":
        config = transformers.LlamaConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=layers,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=64,
            **common,
        )
        model = transformers.LlamaForCausalLM(config)
    else:
        model = transformers.GPT2LMHeadModel(
            transformers.GPT2Config(n_embd=32, n_layer=layers, n_head=2, n_positions=64, **common)
        )
    model.to(torch.float16).save_pretrained(folder)


def save_pair(folder: Path, family: str) -> tuple[Path, Path]:
    """(target, draft) folders: a deeper and a shallower random model with one tokenizer."""
    for side, seed, layers in (("target", 1, 2), ("draft", 2, 1)):
        save_model(folder / side, family, seed, layers)
        save_tokenizer(folder / side)
    return folder / "target", folder / "draft"


def full_row(model: torch.nn.Module, token_ids: list[int], options: SamplingOptions) -> torch.Tensor:
    """The row after a text, from one uncached, unpadded forward pass over all of it."""
    with torch.no_grad():
        logits = model(torch.tensor([token_ids])).logits[0, -1]
    return scaled_logits(logits, options).softmax(-1)


def largest_difference(
    pair: LanguageModelPair,
    batch: DraftedBatch,
    options: SamplingOptions = SamplingOptions(),  # noqa: B008
    prompts: Sequence[Any] = PROMPTS,
) -> float:
    """Largest deviation of any row of a batch drafted behind prompts from the one of a full pass."""
    differences = []
    for b, prompt in enumerate(prompts):
        for k, path in enumerate(batch.token_ids[b, : batch.paths.shape[1]].tolist()):
            for depth in range(len(path) + 1):
                text = pair.encode(prompt) + path[:depth]
                sides = [(pair.target_model, batch.target_rows)]
                if depth < len(path):
                    sides.append((pair.draft_model, batch.draft_rows))
                for model, rows in sides:
                    gap = rows[b, k, depth] - full_row(model, text, options)
                    differences.append(float(gap.abs().max()))
    assert len(differences) == len(prompts) * batch.paths.shape[1] * (2 * batch.paths.shape[2] + 1)
    return max(differences)
