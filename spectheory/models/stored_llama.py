"""Read the bundled models without transformers, which takes seconds to import.

``StoredLlama`` does the operations of ``LlamaForCausalLM`` of transformers in the same order, so that its
logits have the same bits on a CPU.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional


class StoredConfig(SimpleNamespace):
    """The fields of ``config.json``, by their names in transformers."""

    @staticmethod
    def read(folder: str) -> StoredConfig:
        return StoredConfig(**_fields(folder, "config.json"), name_or_path=folder, _name_or_path=folder)

    def get_text_config(self) -> StoredConfig:
        return self

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


class StoredTokenizer:
    """The tokenizer of ``tokenizer.json``, with the methods that we call of one of transformers."""

    def __init__(self, folder: str) -> None:
        self._tokens = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        self.bos_token_id = self._tokens.token_to_id(_fields(folder, "tokenizer_config.json")["bos_token"])

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": self._tokens.encode(text).ids}

    def decode(self, token_ids: list[int]) -> str:
        return self._tokens.decode(token_ids, skip_special_tokens=False)

    def get_vocab(self) -> dict[str, int]:
        return self._tokens.get_vocab()


class _Cache:
    """What ``CachedReading`` uses of ``DynamicCache`` of transformers: keys and values by layer."""

    def __init__(self) -> None:
        self.layers: list[SimpleNamespace] = []

    def update(self, number: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        if number == len(self.layers):
            self.layers.append(
                SimpleNamespace(keys=keys[:, :, :0], values=values[:, :, :0], is_initialized=True)
            )
        layer = self.layers[number]
        layer.keys, layer.values = torch.cat([layer.keys, keys], 2), torch.cat([layer.values, values], 2)
        return layer.keys, layer.values

    def batch_select_indices(self, rows: Tensor) -> None:
        for layer in self.layers:
            layer.keys, layer.values = layer.keys[rows], layer.values[rows]


class StoredLlama:
    """A Llama model with plain rotary embeddings, whose output layer has the weights of its embeddings.

    Args:
        folder: has the model in Hugging Face format.
        dtype: dtype of the weights; ``"auto"`` for the stored one.
    """

    new_cache = _Cache

    def __init__(self, folder: str, device: torch.device, dtype: str | torch.dtype) -> None:
        # ``end_of_sequence`` reads ``generation_config``, and config.json has the token.
        self.config = self.generation_config = StoredConfig.read(folder)
        kept = self.config.dtype if dtype == "auto" else dtype
        self.device, self.dtype = device, getattr(torch, kept) if isinstance(kept, str) else kept
        weights = load_file(Path(folder) / "model.safetensors", device=str(device))
        self._weights = {name: array.to(self.dtype) for name, array in weights.items()}

    def parameters(self) -> Iterator[Tensor]:
        return iter(self._weights.values())

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values: _Cache | None = None,
        use_cache: bool = False,
        logits_to_keep: int = 0,
    ) -> SimpleNamespace:
        """Compute the ``logits`` of the last positions; arguments as in transformers."""
        shape, weights = (*input_ids.shape, -1, self.config.head_dim), self._weights
        if position_ids is None:
            position_ids = torch.arange(shape[1], device=self.device).expand(shape[:2])
        rotation, cache = self._rotation(position_ids), past_key_values or _Cache()
        hidden = functional.embedding(input_ids, weights["model.embed_tokens.weight"])
        for number in range(self.config.num_hidden_layers):

            def linear(name: str, rows: Tensor, layer: str = f"model.layers.{number}") -> Tensor:
                return functional.linear(rows, weights[f"{layer}.{name}.weight"])

            rows = self._norm(hidden, f"layers.{number}.input_layernorm")
            heads = [linear(f"self_attn.{kind}_proj", rows).view(shape).transpose(1, 2) for kind in "qkv"]
            queries, keys, values = *(_rotated(array, *rotation) for array in heads[:2]), heads[2]
            keys, values = cache.update(number, keys, values)
            seen = functional.scaled_dot_product_attention(
                queries, keys, values, attention_mask, is_causal=attention_mask is None and shape[1] > 1
            )
            hidden = hidden + linear("self_attn.o_proj", seen.transpose(1, 2).flatten(2))
            rows = self._norm(hidden, f"layers.{number}.post_attention_layernorm")
            gated = functional.silu(linear("mlp.gate_proj", rows)) * linear("mlp.up_proj", rows)
            hidden = hidden + linear("mlp.down_proj", gated)
        rows = self._norm(hidden, "norm")[:, -logits_to_keep:]
        return SimpleNamespace(logits=functional.linear(rows, weights["model.embed_tokens.weight"]))

    __call__ = forward

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        rows = hidden.float()
        rows = rows * torch.rsqrt(rows.pow(2).mean(-1, keepdim=True) + self.config.rms_norm_eps)
        return self._weights[f"model.{name}.weight"] * rows.to(self.dtype)

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines of the angles of every position.  [B, n] -> [B, 1, n, size of a head] each"""
        size, base = self.config.head_dim, self.config.rope_parameters["rope_theta"]
        powers = torch.arange(0, size, 2, device=self.device).float() / size
        angles = (positions[:, None, :, None].float() * (1.0 / base**powers)).repeat(1, 1, 1, 2)
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)


def _rotated(array: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    first, second = array.chunk(2, dim=-1)
    return array * cosines + torch.cat([-second, first], dim=-1) * sines


def _fields(folder: str, name: str) -> dict[str, Any]:
    return json.loads((Path(folder) / name).read_text(encoding="utf-8"))
