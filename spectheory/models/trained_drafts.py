"""Drafts that were trained for one target, and use its embeddings and output layer.

We store the trained weights: decoder layers, the final norm, a matrix between this norm and the output layer
of the target, and ids and biases of the tokens that can be drafted.  Matrices have one byte per weight and
one scale per row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from spectheory.models.derived_drafts import keep_layers, shared_copy

WEIGHTS, PROJECTION = "weights.safetensors", "projection"


@dataclass(frozen=True)
class TrainedDraft:
    """A trained draft shipped with the package.

    Attributes:
        target: name of the known model that it was trained for.
        folder: folder with weights, model card and record of the training.
        num_layers: number of decoder layers.
        about: size and license.
    """

    target: str
    folder: Path
    num_layers: int
    about: str


TRAINED_DRAFTS: Mapping[str, TrainedDraft] = {
    "smollm2-draft": TrainedDraft(
        "smollm2",
        Path(__file__).parent / "smollm2_draft",
        2,
        "draft of smollm2 with 2 layers, 7 million parameters of its own, 8192 tokens, Apache-2.0",
    )
}
"""Map from name to draft."""


def trained_draft(model: Any, folder: Path) -> Any:
    """Build the draft stored in a folder, with the embeddings and the output layer of its target.

    Args:
        model: the target, a causal language model of transformers with its layers in ``layers``.
        folder: output of ``scripts/train_draft.py``.

    Returns:
        A model in the form of transformers.  Tokens that cannot be drafted have logits of -infinity.
    """
    from safetensors.torch import load_file

    stored = load_file(folder / WEIGHTS)
    tokens, bias = stored.pop("tokens").long().to(model.device), stored.pop("bias")
    own = {}
    for name, value in stored.items():
        if not name.endswith(".scale"):
            scale = stored.get(f"{name}.scale")
            value = value.float() if scale is None else value.float() * scale.float()[:, None]
            own[f"{model.base_model_prefix}.{name}"] = value.to(model.device, model.dtype)
    projection = own.pop(f"{model.base_model_prefix}.{PROJECTION}")
    count = 1 + max(int(name.split(".")[1]) for name in stored if name.startswith("layers."))
    found = shared_copy(model)
    keep_layers(found.config, count)
    found.config.derived = [folder.name]
    del found.base_model.layers[count:]
    found.load_state_dict(own, strict=False, assign=True)  # changes the copy only
    rows = model.get_output_embeddings().weight[tokens] @ projection
    found.set_output_embeddings(
        _FewRows(rows, bias.to(rows), tokens.to(model.device), model.config.vocab_size)
    )
    return found.requires_grad_(False).eval()


class _FewRows(torch.nn.Module):
    """Some rows of an output layer, plus a bias; the logits of all other tokens are -infinity."""

    rows: Tensor
    bias: Tensor
    tokens: Tensor

    def __init__(self, rows: Tensor, bias: Tensor, tokens: Tensor, vocab_size: int) -> None:
        super().__init__()
        self.register_buffer("rows", rows)
        self.register_buffer("bias", bias)
        self.register_buffer("tokens", tokens)
        self.vocab_size = vocab_size

    def forward(self, hidden: Tensor) -> Tensor:
        """Compute logits of all tokens from hidden states.  [..., H] -> [..., V]"""
        logits = hidden.new_full((*hidden.shape[:-1], self.vocab_size), -torch.inf)
        logits[..., self.tokens] = hidden @ self.rows.T + self.bias
        return logits
