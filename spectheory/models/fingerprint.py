"""Fingerprints of models and tokenizers, by content and not by name."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from spectheory.foundation.documents import json_sha256
from spectheory.models.known_models import known_name
from spectheory.models.loading import BUNDLED, BUNDLED_FOLDER

VALUES_PER_PARAMETER = 4096
"""Entries of each parameter that are looked at, evenly spaced: cheap for large models, and training a model
further changes nearly all of them."""


def config_identity(config: Any) -> dict[str, Any]:
    """Name, revision and content of a configuration; known before weights are loaded.

    Returns:
        ``name``: hub name, or the folder as an absolute path; ``revision``: of the hub, where the loader
        knows it; ``config``: sha256 of everything else.
    """
    content = config.to_dict()
    name = content.pop("_name_or_path", None) or getattr(config, "_name_or_path", "")
    folder = Path(name)
    if name and folder.is_dir():
        name = BUNDLED if folder.parent == BUNDLED_FOLDER else known_name(folder) or str(folder.resolve())
    # What the loader adds: neither where the model lies nor the type asked for is a property of the model.
    for key in ("transformers_version", "dtype", "torch_dtype"):
        content.pop(key, None)
    return {
        "name": name,
        "revision": getattr(config, "_commit_hash", None),
        "config": json_sha256(content),
    }


def weights_identity(model: Any) -> dict[str, Any]:
    """Type and content of loaded weights.

    Returns:
        ``dtype``: of the weights; ``sha256``: over name, shape, type and up to ``VALUES_PER_PARAMETER``
        evenly spaced entries of every parameter and buffer.
    """
    digest = sha256()
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        flat = tensor.detach().reshape(-1)
        count = min(len(flat), VALUES_PER_PARAMETER)
        places = torch.arange(count, device=flat.device) * len(flat) // max(count, 1)
        digest.update(flat[places].contiguous().view(torch.uint8).cpu().numpy().tobytes())
    return {"dtype": str(model.dtype).removeprefix("torch."), "sha256": digest.hexdigest()}


def tokenizer_identity(tokenizer: Any) -> str:
    """sha256 of the vocabulary, an empty one where there is no tokenizer."""
    return json_sha256({} if tokenizer is None else tokenizer.get_vocab())
