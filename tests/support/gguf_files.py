"""GGUF files of tiny Llama models, written by the library of the format."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from later import Later

gguf = Later("gguf")

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip


def interleaved(weights: np.ndarray, heads: int) -> np.ndarray:
    """The format rotates neighbouring coordinates of a head, and transformers those of its two halves."""
    return weights.reshape(heads, 2, -1, weights.shape[1]).swapaxes(1, 2).reshape(weights.shape)


def write_gguf(file: Path, model: Any, tokenizer_file: Path, *, interleave: bool = True) -> None:
    """Write a Llama model in float32, and a byte-level BPE out of its ``tokenizer.json``."""
    config, writer = model.config, gguf.GGUFWriter(file, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_vocab_size(config.vocab_size)
    content = json.loads(tokenizer_file.read_text())
    ids = content["model"]["vocab"] | {entry["content"]: entry["id"] for entry in content["added_tokens"]}
    special = {entry["content"] for entry in content["added_tokens"]}
    tokens = sorted(ids, key=ids.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge)
                             for merge in content["model"]["merges"]])  # fmt: skip
    writer.add_bos_token_id(config.bos_token_id)
    writer.add_eos_token_id(config.eos_token_id)
    for name, weights in model.state_dict().items():
        stem = name.removesuffix(".weight")
        number, _, part = stem.removeprefix("model.layers.").partition(".")
        array = weights.float().numpy()
        if interleave and stem.endswith(("q_proj", "k_proj")):
            heads = config.num_attention_heads if "q_proj" in stem else config.num_key_value_heads
            array = interleaved(array, heads)
        inside = stem.startswith("model.layers.")
        writer.add_tensor(f"blk.{number}.{NAMES[part]}.weight" if inside else f"{NAMES[stem]}.weight", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
