"""Reading models and tokenizers from disk or hub, with one clear line when it cannot be done."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from spectheory.errors import InvalidInputError, TokenizerMismatchError
from spectheory.extras import installed

BUNDLED = "bundled"
BUNDLED_FOLDER = Path(__file__).parent / "bundled"


def import_transformers() -> ModuleType:
    """The transformers library, imported only when a model is loaded.

    Raises:
        MissingDependencyError: it is not installed.
    """
    with installed():
        import transformers
    return transformers


def load_model(side: str, name: str | Path, device: torch.device, dtype: str | torch.dtype) -> Any:
    """The causal language model of one side, in evaluation mode on ``device``.

    Args:
        side: ``"target"`` or ``"draft"``; names the model in errors and picks the bundled one.
        name: a local folder in Hugging Face format, a hub name, or ``"bundled"``.

    Raises:
        InvalidInputError: there is no such model, it cannot be loaded, or weights are missing.
    """
    transformers = import_transformers()
    source, local = _resolve_source(side, name)
    try:
        model, report = transformers.AutoModelForCausalLM.from_pretrained(
            source, dtype=dtype, local_files_only=local, output_loading_info=True
        )
    except Exception as error:  # whatever the loader raises becomes one line that names the model
        raise _not_loaded(f"{side} model", name, error) from None
    if report["missing_keys"]:
        # transformers would fill them with random numbers and only warn.
        first = min(str(key) for key in report["missing_keys"])
        raise InvalidInputError(
            f"the {side} model {str(name)!r} lacks {len(report['missing_keys'])} weights its config asks "
            f"for, such as {first}; save it again with save_pretrained"
        )
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    return model.to(device).eval()


def load_tokenizer(side: str, name: str | Path) -> Any:
    """The tokenizer of one side; same arguments and errors as ``load_model``."""
    transformers = import_transformers()
    source, local = _resolve_source(side, name)
    try:
        return transformers.AutoTokenizer.from_pretrained(source, local_files_only=local)
    except Exception as error:  # whatever the loader raises becomes one line that names the model
        raise _not_loaded(f"tokenizer of the {side}", name, error) from None


def check_same_tokenizer(target_tokenizer: Any, draft_tokenizer: Any) -> None:
    """Both map the same tokens to the same ids.

    Raises:
        TokenizerMismatchError: they do not; the text names the first token on which they differ.
    """
    target_vocab, draft_vocab = target_tokenizer.get_vocab(), draft_tokenizer.get_vocab()
    if target_vocab == draft_vocab:
        return
    differing = {
        token
        for token in target_vocab.keys() | draft_vocab.keys()
        if target_vocab.get(token) != draft_vocab.get(token)
    }
    token = min(differing, key=lambda t: (min(target_vocab.get(t, 1 << 62), draft_vocab.get(t, 1 << 62)), t))
    raise TokenizerMismatchError(
        f"target and draft have different tokenizers ({len(target_vocab)} and {len(draft_vocab)} tokens, "
        f"{len(differing)} differ): token {token!r} has id {target_vocab.get(token, 'none')} in the target "
        f"and {draft_vocab.get(token, 'none')} in the draft; use two models with one tokenizer"
    )


def shared_vocab_size(tokenizer: Any, target_model: Any, draft_model: Any) -> int:
    """V: the number of ids both models score.

    Some checkpoints pad the output layer beyond the tokenizer, not always alike; ids that only one
    model scores are padding and are cut off.

    Raises:
        TokenizerMismatchError: a model does not score every token of the tokenizer.
    """
    needed = max(tokenizer.get_vocab().values()) + 1
    sizes = {"target": target_model.config.vocab_size, "draft": draft_model.config.vocab_size}
    for side, size in sizes.items():
        if size < needed:
            raise TokenizerMismatchError(
                f"the {side} model scores {size} tokens, but the tokenizer has ids up to {needed - 1}; "
                "use a tokenizer that belongs to the model"
            )
    return min(sizes.values())


def _resolve_source(side: str, name: str | Path) -> tuple[str, bool]:
    """(what to hand to from_pretrained, whether it is a local folder)."""
    folder = BUNDLED_FOLDER / side if name == BUNDLED else Path(name).expanduser()
    if folder.is_dir():
        if not (folder / "config.json").is_file():
            raise InvalidInputError(
                f"the {side} {str(name)!r} is a folder without config.json; "
                "expected a model saved with save_pretrained"
            )
        return str(folder), True
    if name == BUNDLED:
        raise InvalidInputError(
            f"the bundled {side} model is not installed at {folder}; reinstall spectheory, "
            "or train it with scripts/train_bundled_pair.py"
        )
    if folder.is_file():
        raise InvalidInputError(
            f"the {side} {str(name)!r} is a file; expected the folder of a model saved with save_pretrained"
        )
    if isinstance(name, Path) or _looks_local(name):
        raise InvalidInputError(
            f"the {side} folder {str(name)!r} does not exist; give the folder of a model saved with "
            'save_pretrained, a hub name such as "gpt2", or "bundled"'
        )
    return name, False


def _looks_local(name: str) -> bool:
    """Whether the name can only be a path, so that no hub is asked: hub names are NAME or OWNER/NAME."""
    if not name or name.startswith((".", "~", os.sep)) or "\\" in name or name.endswith("/"):
        return True
    return name.count("/") > 1 or ("/" in name and Path(name).parent.is_dir())


def _not_loaded(what: str, name: str | Path, error: Exception) -> InvalidInputError:
    lines = str(error).strip().splitlines() or ["no further message"]
    return InvalidInputError(
        f"the {what} {str(name)!r} could not be loaded ({type(error).__name__}: {lines[0].strip()}); "
        "expected a causal language model in Hugging Face format"
    )
